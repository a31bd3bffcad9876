"""The policy breaks: the reward falls off a cliff as a KL leaves its band or samples loop."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from verl_tui.health.columns import column_of
from verl_tui.health.conditions import Kind
from verl_tui.health.conditions.changes import cliff, vanish
from verl_tui.health.conditions.column import (
    Breach,
    Found,
    Judged,
    behind_last,
    rolling,
)
from verl_tui.health.diagnosis import diagnosis
from verl_tui.health.finding import LACKS, Finding, number
from verl_tui.health.limits import kl_band, target_kl, weak_kl_term
from verl_tui.health.rule_context import METRICS, RuleContext
from verl_tui.indicators import INDICATORS, is_home_made
from verl_tui.means import finite, median_along

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.runs.series import Series

_STRONG, _LEAP = 3.0, 10.0
"""Beside a cliff of few points a KL must be so many times its threshold, of unknown unit so many
times its own past: a batch alone shows less.
"""
_PAST, _FEWEST = 50, 5
"""Points of a metric that make its past, and the fewest of them."""
_OUT = 3
"""Points in a row beyond its limit that make a KL leave its band."""
_POLICY_KL, _OWN_PAST = 0.1, 2.5
"""The guide's limit. Without a threshold (verl's own names) a KL of this many times its own past is
out: heuristic.
"""
_FAR = 1 / 3
"""Nats that are far from any reference in the first steps, and three times as many later on."""
_REPETITION = 0.3
"""Share of repeated text that marks a step's samples as loops: heuristic, healthy text stays
below.
"""
_KLS = ("policy_kl", "reference_kl")


class _Around(NamedTuple):
    """Where signs are looked for around a fall, and how sure they must be."""

    before: int
    after: int
    """Points before and after its edge."""
    out: int = _OUT
    """Points in a row beyond its limit that make a KL leave its band."""
    sure: bool = False
    """Whether only strong signs count that began within these points."""


_MANY, _WRECK = _Around(_PAST, 30), _Around(_PAST, 200)
_FEW = _Around(20, 10, sure=True)
"""Around a fall of many points; of few, where what was out before it has nothing to do with it, and
a KL must be far out; and where the worst is searched for.
"""


class _Sign(NamedTuple):
    """Something around a fall that shows it to be the policy's fault."""

    step: int
    raised: int
    """First step at which it was certain."""
    is_strong: bool
    """Whether it tells beside a fall of few points, too."""
    brief: str
    """A few words."""
    words: str
    """The same with how much."""
    of_kl: bool = False


# A fall in many points; in few, five before and five after, found within five; and in the first
# steps of all, which have no level before.
# fmt: off
_WATCHES = (
    (_MANY, Kind("cliff", lambda of, _, fall: cliff(of, 40, 5, 15, fall))),
    (_FEW, Kind("cliff", lambda of, _, fall: cliff(of, 10, 2, 2, fall, 5.0, unlike_all=True))),
    (_FEW, Kind("vanish", lambda of, *_: vanish(of, 0.4, 0.5, 5, _PAST))),
)
# fmt: on


@diagnosis("policy-collapse", "reward")
def policy_collapse(context: RuleContext) -> Found | str:
    """Find a cliff in the reward with a KL out of its band or samples that repeat themselves."""
    rule, reward = context.rule, context.run.series(context.indicators["reward"])
    loops = context.first_key(METRICS["repetition"])
    keys = (*map(context.indicators.get, _KLS), loops)
    if not reward or not any(keys):
        return f"{LACKS} no KL and no samples"
    found: list[Breach] = []
    now: Finding | None = None
    needs: list[str | None] = []
    points = column_of([reward], context.end)
    for around, watch in _WATCHES:
        judged = watch.judge(points, rule, rule.threshold)
        needs.append(judged.needs)
        for breach in judged.breaches:
            signs = _signs(context, reward, breach.since, around)
            if signs:
                what = f"the policy collapsed: reward {breach.what}"
                raised = max(breach.raised, min(one.raised for one in signs))
                found.append(breach._replace(raised=raised, what=what))
                if breach.cleared is None and not now:
                    now = _fallen(context, reward, judged)
    return Found(now or needs[0], _different(found))


def _different(found: Sequence[Breach]) -> Sequence[Breach]:
    """Return the breaches; of several that saw the same fall, the first."""
    breaches: list[Breach] = []
    for breach in sorted(found, key=lambda one: (one.raised, one.since)):
        until = breaches[-1].cleared if breaches else -1
        if until is not None and breach.since > until:
            breaches.append(breach)
    return breaches


