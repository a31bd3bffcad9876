"""Validation gives the same value to the last digit again and again: the engine may still hold old
weights.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from verl_tui.health.diagnoses.diagnosis import PresentDiagnosis
from verl_tui.indicators import validation_keys
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.health.conditions.windows import Numbers
    from verl_tui.health.finding import Finding
    from verl_tui.health.rule_context import RuleContext
    from verl_tui.runs.series import Series

_RATES = ("actor/lr", "actor_lr", "train/lr", "learning_rate", "train/learning_rate")
_MOST = 8
"""Most validation scores to compare."""
_COARSE = 100
"""A share of at most so many answers may come again by chance: heuristic."""
_SINGLE = 1e-6
"""Single precision, which trainers compute means in, is as close to a share as this."""
_DOUBLE = 1e-12
"""Double precision, which validation's means are mostly logged in."""
_MOST_ANSWERS = 5000
_UNLIKELY = 1e-3
"""Probability of a row of equal shares below which it is not chance: heuristic."""


class _Same(NamedTuple):
    """A score that did not change."""

    key: str
    value: float
    since: int
    times: int
    """Newest validations in a row with this value."""
    seen: int
    """Validations of this score so far."""


class WeightsNotSynced(PresentDiagnosis):
    """Every validation score has been the same, digit by digit, while the learning rate was above
    0.
    """

    RULE = "weights-not-synced"
    _read: tuple[object, ...] = ()
    """The validations as they were last judged."""
    _found: Finding | None = None

    def look(self, context: RuleContext) -> Finding | str | None:
        """Look at the validations, one after the other."""
        keys = validation_keys(context.run.keys)[:_MOST]
        scores = [*filter(None, map(context.run.present, keys))]
        learning = context.run.present(context.first_key(_RATES))
        if not scores:
            return "the log has no validation"
        if learning is None:
            return "the log has no learning rate"
        most = max(map(len, scores))
        if most < self.rule.count:
            return f"needs {self.rule.count} validations, has {most}"
        validations = [
            (one.key, len(one), one.revision, one.values[-1]) for one in scores
        ]
        read = (*validations, learning.revision)
        if read != self._read:
            self._read = read
            self._judge_all(scores, learning)
        return self._found

    def _judge_all(self, scores: Sequence[Series], learning: Series) -> None:
        """Judge the validations in order: an earlier finding must not depend on later ones."""
        self.breaches.clear()
        rates = np.array(learning.values)
        known: dict[str, _Same] = {}
        for step in sorted(set().union(*(one.steps for one in scores))):
            for one in scores:
                point = one.at(step)
                if point is not None and point.step == step:
                    known[one.key] = _again(known.get(one.key), one.key, *point)
            self._found = self._finding([*known.values()], step, learning, rates)
            self.remember(self._found, step)

    def _finding(
        self, known: Sequence[_Same], last: int, learning: Series, rates: Numbers
    ) -> Finding | None:
        same = [one for one in known if one.seen >= self.rule.count]
        no_chance = [one for one in same if _enough(one, self.rule.count)]
        if not no_chance or min(one.times for one in same) < self.rule.count:
            return None
        first = no_chance[0]
        start = bisect_right(learning.steps, first.since)
        stop = bisect_right(learning.steps, last)
        least = float(rates[start:stop].min()) if start < stop else 0.0
        if least <= 0:
            return None
        return self._told(first, same, last, f"{learning.key}: at least {least:.3g}")

    def _told(
        self, first: _Same, same: Sequence[_Same], last: int, rate: str
    ) -> Finding:
        count = len(same) - 1
        others = f", and {counted(count, 'other score')} too" if count else ""
        facts = {"value": f"{first.value!r}", "times": first.times, "others": others}
        return self.finding(
            facts,
            (
                *(
                    f"{one.key}: {one.value!r} in {one.times} validations since step {one.since}"
                    for one in same[:3]
                ),
                f"{rate} since then",
            ),
            since=first.since,
            step=last,
            key=first.key,
        )


def _again(before: _Same | None, key: str, step: int, value: float) -> _Same:
    """Return for how many validations a score has had its value at a step."""
    if before is None:
        return _Same(key, value, step, 1, 1)
    if before.value != value:
        return _Same(key, value, step, 1, before.seen + 1)
    return before._replace(times=before.times + 1, seen=before.seen + 1)


def _enough(one: _Same, count: int) -> bool:
    """Return whether a score came too often in a row to be chance.

    A share p of n answers comes again with a chance of about 1 / (2 √(π n p (1 − p))) where the
    answers change.
    """
    if one.times < count or not math.isfinite(one.value):
        return False
    answers = _answers(one.value)
    if answers is None:
        return True
    if answers <= _COARSE or not 0 <= one.value <= 1:
        return False
    variance = max(1.0, answers * one.value * (1 - one.value))
    chance = 1 / (2 * math.sqrt(math.pi * variance))
    return one.seen * chance ** (one.times - 1) <= _UNLIKELY


def _answers(value: float) -> int | None:
    """Return the number of answers that a value is a share of, or a round number; None if it is
    neither.
    """
    for most, close in ((_COARSE, _SINGLE), (_MOST_ANSWERS, _DOUBLE)):
        share = Fraction(value).limit_denominator(most)
        if abs(value - share) < close:
            return share.denominator
    return None
