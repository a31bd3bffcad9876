"""Weights that are not what they should be: in the first record, as before any update policy and
reference are the same model; behind a restart; and in the engine, if validation does not change.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from fractions import Fraction
from statistics import fmean, variance
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.health.conditions.condition import KEPT_BREACHES, Breach, open_breach
from verl_tui.health.diagnoses.diagnosis import (
    WORDS,
    FindingHistory,
    Told,
    diagnosis,
)
from verl_tui.health.exemptions import RATES
from verl_tui.health.finding import filled, number
from verl_tui.indicators import validation_keys
from verl_tui.means import finite

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from verl_tui.health.guide import Rule
    from verl_tui.health.rule_context import RuleContext
    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Series

_NAMES = ("actor/kl_loss", "train/kl_loss")
"""KL to the reference in the loss: verl's name, and that of slime and miles. Others log means over
several steps.
"""
_TEMPLATE, _CONFIG = 0.5, 1.0
"""Around 0.8 the chat templates differ, from 0.5 on: heuristic; beyond 1 the configuration is wrong
(miles docs/developer/debug.md).
"""


@diagnosis("first-step")
def first_step(context: RuleContext, _: Rule) -> Told | str | None:
    """Find a KL to the reference that is not near 0 in the record of the first step."""
    key = context.first_key(_NAMES)
    series = context.run.series(key) if key else None
    if series is None or not len(series):
        return f"the log has no {' or '.join(_NAMES)}"
    step, value = series.steps[0], series.values[0]
    if step > 1:
        return f"the log begins with step {step}, so its first record is not the run's"
    if not _TEMPLATE <= value < float("inf"):
        return None
    case = "config" if value > _CONFIG else "template"
    return Told({"value": value}, case=case, since=step, key=key)


@diagnosis("restart")
def restart(context: RuleContext, _: Rule) -> FindingHistory | None:
    """Find where the run's sources started over: steps went back, or the file was rewritten."""
    marks = context.run.restarts
    if not marks:
        return None
    ends = [*(mark.step for mark in marks[1:]), None]
    breaches = [
        Breach(mark.step, mark.step, f"started over: {mark.reason}", end)
        for mark, end in zip(marks, ends, strict=True)
    ]
    # They go by step: those beyond the step that the run has reached anew are of segments before.
    reached = [one for one in marks if context.end is None or one.step <= context.end]
    newest = (reached or marks)[-1]
    often = f", {len(marks)} times so far" if len(marks) > 1 else ""
    told = Told(
        {"often": often, "reason": newest.reason},
        [f"step {mark.step}: {mark.reason} ({mark.path})" for mark in marks[-5:]],
        since=newest.step,
    )
    return FindingHistory(told, breaches[-KEPT_BREACHES:])


_OF_WEIGHTS = ("reward", "reference_kl", "entropy")
"""Indicators that depend on the weights."""
_LOADS = (
    "load", "load_checkpoint", "load_path", "load_checkpoint_path", "resume", "resume_mode",
    "resume_from_checkpoint", "resume_from_path", "resume_path", "resume_step",
)  # fmt: skip
"""Settings by which a start is to go on from a checkpoint."""
_NOT = ("", "none", "null", "false", "no", "never", "disable", "0")
_LEAST, _MOST = 3, 10
"""Points that make a level."""
_ERRORS, _SHARE, _BACK = 5.0, 0.1, 0.4
"""A level has moved by five standard errors and a tenth of it; it is back where it is nearer to the
start than 40% of the way: heuristic.
"""


class _Levels(NamedTuple):
    """The values of a metric around a restart."""

    key: str
    start: Sequence[float]
    """The run's first values; those after the restart where it is at the run's first step."""
    before: Sequence[float]
    after: Sequence[float]

    def is_back(self) -> bool:
        """Return whether it is where it was at the start."""
        way = fmean(self.before) - fmean(self.start)
        still = fmean(self.after) - fmean(self.start)
        return abs(still) <= _BACK * abs(way) and _differ(self.before, self.after)

    @property
    def words(self) -> str:
        """The levels before and after."""
        before, after = number(fmean(self.before)), number(fmean(self.after))
        return f"{self.key} {before} → {after}"


