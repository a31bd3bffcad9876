"""The input of a rule: one or more metrics as one column of finite numbers."""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from verl_tui.health.conditions.condition import Column
from verl_tui.health.conditions.windows import rolling

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from verl_tui.health.conditions.windows import Flags, Numbers, Places
    from verl_tui.runs.series import Series


def column_of(
    series: Sequence[Series],
    end: int | None,
    kind: str = "value",
    scale: float = 1.0,
    limit: float = math.inf,
) -> tuple[Column, int | None]:
    """Return a column, and the newest step that was looked at.

    Args:
        series: The one or more metrics.
        end: Step the run has reached; points of an abandoned segment beyond it are left out.
            None = no end.
        kind: `value`, `absolute` or `mean of all`; of two metrics one of `COMBINATIONS`.
        scale: Factor of all values.
        limit: The limit of `at limit` and `without spread`.
    """
    first, *others = [_points(one, end) for one in series]
    steps, values = first
    newest = steps[-1:]
    with np.errstate(all="ignore"):
        if kind == "mean of all":
            values = _mean(first, others)
        elif kind in COMBINATIONS:
            newest = np.minimum(newest, others[0].steps[-1:])
            beside, is_known = _at(steps, others[0])
            steps, values = steps[is_known], values[is_known]
            combine = COMBINATIONS[kind]
            values = combine(values, beside[is_known], limit)
        elif kind == "absolute":
            values = abs(values)
        values = values * scale
    finite = np.isfinite(values)
    found = Column(steps[finite], values[finite])
    if len(newest) and np.array_equal(found.steps[-1:], newest):
        return found, int(newest[0])
    return found, series[0].steps[-1] if len(series[0]) else None


def _points(series: Series, end: int | None) -> Column:
    stop = len(series) if end is None else bisect_right(series.steps, end)
    steps = np.array(series.steps, np.int64)[:stop]
    return Column(steps, np.array(series.values, np.float64)[:stop])


def _at(steps: NDArray[np.int64], other: Column) -> tuple[Numbers, NDArray[np.bool_]]:
    """Return the values of a metric at some steps, and where it has one."""
    if not len(other):
        return np.zeros(len(steps)), np.zeros(len(steps), bool)
    at = np.minimum(np.searchsorted(other.steps, steps), len(other) - 1)
    return other.values[at], other.steps[at] == steps


def _mean(first: Column, others: Sequence[Column]) -> Numbers:
    """Return the mean of several metrics at each step of the first one, over those that have the
    step.
    """
    total, count = np.zeros((2, len(first)))
    for one in (first, *others):
        values, is_known = _at(first.steps, one)
        is_known &= np.isfinite(values)
        total += np.where(is_known, values, 0.0)
        count += is_known
    mean: Numbers = total / count
    return mean


def _widest(first: Numbers, second: Numbers) -> Numbers:
    """Return the larger absolute value."""
    larger = np.maximum(abs(first), abs(second))
    return np.where(np.isfinite(first + second), larger, math.nan)


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


SINGLE = ("value", "absolute", "mean of all")
"""How one number is made of one metric, or of several that are alike."""
COMBINATIONS: Mapping[str, Callable[[Numbers, Numbers, float], Numbers]] = {
    "ratio": lambda first, second, _: np.where(second > 0, first / second, math.nan),
    "difference": lambda first, second, _: first - second,
    "product": lambda first, second, _: abs(first * second),
    "widest": lambda first, second, _: _widest(first, second),
    "at limit": lambda first, second, limit: np.where(second >= limit, first, 0.0),
    "without spread": lambda first, second, limit: np.where(
        (second >= 0) & (second <= limit), 1.0, first
    ),
    "unbought": lambda first, second, _: unbought(first, second),
    "unbought lately": lambda first, second, _: unbought(first, second, lately=True),
}
"""Name -> how one number is made of two, with a limit."""
