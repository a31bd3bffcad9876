"""A cliff: within a few points a metric falls far below its level and stays there."""

from __future__ import annotations

from collections import deque
from itertools import islice, pairwise
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
SIGMAS = 3.0
"""The mean of the last points must lie so many standard deviations of single points below: no batch
does that.
"""
_EACH = 0.5
"""Each of the last points must have fallen at least half as far as their mean must have."""
_BRINK, _LOST = 8, 0.25
"""The newest points of the level before must not have lost more than so much of the fall, or it is
a slide.
"""
_BACK = 0.5
"""A cliff is over when half of the fall has been made up for."""


class Cliff(Condition):
    """The last points all lie far below the level before; holds until half of the fall is made up
    for.
    """

    def __init__(
        self,
        *,
        window: int,
        recent: int,
        gap: int,
        share: float,
        sigmas: float = SIGMAS,
        unlike_all: bool = False,
    ) -> None:
        """Prepare the watch for a fall.

        Args:
            window: Points that make the level before.
            recent: Points that must have fallen.
            gap: Points between these and those, in which the fall itself may take place.
            share: Part of the level's size that a fall must exceed.
            sigmas: Standard deviations of single points that it must exceed.
            unlike_all: Whether the first drop must also exceed every earlier drop from one point to
                the next: a few points that happen to be alike do not show how far batches differ.
        """
        super().__init__(cooldown=gap)
        self.needs = window // 2 + gap + recent
        self._recent = recent
        self._gap = gap
        self._share = share
        self._sigmas = sigmas
        self._points: deque[tuple[int, float]] = deque(maxlen=window + gap + recent)
        self._unlike_all = unlike_all
        self._lost = 0.0
        """The largest drop from one point to the next, before the points that are kept."""
        self._fallen: tuple[float, float] | None = None
        """Level before the fall and at its foot."""

    @property
    def fall(self) -> tuple[int, float, float] | None:
        """The fall that holds: its first step, the level before, and the level at its foot."""
        if self._fallen is None:
            return None
        return (self._first(), *self._fallen)

    def feed(self, steps: Sequence[int], values: Sequence[float]) -> None:
        """Take in points."""
        for step, value in zip(steps, values, strict=True):
            self.seen += 1
            if self._unlike_all and len(self._points) == self._points.maxlen:
                self._lost = max(self._lost, self._points[0][1] - self._points[1][1])
            self._points.append((step, value))
            if self._fallen is not None:
                self._follow(step)
            elif self.seen >= self.needs and value < self._points[-self._recent - 1][1]:
                self._consider(step)

    def _last(self) -> list[float]:
        return [value for _, value in islice(reversed(self._points), self._recent)]

    def _follow(self, step: int) -> None:
        level, foot = self._fallen or (0.0, 0.0)
        if fmean(self._last()) > foot + _BACK * (level - foot):
            self._fallen = None
            self._end(step)

    def _consider(self, step: int) -> None:
        points = self._points
        last = self._last()
        # Most points show no fall at all: comparing a few of them spares the medians below.
        earlier = max(points[0][1], points[len(points) // 3][1])
        if max(last) >= earlier:
            return
        before = len(points) - self._gap - self._recent
        past = [value for _, value in islice(points, before)]
        foot = fmean(last)
        # No level lies above the highest point, so no fall is measured by more.
        top = max(past)
        if top > 0 and foot >= (1 - self._share) * top:
            return
        level = median(past)
        if self._is_cliff(past, last, level, foot):
            edge = self._edge(level, foot)
            self._fallen = (level, foot)
            what = f"dropped sharply, from {number(level)} to {number(foot)}"
            self._begin(edge, step, what)

    def _is_cliff(
        self, past: Sequence[float], last: Sequence[float], level: float, foot: float
    ) -> bool:
        """Return whether all of the last points lie far enough below the level before."""
        fall = level - foot
        if level - median(past[-_BRINK:]) > _LOST * fall:
            return False  # it has slid for longer
        sigma = _TO_SIGMA * median(abs(value - level) for value in past)
        least = max(self._sigmas * sigma, self._share * abs(level))
        if least <= 0 or fall <= least or level - max(last) <= _EACH * least:
            return False
        if self._unlike_all and not self.breaches.all:
            return fall > self._most_lost(past)
        return True

    def _most_lost(self, past: Sequence[float]) -> float:
        return max(self._lost, *(high - low for high, low in pairwise(past)))

    def _edge(self, level: float, foot: float) -> int:
        """Return the first step below the level."""
        points = list(self._points)[-self._gap - self._recent - 1 :]
        near = level - 0.2 * (level - foot)
        edge = points[-1][0]
        for step, value in reversed(points):
            if value >= near:
                break
            edge = step
        return edge

    def report(self, words: Wording) -> DescribedBreach | None:
        """Return the breach that holds now in words, None without one."""
        if self._fallen is None:
            return None
        level, foot = self._fallen
        since = self._first()
        step, last = self._points[-1]
        fall = f"from {number(level)} to {number(foot)}"
        return DescribedBreach(
            f"{words.title} dropped sharply at step {since}: {fall}",
            since,
            (
                f"the level before: {number(level)}; newest {number(last)} at step {step}",
            ),
        )

    def _detach(self) -> None:
        self._points = self._points.copy()