@diagnosis("resume-lost", alive=True)  # it is about the newest restart only
def resume_lost(context: RuleContext, _: Rule) -> Told | str | None:
    """Find that all that had moved since the run's start is back there right behind the newest
    restart.
    """
    run = context.run
    if not run.restarts:
        return "the log shows no restart"
    mark = run.restarts[-1]
    around = _levels(run, map(context.indicators.get, _OF_WEIGHTS), mark.step)
    moved = [one for one in around if _differ(one.start, one.before)]
    if not moved or not all(map(_Levels.is_back, moved)):
        return None
    if moved[0].start is moved[0].after and not _is_to_load(run):
        return None  # started anew, maybe on purpose
    return Told(
        {"levels": "; ".join(one.words for one in moved)},
        [
            *(f"{one.words}, at the start {number(fmean(one.start))}" for one in moved),
            f"step {mark.step}: {mark.reason}",
        ],
        since=mark.step,
        step=run.step,
        key=moved[0].key,
    )


def _is_to_load(run: Run) -> bool:
    """Return whether settings say that a start goes on from a checkpoint."""
    stated = run.config.find(_LOADS)
    return stated is not None and str(stated[1]).strip().lower() not in _NOT


def _levels(run: Run, keys: Iterable[str | None], restart: int) -> Iterator[_Levels]:
    """Yield the levels of metrics around a restart, of those that have enough points.

    After a restart at the run's first step, what is left from before lies beyond the step reached.
    """
    for series in filter(None, map(run.series, filter(None, keys))):
        steps, values = series.steps, series.values
        at = bisect_left(steps, restart)
        end = bisect_left(steps, (run.end or 0) + 1)
        after = finite(values[at : min(end, at + _MOST)])
        stop, least = (at, 0) if at else (len(values), end)
        start = finite(values[: min(at, _MOST)]) or after
        before = finite(values[max(stop - _MOST, least) : stop])
        if not 0 < at < 2 * _MOST and min(map(len, (start, before, after))) >= _LEAST:
            yield _Levels(series.key, start, before, after)


def _differ(one: Sequence[float], other: Sequence[float]) -> bool:
    """Return whether two levels differ beyond chance, and by enough to matter."""
    gap = abs(fmean(one) - fmean(other))
    error = math.sqrt(variance(one) / len(one) + variance(other) / len(other))
    size = max(abs(fmean(one)), abs(fmean(other)))
    return gap > _ERRORS * error and gap >= _SHARE * size


_MOST_SCORES = 8
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
    keys = validation_keys(context.run.keys)[:_MOST_SCORES]
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
    found: list[Breach] = []
    now = None
    for step in sorted({step for one in scores for step in one.steps}):
        now = _same(scores, learning, step, count)
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
    seen = {one: bisect_right(one.steps, step) for one in scores}
    known = {one: one.values[:n] for one, n in seen.items() if n >= count}
    lately = [len({*values[-count:]}) for values in known.values()]
    if max(lately, default=2) > 1:
        return None
    times = {one: _times(values) for one, values in known.items()}
    first = _unlikely(known, times)
    if first is None:
        return None
    since = first.steps[seen[first] - times[first]]
    start = bisect_right(learning.steps, since)
    rates = learning.values[start : bisect_right(learning.steps, step)]
    if min(rates, default=0.0) <= 0:
        return None
    value = repr(known[first][-1])
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


def _unlikely(
    known: Mapping[Series, Sequence[float]], times: Mapping[Series, int]
) -> Series | None:
    """Return the first score that came too often in a row to be chance."""
    for one, values in known.items():
        if _is_no_chance(values[-1], times[one], len(values)):
            return one
    return None


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
