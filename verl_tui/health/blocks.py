"""Several metrics cut into blocks at the same steps, so that diagnoses compare like with like."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, overload

import numpy as np

from verl_tui.health.conditions.windows import rolling

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import NDArray

    from verl_tui.health.conditions.windows import Numbers, Places
    from verl_tui.runs.series import Series

_TRIM = 5
"""From so many values on, a block's mean leaves out the least and the greatest (outliers)."""


class Block(NamedTuple):
    """A stretch of steps, with the level of each metric in it."""

    first: int
    last: int
    """Steps of the first metric's first and last point."""
    levels: tuple[float, ...]
    """Mean of each metric over these steps, nan where it has no finite value there."""
    settled_step: int
    """Step of the first metric's next point: until then the last one might have changed."""
    errors: tuple[float, ...] = ()
    """Standard error of each level by the differences of neighbours, nan below two values; empty if
    not computed.
    """


class BlockHistory(Sequence[Block]):
    """Blocks of the same metrics, one after the other, held as columns of numbers; a part of it is
    a view.
    """

    __slots__ = ("_errors", "_levels", "_steps")

    def __init__(
        self,
        steps: Places,
        levels: Numbers,
        errors: Numbers,
    ) -> None:
        """Begin with what is known, a row each block.

        Args:
            steps: First, last and settled step.
            levels: The level of each metric.
            errors: The standard errors of these, no columns where there are none.
        """
        self._steps = steps
        self._levels = levels
        self._errors = errors

    def levels(self, i: int) -> Numbers:
        """Return the level of a metric in each block."""
        return self._levels[:, i]

    def settled_steps(self) -> list[int]:
        """Return the step of each block from which on it does not change any more."""
        found: list[int] = self._steps[:, 2].tolist()
        return found

    def errors(self, i: int) -> Numbers:
        """Return the standard error of a metric's level in each block, if they have errors."""
        return self._errors[:, i] if self._errors.size else np.empty(0)

    def __len__(self) -> int:
        return len(self._steps)

    @overload
    def __getitem__(self, at: int) -> Block: ...

    @overload
    def __getitem__(self, at: slice) -> BlockHistory: ...

    def __getitem__(self, at: int | slice) -> Block | BlockHistory:
        if isinstance(at, slice):
            return self._part(at)
        first, last, settled = self._steps[at].tolist()
        levels = tuple(self._levels[at].tolist())
        return Block(first, last, levels, settled, tuple(self._errors[at].tolist()))

    def _part(self, at: slice | list[int]) -> BlockHistory:
        return BlockHistory(self._steps[at], self._levels[at], self._errors[at])

    def first_from(self, step: int) -> int:
        """Return the place of the first block that ends at a step or later."""
        return int(np.searchsorted(self._steps[:, 1], step))

    def thinned(self, most: int) -> BlockHistory:
        """Return so many blocks, evenly spread, and the last one."""
        stride = len(self) // most + 1
        if stride == 1:
            return self
        return self._part([*range(0, len(self) - 1, stride), len(self) - 1])

    def begins_with(self, other: BlockHistory) -> bool:
        """Return whether its first blocks are those of another history."""
        pairs = (
            (self._steps, other._steps),
            (self._levels, other._levels),
            (self._errors, other._errors),
        )
        count = len(other)
        return all(
            np.array_equal(one[:count], another, equal_nan=True)
            for one, another in pairs
        )

    def reach(self) -> tuple[Numbers, Numbers]:
        """Return the lowest and the highest level of each metric up to each block."""
        low: Numbers = np.fmin.accumulate(self._levels, axis=0)
        high: Numbers = np.fmax.accumulate(self._levels, axis=0)
        return low, high


NONE = BlockHistory(np.empty((0, 3), np.int64), *np.empty((2, 0, 0)))


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


def blocks(
    series: Sequence[Series | None], size: int, count: int, *, errors: bool = False
) -> BlockHistory:
    """Cut metrics at every so many points of the first one.

    Args:
        series: The metrics, the first one sets the pace.
        size: Points of the first metric a block.
        count: Number of blocks.
        errors: Whether blocks have standard errors of their levels.
    """
    driver = series[0]
    if driver is None or not count:
        return NONE
    steps = np.array(driver.steps, np.int64)
    last = steps[size - 1 : count * size : size]
    edges = (steps[: count * size : size], last, steps[size : count * size + 1 : size])
    both = [_levels_and_errors(one, last, errors=errors) for one in series]
    levels = np.column_stack([level for level, _ in both])
    found = [error for _, error in both if errors]
    return BlockHistory(
        np.column_stack(edges),
        levels,
        np.column_stack(found) if found else np.empty((count, 0)),
    )


def last_known(levels: Numbers) -> Numbers:
    """Return at each block the level of the newest one that has one, nan before the first."""
    known = np.where(np.isnan(levels), 0, np.arange(len(levels)))
    return levels[np.maximum.accumulate(known)]


def lately(levels: Numbers, count: int) -> Numbers:
    """Return the lowest of the last so many levels at each block."""
    padded = np.append(np.full(count - 1, np.inf), levels)
    return rolling(padded, count, np.fmin)[count - 1 :]


def _levels_and_errors(
    series: Series | None, last: Places, *, errors: bool
) -> tuple[Numbers, Numbers]:
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
    if not errors:
        return level, nothing
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
