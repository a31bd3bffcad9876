"""Silences by what the reward has learnt: it is at its top."""

from __future__ import annotations

import math
from statistics import fmean
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.health.moment import Moment

_POINTS, _SCORES, _ENOUGH = 100, 20, 5
"""Newest points that evidence is sought in, those that tell what is new, and how many there must be: heuristic."""
_TOP = 0.95
"""A mean reward from here on, on a scale that ends at 1, is that of a solved task: heuristic."""


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
