"""Most groups of samples have the same score throughout: they teach nothing."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from statistics import fmean, median
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from verl_tui.health.conditions.condition import Column
from verl_tui.health.conditions.stays import Range, stays
from verl_tui.health.diagnoses.component_imbalance import silent_parts
from verl_tui.health.diagnoses.diagnosis import WORDS, FindingHistory, Told, diagnosis
from verl_tui.health.finding import Severity, filled, number
from verl_tui.health.inputs import column_of
from verl_tui.health.limits import all_cut, positive_setting
from verl_tui.health.reward import components, solved
from verl_tui.means import finite
from verl_tui.runs.settings import number as as_number
from verl_tui.trainers import writers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from verl_tui.health.conditions.windows import Numbers
    from verl_tui.health.guide import Rule
    from verl_tui.health.rule_context import RuleContext

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
_MOSTLY = 0.7
"""Share of the dead groups that are all right, or all wrong, for that to be their cause:
heuristic.
"""
_BOTTOM = 0.05
"""A mean reward down to here, on a scale from 0 to 1, is a hopeless task: heuristic."""
_EARLY, _LEARNT = 50, 0.25
"""Within so many points, and `_ENOUGH` groups, a hard task that scores now and then may still be
learnt; one that has once given this much of its full score is not that hard. Heuristic.
"""
_BEST, _NEARLY = 0.9, 0.85
"""A task is solved at nine tenths of its range so far or, if its scale ends at 1, at so much of the
way there, as a penalty may take some of it. Heuristic.
"""
_ROUNDING = 1e-6
"""Share of their size by which scores of one value differ: single precision leaves no more."""
_COLD, _ALIKE, _LOST = 0.3, 0.5, 0.5
"""A sampling temperature at or below gives nearly the same answer each time (usual is 0.6 to 1);
answers are alike of which at most so many differ, and have become so if it was twice as many.
Heuristic.
"""


class DeadShare(NamedTuple):
    """The share of dead groups and where it comes from."""

    key: str
    """The metric that it is read or derived from."""
    derive: Callable[[Numbers], Numbers] | None = None
    """Derives the share from the metric's value; None where that is the share."""
    words: str = ""
    """How it was derived, to follow a title."""
    beside: str | None = None
    """Metric of the scores' spread: where it is 0, all groups are dead whatever the share says."""


def dead_share(context: RuleContext) -> DeadShare | str:
    """Return the best figure that a log has, or why it has none."""
    names = context.names
    if key := context.first_key(SHARES):
        own = key == names.get(SAMPLES)
        return DeadShare(
            key, beside=None if own else context.indicators.get("reward_std")
        )
    for trainer in writers(tuple(context.run.keys)):
        for form, factor in trainer.mixed:
            for key in filter(form.fullmatch, context.run.keys):
                rest = partial(lambda factor, mixed: 1 - factor * mixed, factor)
                return DeadShare(key, rest, " (1 less the share of mixed groups)")
    batch = positive_setting(context.run, ("data.train_batch_size", "train_batch_size"))
    if batch is None or _EVICTED not in names:
        return _bound(context, 0.0 if batch is None else batch[1])
    kept = batch[1]
    words = f" (prompts that the filter discarded, of these and the {number(kept)} that it kept)"
    return DeadShare(
        names[_EVICTED],
        lambda evicted: (gone := np.maximum(0.0, evicted)) / (gone + kept),
        words,
    )


def _bound(context: RuleContext, batch: float) -> DeadShare | str:
    """Return the share that 0/1 rewards prove: if prompts are answered right with a mean p, at
    least p^n + (1−p)^n of the groups are dead.

    It is least where all prompts are equally hard (Jensen's inequality; arXiv 2606.18487).
    """
    key = context.names.get("critic/score/mean")
    _, n = positive_setting(context.run, ("rollout.n",)) or ("", 0.0)
    nothing = "neither grouped samples nor the trainer's metrics show the share of dead groups"
    filtered = context.run.config.find(["filter_groups.enable"])
    if filtered is not None and filtered[1] is True:
        return "dead groups are filtered out, and how many is not logged"
    if key is None or not n * batch:
        return nothing
    estimator = context.run.config.find(["adv_estimator"])
    if n == 1 or (estimator is not None and estimator[1] in _UNGROUPED):
        return "samples of one prompt are not compared: there are no groups"
    if not _are_counts(np.array(context.finite(key, _LATELY)) * batch * n, batch * n):
        return f"{nothing}, and rewards are not known to be 0 or 1"
    words = (
        f" (at least, by the mean of 0/1 rewards p and {number(n)} samples a prompt: "
        f"p^{n:g} + (1−p)^{n:g})"
    )
    return DeadShare(
        key, lambda p: np.clip(p, 0, 1) ** n + (1 - np.clip(p, 0, 1)) ** n, words
    )


