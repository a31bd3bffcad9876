"""The input of a rule: one or more metrics as one column of finite numbers."""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import TYPE_CHECKING

import numpy as np

from verl_tui.health.conditions.condition import Column

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from verl_tui.health.conditions.windows import Numbers, Places
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
"""Most and fewest rewards whose mean is the reward's level; until twice as many are known, a KL up
to one nat is held against nobody.
"""
_LATELY = 100
"""Points within which a rising KL must have raised the reward: heuristic."""
_NEAR, _FAR = 0.1, 1.0
"""A KL up to here is near the reference (the verl tutorials' guide); beyond one nat the reward must
surely have risen, up to it a rise must only be likely.
"""
_SURELY, _GAIN = 3.0, 0.1
"""A reward has surely risen if it gained three standard errors and a tenth of its size:
heuristic.
"""
_SOLVED = 0.95
"""On a scale from 0 to 1 there is nothing left to gain: heuristic."""


def unbought(kl: Numbers, reward: Numbers, *, lately: bool = False) -> Numbers:
    """Return the KL where the reward has not risen with it, else 0.

    Args:
        kl: The KL to the reference.
        reward: The reward at the same steps.
        lately: Whether the reward must have risen within the last `_LATELY` points, not since the
            beginning.
    """
    places = np.arange(len(kl))
    size = np.minimum((places + 2) // 2, _SCORES)
    level, variance = _levels(reward, places, size)
    start = (
        np.maximum(0, places - _LATELY - _SCORES) if lately else np.zeros_like(places)
    )
    begun, was = _levels(reward, start + size - 1, size)
    error = np.sqrt((variance + was) / size)
    gain, least = level - begun, _GAIN * np.maximum(abs(level), abs(begun))
    enough = size >= _FEWEST
    surely = enough & (gain > np.maximum(least, _SURELY * error))
    if not lately:  # as long as it is not surely lower than when it was highest
        is_late = surely & (places + 1 >= 2 * _SCORES)
        best = np.maximum.accumulate(np.where(is_late, level, -np.inf))
        lost = best - level
        surely |= (
            (gain > 0)
            & np.isfinite(lost)
            & (lost <= np.maximum(least, _SURELY * error))
        )
    known = np.where(np.isnan(reward), 0.5, reward)
    is_share = np.logical_and.accumulate((known >= 0) & (known <= 1))
    bought = np.where(kl > _FAR, surely, enough & (gain + error > least)) | (
        is_share & (level >= _SOLVED)
    )
    early = (kl <= _FAR) & (places + 1 < 2 * _SCORES)
    return np.where((kl > _NEAR) & (bought | early), 0.0, kl)


def _levels(values: Numbers, last: Places, size: Places) -> tuple[Numbers, Numbers]:
    """Return mean and variance of so many values up to some places, without those that are no
    numbers.
    """
    is_known = np.isfinite(values)
    middle = values[is_known].mean() if is_known.any() else 0.0
    centred = np.where(is_known, values - middle, 0.0).astype(np.longdouble)
    until = [np.append(0, np.cumsum(one)) for one in (is_known, centred, centred**2)]
    count, total, squares = (one[last + 1] - one[last + 1 - size] for one in until)
    mean = total / count
    variance = np.maximum(0.0, squares - total * mean) / np.maximum(1, count - 1)
    return (mean + middle).astype(np.float64), variance.astype(np.float64)


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
