"""The input of a rule: one or more metrics as one column of finite numbers."""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import TYPE_CHECKING

import numpy as np

from verl_tui.health.conditions.condition import Column
from verl_tui.health.conditions.windows import means, trends

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from verl_tui.health.conditions.windows import Flags, Numbers
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


_CLIMBS, _CLIMB, _CLIMB_T, _LEVEL = (50, 100, 200), 1.5, 3.0, 10
"""Points over one of which a metric must have climbed by half, beyond doubt, and those that make a
level: heuristic.
"""


def _climbs(values: Numbers) -> Flags:
    """Return where a metric climbs."""
    found = np.zeros(len(values), bool)
    level = means(values, _LEVEL)
    for count in _CLIMBS:
        places = np.arange(count - 1, len(values))
        begun = level[places - count + _LEVEL]
        places = places[(level[places] >= _CLIMB * begun) & (begun > 0)]
        found[places] |= trends(values, count, places)[1] >= _CLIMB_T
    return found


SINGLE = ("value", "absolute", "mean of all")
"""How one number is made of one metric, or of several that are alike."""
COMBINATIONS: Mapping[str, Callable[[Numbers, Numbers, float], Numbers]] = {
    "ratio": lambda first, second, _: np.where(second > 0, first / second, math.nan),
    "difference": lambda first, second, _: first - second,
    "product": lambda first, second, _: abs(first * second),
    "widest": lambda first, second, _: _widest(first, second),
    "while climbing": lambda first, second, _: np.where(
        _climbs(second), abs(first), 0.0
    ),
    "at limit": lambda first, second, limit: np.where(second >= limit, first, 0.0),
    "without spread": lambda first, second, limit: np.where(
        (second >= 0) & (second <= limit), 1.0, first
    ),
}
"""Name -> how one number is made of two, with a limit."""
