"""A metric on a scale from 0 to 1 that swings from point to point: noise, whatever its mean is."""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from verl_tui.health.conditions.condition import (
    Condition,
    DescribedBreach,
    Wording,
    number,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

_TO_SIGMA = 1.0484
"""Median size of the differences between neighbours times this is the standard deviation of normal
noise.
"""
_RANGE = 2.5
"""Between their lowest and their highest tenth the values must span so many standard deviations
(2.56 of normal noise): a zigzag has large differences in a small span.
"""
_CALM = 0.8
"""It is over when the spread has fallen below four fifths of the threshold (hysteresis)."""
_OFTEN = 20
"""Points after which the spread is computed again."""


def swing(values: Sequence[float]) -> float:
    """Return the standard deviation between neighbours, in the values' own unit; two values at
    least.
    """
    differences = [abs(after - before) for before, after in pairwise(values)]
    return min(spread_of(values), _TO_SIGMA * median(differences))


def spread_of(values: Sequence[float]) -> float:
    """Return how far values spread, as a standard deviation; 0 for a single one."""
    ordered = sorted(values)
    tenth = len(values) // 10
    return (ordered[-1 - tenth] - ordered[tenth]) / _RANGE


class Swings(Condition):
    """The usual difference between neighbours stays large; a rise makes none, and single bursts do
    not count.
    """

    def __init__(self, threshold: float, window: int) -> None:
        """Prepare the watch.

        Args:
            threshold: Standard deviation between points from which on they swing, in the metric's
                own unit.
            window: Points looked at.
        """
        super().__init__(cooldown=2 * window)
        self.needs = window
        self._threshold = threshold
        self._points: deque[tuple[int, float]] = deque(maxlen=window)
        self._spread: float | None = None
        """Spread between points, while the breach holds."""

    def feed(self, steps: Sequence[int], values: Sequence[float]) -> None:
        """Take in points."""
        for step, value in zip(steps, values, strict=True):
            self.seen += 1
            self._points.append((step, value))
            if self.seen >= self.needs and (self.seen - self.needs) % _OFTEN == 0:
                self._judge(step)

    def _judge(self, step: int) -> None:
        values = [value for _, value in self._points]
        if self._spread is None and spread_of(values) <= self._threshold:
            # most metrics swing so little that there is no need to look at neighbours
            return
        spread = swing(values)
        if self._spread is not None:
            self._spread = spread
            if spread < _CALM * self._threshold:
                self._spread = None
                self._end(step)
        elif spread > self._threshold:
            self._spread = spread
            what = f"swung by {number(spread)} from point to point"
            self._begin(self._points[0][0], step, what)

    def report(self, words: Wording) -> DescribedBreach | None:
        """Return the breach that holds now in words, None without one."""
        if self._spread is None:
            return None
        values = [value for _, value in self._points]
        low = min(values)
        high = max(values)
        step, last = self._points[-1]
        message = (
            f"{words.title} swings between {number(low)} and {number(high)}: "
            f"its spread between points is {number(self._spread)}, "
            f"above {number(self._threshold)} on a scale from 0 to 1"
        )
        return DescribedBreach(
            message,
            self._first(),
            (f"the last {len(values)} points; newest {number(last)} at step {step}",),
        )

    def _detach(self) -> None:
        self._points = self._points.copy()
