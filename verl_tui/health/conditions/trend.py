"""Trends: least squares over a window, and metrics that rise block by block."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from verl_tui.health.conditions.condition import (
    Condition,
    Spell,
    number,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.health.conditions.condition import Column, HeldBreach
    from verl_tui.health.conditions.windows import Numbers, Places


_FOOT = 0.1
"""Share of a rise below which it has not begun."""


_HUGE = 1e100
"""The squares of larger numbers overflow; broken runs do log such numbers."""
_VANISHED = 0.1
"""Share of the highest block so far below which a metric has all but vanished: heuristic. The
gradient norm of a task that is solved may double between a thousandth and two of what it was.
"""

_BLOCKS, _STRIDES = 5, (1, 2, 4)
"""Blocks whose medians must rise; every so many blocks are looked at."""


class Trend(NamedTuple):
    """A straight line through equally spaced values."""

    change: float
    """By how much the line rises from the first value to the last."""
    t: float
    """Change in units of its own standard error; beyond ±2 it is hardly chance."""


def trend(values: Sequence[float]) -> Trend:
    """Fit a line by least squares; too few values have no trend."""
    count = len(values)
    if count < 4:
        return Trend(0.0, 0.0)
    size = max(map(abs, values))
    if size > _HUGE:
        line = trend([value / size for value in values])
        return Trend(line.change * size, line.t)
    middle = (count - 1) / 2
    mean = fmean(values)
    spread = count * (count * count - 1) / 12
    slope = sum([(i - middle) * value for i, value in enumerate(values)]) / spread
    squares = [
        (value - mean - slope * (i - middle)) ** 2 for i, value in enumerate(values)
    ]
    error = math.sqrt(sum(squares) / (count - 2) / spread)
    change = slope * (count - 1)
    # A perfect line has no error: any slope is then beyond chance, none is none. Rounding leaves a
    # trace of both.
    if error <= 1e-12 * max(abs(mean), abs(slope)):
        is_level = abs(slope) * count <= 1e-9 * abs(mean)
        return Trend(change, 0.0 if is_level else math.copysign(math.inf, slope))
    return Trend(change, slope / error)


def trends(values: Numbers, size: int, last: Places) -> tuple[Numbers, Numbers]:
    """Return change and t of the windows of so many values that end at some places."""
    if size < 4:
        return np.zeros(len(last)), np.zeros(len(last))
    if abs(values).max(initial=0.0) > _HUGE:
        some = [trend(values[at - size + 1 : at + 1].tolist()) for at in last]
        both = np.array(some).reshape(len(some), 2)
        return both[:, 0], both[:, 1]
    start = last - size + 1
    middle = (size - 1) / 2
    mean, slope, squares = np.zeros((3, len(last)))
    for at in range(size):
        mean += values[start + at]
        slope += (at - middle) * values[start + at]
    spread = size * (size * size - 1) / 12
    mean /= size
    slope /= spread
    for at in range(size):
        squares += np.square(values[start + at] - mean - slope * (at - middle))
    error = np.sqrt(squares / (size - 2) / spread)
    with np.errstate(divide="ignore", invalid="ignore"):
        t: Numbers = slope / error
    # as in `trend`
    perfect = error <= 1e-12 * np.maximum(abs(mean), abs(slope))
    is_level = abs(slope) * size <= 1e-9 * abs(mean)
    t[perfect] = np.where(is_level, 0.0, np.copysign(np.inf, slope))[perfect]
    return slope * (size - 1), t


@dataclass(frozen=True)
class Rising(Condition):
    """Rises continuously: the medians of five blocks each exceed the one before, the last far above
    the first.

    Medians of blocks, because gradient norms have spikes; judged when a block is full. Slow rises
    are seen in every second and every fourth block. What has all but vanished does not rise.
    """

    window: int
    factor: float

    @property
    def cooldown(self) -> int:  # type: ignore[override]
        """Points within which a breach that comes back is the same one."""
        return self.window

    @property
    def needs(self) -> int:
        """Fewest points to judge."""
        return self.window

    @property
    def _size(self) -> int:
        return max(1, self.window // _BLOCKS)

    def _levels(self, column: Column) -> Numbers:
        """Return the medians of the blocks."""
        count = len(column) // self._size
        blocks = column.values[: count * self._size].reshape(count, self._size)
        return np.median(blocks, axis=1) if count else np.empty(0)

    def spells(self, column: Column) -> Iterator[Spell]:
        """Return all rises, each with the level that it began at."""
        levels = self._levels(column)
        highest = np.maximum.accumulate(np.append(0.0, levels))[1:]
        strides = np.zeros(len(levels), np.int64)
        for stride in reversed(_STRIDES):
            blocks = [levels[at * stride :] for at in range(_BLOCKS)]
            low, *_, high = [one[: len(blocks[-1])] for one in blocks]
            rises = (self.factor * low > 0) & (self.factor * low <= high)
            for before, after in pairwise(blocks):
                rises &= before[: len(high)] < after[: len(high)]
            strides[(_BLOCKS - 1) * stride :][rises] = stride
        strides[levels < _VANISHED * highest] = 0
        falls = np.flatnonzero(np.diff(levels) < 0) + 1
        until = -1
        for block in np.flatnonzero(strides).tolist():
            if block <= until:
                continue
            foot, rise = self._foot(levels, block, int(strides[block]))
            what = f"rose from {number(rise[0])} to {number(rise[-1])}"
            end = falls[np.searchsorted(falls, block + 1) :][:1].tolist()
            begin, raised = self._last(foot), self._last(block)
            over = self._last(end[0]) if end else None
            yield Spell(begin, raised, over, what, (float(levels[foot]),))
            if not end:
                return
            until = end[0]

    def _last(self, block: int) -> int:
        """Return the last place of a block."""
        return (block + 1) * self._size - 1

    def _foot(self, levels: Numbers, block: int, stride: int) -> tuple[int, Numbers]:
        """Return the last block at the old level (chance alone may order the blocks before it), and
        the levels of the rise.
        """
        start = block - (_BLOCKS - 1) * stride
        rise = levels[start : block + 1 : stride]
        highest = rise[0] + _FOOT * (rise[-1] - rise[0])
        return start + stride * int(np.flatnonzero(rise <= highest)[-1]), rise

    def report(self, held: HeldBreach) -> Sequence[str]:
        """Return the message on a breach that holds, and its evidence."""
        (first,) = held.spell.levels
        levels = self._levels(held.column)
        newest = range(max(0, len(levels) - _BLOCKS), len(levels))
        blocks = ", ".join(
            f"{number(levels[at])} up to step {held.column.steps[self._last(at)]}"
            for at in newest
        )
        return (
            f"{held.title} has risen for {held.long}, "
            f"from {number(first)} to {number(levels[-1])} (medians of {self._size} points)",
            f"medians: {blocks}",
            f"newest value {held.newest}",
        )
