"""The rows of a log in sight."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

from verl_tui.tui.widgets.rows import Rows

if TYPE_CHECKING:
    from textual import events


class LogRows(Rows):
    """The rows in sight; moves are left to the screen, which knows the whole log."""

    DEFAULT_CSS = "LogRows { overflow: hidden hidden; }"

    class Moved(Message):
        """The user moves to other rows."""

        def __init__(self, what: str, by: int) -> None:
            self.what = what
            self.by = by
            super().__init__()

    class Resized(Message):
        """The number of rows in sight has changed."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(choosing=True, id=id)

    def on_resize(self) -> None:
        """Ask for as many rows as fit now."""
        self.post_message(self.Resized())

    def action_move(self, by: int) -> None:
        """Move by rows."""
        self.post_message(self.Moved("row", by))

    def action_page(self, by: int) -> None:
        """Move by a screenful."""
        self.post_message(self.Moved("page", by))

    def action_end(self, way: int) -> None:
        """Go to the beginning or the end of the log."""
        self.post_message(self.Moved("end", way))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Move down."""
        event.stop()
        self.action_move(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Move up."""
        event.stop()
        self.action_move(-3)