def _are_counts(rights: Numbers, most: float) -> bool:
    """Return whether numbers of right answers are whole."""
    is_count = (
        (rights >= 0) & (rights <= most) & (abs(rights - rights.round()) < _WHOLE)
    )
    return len(is_count) >= _LEAST and bool(is_count.all())


class DeadCause(NamedTuple):
    """The cause of dead groups."""

    words: str
    """One clause."""
    advice: str
    calm: bool = False
    """True if it is no fault: solved, or so early that a hard task looks the same."""


def _cause(case: str, *, calm: bool = False, **facts: object) -> DeadCause:
    """Return a cause in words."""
    words = WORDS["dead-groups"]
    own = words["causes"][case]
    return DeadCause(
        filled(own["words"], facts), words["remedies"][own["advice"]], calm
    )


def dead_cause(context: RuleContext) -> DeadCause | None:
    """Return the cause of dead groups by what is known in a context, None if it is unknown."""
    reward = context.finite(context.indicators.get("reward"))
    shares = context.finite(context.names.get("samples/unique_share")) or [1.0]
    now, before = fmean(shares[-_LATELY:]), fmean(shares[:_LATELY])
    known = _hopeless(context, reward)
    if now <= _ALIKE and max(shares[:_LATELY]) * _LOST >= now:
        known = _cause("became-alike", now=now, before=before)
    elif now <= _ALIKE:
        known = known or _cause("alike", now=now)
    return _of_reward(context, reward) or _cold(context) or _all_right(context) or known


def _of_reward(context: RuleContext, reward: Sequence[float]) -> DeadCause | None:
    """Return what the reward and the cut answers show: it is always the same, or at its top."""
    if all_cut(context):
        return _cause("cut")
    if _is_constant(reward) and may_be_constant(context, by_shares=reward[-1] == 1):
        return _cause("constant" if reward[-1] else "zero", score=reward[-1])
    if solved(context, "") is None and not _came_up(reward):
        return None
    parts = components(context.run.keys, context.indicators.get("reward"))
    silent = silent_parts(context, parts, _LATELY) if len(parts) > 1 else ()
    if silent:
        names = ", ".join([one.key for one in silent])
        return _cause("without-a-part", calm=True, names=names)
    return _cause("solved", calm=True)


def _all_right(context: RuleContext) -> DeadCause | None:
    is_most = _share(context, "samples/groups_all_right") >= _MOSTLY
    return _cause("solved", calm=True) if is_most else None


def _hopeless(context: RuleContext, reward: Sequence[float]) -> DeadCause | None:
    """Return that nothing scores, on a scale from 0 to 1 or by the groups that are all wrong; early
    a hard task looks the same.
    """
    is_share = bool(reward) and 0 <= min(reward) <= max(reward) <= 1
    at_bottom = is_share and fmean(reward[-_LATELY:]) <= _BOTTOM
    if not at_bottom and _share(context, "samples/groups_all_wrong") < _MOSTLY:
        return None
    groups = sum(context.finite(context.names.get(_GROUPS)))
    is_early = len(reward) < _EARLY and groups < _ENOUGH
    return _cause("hopeless", calm=is_early and max(reward, default=0.0) < _LEARNT)


def _cold(context: RuleContext) -> DeadCause | None:
    """Return the setting that makes sampling cold, None where it is warm or unknown."""
    config = context.run.config
    stated = config.find(["rollout.temperature"]) or config.find(["temperature"])
    value = as_number(stated[1]) if stated is not None else None
    if stated is None or value is None or "val" in stated[0]:
        return None  # validation may be as cold as it likes
    return _cause("cold", name=stated[0], value=value) if 0 <= value <= _COLD else None


