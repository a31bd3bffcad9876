"""Trends: least squares over a window, and metrics that rise block by block."""

from __future__ import annotations

import math
from collections import deque
from itertools import pairwise
from statistics import fmean, median
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.health.conditions.condition import (
    Condition,
    DescribedBreach,
    Wording,
    number,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


_FOOT = 0.1
"""Share of a rise below which it has not begun."""


_HUGE = 1e100
"""The squares of larger numbers overflow; broken runs do log such numbers."""
_VANISHED = 0.1
"""Share of the highest block so far below which a metric has all but vanished: heuristic. The
gradient norm of a task that is solved may double between a thousandth and two of what it was.
"""


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


class Rising(Condition):
    """Rises continuously: the medians of five blocks each exceed the one before, the last far above
    the first.

    Medians of blocks, because gradient norms have spikes; judged when a block is full. Slow rises
    are seen in every second and every fourth block. What has all but vanished does not rise.
    """

    _BLOCKS = 5
    _STRIDES = (1, 2, 4)

    def __init__(self, *, window: int, factor: float) -> None:
        super().__init__(cooldown=window)
        self.needs = window
        self._size = max(1, window // self._BLOCKS)
        self._factor = factor
        self._block: list[float] = []
        self._medians: deque[tuple[int, float]] = deque(
            maxlen=(self._BLOCKS - 1) * self._STRIDES[-1] + 1
        )
        self._highest = 0.0
        """The highest median so far."""
        self._rise: list[tuple[int, float]] = []
        """The medians that showed it."""
        self._since: tuple[int, float] | None = None
        self._last: tuple[int, float] = (0, 0.0)

    def feed(self, steps: Sequence[int], values: Sequence[float]) -> None:
        """Take in points."""
        for step, value in zip(steps, values, strict=True):
            self.seen += 1
            self._block.append(value)
            self._last = (step, value)
            if len(self._block) == self._size:
                self._close(step)

    def _close(self, step: int) -> None:
        self._medians.append((step, median(self._block)))
        self._block = []
        levels = [level for _, level in self._medians]
        if math.isfinite(levels[-1]):
            self._highest = max(self._highest, levels[-1])
        if self._since is None:
            self._look_for_a_rise(step)
        elif levels[-1] < levels[-2]:
            # it goes on until a block falls below the one before
            self._since = None
            self._end(step)

    def _look_for_a_rise(self, step: int) -> None:
        if self._medians[-1][1] < _VANISHED * self._highest:
            return
        for stride in self._STRIDES:
            newest_first = [*self._medians][::-stride]
            rise = newest_first[: self._BLOCKS][::-1]
            if len(rise) == self._BLOCKS and self._is_rise(rise):
                self._rise = rise
                self._since = self._foot()
                what = f"rose from {number(rise[0][1])} to {number(rise[-1][1])}"
                self._begin(self._since[0], step, what)
                return

    def _is_rise(self, medians: Sequence[tuple[int, float]]) -> bool:
        """Return whether each median exceeds the one before, and the last one the first by far."""
        levels = [level for _, level in medians]
        if not 0 < self._factor * levels[0] <= levels[-1]:
            return False
        return all(before < after for before, after in pairwise(levels))

    def _foot(self) -> tuple[int, float]:
        """Return the end of the last block at the old level: chance alone may order the blocks
        before it.
        """
        level = self._rise[0][1]
        top = self._rise[-1][1]
        highest = level + _FOOT * (top - level)
        return [block for block in self._rise if block[1] <= highest][-1]

    def report(self, words: Wording) -> DescribedBreach | None:
        """Return the breach that holds now in words, None without one."""
        if self._since is None:
            return None
        since = self._first()
        first = self._since[1]
        level = self._medians[-1][1]
        newest_blocks = [*self._medians][-self._BLOCKS :]
        blocks = ", ".join(
            f"{number(value)} up to step {at}" for at, value in newest_blocks
        )
        long = words.duration(self._last[0] - since + 1)
        message = (
            f"{words.title} has risen for {long}, from {number(first)} to {number(level)} "
            f"(medians of {self._size} points)"
        )
        newest = f"newest value {number(self._last[1])} at step {self._last[0]}"
        return DescribedBreach(message, since, (f"medians: {blocks}", newest))

    def _detach(self) -> None:
        self._block = self._block.copy()
        self._medians = self._medians.copy()
