"""The inference engine: it and the trainer disagree beyond verl's figures as the gradient norm
climbs, or validation gives the same value to the last digit again and again, as it may hold old
weights.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from verl_tui.health.conditions.condition import Breach
from verl_tui.health.conditions.windows import rolling
from verl_tui.health.diagnoses.diagnosis import (
    WORDS,
    FindingHistory,
    InBlocks,
    Shown,
    Told,
    diagnosis,
    went,
)
from verl_tui.health.exemptions import RATES
from verl_tui.health.finding import filled, number
from verl_tui.indicators import validation_keys

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from verl_tui.health.blocks import Blocks
    from verl_tui.health.conditions.windows import Flags, Places
    from verl_tui.health.guide import Rule
    from verl_tui.health.rule_context import RuleContext
    from verl_tui.runs.series import Series

_CORRECTION = "verl docs/algo/rollout_corr.md"
_LIMITS: tuple[tuple[str, float, str], ...] = (
    ("training/rollout_probs_diff_mean", 0.01, "verl docs/faq/faq.rst"),
    ("rollout_corr/kl", 0.1, _CORRECTION),
    ("actor/rollout_corr/kl", 0.1, _CORRECTION),
    ("rollout_corr/chi2_token", 1.0, _CORRECTION),
    ("actor/rollout_corr/chi2_token", 1.0, _CORRECTION),
    ("rollout_corr/rollout_is_std", 1.0, _CORRECTION),
    ("actor/rollout_corr/rollout_is_std", 1.0, _CORRECTION),
)
"""Metric (verl's present name), the figure beyond which engine and trainer disagree, and its
source.
"""
_LAGS, _CLIMB, _TREND_T = (5, 10, 20), 1.5, 3.0
"""Blocks over which the gradient norm must have climbed by half: heuristic, the document says
`rises`.
"""
_LASTS = 3
"""Newest blocks that must all be beyond."""


@diagnosis("engine-mismatch", "grad_norm")
def engine_mismatch(context: RuleContext, _: Rule) -> InBlocks | str:
    """Find a figure of the mismatch beyond its limit while the gradient norm climbs."""
    found = tuple([one for one in _LIMITS if one[0] in context.names])
    if not found:
        return "the log has no figure of the mismatch"
    figures = [context.names[name] for name, _, _ in found]
    return InBlocks((context.indicators["grad_norm"], *figures), _find, found, needs=5)


def _find(blocks: Blocks, of: InBlocks) -> Shown:
    norm, *figures = blocks.levels
    limits = [limit for _, limit, _ in of.of]
    beyond = np.array(
        [
            rolling(abs(one) > limit, _LASTS) == _LASTS
            for one, limit in zip(figures, limits, strict=True)
        ]
    )
    lags = np.zeros(blocks.size, np.int64)
    for lag in reversed(_LAGS):
        before = blocks.before(0, lag - 1)
        climbs = (norm >= _CLIMB * before) & (before > 0)
        counts, _, t = blocks.slopes(0, lag)
        lags[climbs & (counts == lag) & (t >= _TREND_T)] = lag

    def told(at: int, since: int) -> Told:
        shown = np.flatnonzero(beyond[:, at]).tolist()
        now = blocks.levels[1:, at].tolist()
        begun = float(norm[np.searchsorted(blocks.last, since)])
        evidence = [
            f"{of.keys[1 + i]}: {number(now[i])} (mean of {of.size} points), "
            f"beyond {number(limits[i])} ({of.of[i][2]})"
            for i in shown
        ]
        course = went(of.keys[0], begun, float(norm[at]), since, int(blocks.last[at]))
        facts = {"now": now[shown[0]], "limit": limits[shown[0]], "begun": begun}
        key = of.keys[1 + shown[0]]
        return Told({**facts, "norm": float(norm[at])}, [*evidence, course], key=key)

    lasts: Flags = np.logical_or.reduce(beyond)
    return Shown(
        lasts & (lags > 0),
        lasts,
        lambda at: int(blocks.last[max(0, at + 1 - lags[at])]),
        told,
    )


_MOST = 8
"""Most validation scores to compare."""
_COARSE = 100
"""A share of at most so many answers may come again by chance: heuristic."""
_SINGLE, _DOUBLE = 1e-6, 1e-12
"""Single and double precision, which trainers compute means in, are as close to a share as this."""
_MOST_ANSWERS = 5000
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
    return _history(scores, learning, rule.count)


def _history(scores: Sequence[Series], learning: Series, count: int) -> FindingHistory:
    """Look at the validations one after the other."""
    rows = {one.key: _in_a_row(one) for one in scores}
    found: list[Breach] = []
    now = None
    for step in np.unique(
        np.concatenate([np.array(one.steps) for one in scores])
    ).tolist():
        now = _same(scores, rows, learning, step, count)
        is_open = bool(found) and found[-1].cleared is None
        if now is not None and not is_open:
            message = filled(WORDS["weights-not-synced"]["message"], now.facts)
            found.append(Breach(now.since or 0, step, message))
        elif now is None and is_open:
            found[-1] = found[-1]._replace(cleared=step)
    return FindingHistory(now, found, sentences=True)


def _in_a_row(score: Series) -> Places:
    """Return how many validations in a row have had the same value, at each of them."""
    values = np.array(score.values)
    is_new = np.append(True, values[1:] != values[:-1])
    places = np.arange(len(values))
    found: Places = places + 1 - np.maximum.accumulate(np.where(is_new, places, 0))
    return found


def _same(
    scores: Sequence[Series],
    rows: Mapping[str, Places],
    learning: Series,
    step: int,
    count: int,
) -> Told | None:
    """Return that scores have not changed up to a step, None where one has, where that may be
    chance, or nothing was learnt.
    """
    seen = {one: bisect_right(one.steps, step) for one in scores}
    times = {one: int(rows[one.key][n - 1]) for one, n in seen.items() if n >= count}
    if min(times.values(), default=0) < count:
        return None
    first = next(
        (
            one
            for one in times
            if _no_chance(one.values[seen[one] - 1], times[one], seen[one])
        ),
        None,
    )
    if first is None:
        return None
    value, since = (
        first.values[seen[first] - 1],
        first.steps[seen[first] - times[first]],
    )
    start = bisect_right(learning.steps, since)
    rates = learning.values[start : bisect_right(learning.steps, step)]
    if min(rates, default=0.0) <= 0:
        return None
    return Told(
        {"key": first.key, "since": since, "value": repr(value), "times": times[first]},
        [
            *(f"{one.key}: the same in {n} validations" for one, n in times.items()),
            f"{learning.key}: at least {min(rates):.3g} since then",
        ],
        since=since,
        step=step,
        key=first.key,
    )


@lru_cache(1024)
def _no_chance(value: float, times: int, seen: int) -> bool:
    """Return whether a score came too often in a row to be chance: not if it is no number, or a
    share of few answers.

    A share p of n answers comes again with a chance of about 1 / (2 √(π n p (1 − p))) where the
    answers change.
    """
    if not math.isfinite(value) or abs(_share(value, _COARSE) - value) < _SINGLE:
        return False
    share = _share(value, _MOST_ANSWERS)
    if abs(share - value) >= _DOUBLE or not 0 <= share <= 1:
        return True
    variance = max(1.0, float(share.denominator * share * (1 - share)))
    chance = 1 / (2 * math.sqrt(math.pi * variance))
    return seen * chance ** (times - 1) <= _UNLIKELY


def _share(value: float, most: int) -> Fraction:
    return Fraction(value).limit_denominator(most)
