"""A metric leaves its own past: the last points all lie far from where it used to be."""

from __future__ import annotations

import math
from collections import deque
from itertools import islice
from statistics import fmean, median
from typing import TYPE_CHECKING

from verl_tui.health.conditions.condition import (
    Condition,
    DescribedBreach,
    Wording,
    number,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

_TO_SIGMA = 1.4826
"""Median absolute deviation times this is the standard deviation of normal noise."""
_SIGMAS = 5.0
_BACK = 0.5
"""It is over when half of the way is made up for."""


class Shift(Condition):
    """The last points lie far above (or below) the ones before, or the first ones: what creeps
    leaves its past, too.
    """

    def __init__(self, *, window: int, least: int, recent: int, way: float) -> None:
        """Prepare the watch.

        Args:
            window: Points of the past at most.
            least: Fewest points of the past that it needs.
            recent: Points that must all have left it.
            way: How far at least, in the metric's own unit; negative to watch for a fall.
        """
        super().__init__(cooldown=recent)
        self.needs = least + recent
        self._recent = recent
        self._way = way
        self._points: deque[tuple[int, float]] = deque(maxlen=window + recent)
        self._window = window
        self._opening: list[float] = []
        self._extreme = math.inf if way > 0 else -math.inf
        """The least value so far (the greatest, to watch for a fall): no usual level lies beyond
        it.
        """
        self.usual: float | None = None
        """Level before, while a shift holds."""

    def feed(self, steps: Sequence[int], values: Sequence[float]) -> None:
        """Take in points."""
        for step, value in zip(steps, values, strict=True):
            self.seen += 1
            self._points.append((step, value))
            if len(self._opening) < self._window:
                self._opening.append(value)
            if self._distance(self._extreme, value) < 0:
                self._extreme = value
            if self.usual is not None:
                self._follow(step, self.usual)
            elif len(self._points) >= self.needs and self._is_far(value):
                self._consider(step)

    def _last(self) -> list[float]:
        return [value for _, value in islice(reversed(self._points), self._recent)]

    def _distance(self, usual: float, value: float) -> float:
        if self._way > 0:
            return value - usual
        return usual - value

    def _is_far(self, value: float) -> bool:
        return self._distance(self._extreme, value) > abs(self._way)

    def _follow(self, step: int, usual: float) -> None:
        if self._distance(usual, fmean(self._last())) < _BACK * abs(self._way):
            self.usual = None
            self._points.clear()
            self._end(step)

    def _consider(self, step: int) -> None:
        points = self._points
        last = self._last()
        before = len(points) - self._recent
        pasts = [[value for _, value in islice(points, before)]]
        if self.seen >= 2 * self._window:
            pasts.append(self._opening)
        for past in pasts:
            usual = median(past)
            sigma = _TO_SIGMA * median(abs(value - usual) for value in past)
            least = max(abs(self._way), _SIGMAS * sigma)
            if all(self._distance(usual, value) > least for value in last):
                self.usual = usual
                verb = "rose" if self._way > 0 else "fell"
                way = f"from its usual {number(usual)} to {number(fmean(last))}"
                self._begin(points[before][0], step, f"{verb} {way}")
                return

    def report(self, words: Wording) -> DescribedBreach | None:
        """Return the breach that holds now in words, None without one."""
        if self.usual is None:
            return None
        since = self._first()
        step, last = self._points[-1]
        verb = "risen" if self._way > 0 else "fallen"
        way = f"from its usual {number(self.usual)} to {number(fmean(self._last()))}"
        return DescribedBreach(
            f"{words.title} has {verb} {way} since step {since}",
            since,
            (
                f"usual {number(self.usual)} before, newest {number(last)} at step {step}",
            ),
        )

    def _detach(self) -> None:
        self._points = self._points.copy()
        self._opening = self._opening.copy()
