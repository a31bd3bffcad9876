"""Percentages over time as columns of blocks on a scale from 0 to 100, in one row or several."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_EIGHTHS = " ▁▂▃▄▅▆▇█"


def level_glyph(percent: float) -> str:
    """Return one block as high as a percentage; 0 is a line, as a space means unknown."""
    return _block(percent, 0, 1)


def strip(values: Sequence[float], width: int) -> str:
    """Draw the last `width` percentages as a row of blocks, a space where there is no number."""
    return tall(values, width, 1)[0]


def tall(values: Sequence[float], width: int, height: int) -> list[str]:
    """Draw the last `width` percentages as columns of `height` rows, from top to bottom.

    Args:
        values: Percentages, oldest first; nan leaves a column empty.
        width: Columns at most.
        height: Rows, at least one.
    """
    shown = values[-width:] if width > 0 else ()
    return [
        "".join(_block(value, row, height) for value in shown)
        for row in reversed(range(height))
    ]


def _block(percent: float, row: int, height: int) -> str:
    """Return the block of a column in one row, counted from the bottom."""
    if not math.isfinite(percent):
        return " "
    filled = max(1, round(min(max(percent, 0.0), 100.0) / 100 * height * 8))
    return _EIGHTHS[min(8, max(0, filled - 8 * row))]
