"""Most groups of samples have the same score throughout: they teach nothing."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from operator import sub
from statistics import fmean, median
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from verl_tui.health.conditions.condition import Column
from verl_tui.health.conditions.stays import Range, stays
from verl_tui.health.diagnoses.component_imbalance import silent_parts
from verl_tui.health.diagnoses.diagnosis import (
    WORDS,
    FindingHistory,
    Remark,
    Told,
    diagnosis,
)
from verl_tui.health.finding import Severity, filled, number
from verl_tui.health.inputs import column_of
from verl_tui.health.limits import all_cut, positive_setting
from verl_tui.health.reward import components, is_solved, scale_top
from verl_tui.means import finite
from verl_tui.runs.settings import number as as_number
from verl_tui.trainers import writers

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterator, Sequence

    from verl_tui.health.conditions.windows import Numbers
    from verl_tui.health.guide import Rule
    from verl_tui.health.rule_context import RuleContext
    from verl_tui.runs.series import Series


SAMPLES = "samples/dead_groups"
SHARES = (
    SAMPLES,
    "frac_reward_zero_std",
    "train/frac_reward_zero_std",
    "frac_zero_std",
    "train/frac_zero_std",
)
"""Shares of dead groups, best first: those of the dumps, then the trainers' own (TRL) and those
of home-made logs.
"""
_EVICTED = "training/filter_groups/evicted_samples"
"""Prompts without any spread that DAPO's filter threw out before the batch was full (verl
0.9.1).
"""
_UNGROUPED = ("gae", "remax", "reinforce_plus_plus")
"""Advantage estimators of verl that compare no samples of one prompt."""
_LATELY, _LEAST = 20, 5
"""Newest points that count, and how many there must be: one batch has one kind of prompts."""
_GROUPS, _ENOUGH = "samples/groups", 160
"""Groups that prove it, however few dumps they lie in: at a true share of 0.6, chance alone shows
0.7 of so many once in two hundred times.
"""
NO_SPREAD = 1e-5
"""Standard deviation of scores that is rounding: single precision leaves some 1e-7 of scores that
are all alike, which trainers take for a spread.
"""
_WHOLE = 0.01
"""A mean of so many zeros and ones is a whole number of them; rounding leaves less than this."""


class DeadShare(NamedTuple):
    """The share of dead groups and where it comes from."""

    key: str
    """The metric that it is read or derived from."""
    derive: Callable[[Numbers], Numbers] | None = None
    """Derives the share from the metric's value; None where that is the share."""
    words: str = ""
    """How it was derived, to follow a title."""
    beside: tuple[str, ...] = ()
    """Metric of the scores' spread: where it is 0, all groups are dead whatever the share says."""

    def column(
        self, series: Sequence[Series], end: int | None
    ) -> tuple[Column, int | None]:
        """Return the share at each step, and the newest step."""
        kind = "without spread" if self.beside else "value"
        found, step = column_of(series, end, kind, limit=NO_SPREAD)
        if self.derive is not None:
            found = Column(found.steps, self.derive(found.values))
        return found, step


def dead_share(context: RuleContext) -> DeadShare | str:
    """Return the best figure that a log has, or why it has none."""
    names = context.names
    if key := context.first_key(SHARES):
        spread = context.indicators.get("reward_std")
        if key == names.get(SAMPLES) or spread is None:
            return DeadShare(key)
        return DeadShare(key, beside=(spread,))
    if mixed := next(_mixed(context.run.keys), None):
        return mixed
    batch = positive_setting(context.run, ("data.train_batch_size", "train_batch_size"))
    if _EVICTED in names and batch is not None:
        return _filtered(names[_EVICTED], batch[1])
    return _bound(context, batch[1] if batch is not None else None)


def _mixed(keys: Collection[str]) -> Iterator[DeadShare]:
    """Yield what the shares of mixed groups that a trainer logs leave."""
    for trainer in writers(keys):
        for form, factor in trainer.mixed:
            rest = partial(_rest, factor=factor)
            for key in filter(form.fullmatch, keys):
                yield DeadShare(key, rest, " (1 less the share of mixed groups)")


def _rest(mixed: Numbers, factor: float) -> Numbers:
    rest: Numbers = 1 - factor * mixed
    return rest


