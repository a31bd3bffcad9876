"""Validation gives the same value to the last digit again and again: the engine may still hold old weights."""

from __future__ import annotations

import math
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.health.diagnoses.diagnosis import Diagnosis
from verl_tui.health.finding import Finding, NotJudged
from verl_tui.indicators import validation_keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.health.moment import Moment
    from verl_tui.runs.series import Series

_RATES = ("actor/lr", "actor_lr", "train/lr", "learning_rate", "train/learning_rate")
_MOST = 8
"""Validation scores looked at."""
_COARSE = 100
"""A share of at most so many answers may come again by chance: heuristic."""
_SINGLE = 1e-6
"""Single precision, which trainers compute means in, is as close to a share as this."""


class _Same(NamedTuple):
    """A score that did not change."""

    key: str
    value: float
    since: int
    times: int


class WeightsNotSynced(Diagnosis):
    """Every validation score has been the same, digit by digit, while the learning rate was above 0."""

    def judge(self, moment: Moment) -> Finding | NotJudged | None:
        """Look at the newest validations."""
        rule = self.rule
        keys = validation_keys(moment.run.keys)[:_MOST]
        scores = [one for key in keys if (one := moment.run.present(key)) is not None]
        rate = next((moment.names[name] for name in _RATES if name in moment.names), None)
        learning = moment.run.present(rate)
        if not scores or learning is None:
            return NotJudged(rule.id, f"the log has no {'learning rate' if scores else 'validation'}")
        known = [one for one in scores if len(one) >= rule.count]
        if not known:
            return NotJudged(rule.id, f"needs {rule.count} validations, has {max(map(len, scores))}")
        found = self._finding(known, learning)
        self.remember(found, found.step if found is not None else known[0].steps[-1])
        return found

    def _finding(self, scores: Sequence[Series], learning: Series) -> Finding | None:
        same = [_same(one) for one in scores]
        shortest = min(same, key=lambda one: one.times)
        telling = [one for one in same if not _coarse(one.value)]
        if shortest.times < self.rule.count or not telling:
            return None
        first, last = telling[0], max(one.steps[-1] for one in scores)
        rates = [
            value for step, value in zip(learning.steps, learning.values, strict=True) if first.since < step <= last
        ]
        if not rates or not min(rates) > 0:
            return None
        others = f", and {len(same) - 1} other scores too" if len(same) > 1 else ""
        return Finding(
            self.rule.id,
            self.rule.severity,
            f"{first.key} has been {first.value!r} to the last digit in {first.times} validations since step "
            f"{first.since}{others}, although the learning rate is above 0",
            step=last,
            since_step=first.since,
            evidence=(
                *(f"{one.key}: {one.value!r} in {one.times} validations since step {one.since}" for one in same[:3]),
                f"{learning.key}: at least {min(rates):.3g} since then",
            ),
            advice=self.rule.advice,
            source=self.rule.source,
            key=first.key,
        )


def _same(series: Series) -> _Same:
    """Return how long a score has been what it is now."""
    count, value = 0, series.values[-1]
    for known in islice(reversed(series.values), len(series)):
        if known != value:
            break
        count += 1
    return _Same(series.key, value, series.steps[-max(1, count)], count)


def _coarse(value: float) -> bool:
    """Return whether a value is a share of few answers, or a round number."""
    if not math.isfinite(value):
        return True
    return any(abs(value * whole - round(value * whole)) < _SINGLE * whole for whole in range(1, _COARSE + 1))
