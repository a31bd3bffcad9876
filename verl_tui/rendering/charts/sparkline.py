"""Pictures one row high: a sparkline of a series, a gauge of a share."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from verl_tui.means import clamp
from verl_tui.rendering.charts.axes import SINGLE
from verl_tui.rendering.charts.chart_data import MARKS, Mark
from verl_tui.rendering.text.numbers import compact
from verl_tui.rendering.text.piece import Pieces, fit, joined
from verl_tui.words import behind, figure

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from verl_tui.distributions import Bins
    from verl_tui.runs.series import Points


_BLOCKS = "▁▂▃▄▅▆▇█"
_LEVELS = _BLOCKS[:-1]
"""Levels of one row: full ones of neighbouring rows would be one picture."""
_TINY = 1e-300
"""Differences below this count as none: their reciprocals overflow."""
_BROKEN = "!"
"""Stands where a value is no number."""


def sparkline(
    points: Points,
    width: int,
    role: str,
    *,
    broken: str = "odd",
    ends: tuple[int | None, int | None] = (None, None),
    marks: Iterable[Mark] = (),
    signs: bool = False,
    from_zero: bool = False,
) -> Pieces:
    """Draw a series as a row of blocks, at most `width` characters wide and as long as there are
    points.

    Each column stands for the same number of steps, a power of two counted from step 0, so that a
    new point changes only the end of the row. It shows the middle between the least and the
    greatest value of its steps, between points that lie farther apart the last one; `!` where one
    of them is no number. A single point has no shape, and the row is empty.

    Args:
        points: The series.
        width: Columns at most.
        role: What colours it.
        broken: The same where a value is no number.
        ends: Where to begin and to end, the first and the last point by default.
        marks: What happened, in the colour of the blocks; a sign only where there is none.
        signs: Whether signs replace blocks, too, as there are no colours.
        from_zero: Whether the blocks begin at 0, as those of what adds up.
    """
    steps = points.steps
    if width < 1 or len(steps) < 2:
        return []
    start, per, count = _window(steps[0], steps[-1], width, ends)
    lows, highs, odds = points.query(start * per, per, count)
    apart = max(1, (steps[-1] - steps[0]) // (len(steps) - 1))
    middles = _middles(lows, highs, odds, -(-apart // per))
    numbers = [middle for middle in middles if middle is not None]
    numbers += [0.0, float(not any(numbers))] * from_zero
    least, most = min(numbers, default=0.0), max(numbers, default=0.0)
    cells = [
        (_BROKEN, broken) if odd else (_glyph(middle, least, most), role)
        for middle, odd in zip(middles, odds, strict=True)
    ]
    free = f" {_LEVELS * signs}"
    for mark in marks:
        if 0 <= (column := mark.step // per - start) < count:
            there = cells[column][0]
            cells[column] = (MARKS[mark.role][0] if there in free else there, mark.role)
    return joined(cells)


def _window(
    first: int, last: int, width: int, ends: tuple[int | None, int | None]
) -> tuple[int, int, int]:
    """Return the first column, counted from step 0, how many steps a column stands for, and how
    many columns.
    """
    first = first if ends[0] is None else ends[0]
    last = last if ends[1] is None else ends[1]
    per = 1
    while last // per - first // per >= width and per <= last - first:
        per *= 2
    return first // per, per, min(width, max(0, last // per - first // per + 1))


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
        return _LEVELS[len(_LEVELS) // 2]
    at = int((middle / 2 - least / 2) / extent * len(_LEVELS))
    return _LEVELS[clamp(at, 0, len(_LEVELS) - 1)]


def gauge(fraction: float, width: int, role: str) -> Pieces:
    """Draw a bar that fills `fraction` of exactly `width` columns, in halves of a column; thin, so
    that those of neighbouring rows stay apart.

    A value that is not a number fills nothing, one outside 0 .. 1 is clipped.
    """
    width = max(0, width)
    share = 0.0 if math.isnan(fraction) else clamp(fraction, 0.0, 1.0)
    full, half = divmod(round(share * width * 2), 2)
    filled = "━" * full + "╸" * half
    rest = "─" * (width - len(filled))
    return [piece for piece in ((filled, role), (rest, "unfilled")) if piece[0]]


# -- upright bars ----------------------------------------------------------------------------------

_WIDEST = 3
"""Cells of a bar of a histogram at most."""
_LEAST = 16
"""Cells below which a histogram is described in words alone."""


def _upright(values: Sequence[float], top: float, height: int) -> list[str]:
    """Return rows of upright bars, which end an eighth below the row above at most; what is not 0
    is visible.
    """
    glyphs, levels = f" {_BLOCKS}", len(_BLOCKS)
    whole = height * levels - 1
    bars = [max(1, round(one / top * whole)) if one > 0 else 0 for one in values]
    return [
        "".join(glyphs[min(levels, max(0, bar - row * levels))] for bar in bars)
        for row in reversed(range(height))
    ]


def tall(values: Sequence[float], width: int, height: int) -> list[str]:
    """Return the newest percentages as columns of blocks; 0 is a line, as a space means unknown."""
    shown = values[-width:] if width > 0 else ()
    known = [0.0 if math.isnan(one) else clamp(one, 0.1, 100.0) for one in shown]
    return _upright(known, 100.0, height)


def histogram_rows(
    title: str, bins: Bins, unit: str, width: int, height: int
) -> list[str]:
    """Return a histogram in at most `height` rows: in words, how many values lie where and where
    most of them do, and its bars.
    """
    if height < 1 or width < 1:
        return []
    counts, count, total = bins.counts, len(bins.counts), sum(bins.counts)
    each = (bins.high - bins.low) / count
    begin = bins.low + max(range(count), key=counts.__getitem__) * each
    share = max(counts) / max(1, total)

    def span(*ends: float) -> str:
        return " to ".join([figure(one, unit, compact) for one in ends])

    where = f"{share:.0%} of them from {span(begin, begin + each)}"
    ends = f"from {span(bins.low, bins.high)}{behind(unit)}"
    words = f"{title}{compact(total)} values {ends}, {where}"
    if height == 1 or width < _LEAST or each <= 0:
        return [fit(words, width)]
    cells = min(width, count * _WIDEST)
    shown = [
        max(counts[x * count // cells : -(-(x + 1) * count // cells)])
        for x in range(cells)
    ]
    bars = _upright(shown, max(shown), height - 1)
    return [fit(words, width), *(row.rstrip() for row in bars)]
