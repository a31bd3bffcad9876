"""Pictures one row high: a sparkline of a series, a gauge of a share."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from verl_tui.rendering.charts.axes import SINGLE
from verl_tui.rendering.text.numbers import compact
from verl_tui.rendering.text.wrap import fit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.distributions import Bins
    from verl_tui.rendering.charts.chart_data import Points
    from verl_tui.rendering.text.piece import Pieces


_BLOCKS = "▁▂▃▄▅▆▇█"
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_TINY = 1e-300
"""Differences below this count as none: their reciprocals overflow."""
BROKEN = "!"
"""Stands where a value is no number."""


def sparkline(
    points: Points,
    width: int,
    *,
    ends: tuple[int | None, int | None] = (None, None),
) -> str:
    """Draw a series as a row of blocks, at most `width` characters wide and as long as there are
    points.

    Each column stands for the same number of steps, a power of two counted from step 0, so that a
    new point changes only the end of the row. It shows the middle between the least and the
    greatest value of its steps, between points that lie farther apart the last one; `!` where one
    of them is no number. A single point has no shape, and the row is empty.

    Args:
        points: The series; nothing is read beyond what its pyramid knows.
        width: Columns at most.
        ends: Where to begin and to end, the first and the last point by default.
    """
    if width < 1 or len(points.steps) < 2:
        return ""
    start, per, count = _window(points, width, ends)
    lows, highs, odds = points.pyramid.query(start * per, per, count)
    gaps = max(1, len(points.steps) - 1)
    apart = max(1, (points.steps[-1] - points.steps[0]) // gaps)
    middles = _middles(lows, highs, odds, -(-apart // per))
    numbers = [middle for middle in middles if middle is not None]
    least, most = min(numbers, default=0.0), max(numbers, default=0.0)
    glyphs = (
        BROKEN if odd else _glyph(middle, least, most)
        for middle, odd in zip(middles, odds, strict=True)
    )
    return "".join(glyphs)


def _middles(
    lows: list[float | None], highs: list[float | None], odds: list[bool], most: int
) -> list[float | None]:
    """Return the middle of each column, between points the one before, at most so many times."""
    middles: list[float | None] = []
    last, left = None, 0
    for low, high, odd in zip(lows, highs, odds, strict=True):
        left -= 1
        if low is not None and high is not None:
            # Halves: the sum and the difference of huge numbers would overflow.
            last, left = low / 2 + high / 2, most
        elif odd:
            last = None
        middles.append(last if left >= 0 else None)
    return middles


def _glyph(middle: float | None, least: float, most: float) -> str:
    """Return the level of a value between two others, a space for none."""
    if middle is None:
        return " "
    extent = most / 2 - least / 2
    if extent <= max(abs(least / 2) * SINGLE, _TINY):
        return _BLOCKS[len(_BLOCKS) // 2 - 1]
    at = int((middle / 2 - least / 2) / extent * len(_BLOCKS))
    return _BLOCKS[min(len(_BLOCKS) - 1, at)]


def spark_pieces(blocks: str, role: str, *, broken: str = "odd") -> Pieces:
    """Return the blocks of a sparkline in a role each, another one where a value is no number."""
    return [(block, broken if block == BROKEN else role) for block in blocks]


def spark_column(
    points: Points,
    width: int,
    step: int,
    *,
    ends: tuple[int | None, int | None] = (None, None),
) -> int | None:
    """Return the column of a sparkline that a step falls on, None where it falls beside it."""
    if width < 1 or not points.steps:
        return None
    start, per, count = _window(points, width, ends)
    column = step // per - start
    return column if 0 <= column < count else None


def gauge(fraction: float, width: int) -> str:
    """Draw a bar that fills `fraction` of `width` columns, in eighths of a column; exactly `width`
    characters.

    A value that is not a number fills nothing, one outside 0 .. 1 is clipped.
    """
    if width < 1:
        return ""
    share = 0.0 if math.isnan(fraction) else min(1.0, max(0.0, fraction))
    full, rest = divmod(round(share * width * 8), 8)
    return ("█" * full + (_EIGHTHS[rest] if rest else "")).ljust(width)


def _window(
    points: Points, width: int, ends: tuple[int | None, int | None]
) -> tuple[int, int, int]:
    """Return the first column, counted from step 0, how many steps a column stands for, and how
    many columns.
    """
    first = points.steps[0] if ends[0] is None else ends[0]
    last = points.steps[-1] if ends[1] is None else ends[1]
    per = 1
    while last // per - first // per >= width and per <= last - first:
        per *= 2
    start = first // per
    return start, per, min(width, max(0, last // per - start + 1))


# -- upright bars ----------------------------------------------------------------------------------

_WIDEST = 3
"""Cells of a bar of a histogram at most."""
_LEAST = 16
"""Cells below which a histogram is described in words alone."""


def _upright(values: Sequence[float], top: float, height: int) -> list[str]:
    """Return rows of upright bars, as tall as all of them at the top value; what is not 0 is
    visible.
    """
    levels = len(_BLOCKS)
    whole = height * levels
    bars = [max(1, round(one / top * whole)) if one > 0 else 0 for one in values]
    glyphs = f" {_BLOCKS}"
    return [
        "".join(glyphs[min(levels, max(0, bar - row * levels))] for bar in bars)
        for row in reversed(range(height))
    ]


def tall(values: Sequence[float], width: int, height: int) -> list[str]:
    """Return the newest percentages as columns of blocks; 0 is a line, as a space means unknown."""
    shown = values[-width:] if width > 0 else ()
    known = [0.0 if math.isnan(one) else min(100.0, max(0.1, one)) for one in shown]
    return _upright(known, 100.0, height)


def histogram_rows(
    title: str, bins: Bins, unit: str, width: int, height: int
) -> list[str]:
    """Return a histogram in at most `height` rows: its words and its bars."""
    if height < 1 or width < 1:
        return []
    rows = [fit(f"{title}{_in_words(bins, unit)}", width)]
    if height == 1 or width < _LEAST or bins.high <= bins.low:
        return rows
    counts, count = bins.counts, len(bins.counts)
    cells = min(width, count * _WIDEST)
    shown = [
        max(counts[x * count // cells : -(-(x + 1) * count // cells)])
        for x in range(cells)
    ]
    return [*rows, *(row.rstrip() for row in _upright(shown, max(shown), height - 1))]


def _in_words(bins: Bins, unit: str) -> str:
    """Describe a histogram: how many values lie where, and where most of them do."""
    total = sum(bins.counts)
    fullest = max(range(len(bins.counts)), key=bins.counts.__getitem__)
    unit = f" {unit}" if unit else ""
    low, high = compact(bins.low), compact(bins.high)
    if bins.high <= bins.low:
        return f"{compact(total)} values, all {low}{unit}"
    width = (bins.high - bins.low) / len(bins.counts)
    begin = bins.low + fullest * width
    share = f"{bins.counts[fullest] / total:.0%}" if total else "none"
    return (
        f"{compact(total)} values from {low} to {high}{unit}, "
        f"{share} of them from {compact(begin)} to {compact(begin + width)}"
    )
