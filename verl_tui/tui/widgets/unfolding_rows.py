"""Rows of a text that is folded to fit, and unfolds once the user scrolls on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.tui.widgets.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual import events


class UnfoldingRows(Rows):
    """Scrolling rows; at their ends the text is unfolded first."""

    def __init__(self, unfold: Callable[[], bool]) -> None:
        """Make the rows.

        Args:
            unfold: Shows the whole text, from its beginning; returns False if that is shown
                already.
        """
        super().__init__()
        self._unfold = unfold

    def _at_end(self, way: int) -> bool:
        if way > 0:
            return self.scroll_y >= self.max_scroll_y
        return self.scroll_y <= 0

    def action_move(self, by: int) -> None:
        """Scroll by one, or unfold."""
        if not (self._at_end(by) and self._unfold()):
            super().action_move(by)

    def action_page(self, by: int) -> None:
        """Scroll by a screenful, or unfold."""
        if not (self._at_end(by) and self._unfold()):
            super().action_page(by)

    def action_end(self, way: int) -> None:
        """Go to the first or last row of the whole text."""
        self._unfold()
        super().action_end(way)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Unfold where there is nothing more to scroll."""
        if self._at_end(1) and self._unfold():
            event.prevent_default()
            event.stop()
