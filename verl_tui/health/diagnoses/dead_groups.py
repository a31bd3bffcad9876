"""Most groups of samples have the same score throughout: they teach nothing."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import fmean, median
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from verl_tui.health.columns import column_of
from verl_tui.health.conditions import KINDS
from verl_tui.health.conditions.column import Column, Found, Numbers
from verl_tui.health.diagnosis import diagnosis
from verl_tui.health.finding import WORDS, Severity, filled, number
from verl_tui.health.limits import all_cut
from verl_tui.health.reward import solved
from verl_tui.health.rule_context import METRICS, RuleContext
from verl_tui.means import finite
from verl_tui.patterns import pattern
from verl_tui.runs.settings import number as as_number
from verl_tui.trainers import writers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


_SAMPLES = "samples/dead_groups"
_UNGROUPED = ("gae", "remax", "reinforce_plus_plus")
"""Advantage estimators of verl that compare no samples of one prompt."""
_LATELY, _LEAST = 20, 5
"""Newest points that count, and how many there must be: one batch has one kind of prompts."""
_GROUPS, _ENOUGH = "samples/groups", 160
"""Groups that prove it, however few dumps they lie in: at a true share of 0.6, chance alone shows
0.7 of so many once in two hundred times.
"""
_NO_SPREAD = 1e-5
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
_NEARLY = 0.85
"""A task is solved, too, at so much of the way to a top of 1, as a penalty may take some of it:
heuristic.
"""
_CLAUSE_END = pattern("[,:]")
_ROUNDING = 1e-6
"""Share of their size by which scores of one value differ: single precision leaves no more."""
_COLD, _ALIKE = 0.3, 0.5
"""A temperature that is cold, and the share of different answers below which they are alike:
heuristic.
"""


_Cause = tuple[str, "Mapping[str, object]", bool]


class _Share(NamedTuple):
    """The share of dead groups and where it comes from."""

    key: str
    """The metric that it is read or derived from."""
    words: str = ""
    """How it was derived, to follow a title."""
    derive: Callable[[Numbers], Numbers] = lambda share: share
    """Derives the share from the metric's value."""


@diagnosis("dead-groups")
def dead_groups(context: RuleContext) -> Found | str:
    """Find a share of groups without a spread in their scores that stays high, and why it does."""
    found = shares_of(context)
    if isinstance(found, str):
        return found
    share, points = found
    rule, window = context.rule, _window(context, share.key)
    stays = replace(rule, condition="above", window=window)
    judged = KINDS["above"].judge(points, stays, rule.threshold)
    breaches = []
    for one in judged.breaches:
        severity, why, _ = _cause(context.at(one.raised))
        what = f"{rule.title} {one.what}{why}"
        breaches.append(one._replace(what=what, severity=severity))
    facts = judged.facts
    if facts is None:
        return Found(judged.needs, breaches)
    now = context.at(facts["at"])
    severity, why, advice = _cause(now)
    short = _CLAUSE_END.split(why.removeprefix("; "))[0]
    long = context.duration(facts["since"], facts["at"])
    finding = rule.finding(
        {**facts, "title": rule.title + share.words, "long": long}
        | {"figures": _figures(now), "cause": why}
        | {"short": short},
        since=facts["since"],
        step=facts["at"],
        key=share.key,
        severity=severity,
        advice=advice,
    )
    return Found(finding, breaches)


def shares_of(context: RuleContext) -> tuple[_Share, Column] | str:
    """Return where the share of dead groups comes from, the share at each step, or why it is not
    known.
    """
    share = _dead_share(context)
    if isinstance(share, str):
        return share
    own = share.words or share.key == context.names.get(_SAMPLES)
    keys = (share.key, None if own else context.indicators.get("reward_std"))
    series = [*filter(None, map(context.run.series, filter(None, keys)))]
    kind = "without spread" if len(series) > 1 else "value"
    points = column_of(series, context.end, kind, limit=_NO_SPREAD)
    return share, Column(points.steps, share.derive(points.values))


