"""A KL to the reference that has bought no reward."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from verl_tui.health.conditions.windows import rolling

if TYPE_CHECKING:
    from verl_tui.health.conditions.windows import Flags, Numbers, Places

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


class _Levels(NamedTuple):
    """Mean and variance of rewards in a row, at each of some points."""

    mean: Numbers
    variance: Numbers

    def surely_below(self, other: _Levels, size: Places) -> Flags:
        """Return where it lies three standard errors of means over `size` points, and a tenth of
        the other's size, below another level.
        """
        error = np.sqrt((self.variance + other.variance) / size)
        least = np.maximum(_GAIN * abs(other.mean), _SURELY * error)
        found: Flags = other.mean - self.mean > least
        return found


def unbought(kl: Numbers, reward: Numbers, *, lately: bool = False) -> Numbers:
    """Return the KL where the reward has not risen with it, else 0.

    Args:
        kl: The KL to the reference.
        reward: The reward at the same steps.
        lately: Whether the reward must have risen within the last `_LATELY` points, not since the
            beginning.
    """
    seen = np.arange(1, len(kl) + 1)
    far = ~(kl <= _NEAR)
    early = far & (kl <= _FAR) & (seen < 2 * _SCORES)
    asked = np.flatnonzero(far & ~early)
    found = np.where(early, 0.0, kl)
    finite = np.isfinite(reward)
    rewards = _Rewards(reward[finite], np.cumsum(finite))
    found[asked[rewards.has_risen(asked, kl[asked] > _FAR, lately=lately)]] = 0.0
    return found


class _Rewards(NamedTuple):
    values: Numbers
    """Those that are numbers."""
    counts: Places
    """How many of them there are up to each point."""

    def has_risen(self, places: Places, sure: Flags, *, lately: bool) -> Flags:
        """Return at which places the reward has risen; where not `sure`, may have."""
        size = np.minimum((places + 1) // 2, _SCORES)
        enough = np.minimum(size, self.counts[places]) >= _FEWEST
        found = np.zeros(len(places), bool)
        if not enough.any():
            return found
        places, size, sure = places[enough], size[enough], sure[enough]
        count = self.counts[places]
        known = np.minimum(size, count)
        last = self._levels(count - known, known)
        back = _LATELY + _SCORES if lately else len(self.values)
        opening = self._levels(np.maximum(0, count - back), known)
        low = np.minimum.accumulate(self.values)[count - 1]
        high = np.maximum.accumulate(self.values)[count - 1]
        error = np.sqrt((opening.variance + last.variance) / size)
        padded = np.append(np.zeros(_SCORES - 1), abs(self.values))
        largest = rolling(padded, _SCORES, np.maximum)[count + _SCORES - 2]
        risen = last.mean - opening.mean + error > _GAIN * largest
        surely = opening.surely_below(last, size)
        if not lately and sure.any():
            surely |= self._has_surely_risen(places, opening, last)
        solved = (low >= 0) & (high <= 1) & (last.mean >= _SOLVED)
        found[enough] = solved | np.where(sure, surely, risen)
        return found

    def _has_surely_risen(
        self, places: Places, opening: _Levels, last: _Levels
    ) -> Flags:
        """Return where the reward had surely risen and has not surely fallen since."""
        start = 2 * _SCORES - 1
        counts = np.maximum(1, self.counts[start:])
        size = np.minimum(counts, _SCORES)
        level = self._levels(counts - size, size)
        mean = np.where(self.counts[start:] >= _FEWEST, level.mean, -np.inf)
        # The best level that the newest rewards ever had since then.
        before = np.maximum.accumulate(np.append(-np.inf, mean))[:-1]
        best = np.maximum.accumulate(np.where(mean > before, np.arange(len(mean)), 0))
        at = np.maximum(0, places - start)
        if not len(best):
            return np.zeros(len(places), bool)
        top = _Levels(level.mean[best[at]], level.variance[best[at]])
        scores = np.full(len(places), _SCORES)
        stays = (last.mean > opening.mean) & ~last.surely_below(top, scores)
        return (places >= start) & stays & opening.surely_below(top, scores)

    def _levels(self, start: Places, size: Places) -> _Levels:
        """Return the levels of so many rewards from each of some places on."""
        middle = self.values.mean()
        centred = (self.values - middle).astype(np.longdouble)
        sums, squares = (np.append(0, np.cumsum(one)) for one in (centred, centred**2))
        mean = (sums[start + size] - sums[start]) / size
        spread = squares[start + size] - squares[start] - size * mean**2
        variance = np.maximum(0.0, spread) / (size - 1)
        return _Levels(*(one.astype(np.float64) for one in (mean + middle, variance)))
