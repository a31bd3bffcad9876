"""The policy breaks: the reward falls off a cliff as a KL leaves its band or samples loop."""

from __future__ import annotations

import math
from bisect import bisect_left
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from verl_tui.health.conditions.condition import KEPT_BREACHES
from verl_tui.health.conditions.falls import cliff, vanish
from verl_tui.health.conditions.rises import scaled
from verl_tui.health.conditions.windows import rolling
from verl_tui.health.diagnoses.diagnosis import FindingHistory, Told, diagnosis
from verl_tui.health.finding import number
from verl_tui.health.inputs import column_of
from verl_tui.health.limits import kl_band, target_kl, weak_kl_term
from verl_tui.health.reward import learning
from verl_tui.indicators import INDICATORS, is_home_made
from verl_tui.means import finite

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.health.conditions.condition import Breach, Column, Judged
    from verl_tui.health.guide import Rule
    from verl_tui.health.rule_context import RuleContext
    from verl_tui.runs.series import Series

_STRONG, _LEAP = 3.0, 10.0
"""Beside a cliff of few points a KL must be so many times its threshold, of unknown unit so many
times its own past: a batch alone shows less.
"""
_PAST, _FEWEST = 50, 5
"""Points of a metric that make its past, and the fewest of them."""
_WRECK = 200
"""Points after the edge in which the worst KL and samples are searched for."""
_LONG_OUT = 300
"""Points after which a KL outside its band counts as old: heuristic."""
_OUT = 3
"""Points in a row beyond its limit that make a KL leave its band."""
_SPARSE = 50
"""Steps between points from which on a single one may be trusted."""
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
_LOOPS = ("samples/repetition", "val_samples/repetition")
_JUMP, _JUMP_FLOOR = 100.0, 10.0
"""A KL to the reference that is at once so many times its highest, and beyond so many nats, has no
need of a falling reward: no healthy one, per token or of whole responses, leaps so far.
"""


class _Surroundings(NamedTuple):
    """Where signs are looked for around a fall, and how sure they must be."""

    before: int
    """Points before its edge."""
    after: int
    """Points after it."""
    out: int = _OUT
    """Points in a row beyond its limit that make a KL leave its band."""
    few: bool = True
    """Whether the fall was seen in few points: then what was out before it has nothing to do with
    it, and a KL must be far out.
    """


class _CollapseSign(NamedTuple):
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


def _watches(points: Column, share: float) -> Sequence[tuple[_Surroundings, Judged]]:
    """Return the watches for a fall: in many points; in few, five before and five after, found
    within five; in the first steps of all, which have no level before; and at the first of points
    that are far apart.
    """
    few = _Surroundings(20, 10)
    return (
        (_Surroundings(_PAST, 30, few=False), cliff(points, 40, 5, 15, share)),
        (few, cliff(points, 10, 2, 2, share, 5.0, unlike_all=True)),
        (few, vanish(points, 0.4, 0.5, 5, _PAST)),
        (few._replace(out=1), cliff(points, 10, 1, 0, 0.75, 1.0, unlike_all=True)),
    )


@diagnosis("policy-collapse")
def policy_collapse(context: RuleContext, rule: Rule) -> FindingHistory | str:
    """Find a cliff in the reward with a KL out of its band or samples that repeat themselves; else
    a KL that needs no fall.
    """
    reward = context.run.indicator("reward")
    if reward is None:
        return "the log has no reward"
    signs = (*map(context.indicators.get, _KLS), context.first_key(_LOOPS))
    if not any(signs):
        return "the log has no KL and no samples"
    breaches, now = _jump(context)
    fallen = None
    points, step = column_of([reward], context.end)
    for around, watch in _watches(points, rule.threshold):
        for breach in watch.breaches:
            raised = _first_sign(context, reward, breach.since, around)
            if raised is not None:
                what, raised = f"reward {breach.what}", max(breach.raised, raised)
                breaches.append(breach._replace(raised=raised, what=what))
                fallen = fallen or (watch if breach.cleared is None else None)
        now = now or watch.needs
    if fallen is not None:
        now = _fallen(context, reward, fallen, step)
    return FindingHistory(now, [*_different(breaches)][-KEPT_BREACHES:])


def _jump(context: RuleContext) -> tuple[list[Breach], Told | str | None]:
    """Return where the KL to the reference jumped beyond all bounds, with the finding while it
    stays there and the reward does not gain.
    """
    kl = context.run.indicator("reference_kl")
    if kl is None:
        return [], None
    points, step = column_of([kl], context.end)
    jumps = scaled(points, _JUMP, _FEWEST, _JUMP_FLOOR)
    breach = jumps.open
    what = [one._replace(what=f"reference KL {one.what}") for one in jumps.breaches]
    if breach is None or learning(context, kl.key):
        return what, None
    facts = {"jumped": breach.what, "newest": kl.values[-1]}
    return what, Told(facts, case="jump", since=breach.since, step=step, key=kl.key)


def _different(collapses: list[Breach]) -> Iterator[Breach]:
    """Yield the breaches, of several that saw the same fall the first."""
    until: float = -math.inf
    for breach in sorted(collapses, key=lambda one: (one.raised, one.since)):
        if breach.since > until:
            yield breach._replace(what=f"collapsed: {breach.what}")
            until = math.inf if breach.cleared is None else breach.cleared