def _dead_share(context: RuleContext) -> _Share | str:
    """Return the best figure that a log has, or why it has none."""
    run = context.run
    if key := context.first_key(METRICS["dead_groups"]):
        return _Share(key)
    if teacher := context.first_key(METRICS["teacher"]):
        return f"the policy learns from a teacher, not from scores ({teacher})"
    for form, factor in (it for one in writers(tuple(run.keys)) for it in one.mixed):
        for key in filter(form.fullmatch, run.keys):
            words = " (1 less the share of mixed groups)"
            return _Share(key, words, lambda mixed: 1 - factor * mixed)  # noqa: B023 - one pass
    evicted = context.first_key(METRICS["evicted"])
    _, batch = run.config.positive("batch_size")
    if not batch or not evicted:
        return _bound(context, batch)
    words = f" (prompts that the filter discarded, of these and the {number(batch)} that it kept)"
    return _Share(
        evicted, words, lambda gone: np.maximum(0.0, gone) / (abs(gone) + batch)
    )


def _bound(context: RuleContext, batch: float) -> _Share | str:
    """Return the share that 0/1 rewards prove: if prompts are answered right with a mean p, at
    least p^n + (1−p)^n of the groups are dead.

    It is least where all prompts are equally hard (Jensen's inequality; arXiv 2606.18487).
    """
    key = context.names.get("critic/score/mean")
    _, n = context.run.config.positive("group_size")
    _, filtered = context.run.config.named("group_filter")
    _, estimator = context.run.config.named("advantages")
    if filtered is True:
        return "dead groups are filtered out, and how many is not logged"
    if n == 1 or estimator in _UNGROUPED:
        return "samples of one prompt are not compared: there are no groups"
    # Are these the means of so many answers that are right or wrong?
    most = batch * n
    rights = np.array(context.finite(key, _LATELY)) * most
    is_count = (abs(rights - rights.round()) < _WHOLE) & (rights <= most)
    if not key or most <= 0 or len(rights) < _LEAST or not is_count.all():
        return (
            "neither grouped samples nor the trainer's metrics show the share of dead groups, and "
            "rewards are not known to be 0 or 1"
        )
    words = (
        f" (at least, by the mean of 0/1 rewards p and {number(n)} samples a prompt: "
        f"p^{n:g} + (1−p)^{n:g})"
    )
    return _Share(
        key, words, lambda p: np.clip(p, 0, 1) ** n + np.clip(1 - p, 0, 1) ** n
    )


def _cause(context: RuleContext) -> tuple[Severity, str, str | None]:
    """Return how bad it is, the cause in words, and advice, by what is known in a context."""
    found = _known_cause(context, context.finite(context.indicators.get("reward")))
    rule = context.rule
    if not found:
        return rule.severity, "", None
    case, facts, calm = found
    words = WORDS[rule.id]["causes"][case]
    severity = Severity.INFO if calm else rule.severity
    return severity, f"; {filled(words['words'], facts)}", words["advice"]


def _known_cause(context: RuleContext, reward: Sequence[float]) -> _Cause | None:
    """Return the cause with its facts and whether it is no fault: solved, or so early that a hard
    task looks the same.
    """
    if all_cut(context):
        return "cut", {}, False
    if _is_constant(reward) and may_be_constant(context, by_shares=reward[-1] == 1):
        return "constant" if reward[-1] else "zero", {"score": reward[-1]}, False
    if solved(context) or _came_up(reward):
        return "solved", {}, True
    if cold := _cold(context):
        return cold
    if _share(context, "samples/groups_all_right") >= _MOSTLY:
        return "solved", {}, True
    return _alike(context) or _hopeless(context, reward)


