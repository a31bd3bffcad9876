"""A metric that falls for long, and not within a few points."""

from __future__ import annotations

import math
from collections import deque
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.health.conditions.condition import (
    Condition,
    DescribedBreach,
    Wording,
    number,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

_SIZE = 5
"""Points a block."""
_STRETCHES = (6, 12, 24, 48)
"""Blocks over which a fall is searched for: 30 to 240 points."""
_SURE = 5.0
"""Standard errors between the first and the last third: heuristic, high because it is tested often.
"""
_CLEAR, _LESS = 8.0, 0.625
"""Beyond this many standard errors five eighths of the share are enough, so that a long fall is
found while it goes on: heuristic.
"""
_EARLY = 0.2
"""The middle third must lie at least a fifth of the fall below the first."""
_STEEP = 0.6
"""A fall is a cliff if this share of it happens within two blocks."""
_BEGINNING = 45
"""Points within which a steep fall counts, too: a cliff wants 40 before it."""
_NEAR = 0.15
"""It began where it was last within so much of the fall from the level before."""
_BACK = 0.5
"""It is over when half of the fall has been made up for."""


class _BlockMean(NamedTuple):
    last: int
    mean: float
    noise: float
    """Variance of single points, by the differences of neighbours."""


class Slide(Condition):
    """Falls by a share of its level over 30 to 240 points; holds until half of it is made up
    for.
    """

    def __init__(self, *, share: float, steep: bool) -> None:
        """Prepare the watch.

        Args:
            share: Part of the level's size, and of its height above the lowest so far, that a fall
                must exceed.
            steep: Whether a fall at once counts, too.
        """
        super().__init__(cooldown=4 * _SIZE)
        self.needs = _STRETCHES[0] * _SIZE
        self._share = share
        self._steep = steep
        self._some: list[float] = []
        self._blocks: deque[_BlockMean] = deque(maxlen=_STRETCHES[-1])
        self._fallen: tuple[float, float] | None = None
        """Level before the fall and the lowest since."""
        self._lowest = math.inf
        self._last: tuple[int, float] = (0, 0.0)

    def feed(self, steps: Sequence[int], values: Sequence[float]) -> None:
        """Take in points."""
        for step, value in zip(steps, values, strict=True):
            self.seen += 1
            self._last = (step, value)
            self._some.append(value)
            if len(self._some) == _SIZE:
                self._close(step)

    def _close(self, step: int) -> None:
        some = self._some
        self._some = []
        mean = fmean(some)
        squares = sum((b - a) * (b - a) for a, b in pairwise(some))
        self._blocks.append(_BlockMean(step, mean, squares / (2 * (_SIZE - 1))))
        self._lowest = min(self._lowest, mean)
        if self._fallen is not None:
            self._follow(step)
        else:
            self._consider(step)

    def _follow(self, step: int) -> None:
        level, foot = self._fallen or (0.0, 0.0)
        now = self._newest_mean()
        if now > foot + _BACK * (level - foot):
            self._fallen = None
            self._blocks.clear()
            self._end(step)
        elif now < foot:
            self._fallen = (level, now)

    def _newest_mean(self) -> float:
        """Return the mean of the last two blocks."""
        return fmean([block.mean for block in [*self._blocks][-2:]])

    def _consider(self, step: int) -> None:
        blocks = [*self._blocks]
        for count in _STRETCHES:
            if len(blocks) < count:
                return
            stretch = blocks[-count:]
            fall = self._fall(stretch)
            if fall is not None:
                self._note_fall(stretch, *fall, step)
                return

    def _fall(self, stretch: Sequence[_BlockMean]) -> tuple[float, float] | None:
        """Return the level before a fall over a stretch and how deep it is, None without a fall."""
        third = len(stretch) // 3
        means = [block.mean for block in stretch]
        first = fmean(means[:third])
        middle = fmean(means[third : 2 * third])
        last = fmean(means[2 * third : 3 * third])
        fall = first - last
        size = self._share * max(abs(first), first - self._lowest)
        if fall <= max(0.0, _LESS * size):
            return None
        error = math.sqrt(2 * fmean(block.noise for block in stretch) / (third * _SIZE))
        sure = _SURE if fall > size else _CLEAR
        if fall < sure * error:
            return None
        may_be_steep = self._steep or self.seen <= _BEGINNING
        if may_be_steep or _steadily(stretch, first, middle, last):
            return first, fall
        return None

    def _note_fall(
        self, stretch: Sequence[_BlockMean], level: float, fall: float, step: int
    ) -> None:
        near = level - _NEAR * fall
        high = [block.last for block in stretch if block.mean >= near]
        edge = high[-1] if high else stretch[0].last
        foot = fmean(block.mean for block in stretch[-2:])
        self._fallen = (level, foot)
        self._begin(edge, step, f"fell from {number(level)} to {number(foot)}")

    def report(self, words: Wording) -> DescribedBreach | None:
        """Return the breach that holds now in words, None without one."""
        if self._fallen is None:
            return None
        level, foot = self._fallen
        since = self._first()
        step, last = self._last
        message = (
            f"{words.title} has fallen since step {since}, "
            f"from {number(level)} to {number(self._newest_mean())}"
        )
        lowest = f"lowest since {number(foot)} (means of {2 * _SIZE} points)"
        newest = f"newest {number(last)} at step {step}"
        return DescribedBreach(
            message, since, (f"the level before: {number(level)}; {lowest}; {newest}",)
        )

    def _detach(self) -> None:
        self._some = self._some.copy()
        self._blocks = self._blocks.copy()


def _steadily(
    stretch: Sequence[_BlockMean], first: float, middle: float, last: float
) -> bool:
    """Return whether a fall is spread over a stretch, and is no cliff."""
    fall = first - last
    drops = (
        before.mean - after.mean
        for before, after in zip(stretch, stretch[2:], strict=False)
    )
    return first - middle >= _EARLY * fall and max(drops) <= _STEEP * fall
