"""The inference engine may hold old weights: validation gives the same value, to the last digit."""

from __future__ import annotations

import math
from bisect import bisect_right
from fractions import Fraction
from typing import TYPE_CHECKING

from verl_tui.health.conditions.condition import Breach, open_breach
from verl_tui.health.diagnoses.diagnosis import (
    WORDS,
    FindingHistory,
    Told,
    diagnosis,
)
from verl_tui.health.exemptions import RATES
from verl_tui.health.finding import filled
from verl_tui.indicators import validation_keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.health.guide import Rule
    from verl_tui.health.rule_context import RuleContext
    from verl_tui.runs.series import Series

_MOST = 8
"""Most validation scores to compare."""
_COARSE, _MOST_ANSWERS = 100, 5000
"""A share of at most so many answers may come again by chance (heuristic), and most answers that
are looked for.
"""
_SINGLE, _DOUBLE = 1e-6, 1e-12
"""Single and double precision, which trainers compute means in, are as close to a share as this."""
_UNLIKELY = 1e-3
"""Probability of a row of equal shares below which it is not chance: heuristic."""


@diagnosis("weights-not-synced")
def weights_not_synced(context: RuleContext, rule: Rule) -> FindingHistory | str:
    """Find a validation score that has been the same, digit by digit, while the learning rate was
    above 0, and no other that has changed.
    """
    keys = validation_keys(context.run.keys)[:_MOST]
    known = [*filter(None, map(context.run.present, keys))]
    learning = context.run.present(context.first_key(RATES))
    if not known or learning is None:
        return f"the log has no {'learning rate' if known else 'validation'}"
    scores = [one for one in known if len(one) >= rule.count]
    if not scores:
        return f"needs {rule.count} validations"
    found: list[Breach] = []
    now = None
    for step in sorted({step for one in scores for step in one.steps}):
        now = _same(scores, learning, step, rule.count)
        held = open_breach(found)
        if now is not None and held is None:
            message = filled(WORDS["weights-not-synced"]["message"], now.facts)
            found.append(Breach(now.since or 0, step, message))
        elif now is None and held is not None:
            found[-1] = held._replace(cleared=step)
    return FindingHistory(now, found, sentences=True)


def _same(
    scores: Sequence[Series], learning: Series, step: int, count: int
) -> Told | None:
    """Return that no score has changed over the last validations up to a step; None where one has,
    where all may be chance, or nothing was learnt.
    """
    seen = [(one, bisect_right(one.steps, step)) for one in scores]
    lately = {one: one.values[n - count : n] for one, n in seen if n >= count}
    if not lately or any(len({*values}) > 1 for values in lately.values()):
        return None
    places = dict(seen)
    times = {one: _times(one.values[: places[one]]) for one in lately}
    told = [
        one
        for one, values in lately.items()
        if _is_no_chance(values[-1], times[one], places[one])
    ]
    if not told:
        return None
    first = told[0]
    since = first.steps[places[first] - times[first]]
    start = bisect_right(learning.steps, since)
    rates = learning.values[start : bisect_right(learning.steps, step)]
    if min(rates, default=0.0) <= 0:
        return None
    value = repr(lately[first][-1])
    return Told(
        {"key": first.key, "since": since, "value": value, "times": times[first]},
        [
            *(f"{one.key}: the same in {n} validations" for one, n in times.items()),
            f"{learning.key}: at least {min(rates):.3g} since then",
        ],
        since=since,
        step=step,
        key=first.key,
    )


def _times(values: Sequence[float]) -> int:
    """Return how many of the last values are the same."""
    others = (at for at, one in enumerate(reversed(values)) if one != values[-1])
    return next(others, len(values))


def _is_no_chance(value: float, times: int, seen: int) -> bool:
    """Return whether a score came too often in a row to be chance: not if it is no number, or a
    share of few answers.

    A share p of n answers comes again with a chance of about 1 / (2 √(π n p (1 − p))) where the
    answers change.
    """
    if not math.isfinite(value) or _near(value, _COARSE, _SINGLE) is not None:
        return False
    share = _near(value, _MOST_ANSWERS, _DOUBLE)
    if share is None or not 0 <= share <= 1:
        return True
    variance = max(1.0, float(share.denominator * share * (1 - share)))
    chance = 1 / (2 * math.sqrt(math.pi * variance))
    return seen * chance ** (times - 1) <= _UNLIKELY


def _near(value: float, most: int, precision: float) -> Fraction | None:
    """Return the share of at most so many answers that a value is, None if it is none."""
    share = Fraction(value).limit_denominator(most)
    return share if abs(share - value) < precision else None
