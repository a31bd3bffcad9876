"""A KL to the reference that has bought no reward."""

from __future__ import annotations

import math
from collections import deque
from copy import copy
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection

_SCORES, _FEWEST = 20, 5
"""Most and fewest rewards whose mean is the reward's level at the start and now."""
_LATELY = 100
"""Points within which a rising KL must have raised the reward: heuristic."""
_NEAR = 0.1
"""A KL up to here is near the reference (the verl tutorials' guide)."""
_FAR = 1.0
"""Up to one nat, nothing is reported before there are enough points to see whether the reward
rises.
"""
_SURELY, _GAIN = 3.0, 0.1
"""A reward has surely risen if it gained three standard errors and a tenth of its size:
heuristic.
"""
_SOLVED = 0.95
"""On a scale from 0 to 1 there is nothing left to gain: heuristic."""


class _RewardLevel(NamedTuple):
    """Mean and variance of rewards in a row."""

    mean: float
    variance: float

    def surely_below(self, other: _RewardLevel, size: int) -> bool:
        """Return whether it lies three standard errors of means over `size` points, and a tenth of
        the other's size, below another level.
        """
        error = math.sqrt((self.variance + other.variance) / size)
        return other.mean - self.mean > max(_GAIN * abs(other.mean), _SURELY * error)


class KlWithoutGain:
    """Combines KL and reward: returns the KL where the reward has not risen with it, else 0."""

    def __init__(self, *, lately: bool = False) -> None:
        """Begin without points.

        Args:
            lately: Whether the reward must have risen within the last `_LATELY` points, not since
                the beginning.
        """
        self._before: deque[float] = deque(maxlen=_LATELY + _SCORES if lately else None)
        """Begins with the rewards that the newest are compared with."""
        self._lately = lately
        self._newest: deque[float] = deque(maxlen=_SCORES)
        self._first: _RewardLevel | None = None
        """Level of the first rewards, once there are enough of them."""
        self._best: _RewardLevel | None = None
        """The best level that the newest rewards ever had since then."""
        self._low = math.inf
        self._high = -math.inf
        self._seen = 0

    def __call__(self, kl: float, reward: float) -> float:
        """Take in a point; return the KL, 0 if the reward has risen with it."""
        if math.isfinite(reward):
            if self._lately or len(self._before) < _SCORES:
                self._before.append(reward)
            self._newest.append(reward)
            self._low = min(self._low, reward)
            self._high = max(self._high, reward)
        self._seen += 1
        if self._seen >= 2 * _SCORES and not self._lately:
            self._note_best()
        if kl <= _NEAR:
            return kl
        early = kl <= _FAR and self._seen < 2 * _SCORES
        if early or self._has_risen(sure=kl > _FAR):
            return 0.0
        return kl

    def peek(self, kl: float, reward: float) -> float:
        """Return the result for a point without taking it in."""
        twin = copy(self)
        twin._before, twin._newest = self._before.copy(), self._newest.copy()
        return twin(kl, reward)

    def _note_best(self) -> None:
        if len(self._newest) < _FEWEST:
            return  # most rewards are not finite
        best = self._best
        if best is None or sum(self._newest) > best.mean * len(self._newest):
            self._best = _level(self._newest)

    def _has_risen(self, *, sure: bool) -> bool:
        """Return whether the reward has risen; if not `sure`, whether it may have."""
        size = _SCORES if self._seen >= 2 * _SCORES else self._seen // 2
        if min(size, len(self._before), len(self._newest)) < _FEWEST:
            return False
        last = _level(self._newest if size == _SCORES else list(self._newest)[-size:])
        if self._low >= 0 and self._high <= 1 and last.mean >= _SOLVED:
            return True
        first = self._opening(size)
        if sure:
            return first.surely_below(last, size) or self._has_surely_risen(first, last)
        error = math.sqrt((first.variance + last.variance) / size)
        return last.mean - first.mean + error > _GAIN * max(map(abs, self._newest))

    def _opening(self, size: int) -> _RewardLevel:
        if self._lately or size < _SCORES:
            return _level(list(islice(self._before, size)))
        if self._first is None:
            self._first = _level(self._before)
        return self._first

    def _has_surely_risen(self, first: _RewardLevel, last: _RewardLevel) -> bool:
        """Return whether the reward had surely risen and has not surely fallen since."""
        best = self._best
        if best is None or last.mean <= first.mean:
            return False
        if last.surely_below(best, _SCORES):
            return False
        return first.surely_below(best, _SCORES)


def _level(values: Collection[float]) -> _RewardLevel:
    count = len(values)
    mean = sum(values) / count
    squares = sum([(value - mean) * (value - mean) for value in values])
    return _RewardLevel(mean, squares / (count - 1))
