"""One line of text that repaints only when it has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.style import Style
from rich.text import Text
from textual.strip import Strip

from verl_tui.rendering.text.hues import FAMILIES
from verl_tui.tui.widgets.role_styled import RoleStyled

if TYPE_CHECKING:
    from collections.abc import Iterable

    from verl_tui.rendering.text.piece import Piece
    from verl_tui.tui.widgets.role_styled import Looks


class Line(RoleStyled):
    """One line of pieces at the left and at the right; the left ones are cut first."""

    LOOKS: ClassVar[Looks] = {
        "strong": "bold",
        "dim": "$text-muted",
        "good": "$text-success",
        "warning": "$text-warning",
        "critical": "bold $text-error",
        "accent": "$text-accent",
        **FAMILIES,
    }
    DEFAULT_CSS = """
    Line {
        height: 1;
        width: 1fr;
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, markup=False)
        self._left: tuple[Piece, ...] = ()
        self._right: tuple[Piece, ...] = ()

    def show(self, left: Iterable[Piece], right: Iterable[Piece] = ()) -> None:
        """Show these pieces; repaints only if they are new."""
        shown = (tuple(left), tuple(right))
        if shown != (self._left, self._right):
            self._left, self._right = shown
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """Return the line."""
        width = self.size.width
        if y > 0 or width < 1:
            return Strip.blank(width, self.rich_style)
        right = self._text(self._right)
        if right.cell_len > width // 2:
            right = Text()
        room = max(0, width - right.cell_len - (1 if right else 0))
        pieces = list(self._left)
        left = self._text(pieces)
        while left.cell_len > room and len(pieces) > 1:
            # Half a word at the end is misleading: the last pieces matter least.
            pieces.pop()
            left = self._text(pieces)
        left.truncate(room, overflow="ellipsis")
        line = left + Text(" " * max(0, width - left.cell_len - right.cell_len)) + right
        strip = Strip(line.render(self.app.console)).adjust_cell_length(width)
        return strip.apply_style(self.rich_style)

    def _text(self, pieces: Iterable[Piece]) -> Text:
        text = Text()
        for words, role in pieces:
            text.append(words, self._ink(role))
        return text

    def _ink(self, role: str) -> Style:
        if not role:
            return Style.null()
        style = self.role_style(role)
        return Style(color=style.color, bold=style.bold)
