"""A histogram as bars over a line of its ends, and in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.rendering.text.numbers import compact
from verl_tui.rendering.text.wrap import fit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.distributions import Bins

_BLOCKS = " ▁▂▃▄▅▆▇█"
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
    levels = len(_BLOCKS) - 1
    cells = _cells(len(shown), width)
    top = max(shown)
    tall = [
        max(1, round(count / top * height * levels)) if count > 0 else 0
        for count in shown
    ]

    def drawn(row: int) -> str:
        below = row * levels
        filled = [min(levels, max(0, high - below)) for high in tall]
        return "".join(_BLOCKS[level] * cells for level in filled).rstrip()

    return [drawn(row) for row in reversed(range(height))]


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
