"""A filter that keeps the whole screen to ASCII, Textual's frames and scroll bars as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.segment import Segment
from textual.filter import LineFilter

from verl_tui.rendering.text.ascii_table import in_ascii

if TYPE_CHECKING:
    from textual.color import Color


class AsciiOnly(LineFilter):
    """Replaces other characters by one that resembles them, or by a question mark for each cell."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the line in ASCII, as wide as before."""
        return [
            segment
            if segment.text.isascii()
            else Segment(in_ascii(segment.text), segment.style, segment.control)
            for segment in segments
        ]
