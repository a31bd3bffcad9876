"""Silences by what the reward has done: it rose, or it is at its top."""

from __future__ import annotations

import math
from itertools import islice
from statistics import fmean
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.health.moment import Moment

_POINTS, _SCORES, _ENOUGH = 100, 20, 5
"""Newest points that evidence is sought in, those that tell what is new, and how many there must be: heuristic."""
_SURELY, _GAIN = 3.0, 0.1
"""A reward has risen if it gained three standard errors and a tenth of its size; it has not if gain and one standard
error together stay below that tenth: heuristic."""
_TOP = 0.95
"""A mean reward from here on, on a scale that ends at 1, is that of a solved task: heuristic."""


def reward_rises(moment: Moment, key: str) -> str | None:
    """Excuse a distance from the reference that has bought reward: learning is moving away."""
    reward = moment.known(moment.indicators.get("reward"))
    if reward is None:
        return None
    # Of a long run only the two ends are looked at: this is asked at each step.
    first = list(islice(filter(math.isfinite, reward.values), 2 * _SCORES))
    size = len(first) // 2
    if size < _ENOUGH:
        return None
    first, last = first[:size], list(islice(filter(math.isfinite, reversed(reward.values)), size))
    gain, enough = fmean(last) - fmean(first), _GAIN * max(map(abs, last))
    error = math.sqrt((_variance(first) + _variance(last)) / size)
    if gain + error <= enough:
        return None
    course = f"from {fmean(first):.3g} to {fmean(last):.3g}"
    if gain <= max(enough, _SURELY * error):
        return f"{key} has grown, and whether {reward.key} rose with it is not sure yet ({course})"
    return f"{key} has grown, but {reward.key} rose with it, {course}"


def solved(moment: Moment, _key: str) -> str | None:
    """Excuse what says that a run does not learn where its reward is next to the top of its scale, which ends at 1."""
    reward = moment.known(moment.indicators.get("reward"))
    if reward is None or reward.highest > 1:
        return None
    # Few points show what has just been solved, many what small batches hide.
    means = [fmean(known) for count in (_SCORES, _POINTS) if len(known := _finite(reward.tail(count))) >= _ENOUGH]
    if max(means, default=0.0) < _TOP:
        return None
    return f"the task is solved: {reward.key} is {max(means):.3g} of 1"


def _finite(values: Sequence[float]) -> list[float]:
    return [value for value in values if math.isfinite(value)]


def not_solved(moment: Moment, key: str) -> str | None:
    """Excuse what is only said of a solved task."""
    return None if solved(moment, key) else "the task is not solved"


def _variance(values: Sequence[float]) -> float:
    # Asked for at each judging: `statistics.variance` reckons with fractions.
    mean = fmean(values)
    return sum((value - mean) * (value - mean) for value in values) / (len(values) - 1)
