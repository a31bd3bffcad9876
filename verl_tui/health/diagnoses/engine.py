"""The inference engine: it and the trainer disagree beyond verl's figures as the gradient norm
climbs, or validation gives the same value to the last digit again and again, as it may hold old
weights.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from verl_tui.health.conditions.condition import Breach
from verl_tui.health.conditions.windows import rolling
from verl_tui.health.diagnoses.diagnosis import (
    WORDS,
    FindingHistory,
    InBlocks,
    Onset,
    Onsets,
    Told,
    diagnosis,
    went,
)
from verl_tui.health.finding import filled, number
from verl_tui.indicators import validation_keys
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

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
_LAGS = (5, 10, 20)
"""Blocks over which the gradient norm must have climbed: 50 to 200 points."""
_CLIMB = 1.5
"""By half: heuristic, the document says `rises`."""
_TREND_T = 3.0
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


def _find(blocks: Blocks, of: InBlocks) -> Onsets:
    limits = np.array([[limit] for _, limit, _ in of.of])
    beyond = np.array(
        [rolling(one, _LASTS) == _LASTS for one in abs(blocks.levels[1:]) > limits]
    )
    lasts: Flags = np.logical_or.reduce(beyond)
    lags = _climbs(blocks)

    def told(at: int, since: int) -> Told:
        stretch = blocks[: at + 1].since(since)
        norm = stretch.known(0)
        shown = np.flatnonzero(beyond[:, at]).tolist()
        now = blocks.levels[1:, at].tolist()
        evidence = [
            f"{of.keys[1 + i]}: {number(now[i])} (mean of {of.size} points), "
            f"beyond {number(of.of[i][1])} ({of.of[i][2]})"
            for i in shown
        ]
        first, last = int(stretch.last[0]), int(stretch.last[-1])
        return Told(
            {
                "now": now[shown[0]],
                "limit": of.of[shown[0]][1],
                "begun": norm[0],
                "norm": norm[-1],
                "since": first,
            },
            [*evidence, went(of.keys[0], norm, first, last)],
            key=of.keys[1 + shown[0]],
        )

    return Onsets(
        lasts & (lags > 0),
        lambda at: Onset(int(blocks.last[at + 1 - lags[at]]), lasts, told),
    )


def _climbs(blocks: Blocks) -> Places:
    """Return over how many of the last blocks the gradient norm climbs at each, 0 where it does
    not.
    """
    norm = blocks.levels[0]
    found = np.zeros(len(blocks), np.int64)
    for lag in reversed(_LAGS):
        places = np.arange(lag - 1, len(blocks))
        counts, _, t = blocks.slopes(0, places, lag)
        before = norm[: len(places)]
        climbs = (norm[places] >= _CLIMB * before) & (before > 0) & (t >= _TREND_T)
        found[places[climbs & (counts == lag)]] = lag
    return found


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


@diagnosis("weights-not-synced")
def weights_not_synced(context: RuleContext, rule: Rule) -> FindingHistory | str:
    """Find validation scores that have all been the same, digit by digit, while the learning rate
    was above 0.
    """
    keys = validation_keys(context.run.keys)[:_MOST]
    scores = [*filter(None, map(context.run.present, keys))]
    learning = context.run.present(context.first_key(_RATES))
    if not scores:
        return "the log has no validation"
    if learning is None:
        return "the log has no learning rate"
    most = max(map(len, scores))
    if most < rule.count:
        return f"needs {rule.count} validations, has {most}"
    return _history(scores, learning, rule.count)


def _history(scores: Sequence[Series], learning: Series, count: int) -> FindingHistory:
    """Look at the validations one after the other."""
    steps = np.unique(np.concatenate([np.array(one.steps) for one in scores]))
    places = (
        np.array([np.searchsorted(one.steps, steps, "right") for one in scores]) - 1
    )
    starts = np.array(
        [_starts(one)[at] for one, at in zip(scores, places, strict=True)]
    )
    times = places + 1 - starts
    held = ((times >= count) | (places + 1 < count)).all(axis=0)
    told: dict[int, Told] = {}
    for j in np.flatnonzero(held).tolist():
        same = [
            _Same(one.key, one.values[at], one.steps[start], at + 1 - start, at + 1)
            for one, at, start in zip(scores, places[:, j], starts[:, j], strict=True)
            if at + 1 >= count
        ]
        if found := _told(same, int(steps[j]), learning, count):
            told[j] = found
    now = told.get(len(steps) - 1)
    return FindingHistory(now, [*_breaches(told, steps.tolist())], sentences=True)


def _breaches(told: Mapping[int, Told], steps: Sequence[int]) -> Iterator[Breach]:
    """Yield what holds from validation to validation."""
    ends = [*steps[1:], None]
    for j, found in told.items():
        if j - 1 not in told:
            end = next(ends[at] for at in range(j, len(steps)) if at + 1 not in told)
            message = filled(WORDS["weights-not-synced"]["message"], found.facts)
            yield Breach(found.since or 0, steps[j], message, end)


def _starts(score: Series) -> Places:
    """Return at each validation the place of the first one in a row with its value."""
    values = np.array(score.values)
    is_new = np.append(True, values[1:] != values[:-1])
    found: Places = np.maximum.accumulate(np.where(is_new, np.arange(len(values)), 0))
    return found


def _told(
    same: Sequence[_Same], last: int, learning: Series, count: int
) -> Told | None:
    """Return that scores have not changed up to a step, None where that may be chance or nothing
    was learnt.
    """
    no_chance = [one for one in same if _enough(one, count)]
    if not no_chance:
        return None
    first = no_chance[0]
    start = bisect_right(learning.steps, first.since)
    rates = learning.values[start : bisect_right(learning.steps, last)]
    least = min(rates, default=0.0)
    if least <= 0:
        return None
    more = len(same) - 1
    others = f", and {counted(more, 'other score')} too" if more else ""
    return Told(
        {
            "key": first.key,
            "since": first.since,
            "value": f"{first.value!r}",
            "times": first.times,
            "others": others,
        },
        (
            *(
                f"{one.key}: {one.value!r} in {one.times} validations since step {one.since}"
                for one in same[:3]
            ),
            f"{learning.key}: at least {least:.3g} since then",
        ),
        since=first.since,
        step=last,
        key=first.key,
    )


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


@lru_cache(1024)
def _answers(value: float) -> int | None:
    """Return the number of answers that a value is a share of, or a round number; None if it is
    neither.
    """
    for most, close in ((_COARSE, _SINGLE), (_MOST_ANSWERS, _DOUBLE)):
        share = Fraction(value).limit_denominator(most)
        if abs(value - share) < close:
            return share.denominator
    return None
