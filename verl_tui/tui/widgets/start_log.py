"""The end of a run's log where its charts will be, until it has some."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on

from verl_tui.tui.messages import Once
from verl_tui.tui.widgets.rows import Rows

if TYPE_CHECKING:
    from verl_tui.rendering.log.last_lines import LogTail
    from verl_tui.rendering.session.snapshot import View


class StartLog(Rows):
    """Rows of a log, out of sight while there are charts."""

    DEFAULT_CSS = """
    StartLog {
        display: none;
        height: 1fr;
    }
    """

    class Read(Once):
        """More of the log has been read."""

    def __init__(self) -> None:
        super().__init__()
        self._tail: LogTail | None = None
        self._view: View | None = None

    def show(self, view: View | None) -> None:
        """Show the end of the log of the shown run; read nothing any more where there is none."""
        self._view = view
        run = view.run if view is not None else None
        shown = run, run is not None and run.outcome is not None
        if self._tail is not None and shown != (self._tail.run, self._tail.ended):
            self.on_unmount()
            self._tail = None
        if self._tail is None and view is not None:
            from verl_tui.rendering.log.last_lines import LogTail

            self._tail = LogTail(view, lambda: self.post_message(self.Read()))
        self.redraw()

    @on(Read)
    def redraw(self) -> None:
        """Write the rows of what was shown last."""
        width, height = self.size
        if self._tail is None or self._view is None or not (width and height):
            return
        rows = self._tail.rows(self._view, width, height)
        if rows is not None:
            self.set(rows)

    def on_resize(self) -> None:
        """Show as many rows as fit now."""
        self.redraw()

    def on_unmount(self) -> None:
        """Stop reading."""
        if self._tail is not None:
            self._tail.stop()
