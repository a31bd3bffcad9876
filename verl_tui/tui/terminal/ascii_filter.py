"""A filter that keeps the whole screen to ASCII, Textual's frames and scroll bars as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.segment import Segment
from textual.filter import LineFilter

from verl_tui.rendering.text.ascii_table import LIKE

if TYPE_CHECKING:
    from textual.color import Color


class AsciiOnly(LineFilter):
    """Replaces other characters by one that resembles them, or by a question mark for each cell."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the line in ASCII, as wide as before."""
        return [
            s if s.text.isascii() else Segment(_ascii(s.text), s.style, s.control) for s in segments
        ]


def _ascii(text: str) -> str:
    return "".join(
        sign if sign.isascii() else LIKE.get(sign) or "?" * cell_len(sign) for sign in text
    )