def _fallen(context: RuleContext, reward: Series, judged: Judged) -> Finding:
    """Return the fall that holds, with the worst that came after it."""
    fall: dict[str, Any] = {"foot": reward.values[-1], **(judged.facts or {})}
    signs = _signs(context, reward, fall["since"], _WRECK)
    if not any(one.of_kl for one in signs):
        signs = _signs(context, reward, fall["since"], _WRECK._replace(out=1))
    brief = [one.brief for one in signs if one is signs[0] or not one.of_kl]
    return context.rule.finding(
        {**fall, "signs": ", ".join(brief)},
        [one.words for one in signs],
        "kl-term" if weak_kl_term(context.run) else "",
        since=fall["since"],
        step=fall["at"],
        key=reward.key,
    )


def _signs(
    context: RuleContext, reward: Series, edge: int, around: _Around
) -> list[_Sign]:
    """Return the KLs that left their bands around a fall of the reward, and where samples began to
    repeat themselves.
    """
    at = bisect_left(reward.steps, edge)
    first = reward.steps[max(0, at - around.before)]
    last = reward.steps[min(at + around.after, len(reward) - 1)]
    steps = first, edge, last
    found = [_departure(context, id, steps, around.out) for id in _KLS]
    signs = [*filter(None, (*found, _loop(context, first, last)))]
    if around.sure:
        return [one for one in signs if one.is_strong and one.step >= first]
    return signs


def _departure(
    context: RuleContext, id: str, steps: tuple[int, int, int], out: int
) -> _Sign | None:
    """Return where a KL left its band around a fall, by the first step that counts, that of the
    fall and the last one; None where it did not.
    """
    kl = context.run.indicator(id)
    if not kl:
        return None
    first, edge, last = steps
    start, stop = bisect_left(kl.steps, first), bisect_right(kl.steps, last)
    end = min(start + _FEWEST, bisect_left(kl.steps, edge))
    past = finite(kl.values[max(0, start - _PAST) : end])
    limit, threshold = _limits(context, id, past)
    values = np.array(kl.values)[:stop]
    is_out = (values > limit) & (values < np.inf)
    hits = np.flatnonzero(rolling(is_out[start:], out) == out)
    if not len(hits):
        return None
    raised = start + hits[0]
    first = behind_last(~(values[: raised + 1] > limit))
    top = float(values[first:][np.isfinite(values[first:])].max())
    usual = median(finite(values[max(0, first - _PAST) : first].tolist()) or [0.0])
    far = max(_STRONG * min(threshold, 1.0), _OWN_PAST * usual)
    strong = top >= _LEAP * usual > 0 if is_home_made(kl.key) else top >= far
    since, label = kl.steps[first], INDICATORS[id].label
    times = f"{number(top / threshold)} × its threshold"
    words = f"{times} of {number(threshold)} from step {since} (highest {number(top)})"
    return _Sign(
        since,
        kl.steps[raised],
        strong,
        f"{label} {times} from step {since}",
        f"{label} ({kl.key}) is up to {words}",
        of_kl=True,
    )


def _limits(
    context: RuleContext, indicator: str, past: Sequence[float]
) -> tuple[float, float]:
    """Return the end of a KL's healthy band, and the threshold that it is expressed in multiples
    of.
    """
    if indicator == "policy_kl":
        return _POLICY_KL, _POLICY_KL
    if context.run.dialect == "tutorial":
        run, guide = context.run, context.guide
        return kl_band(run, guide).value, target_kl(run, guide).value
    limit = max(_POLICY_KL, _OWN_PAST * median(past or [0.0]))
    # The first points are no reference for themselves.
    limit = min(limit, _FAR) if len(past) < _FEWEST else limit
    return limit, limit


def _loop(context: RuleContext, first: int, last: int) -> _Sign | None:
    """Return where samples began to repeat themselves between two steps, None where they did not or
    did so long before.
    """
    series = context.run.series(context.first_key(METRICS["repetition"]) or "")
    if not series:
        return None
    start, stop = bisect_left(series.steps, first), bisect_right(series.steps, last)
    begin = max(0, start - _PAST)
    values = np.array(series.values)[begin:stop]
    before, low = values[: start - begin], values[values <= _REPETITION]
    usual = float(median_along(low)) if len(low) else 0.0
    least = max(_REPETITION, 2 * usual)
    high = start + np.flatnonzero(values[start - begin :] > least)
    if not len(high) or (len(before) and median_along(before) > _REPETITION):
        return None
    found, step = series.values[high[0] : stop], series.steps[high[0]]
    sign = f"samples loop from step {step}"
    much = f"{max(found):.0%} of their text repeats itself, {usual:.0%} before"
    words = f"{sign}: {much} ({series.key})"
    return _Sign(step, step, median(found) > least, sign, words)
