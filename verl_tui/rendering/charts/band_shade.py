"""The healthy band as a shade behind a plot, on terminals that have backgrounds.

A style that ends in `ON_BAND` has the background of the band and is else the style before that.
"""

from __future__ import annotations

from math import ceil, inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from verl_tui.rendering.charts.alarms import Healthy
    from verl_tui.rendering.charts.braille import Text

ON_BAND = "+healthy"
_DOTS = 4
"""Dot rows of a row of cells."""


def rows_in_band(healthy: Healthy, rows: int) -> range:
    """Return the rows of cells at least half of which are in the band, but at least one for a
    narrower band.

    Args:
        healthy: The dot rows that are in the band.
        rows: Rows of cells there are.
    """
    if healthy == (-inf, inf) or healthy.top >= rows * _DOTS or healthy.bottom < 0:
        return range(0)
    top = max(0, int(max(0, healthy.top)))
    bottom = int(min(rows * _DOTS - 1, healthy.bottom))
    first = ceil((top - _DOTS // 2) / _DOTS)
    stop = (bottom + 1 + _DOTS // 2) // _DOTS
    if first >= stop:
        first = (top + bottom) // 2 // _DOTS
        stop = first + 1
    return range(max(0, first), min(rows, stop))


def on_band(row: Text, first: int = 0, last: int | None = None) -> Text:
    """Return a row with the background of the band from one cell up to another; each character
    takes a cell.
    """
    at = 0
    found = []
    for text, style in row:
        start = min(len(text), max(0, first - at))
        stop = len(text) if last is None else min(len(text), max(start, last - at))
        found += [
            (text[:start], style),
            (text[start:stop], style + ON_BAND),
            (text[stop:], style),
        ]
        at += len(text)
    return tuple([piece for piece in found if piece[0]])