def _filtered(key: str, kept: float) -> DeadShare:
    def share(evicted: Numbers) -> Numbers:
        discarded = np.maximum(0.0, evicted)
        return discarded / (discarded + kept)

    words = f" (prompts that the filter discarded, of these and the {number(kept)} that it kept)"
    return DeadShare(key, share, words)


def _bound(context: RuleContext, batch: float | None) -> DeadShare | str:
    """Return the share that 0/1 rewards prove: if prompts are answered right with a mean p, at
    least p^n + (1−p)^n of the groups are dead.

    It is least where all prompts are equally hard (Jensen's inequality; arXiv 2606.18487).
    """
    nothing = "neither grouped samples nor the trainer's metrics show the share of dead groups"
    reward = context.run.present(context.names.get("critic/score/mean"))
    samples = positive_setting(context.run, ("rollout.n",))
    if reward is None or samples is None or batch is None:
        return nothing
    n = samples[1]
    estimator = context.run.config.find(["adv_estimator"])
    if n < 2 or (estimator is not None and estimator[1] in _UNGROUPED):
        return "samples of one prompt are not compared: there are no groups"
    filtered = context.run.config.find(["filter_groups.enable"])
    if filtered is not None and filtered[1] is True:
        return "dead groups are filtered out, and how many is not logged"
    if not _zeros_and_ones(reward, batch * n):
        return f"{nothing}, and rewards are not known to be 0 or 1"
    words = (
        f" (at least, by the mean of 0/1 rewards p and {number(n)} samples a prompt: "
        f"p^{n:g} + (1−p)^{n:g})"
    )
    return DeadShare(reward.key, partial(_least_dead, samples=n), words)


def _least_dead(mean: Numbers, samples: float) -> Numbers:
    """Return the least share of groups of so many samples that are all right or all wrong."""
    p = np.clip(mean, 0.0, 1.0)
    share: Numbers = p**samples + (1 - p) ** samples
    return share


def _zeros_and_ones(reward: Series, count: float) -> bool:
    """Return whether every mean is that of so many zeros and ones."""
    values = finite(reward.tail(_LATELY))
    if len(values) < _LEAST:
        return False
    if not all(0 <= value <= 1 for value in values):
        return False
    return all(abs(value * count - round(value * count)) < _WHOLE for value in values)


_MOSTLY = 0.7
"""Share of the dead groups that are all right, or all wrong, for that to be their cause:
heuristic.
"""
_BOTTOM = 0.05
"""A mean reward down to here, on a scale from 0 to 1, is a hopeless task: heuristic."""
_BEST, _NEARLY, _BEGUN = 0.9, 0.85, 5
"""Otherwise it is solved at nine tenths of its range so far or, if its scale ends at 1, at so much
of the way there, as a penalty may take some of it; its first points must have lain below half.
Heuristic.
"""
_EARLY = 50
"""Within so many points, and `_ENOUGH` groups, a hard task that scores now and then may still be
learnt.
"""
_LEARNT = 0.25
"""One that has once given this much of its full score is not that hard: the policy has lost it.
Heuristic.
"""
_SAMPLES = (
    "samples/dead_groups",
    "samples/groups_all_right",
    "samples/groups_all_wrong",
    "samples/unique_share",
    _GROUPS,
)
_ROUNDING = 1e-6
"""Share of their size by which scores of one value differ: single precision leaves no more."""
_COLD = 0.3
"""A sampling temperature at or below gives nearly the same answer each time: heuristic, usual is
0.6 to 1.
"""
_ALIKE = 0.5
"""Share of different answers at or below which they are alike: heuristic."""
_LOST = 0.5
"""If the share has fallen below half of its beginning, the policy has lost its variety; else it
never had any.
"""


class DeadCause(NamedTuple):
    """The cause of dead groups."""

    words: str
    """One clause."""
    advice: str
    calm: bool = False
    """True if it is no fault: solved, or so early that a hard task looks the same."""
    certain: bool = True
    """False where a hopeless task explains it as well."""


def _cause(case: str, **facts: object) -> DeadCause:
    """Return a cause in words."""
    words = WORDS["dead-groups"]
    own = words["causes"][case]
    advice = words["remedies"][own["advice"]]
    return DeadCause(filled(own["words"], facts), advice, own.get("calm", False))


