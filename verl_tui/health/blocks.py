"""Several metrics cut into blocks at the same steps, so that diagnoses compare like with like."""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from verl_tui.health.conditions.windows import rolling, trends

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from verl_tui.health.conditions.windows import Flags, Numbers, Places
    from verl_tui.runs.series import Series

_TRIM = 5
"""From so many values on, a block's mean leaves out the least and the greatest (outliers)."""
_TO_SIGMA = 0.886
"""Mean size of the differences between neighbours times this is the standard deviation of normal
noise.
"""


class Blocks(NamedTuple):
    """Blocks of the same metrics, one after the other, as columns of numbers. Methods return a
    figure for each block, which depends on none after it.
    """

    first: Places
    last: Places
    """Steps of the first metric's first and last point."""
    settled: Places
    """Step from which on a block does not change any more: the first metric's next one."""
    levels: Numbers
    """Level of each metric (first axis) in each block; nan where it has no finite value there."""
    errors: Numbers
    """Its standard error by the differences of neighbours, nan below two values."""
    known: Numbers
    """The newest level up to each block, nan before the first one."""
    lowest: Numbers
    highest: Numbers
    """The lowest and the highest level from the log's first block up to each."""

    @property
    def size(self) -> int:
        """Number of blocks."""
        return len(self.first)

    def slopes(self, i: int, size: int) -> tuple[Places, Numbers, Numbers]:
        """Return how many of the last so many blocks have a level of a metric, and change and t of
        the trend of these.
        """
        is_known = ~np.isnan(self.levels[i])
        until = np.append(0, np.cumsum(is_known))
        last, places = until[1:], np.arange(self.size)
        counts = last - until[np.maximum(0, places + 1 - size)]
        lines = np.zeros((2, self.size))
        for count in np.unique(counts).tolist():
            some = counts == count
            lines[:, some] = trends(self.levels[i][is_known], count, last[some] - 1)
        return counts, lines[0], lines[1]

    def moves(self, i: int, size: int, t: float, share: float) -> Flags:
        """Return where the last so many blocks of a metric have a trend of so many standard errors
        by so large a share of its size; it falls where t is negative.
        """
        _, change, found_t = self.slopes(i, size)
        way = math.copysign(1, t)
        least = share * lately(abs(self.levels[i]), size, np.fmax)
        found: Flags = (way * found_t >= abs(t)) & (way * change >= least)
        return found

    def before(self, i: int, count: int) -> Numbers:
        """Return the level of a metric so many blocks before, the first one where there are
        fewer.
        """
        level: Numbers = self.known[i][np.maximum(0, np.arange(self.size) - count)]
        return level

    def brink(self, i: int, at: int, share: float, size: int) -> int:
        """Return the last of the last so many blocks in which a metric had gone no more than a
        share of its way from the first of them to a block.
        """
        start = max(0, at - size)
        way = self.known[i][start : at + 1]
        begun = way[np.isfinite(way)][0]
        gone = (way - begun) * np.sign(way[-1] - begun)
        return start + int(np.flatnonzero(gone <= share * abs(way[-1] - begun))[-1])


def full_blocks(series: Series | None, size: int, end: int | None) -> int:
    """Return how many blocks of so many points of a metric will not change any more.

    Args:
        series: The metric.
        size: Points a block.
        end: Step the run has reached; points of an abandoned segment beyond it are left out.
            None = no end.
    """
    if series is None:
        return 0
    # The newest point may still change.
    stop = (len(series) if end is None else bisect_right(series.steps, end)) - 1
    return max(0, stop // size)


def blocks(series: Sequence[Series | None], size: int, count: int) -> Blocks:
    """Cut metrics at every so many points of the first one into a number of blocks."""
    driver = series[0]
    steps = np.array([] if driver is None else driver.steps, np.int64)
    first, last, settled = (steps[at::size][:count] for at in (0, size - 1, size))
    figures = np.array([_levels_and_errors(one, last) for one in series])
    levels, errors = figures.transpose(1, 0, 2)
    known = np.array([*map(last_known, levels)])
    low, high = (of.accumulate(levels, axis=1) for of in (np.fmin, np.fmax))
    return Blocks(first, last, settled, levels, errors, known, low, high)


def last_known(levels: Numbers) -> Numbers:
    """Return at each block the level of the newest one that has one, nan before the first."""
    known = np.where(np.isnan(levels), 0, np.arange(len(levels)))
    return levels[np.maximum.accumulate(known)]


def lately(levels: Numbers, count: int, of: np.ufunc = np.fmin) -> Numbers:
    """Return the lowest of the last so many levels at each block, or the highest (`fmax`)."""
    padded = np.append(np.full(count - 1, np.nan), levels)
    return rolling(padded, count, of)[count - 1 :]


def noise(levels: Numbers) -> Numbers:
    """Return the usual error of all levels up to each block, by the differences of neighbours; nan
    before there are two.
    """
    is_known = ~np.isnan(levels)
    steps = np.append(0.0, abs(np.diff(levels[is_known])))
    with np.errstate(invalid="ignore"):
        errors = _TO_SIGMA * np.cumsum(steps) / np.arange(len(steps))
    found = np.full(len(levels), np.nan)
    found[is_known] = errors
    return last_known(found)


def _levels_and_errors(series: Series | None, last: Places) -> tuple[Numbers, Numbers]:
    """Return the mean of the finite values of each block, without the least and the greatest where
    there are several, and its standard error; a slope or a step within them hardly counts.
    """
    nothing = np.full(len(last), math.nan)
    if series is None or not len(series) or not len(last):
        return nothing, nothing
    stops = np.searchsorted(np.array(series.steps, np.int64), last, side="right")
    values = np.array(series.values, np.float64)[: stops[-1]]
    finite = np.isfinite(values)
    known = values[finite]
    ends = np.append(0, np.cumsum(finite))[stops]
    edges = np.append(0, ends)
    counts = np.diff(edges)
    with np.errstate(over="raise", divide="ignore", invalid="ignore"):
        total = _reduced(np.add, known.astype(np.longdouble), edges).astype(np.float64)
        low = _reduced(np.minimum, known, edges)
        high = _reduced(np.maximum, known, edges)
        inner = (total - low - high) / (counts - 2)
        level = np.where(counts >= _TRIM, inner, total / counts)
    level[counts == 0] = math.nan
    with np.errstate(all="ignore"):
        squares = np.square(np.diff(known))
        between = edges[(edges > 0) & (edges < len(known))]
        squares[between - 1] = 0.0  # between two blocks
        spread = _reduced(np.add, np.append(squares, 0.0)[: len(known)], edges)
        error = np.sqrt(spread / (2 * (counts - 1)) / counts)
    error[counts < 2] = math.nan
    return level, error


def _reduced(of: np.ufunc, values: NDArray[np.floating], edges: Places) -> Numbers:
    """Reduce the values between each two edges; anything where there are none."""
    found: Numbers = of.reduceat(np.append(values, values.dtype.type(0)), edges)[:-1]
    return found