def _fallen(
    context: RuleContext, reward: Series, watch: Judged, step: int | None
) -> Told:
    """Return the fall that holds, with the worst that came after it."""
    assert watch.open is not None
    assert watch.spell is not None
    edge, facts = watch.open.since, watch.spell.facts
    around = _Surroundings(_PAST, _WRECK)
    out = _departures(context, reward, edge, around)
    out = out or _departures(context, reward, edge, around._replace(out=1))
    loops = _loops(context, reward, edge, around)
    return Told(
        {
            "level": facts["level"],
            "foot": facts.get("foot", reward.values[-1]),
            "signs": ", ".join(one.brief for one in (*out[:1], *loops)),
        },
        [one.words for one in (*out, *loops)],
        case="kl-term" if weak_kl_term(context.run) else "",
        since=edge,
        step=step,
        key=reward.key,
    )


def _first_sign(
    context: RuleContext, reward: Series, edge: int, around: _Surroundings
) -> int | None:
    """Return the step at which the first sign around a fall that it is the policy's fault was
    certain, if any.
    """
    at = bisect_left(reward.steps, edge)
    if around.out == 1 and edge - reward.steps[at - 1] < _SPARSE:
        return None  # where points follow soon, there is no need to trust a single one
    signs = [
        *_departures(context, reward, edge, around),
        *_loops(context, reward, edge, around),
    ]
    first = reward.steps[max(0, at - around.before)]
    kept = [
        one for one in signs if not around.few or (one.is_strong and one.step >= first)
    ]
    return min([one.raised for one in kept], default=None)


def _stretch(
    series: Series, reward: Series, edge: int, around: _Surroundings
) -> tuple[int, int]:
    """Return the places of a metric's points around a fall of the reward."""
    at = bisect_left(reward.steps, edge)
    first = reward.steps[max(0, at - around.before)]
    last = reward.steps[min(at + around.after, len(reward) - 1)]
    return bisect_left(series.steps, first), bisect_left(series.steps, last + 1)


def _departures(
    context: RuleContext, reward: Series, edge: int, around: _Surroundings
) -> list[_CollapseSign]:
    """Return the KLs that left their bands around a fall."""
    found = []
    for indicator in _KLS:
        series = context.run.indicator(indicator)
        if series is not None:
            start, stop = _stretch(series, reward, edge, around)
            end = min(start + _FEWEST, bisect_left(series.steps, edge))
            past = finite(series.values[max(0, start - _PAST) : end])
            limit, threshold = _limits(context, indicator, past)
            sign = _departure(series, (start, stop), limit, threshold, around.out)
            if sign is not None:
                label = INDICATORS[indicator].label
                words = f"{label} ({series.key}) {sign.words}"
                found.append(sign._replace(brief=f"{label} {sign.brief}", words=words))
    return found


def _departure(
    series: Series, stretch: tuple[int, int], limit: float, threshold: float, out: int
) -> _CollapseSign | None:
    """Return where a KL left its band between two places, None where it did not, or long before."""
    start, stop = stretch
    values = np.array(series.values)[:stop]
    is_out = (values > limit) & (values < np.inf)
    hits = np.flatnonzero(rolling(is_out[start:], out) == out)
    if not len(hits):
        return None
    raised = start + int(hits[0])
    within = np.flatnonzero(~(values[: raised + 1] > limit))
    first = int(within[-1]) + 1 if len(within) else 0
    if 0 < first <= raised + 1 - out - _LONG_OUT:
        return None
    top = max(finite(values[first:].tolist()))
    usual = median(finite(values[max(0, first - _PAST) : first].tolist()) or [0.0])
    far = max(_STRONG * min(threshold, 1.0), _OWN_PAST * usual)
    strong = top >= _LEAP * usual > 0 if is_home_made(series.key) else top >= far
    times, since = (
        f"{number(top / threshold)} × its threshold",
        f"from step {series.steps[first]}",
    )
    return _CollapseSign(
        series.steps[first],
        series.steps[raised],
        strong,
        f"{times} {since}",
        f"is up to {times} of {number(threshold)} {since} (highest {number(top)})",
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


def _loops(
    context: RuleContext, reward: Series, edge: int, around: _Surroundings
) -> Sequence[_CollapseSign]:
    """Return where samples began to repeat themselves around a fall, nothing where they did not or
    did so long before.
    """
    key = context.first_key(_LOOPS)
    series = context.run.series(key) if key else None
    if series is None:
        return ()
    start, stop = _stretch(series, reward, edge, around)
    begin = max(0, start - _PAST)
    values = np.array(series.values)[begin:stop]
    before, low = values[: start - begin], values[values <= _REPETITION]
    usual = float(np.median(low)) if len(low) else 0.0
    least = max(_REPETITION, 2 * usual)
    high = begin + np.flatnonzero(
        (values > least) & (np.arange(len(values)) >= len(before))
    )
    if not len(high) or (len(before) and np.median(before) > _REPETITION):
        return ()
    found, step = series.values[high[0] : stop], series.steps[high[0]]
    sign = f"samples loop from step {step}"
    much = f"{max(found):.0%} of their text repeats itself, {usual:.0%} before ({key})"
    return [_CollapseSign(step, step, median(found) > least, sign, f"{sign}: {much}")]