def _came_up(reward: Sequence[float]) -> bool:
    """Return whether a reward is next to the top of its scale, far above its beginning."""
    if len(reward) <= _LATELY:
        return False
    low, high = min(reward), max(reward)
    top, share = (1.0, _NEARLY) if 0 < high <= 1 else (high, _BEST)
    begun, now = fmean(reward[:_LEAST]), fmean(reward[-_LATELY:])
    return (
        low < high
        and now >= low + share * (top - low)
        and begun <= low + (top - low) / 2
    )


def _is_constant(reward: Sequence[float]) -> bool:
    return bool(reward) and max(reward) - min(reward) <= _ROUNDING * max(
        map(abs, reward)
    )


def may_be_constant(context: RuleContext, *, by_shares: bool = True) -> bool:
    """Return whether nothing shows that the scores of a group differ: neither spreads nor, where
    asked for, the shares of dead groups.
    """
    reward = context.indicators.get("reward", "").removesuffix("mean")
    high, low = (context.finite(f"{reward}{end}") for end in ("max", "min"))
    spreads = context.finite(context.indicators.get("reward_std"))
    spreads += [most - least for most, least in zip(high, low, strict=False)]
    if spreads or not by_shares:
        return max(spreads, default=0.0) <= NO_SPREAD
    return min(context.finite(context.first_key(SHARES)), default=1.0) >= 1.0


def _share(context: RuleContext, name: str) -> float:
    """Return the share of the dead groups that are of a kind, 0 if it is unknown."""
    dead, kind = (
        sum(context.finite(context.names.get(one), _LATELY)) for one in (SAMPLES, name)
    )
    return kind / dead if dead > 0 else 0.0


@diagnosis("dead-groups")
def dead_groups(context: RuleContext, rule: Rule) -> FindingHistory | str:
    """Find a share of groups without a spread in their scores that stays high, and why it does."""
    share = dead_share(context)
    if isinstance(share, str):
        return share
    series = [
        *filter(None, map(context.run.series, filter(None, (share.key, share.beside))))
    ]
    kind = "without spread" if share.beside else "value"
    points, step = column_of(series, context.end, kind, limit=NO_SPREAD)
    if share.derive is not None:
        points = Column(points.steps, share.derive(points.values))
    window = _window(context, rule, share.key)
    judged = stays(points, replace(rule, window=window), Range(high=rule.threshold))
    remark = partial(_remark, rule.severity)
    found = FindingHistory(judged.needs, judged.breaches, remark)
    if judged.needs is not None or judged.open is None or step is None:
        return found
    message, *evidence = judged.report(rule.title + share.words, context.duration)
    now = context.at(step)
    severity, words = remark(now)
    cause = dead_cause(now)
    told = Told(
        {"told": message, "figures": _figures(now), "cause": words},
        [f"{share.key}: {sentence}" for sentence in evidence],
        since=judged.open.since,
        step=step,
        key=share.key,
        severity=severity,
        advice=cause.advice if cause is not None else None,
    )
    return found._replace(now=told)


def _remark(severity: Severity, context: RuleContext) -> tuple[Severity, str]:
    """Return how bad it is, and the cause by what is known."""
    cause = dead_cause(context)
    if cause is None:
        return severity, ""
    return Severity.INFO if cause.calm else severity, f"; {cause.words}"


def _window(context: RuleContext, rule: Rule, key: str) -> int:
    """Return the points that make the evidence: fewer where each is of many groups."""
    counts = context.run.series(_GROUPS)
    if key != context.names.get(SAMPLES) or counts is None or len(counts) < _LEAST:
        return rule.window
    # The first ones only: the window must not change while a run goes on.
    enough = math.ceil(
        _ENOUGH / max(1.0, median(finite(counts.values[:_LEAST]) or [1.0]))
    )
    return min(rule.window, max(_LEAST, enough))


def _figures(context: RuleContext) -> str:
    """Return how many groups are all wrong or all right, in words, as far as it is known."""
    shares = {
        way: context.finite(context.names.get(f"samples/groups_all_{way}"), 1)
        for way in ("wrong", "right")
    }
    parts = ", ".join(
        f"all {way} {number(one[0])}" for way, one in shares.items() if one
    )
    if parts:
        return f" ({parts} at the newest step)"
    reward = context.finite(context.indicators.get("reward"), 1)
    return f" (the reward is {number(reward[0])})" if reward else ""
