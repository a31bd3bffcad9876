"""Several metrics cut into blocks at the same steps, so that diagnoses compare like with like."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from verl_tui.health.conditions.trend import trend, trends
from verl_tui.health.conditions.windows import TO_SIGMA, rolling, rows

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from numpy.typing import NDArray

    from verl_tui.health.conditions.trend import Trend
    from verl_tui.health.conditions.windows import Flags, Numbers, Places
    from verl_tui.runs.series import Series

_TRIM = 5
"""From so many values on, a block's mean leaves out the least and the greatest (outliers)."""
_MANY = 100
"""Most blocks that describe a finding."""


@dataclass(frozen=True, eq=False)
class Blocks:
    """Blocks of the same metrics, one after the other, as columns of numbers; a slice is a view."""

    first: Places
    last: Places
    """Steps of the first metric's first and last point."""
    settled: Places
    """Step from which on a block does not change any more: the first metric's next one."""
    levels: Numbers
    """Level of each metric (first axis) in each block; nan where it has no finite value there."""
    errors: Numbers
    """Its standard error by the differences of neighbours, nan below two values."""
    lowest: Numbers
    highest: Numbers
    """The lowest and the highest level from the log's first block up to each."""

    def __len__(self) -> int:
        return len(self.first)

    def __getitem__(self, part: slice | Places) -> Blocks:
        edges = (self.first[part], self.last[part], self.settled[part])
        figures = (self.levels, self.errors, self.lowest, self.highest)
        return Blocks(*edges, *(one[:, part] for one in figures))

    def known(self, i: int) -> list[float]:
        """Return the levels of a metric, without the blocks that lack it."""
        levels = self.levels[i]
        known: list[float] = levels[~np.isnan(levels)].tolist()
        return known

    def course(self, i: int) -> Trend:
        """Return the trend of a metric."""
        return trend(self.known(i))

    def slopes(
        self, i: int, places: Places, size: Places | int
    ) -> tuple[Places, Numbers, Numbers]:
        """Return of the last so many blocks up to each of some places how many have a level of a
        metric, and change and t of the trend of these.
        """
        is_known = ~np.isnan(self.levels[i])
        until = np.append(0, np.cumsum(is_known))
        last = until[places + 1]
        counts = last - until[np.maximum(0, places + 1 - size)]
        lines = np.zeros((2, len(places)))
        for count in np.unique(counts).tolist():
            some = counts == count
            known = self.levels[i][is_known]
            lines[:, some] = trends(known, count, last[some] - 1)
        return counts, lines[0], lines[1]

    def moves(self, i: int, places: Places, size: int, t: float, share: float) -> Flags:
        """Return at which places the last so many blocks of a metric have a trend of so many
        standard errors by so large a share of its size; it falls where t is negative.
        """
        _, change, found_t = self.slopes(i, places, size)
        way = math.copysign(1, t)
        least = share * self.largest(i, places, size)
        found: Flags = (way * found_t >= abs(t)) & (way * change >= least)
        return found

    def largest(self, i: int, places: Places, size: int) -> Numbers:
        """Return the largest size of the last so many levels of a metric at some places."""
        padded = np.append(np.full(size - 1, np.nan), abs(self.levels[i]))
        found: Numbers = rolling(padded, size, np.fmax)[size - 1 :][places]
        return found

    def reach(self, i: int) -> tuple[float, float]:
        """Return the lowest and the highest level up to the last block."""
        return float(self.lowest[i, -1]), float(self.highest[i, -1])

    def since(self, step: int) -> Blocks:
        """Return the blocks that end at a step or later; many are thinned out, so that cost stays
        bounded.
        """
        first, last = int(np.searchsorted(self.last, step)), len(self) - 1
        places = [*range(first, last, (last + 1 - first) // _MANY + 1), last]
        return self[np.array(places)]


def settled(
    series: Sequence[Series | None], size: int, end: int | None
) -> tuple[int, Hashable]:
    """Return how many blocks will not change any more, and all that they depend on besides that.

    Args:
        series: The metrics; the first one sets the pace. None where the log has none.
        size: Points of the first metric a block.
        end: Step the run has reached; points of an abandoned segment beyond it are left out.
            None = no end.
    """
    driver = series[0]
    if driver is None:
        return 0, None
    # The newest point may still change.
    stop = (len(driver) if end is None else bisect_right(driver.steps, end)) - 1
    return max(0, stop // size), tuple([one and one.revision for one in series])


def blocks(series: Sequence[Series | None], size: int, count: int) -> Blocks:
    """Cut metrics at every so many points of the first one.

    Args:
        series: The metrics, the first one sets the pace.
        size: Points of the first metric a block.
        count: Number of blocks.
    """
    driver = series[0]
    steps = np.array([] if driver is None else driver.steps, np.int64)
    first, last, settled = (steps[at::size][:count] for at in (0, size - 1, size))
    figures = np.array([_levels_and_errors(one, last) for one in series])
    levels, errors = figures.transpose(1, 0, 2)
    low, high = (of.accumulate(levels, axis=1) for of in (np.fmin, np.fmax))
    return Blocks(first, last, settled, levels, errors, low, high)


def last_known(levels: Numbers) -> Numbers:
    """Return at each block the level of the newest one that has one, nan before the first."""
    known = np.where(np.isnan(levels), 0, np.arange(len(levels)))
    return levels[np.maximum.accumulate(known)]


def following(levels: Numbers) -> Numbers:
    """Return at each block the level of the next one that has one, itself if it does."""
    return last_known(levels[::-1])[::-1]


def lately(levels: Numbers, count: int) -> Numbers:
    """Return the lowest of the last so many levels at each block."""
    padded = np.append(np.full(count - 1, np.inf), levels)
    return rolling(padded, count, np.fmin)[count - 1 :]


def noises(levels: Numbers, sizes: Places, stops: Places) -> Numbers:
    """Return the usual error of the last so many levels before each of some places, by the
    differences of neighbours; nan where there are fewer than two.
    """
    found = np.full(len(sizes), np.nan)
    steps = abs(np.diff(levels))
    for size in np.unique(sizes[sizes > 1]).tolist():
        some = sizes == size
        found[some] = np.median(rows(steps, size - 1, stops[some] - 2), axis=1)
    return TO_SIGMA * found / math.sqrt(2)


def noise(levels: Sequence[float]) -> float:
    """Return the usual error of levels."""
    count = np.array([len(levels)])
    return float(noises(np.array(levels), count, count)[0])


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