def dead_cause(context: RuleContext) -> DeadCause | None:
    """Return the cause of dead groups by what is known in a context, None if it is unknown."""
    reward = context.finite(context.indicators.get("reward"))
    by_reward = _of_reward(context, reward)
    if by_reward is not None:
        return by_reward
    cold = _temperature(context)
    if cold is not None:
        return _cause("cold", name=cold[0], value=cold[1])
    if _share(context, "samples/groups_all_right") >= _MOSTLY:
        return _cause("solved")
    alike = _variety(context)
    if alike is not None and alike.certain:
        return alike
    return _hopeless(context, reward) or alike


def _of_reward(context: RuleContext, reward: Sequence[float]) -> DeadCause | None:
    """Return what the reward and the cut answers show: it is always the same, or at its top."""
    if all_cut(context):
        return _cause("cut")
    shown = _always_dead if reward[-1:] == [1] else _may_be_one_score
    if _is_constant(reward) and shown(context):
        return _cause("constant" if reward[-1] else "zero", score=reward[-1])
    if not _at_its_top(reward):
        return None
    parts = components(context.run.keys, context.indicators.get("reward"))
    silent = silent_parts(context, parts, _LATELY) if len(parts) > 1 else ()
    if silent:
        return _cause("without-a-part", names=", ".join(one.key for one in silent))
    return _cause("solved")


def _hopeless(context: RuleContext, reward: Sequence[float]) -> DeadCause | None:
    all_wrong = _share(context, "samples/groups_all_wrong")
    if all_wrong < _MOSTLY and not _at_its_bottom(reward):
        return None
    groups = context.finite(context.names.get(_GROUPS))
    is_early = len(reward) < _EARLY and sum(groups) < _ENOUGH
    calm = max(reward, default=0.0) < _LEARNT and is_early
    return _cause("hopeless")._replace(calm=calm)


def _is_constant(reward: Sequence[float]) -> bool:
    if not reward:
        return False
    return max(reward) - min(reward) <= _ROUNDING * max(map(abs, reward))


def _at_its_bottom(reward: Sequence[float]) -> bool:
    """Return whether the reward is next to 0 on a scale from 0 to 1."""
    is_share = bool(reward) and 0 <= min(reward) <= max(reward) <= 1
    return is_share and fmean(reward[-_LATELY:]) <= _BOTTOM


def _always_dead(context: RuleContext) -> bool:
    """Return whether no group has ever had a spread, as far as is known: means alone may hide that
    some had.
    """
    spreads = context.finite(context.indicators.get("reward_std"))
    if spreads:
        return max(spreads) <= NO_SPREAD
    return min(context.finite(context.first_key(SHARES)), default=1.0) >= 1.0


def _may_be_one_score(context: RuleContext) -> bool:
    """Return whether nothing shows that scores differ behind a mean that stays the same."""
    reward = context.indicators.get("reward", "").removesuffix("mean")
    high, low = (context.finite(f"{reward}{end}") for end in ("max", "min"))
    spreads = context.finite(context.indicators.get("reward_std"))
    return max((*spreads, *map(sub, high, low)), default=0.0) <= NO_SPREAD


def may_be_constant(context: RuleContext, step: int) -> bool:
    """Return whether nothing shows, up to a step, that the scores of a group differ."""
    then = context.at(step)
    return _always_dead(then) and _may_be_one_score(then)


def seen_by(context: RuleContext) -> Hashable:
    """Return all that a cause at a past step depends on: while this stays the same, so does the
    cause.
    """
    figures = ("reward", "reward_std", "truncated_share")
    indicators = map(context.indicators.get, figures)  # the reward's ends come with it
    names = map(context.names.get, (*_SAMPLES, *SHARES))
    return context.revisions((*indicators, *names)), _temperature(context)


def _at_its_top(reward: Sequence[float]) -> bool:
    """Return whether the reward is next to the top of its scale and, but for 1, far above its
    beginning.
    """
    if not reward:
        return False
    lately = fmean(reward[-_LATELY:])
    low, high = min(reward), max(reward)
    if is_solved(lately, low, high):
        return True
    if len(reward) <= _LATELY:
        return False
    begun = fmean(reward[:_BEGUN])
    top = scale_top(high)
    share = _NEARLY if top == 1 else _BEST
    reach = top - low
    return lately >= low + share * reach and begun <= low + _LOST * reach


