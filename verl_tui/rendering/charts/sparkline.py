"""Pictures one row high: a sparkline of a series, a gauge of a share."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from verl_tui.rendering.charts.axes import SINGLE
from verl_tui.rendering.text.numbers import compact
from verl_tui.rendering.text.wrap import fit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
    middles = _middles(lows, highs)
    _repeat(middles, odds, -(-_apart(points) // per))
    return "".join(_glyphs(middles, odds, _BLOCKS))


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


def _apart(points: Points) -> int:
    """Return the usual distance of points in steps."""
    length = points.steps[-1] - points.steps[0]
    gaps = max(1, len(points.steps) - 1)
    return max(1, length // gaps)


def _repeat(middles: list[float | None], odds: Sequence[bool], most: int) -> None:
    """Fill the columns between points with the value before, so many in a row at most."""
    last = None
    free = 0
    for at, middle in enumerate(middles):
        if middle is not None or odds[at]:
            last = middle
            free = most
        elif free > 0:
            middles[at] = last
            free -= 1


def _middles(lows: list[float | None], highs: list[float | None]) -> list[float | None]:
    """Return the middle of each column, None where it has no number."""
    return [
        # Halves: the sum and the difference of huge numbers would overflow.
        None if low is None or high is None else low / 2 + high / 2
        for low, high in zip(lows, highs, strict=True)
    ]


def _glyphs(
    middles: Sequence[float | None], odds: Sequence[bool], levels: str
) -> Iterator[str]:
    """Yield the glyph of each column: the level of its middle, a space where it has no number."""
    known = [middle for middle in middles if middle is not None]
    least = min(known, default=0.0) / 2
    extent = max(known, default=0.0) / 2 - least
    flat = extent <= abs(least) * SINGLE or extent < _TINY
    top = len(levels) - 1
    for middle, odd in zip(middles, odds, strict=True):
        if odd:
            yield BROKEN
        elif middle is None:
            yield " "
        elif flat:
            yield levels[len(levels) // 2 - 1]
        else:
            share = (middle / 2 - least) / extent
            yield levels[min(top, int(share * len(levels)))]


_WIDEST = 3
"""Cells of a bar at most."""
_SCALED = 4
"""Rows from which on the ends are written below the bars, too."""
_LEAST = 16
"""Cells below which a histogram is described in words alone."""


def histogram_words(bins: Bins, unit: str = "") -> str:
    """Describe a histogram: how many values lie where, and where most of them do."""
    total = sum(bins.counts)
    fullest = max(range(len(bins.counts)), key=bins.counts.__getitem__)
    unit = f" {unit}" if unit else ""
    if bins.high <= bins.low:
        return f"{compact(total)} values, all {compact(bins.low)}{unit}"
    width = (bins.high - bins.low) / len(bins.counts)
    begin = bins.low + fullest * width
    share = f"{bins.counts[fullest] / total:.0%}" if total else "none"
    return (
        f"{compact(total)} values from {compact(bins.low)} to {compact(bins.high)}{unit}, "
        f"{share} of them from {compact(begin)} to {compact(begin + width)}"
    )


def bars(counts: Sequence[float], width: int, height: int) -> list[str]:
    """Return rows of bars, the tallest as high as all of them; every bin that is not empty is
    visible.
    """
    shown = counts if len(counts) <= width else _fewer(counts, width)
    cells, top = _cells(len(shown), width), max(shown)
    return [row.rstrip() for row in _upright(shown, top, height, cells)]


def _upright(
    values: Sequence[float], top: float, height: int, cells: int = 1
) -> list[str]:
    """Return rows of upright bars of so many cells, as tall as all of them at the top value; what
    is not 0 is visible.
    """
    levels = len(_BLOCKS)
    tall = [
        max(1, round(value / top * height * levels)) if value > 0 else 0
        for value in values
    ]
    return [
        "".join(
            f" {_BLOCKS}"[min(levels, max(0, high - row * levels))] * cells
            for high in tall
        )
        for row in reversed(range(height))
    ]


def strip(values: Sequence[float], width: int) -> str:
    """Return the newest percentages as a row of blocks."""
    return tall(values, width, 1)[0]


def tall(values: Sequence[float], width: int, height: int) -> list[str]:
    """Return the newest percentages as columns of blocks; 0 is a line, as a space means unknown."""
    shown = values[-width:] if width > 0 else ()
    known = [0.0 if math.isnan(one) else min(100.0, max(0.1, one)) for one in shown]
    return _upright(known, 100.0, height)


def _cells(count: int, width: int) -> int:
    return min(_WIDEST, max(1, width // count))


def _scale(bins: Bins, width: int) -> str:
    """Return the ends of a histogram as they stand below its bars."""
    count = min(len(bins.counts), width)
    low = compact(bins.low)
    high = compact(bins.high)
    drawn = count * _cells(count, width)
    return low + high.rjust(max(len(high) + 1, drawn - len(low)))


def _fewer(counts: Sequence[float], width: int) -> list[float]:
    """Return as many bins as there are cells, neighbours put together."""
    together = -(-len(counts) // width)
    starts = range(0, len(counts), together)
    return [sum(counts[start : start + together]) for start in starts]


def histogram_rows(
    title: str, bins: Bins, unit: str, width: int, height: int
) -> list[str]:
    """Return a histogram in at most `height` rows: its words, its bars and their scale."""
    if height < 1 or width < 1:
        return []
    rows = [fit(f"{title}{histogram_words(bins, unit)}", width, "…")]
    if height == 1 or width < _LEAST or bins.high <= bins.low:
        return rows
    scaled = height >= _SCALED
    rows += bars(bins.counts, width, height - 1 - scaled)
    if scaled:
        return [*rows, _scale(bins, width)]
    return rows