def _cold(context: RuleContext) -> _Cause | None:
    """Return the setting that makes sampling cold, None where it is warm or unknown."""
    name, stated = context.run.config.named("temperature")
    value = as_number(stated)
    if value is None or not 0 <= value <= _COLD or "val" in name:
        return None  # validation may be as cold as it likes
    return "cold", {"name": name, "value": value}, False


def _alike(context: RuleContext) -> _Cause | None:
    """Return as the cause that answers to a prompt are alike, None if they are not."""
    shares = context.finite("samples/unique_share") or [1.0]
    now, begun = fmean(shares[-_LATELY:]), fmean(shares[:_LATELY])
    return ("alike", {"now": now, "before": begun}, False) if now <= _ALIKE else None


def _hopeless(context: RuleContext, reward: Sequence[float]) -> _Cause | None:
    """Return as the cause that nothing scores, on a scale from 0 to 1 or by the groups that are all
    wrong; early on, a hard task looks the same.
    """
    is_share = bool(reward) and 0 <= min(reward) <= max(reward) <= 1
    at_bottom = is_share and fmean(reward[-_LATELY:]) <= _BOTTOM
    if not at_bottom and _share(context, "samples/groups_all_wrong") < _MOSTLY:
        return None
    early = len(reward) < _EARLY and sum(context.finite(_GROUPS)) < _ENOUGH
    return "hopeless", {}, early and max(reward, default=0.0) < _LEARNT


def _came_up(reward: Sequence[float]) -> bool:
    """Return whether a reward is next to 1, far above its beginning."""
    if len(reward) <= _LATELY or not min(reward) < max(reward) <= 1:
        return False
    low = min(reward)
    begun, now = fmean(reward[:_LEAST]), fmean(reward[-_LATELY:])
    return now >= low + _NEARLY * (1 - low) and begun <= low + (1 - low) / 2


def _is_constant(reward: Sequence[float]) -> bool:
    most = max(map(abs, reward), default=-1.0)
    return most >= 0 and max(reward) - min(reward) <= _ROUNDING * most


def may_be_constant(context: RuleContext, *, by_shares: bool = True) -> bool:
    """Return whether nothing shows that the scores of a group differ: neither spreads nor, where
    asked for, the shares of dead groups.
    """
    reward = context.indicators.get("reward", "").removesuffix("mean")
    high, low = (context.finite(f"{reward}{end}") for end in ("max", "min"))
    spreads = context.finite(context.indicators.get("reward_std"))
    spreads += [most - least for most, least in zip(high, low, strict=False)]
    if spreads or not by_shares:
        return max(spreads, default=0.0) <= _NO_SPREAD
    return (
        min(context.finite(context.first_key(METRICS["dead_groups"])), default=1.0)
        >= 1.0
    )


def _share(context: RuleContext, name: str) -> float:
    """Return the share of the dead groups that are of a kind, 0 if it is unknown."""
    dead, kind = (sum(context.finite(one, _LATELY)) for one in (_SAMPLES, name))
    return kind / dead if dead > 0 else 0.0


def _window(context: RuleContext, key: str) -> int:
    """Return the points that make the evidence: fewer where each is of many groups."""
    counts, window = context.run.series(_GROUPS), context.rule.window
    if key != context.names.get(_SAMPLES) or not counts or len(counts) < _LEAST:
        return window
    # The first ones only: the window must not change while a run goes on.
    usual = median(finite(counts.values[:_LEAST]) or [1.0])
    return min(window, max(_LEAST, math.ceil(_ENOUGH / max(1.0, usual))))


def _figures(context: RuleContext) -> str:
    """Return how many groups are all wrong or all right, in words, as far as it is known."""
    shares = [
        f"all {way} {context.rule.written(value)}"
        for way in ("wrong", "right")
        for value in context.finite(f"samples/groups_all_{way}", 1)
    ]
    if shares:
        return f" ({', '.join(shares)} at the newest step)"
    reward = context.finite(context.indicators.get("reward"), 1)
    return f" (the reward is {number(reward[0])})" if reward else ""