def _variety(context: RuleContext) -> DeadCause | None:
    """Return the cause that answers are alike, from the beginning or since later; None if they are
    not or there are no samples.
    """
    shares = context.finite(context.names.get("samples/unique_share"))
    if not shares:
        return None
    now = fmean(shares[-_LATELY:])
    if now > _ALIKE:
        return None
    if max(shares[:_LATELY]) * _LOST < now:
        return _cause("alike", now=now)._replace(certain=False)
    return _cause("became-alike", now=now, before=fmean(shares[:_LATELY]))


def _temperature(context: RuleContext) -> tuple[str, float] | None:
    """Return the setting that makes sampling cold, None where it is warm or unknown."""
    config = context.run.config
    stated = config.find(["rollout.temperature"]) or config.find(["temperature"])
    if stated is None:
        return None
    name, setting = stated
    value = as_number(setting)
    if "val" in name:
        return None  # validation may be as cold as it likes
    return (name, value) if value is not None and 0 <= value <= _COLD else None


def _share(context: RuleContext, name: str) -> float:
    """Return the share of the dead groups that are of a kind, 0 if it is unknown."""
    dead = sum(context.finite(context.names.get("samples/dead_groups"))[-_LATELY:])
    of_kind = context.finite(context.names.get(name))
    return sum(of_kind[-_LATELY:]) / dead if dead > 0 else 0.0


@diagnosis("dead-groups")
def dead_groups(context: RuleContext, rule: Rule) -> FindingHistory | str:
    """Find a share of groups without a spread in their scores that stays high, and why it does."""
    share = dead_share(context)
    if isinstance(share, str):
        return share
    known = map(context.run.series, (share.key, *share.beside))
    series = [one for one in known if one is not None]
    window = _window(context, rule, share.key)
    points, step = share.column(series, context.end)
    high = Range(high=rule.threshold)
    judged = stays(points, replace(rule, window=window), high)
    if judged.needs is not None:
        return FindingHistory(judged.needs, judged.breaches)
    remark = partial(_remark, rule.severity)
    found = FindingHistory(None, judged.breaches, remark, seen_by(context))
    if judged.open is None or step is None:
        return found
    message, *evidence = judged.report(rule.title + share.words, context.duration)
    cause = dead_cause(context.at(step))
    severity, words = remark(context.at(step))
    told = Told(
        {"told": message, "figures": _figures(context), "cause": words},
        [f"{share.key}: {sentence}" for sentence in evidence],
        since=judged.open.since,
        step=step,
        key=share.key,
        severity=severity,
        advice=(cause and cause.advice) or None,
    )
    return found._replace(now=told)


def _remark(severity: Severity, context: RuleContext) -> Remark:
    """Return the cause by what is known, and how bad it is."""
    cause = dead_cause(context)
    if cause is None:
        return Remark(severity, "")
    return Remark(Severity.INFO if cause.calm else severity, f"; {cause.words}")


def _window(context: RuleContext, rule: Rule, key: str) -> int:
    """Return the points that make the evidence: fewer where each is of many groups."""
    counts = context.run.series(_GROUPS)
    if key != context.names.get(SAMPLES) or counts is None or len(counts) < _LEAST:
        return rule.window
    # The first ones only: the window must not change while a run goes on.
    usual = median(counts.values[:_LEAST])
    enough = math.ceil(_ENOUGH / max(1.0, usual))
    return min(rule.window, max(_LEAST, enough))


def _figures(context: RuleContext) -> str:
    """Return how many groups are all wrong or all right, in words, as far as it is known."""

    def newest(name: str) -> float | None:
        series = context.run.present(context.names.get(name))
        point = series.last_finite if series is not None else None
        return None if point is None else point.value

    shares = {way: newest(f"samples/groups_all_{way}") for way in ("wrong", "right")}
    known = {way: number(one) for way, one in shares.items() if one is not None}
    if known:
        parts = ", ".join(f"all {way} {one}" for way, one in known.items())
        return f" ({parts} at the newest step)"
    reward = newest(context.indicators.get("reward", ""))
    return "" if reward is None else f" (the reward is {number(reward)})"
