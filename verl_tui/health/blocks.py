"""Several metrics cut into blocks at the same steps, so that diagnoses compare like with like."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, NamedTuple, overload

import numpy as np

from verl_tui.health.conditions.trend import trend, trends
from verl_tui.health.conditions.windows import TO_SIGMA, rolling

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import NDArray

    from verl_tui.health.conditions.trend import Trend
    from verl_tui.health.conditions.windows import Numbers, Places
    from verl_tui.runs.series import Series

_TRIM = 5
"""From so many values on, a block's mean leaves out the least and the greatest (outliers)."""
_MANY = 100
"""Most blocks that describe a finding."""


class Block(NamedTuple):
    """A stretch of steps, with the level of each metric in it."""

    first: int
    last: int
    """Steps of the first metric's first and last point."""
    levels: tuple[float, ...]
    """Mean of each metric over these steps, nan where it has no finite value there."""


class BlockHistory(Sequence[Block]):
    """Blocks of the same metrics, one after the other, held as columns of numbers; a part of it is
    a view.
    """

    __slots__ = ("_figures", "_steps")

    def __init__(self, steps: Places, figures: Numbers) -> None:
        """Hold what is known, a row each block.

        Args:
            steps: First, last and settled step.
            figures: Level, its standard error, and the lowest and the highest level so far, each of
                all metrics.
        """
        self._steps = steps
        self._figures = figures

    def __len__(self) -> int:
        return len(self._steps)

    @overload
    def __getitem__(self, at: int) -> Block: ...

    @overload
    def __getitem__(self, at: slice) -> BlockHistory: ...

    def __getitem__(self, at: int | slice) -> Block | BlockHistory:
        if isinstance(at, slice):
            return BlockHistory(self._steps[at], self._figures[at])
        first, last, _ = self._steps[at].tolist()
        return Block(first, last, tuple(self._figures[at, 0].tolist()))

    def settled_steps(self) -> list[int]:
        """Return the step of each block from which on it does not change any more: that of the
        first metric's next point.
        """
        found: list[int] = self._steps[:, 2].tolist()
        return found

    def levels(self, i: int) -> Numbers:
        """Return the level of a metric in each block."""
        return self._figures[:, 0, i]

    def known(self, i: int) -> list[float]:
        """Return the levels of a metric, without the blocks that lack it."""
        levels = self._figures[:, 0, i]
        known: list[float] = levels[~np.isnan(levels)].tolist()
        return known

    def course(self, i: int) -> Trend:
        """Return the trend of a metric."""
        levels = self.levels(i)
        return trend(levels[~np.isnan(levels)])

    def moves(self, i: int, t: float, share: float) -> bool:
        """Return whether a metric has a trend of so many standard errors by so large a share of its
        size; it falls where t is negative.
        """
        line = self.course(i)
        way = math.copysign(1, t)
        least = share * max(map(abs, self.known(i)), default=math.inf)
        return way * line.t >= abs(t) and way * line.change >= least

    def slopes(
        self, i: int, places: Places, sizes: Places
    ) -> tuple[Places, Numbers, Numbers]:
        """Return of the last so many blocks up to each of some places how many have a level of a
        metric, and change and t of the trend of these.
        """
        is_known = ~np.isnan(self.levels(i))
        until = np.append(0, np.cumsum(is_known))
        last = until[places + 1]
        counts = last - until[np.maximum(0, places + 1 - sizes)]
        lines = np.zeros((2, len(places)))
        for count in np.unique(counts).tolist():
            some = counts == count
            known = self.levels(i)[is_known]
            lines[:, some] = trends(known, count, last[some] - 1)
        return counts, lines[0], lines[1]

    def errors(self, i: int) -> Numbers:
        """Return the standard error of a metric's level in each block by the differences of
        neighbours, nan below two values.
        """
        return self._figures[:, 1, i]

    def lowest(self, i: int) -> Numbers:
        """Return the lowest level of a metric from the log's first block up to each; nan where it
        has none.
        """
        return self._figures[:, 2, i]

    def highest(self, i: int) -> Numbers:
        """Return the highest level of a metric from the log's first block up to each."""
        return self._figures[:, 3, i]

    def reach(self, i: int) -> tuple[float, float]:
        """Return the lowest and the highest level up to the last block."""
        low, high = self._figures[-1, 2:, i].tolist()
        return low, high

    def since(self, step: int) -> BlockHistory:
        """Return the blocks that end at a step or later; many are thinned out, so that cost stays
        bounded.
        """
        first, last = int(np.searchsorted(self._steps[:, 1], step)), len(self) - 1
        places = [*range(first, last, (last + 1 - first) // _MANY + 1), last]
        return BlockHistory(self._steps[places], self._figures[places])

    def begins_with(self, other: BlockHistory) -> bool:
        """Return whether its first blocks are those of another history."""
        count = len(other)
        return np.array_equal(self._steps[:count], other._steps) and np.array_equal(
            self._figures[:count], other._figures, equal_nan=True
        )


def history(steps: Places, levels: Numbers, errors: Numbers) -> BlockHistory:
    """Return blocks by their own figures, see `BlockHistory`."""
    low, high = (of.accumulate(levels, axis=0) for of in (np.fmin, np.fmax))
    return BlockHistory(steps, np.stack((levels, errors, low, high), axis=1))


NONE = history(np.empty((0, 3), np.int64), *np.empty((2, 0, 0)))


def settled(
    series: Sequence[Series | None], size: int, end: int | None
) -> tuple[int, Hashable]:
    """Return how many blocks will not change any more, and all that they depend on.

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
    count = max(0, stop // size)
    last = driver.steps[count * size - 1] if count else -1
    return count, tuple(
        [
            (one.revision, bisect_right(one.steps, last)) if one is not None else None
            for one in series
        ]
    )


def blocks(series: Sequence[Series | None], size: int, count: int) -> BlockHistory:
    """Cut metrics at every so many points of the first one.

    Args:
        series: The metrics, the first one sets the pace.
        size: Points of the first metric a block.
        count: Number of blocks.
    """
    driver = series[0]
    if driver is None or not count:
        return NONE
    steps = np.array(driver.steps, np.int64)
    last = steps[size - 1 : count * size : size]
    edges = (steps[: count * size : size], last, steps[size : count * size + 1 : size])
    levels, errors = zip(
        *(_levels_and_errors(one, last) for one in series), strict=True
    )
    return history(*map(np.column_stack, (edges, levels, errors)))


def last_known(levels: Numbers) -> Numbers:
    """Return at each block the level of the newest one that has one, nan before the first."""
    known = np.where(np.isnan(levels), 0, np.arange(len(levels)))
    return levels[np.maximum.accumulate(known)]


def lately(levels: Numbers, count: int) -> Numbers:
    """Return the lowest of the last so many levels at each block."""
    padded = np.append(np.full(count - 1, np.inf), levels)
    return rolling(padded, count, np.fmin)[count - 1 :]


def noise(levels: Sequence[float]) -> float:
    """Return the usual error of levels, by the differences of neighbours."""
    steps = [abs(after - before) for before, after in pairwise(levels)]
    return TO_SIGMA * median(steps) / math.sqrt(2)


def _levels_and_errors(series: Series | None, last: Places) -> tuple[Numbers, Numbers]:
    """Return the mean of the finite values of each block, without the least and the greatest where
    there are several, and its standard error; a slope or a step within them hardly counts.
    """
    nothing = np.full(len(last), math.nan)
    if series is None or not len(series):
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
