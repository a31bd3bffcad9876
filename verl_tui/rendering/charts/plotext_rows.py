"""Rows of plotext as rows of styled text: colours become roles, no escape sequence is left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from verl_tui.patterns import pattern
from verl_tui.rendering.charts.braille import join
from verl_tui.rendering.charts.roles import ROLES

if TYPE_CHECKING:
    from verl_tui.rendering.charts.braille import Text

_FIRST_COLOUR = 100
"""Roles travel through plotext as palette colours from here on; what they look like is the theme's
business.
"""
_SGR = pattern(r"\x1b\[([0-9;]*)m")
_CURSOR = "┃"
_BEHIND = ("key", "restart")
"""Lines that the cursor's hides: the grid, and a restart in its column."""


def pixel(plotext: Any, role: str) -> Any:
    """Return what plotext draws a role with."""
    return plotext.pixel(
        foreground=_FIRST_COLOUR + ROLES.index(role if role in ROLES else "line")
    )


def split(line: str) -> Text:
    """Split a line of plotext's into stretches by role; all its escape sequences end here."""
    stretches: list[tuple[str, str]] = []
    role = ""
    for i, part in enumerate(_SGR.split(line)):
        if i % 2 == 0:
            if part:
                stretches.append((part, role))
        elif part.startswith("38;5;"):
            number = int(part[5:]) - _FIRST_COLOUR
            role = ROLES[number] if 0 <= number < len(ROLES) else ""
        elif part in ("", "0"):
            role = ""
    return tuple(stretches)


def crossed(row: Text, x: int) -> Text:
    """Return a row with the cursor in column `x`."""
    cells = [(glyph, style) for text, style in row for glyph in text]
    if x < len(cells):
        glyph, style = cells[x]
        cells[x] = (_CURSOR if glyph == " " or style in _BEHIND else glyph, "cursor")
    return join(cells)


def overwritten(row: Text, x: int, text: str, role: str) -> Text:
    """Return a row with a text written over it from column `x` on."""
    cells = [(glyph, style) for part, style in row for glyph in part]
    cells[x : x + len(text)] = [(glyph, role) for glyph in text]
    return join(cells)
