"""A metric that leaves the range of all its past upwards from one point to the next: its scale was
changed.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from verl_tui.health.conditions.condition import (
    Condition,
    DescribedBreach,
    Wording,
    number,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

_IN_A_ROW = 3
"""Points in a row that must all be that high: learning climbs there step by step."""
_BACK = 5
"""Points in a row within the old range after which it is over."""


class Scaled(Condition):
    """From one point to the next, all values lie far above all earlier ones; over when they are
    back, or at a restart.
    """

    def __init__(
        self, *, factor: float, least: int, floor: float, restarts: Sequence[int] = ()
    ) -> None:
        """Prepare the watch.

        Args:
            factor: How many times the size of all values before, or their range, a value must lie
                above them.
            least: Fewest points of the past that it needs.
            floor: Values up to here are never found, e.g. 1 for shares.
            restarts: First steps of the run's later segments, where a new scale is no surprise.
        """
        super().__init__(cooldown=_BACK)
        self.needs = least + _IN_A_ROW
        self._factor = factor
        self._least = least
        self._floor = floor
        self._restarts = sorted(restarts)
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._low = math.inf
        self._high = -math.inf
        self._count = 0
        self._beyond: list[tuple[int, float]] = []
        """The points beyond all before, in a row."""
        self._first_beyond: tuple[int, float] | None = None
        self._within = 0
        self._last: tuple[int, float] = (0, 0.0)

    def feed(self, steps: Sequence[int], values: Sequence[float]) -> None:
        """Take in points."""
        for step, value in zip(steps, values, strict=True):
            if self._restarts and step >= self._restarts[0]:
                self._restart(step)
            self.seen += 1
            self._last = (step, value)
            if self._first_beyond is not None:
                self._follow(step, value)
            elif self._count >= self._least and value > self._limit():
                self._note_beyond(step, value)
            else:
                for _, before in self._beyond:
                    self._widen(before)
                self._beyond = []
                self._widen(value)

    def _restart(self, step: int) -> None:
        self._restarts = [mark for mark in self._restarts if mark > step]
        self._end(step)
        self._begin_anew()

    def _note_beyond(self, step: int, value: float) -> None:
        self._beyond.append((step, value))
        if len(self._beyond) == _IN_A_ROW:
            self._first_beyond = self._beyond[0]
            what = f"jumped from {number(self._high)} at most to {number(value)}"
            self._begin(self._first_beyond[0], step, what)

    def _limit(self) -> float:
        size = max(abs(self._high), abs(self._low), self._high - self._low)
        return max(self._floor, self._high + self._factor * size)

    def _widen(self, value: float) -> None:
        self._low = min(self._low, value)
        self._high = max(self._high, value)
        self._count += 1

    def _follow(self, step: int, value: float) -> None:
        if value <= self._limit():
            self._within += 1
        else:
            self._within = 0
        if self._within >= _BACK:
            self._first_beyond = None
            self._beyond = []
            self._within = 0
            self._end(step)

    def report(self, words: Wording) -> DescribedBreach | None:
        """Return the breach that holds now in words, None without one."""
        if self._first_beyond is None:
            return None
        since, first = self._first_beyond
        step, last = self._last
        message = (
            f"{words.title} jumped at step {since} to {number(first)}, from {number(self._high)} "
            "at most in all steps before: its scale seems to have changed"
        )
        evidence = (
            f"between {number(self._low)} and {number(self._high)} in {self._count:,} points "
            f"before; newest {number(last)} at step {step}"
        )
        return DescribedBreach(message, since, (evidence,))

    def _detach(self) -> None:
        self._beyond = self._beyond.copy()
