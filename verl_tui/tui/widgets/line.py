"""One line of text, and a few rows: both repaint only when they have changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.strip import Strip

from verl_tui.rendering.text.piece import cells_of
from verl_tui.rendering.text.printable import cut
from verl_tui.tui.widgets.role_styled import RoleStyled
from verl_tui.tui.widgets.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from verl_tui.rendering.text.piece import Pieces


class Line(RoleStyled):
    """One line of pieces at the left and at the right; the left ones are cut first."""

    DEFAULT_CSS = """
    Line {
        height: 1;
        width: 1fr;
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, markup=False)
        self._shown: tuple[Pieces, Pieces] = [], []

    def show(
        self, left: Iterable[tuple[str, str]], right: Iterable[tuple[str, str]] = ()
    ) -> None:
        """Show these pieces; repaints only if they are new."""
        shown = [*left], [*right]
        if shown != self._shown:
            self._shown = shown
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """Return the line."""
        width = self.size.width
        if y > 0 or width < 1:
            return Strip.blank(width, self.rich_style)
        left, right = self._shown
        left = [*left]
        if cells_of(right) > width // 2:
            right = []
        room = max(0, width - cells_of(right) - (1 if right else 0))
        while cells_of(left) > room and len(left) > 1:
            # Half a word at the end is misleading: the last pieces matter least.
            left.pop()
        left = cut(left, room, "…")
        gap = " " * max(0, width - cells_of(left) - cells_of(right))
        strip = self.inked([*left, (gap, ""), *right]).adjust_cell_length(width)
        return strip.apply_style(self.rich_style)


class FewRows(Rows, can_focus=False):
    """Rows in the colour of the widget; out of sight while there are none."""

    DEFAULT_CSS = """
    FewRows { height: 1; width: 1fr; padding: 0 1; display: none; overflow: hidden hidden; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, focus=False)

    @property
    def room(self) -> int:
        """Cells of a row."""
        return max(1, self.screen.size.width - 2)

    def show(self, rows: Sequence[Pieces]) -> None:
        """Show these rows."""
        if len(rows) != len(self.rows):
            self.styles.height = max(1, len(rows))
            self.display = bool(rows)
        self.set(rows)
