"""The policy breaks: the reward falls off a cliff as a KL leaves its band or samples loop."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.health.conditions.condition import KEPT_BREACHES
from verl_tui.health.conditions.falls import cliff, vanish
from verl_tui.health.conditions.restarts import scaled
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


_STRONG = 3.0
"""Beside a cliff of few points a KL must be so many times its threshold: a batch alone shows
less.
"""
_BEFORE = 50
"""Points of a metric that make its past."""
_WRECK = 200
"""Points after the edge in which the worst KL and samples are searched for."""
_LONG_OUT = 300
"""Points after which a KL outside its band counts as old: heuristic."""
_FAR_FROM = 1.0
"""A higher threshold counts as this one: three nats are far from any reference."""
_LEAP = 10.0
"""A KL of unknown unit must be so many times its own past instead."""
_PAST = 5
"""Fewest points that make a past."""
_OUT = 3
"""Points in a row beyond its limit that make a KL leave its band."""
_SPARSE = 50
"""Steps between points from which on a single one may be trusted."""
_POLICY_KL = 0.1
"""The guide's limit."""
_OWN_PAST = 2.5
"""Without a threshold (verl's own names) a KL of this many times its own past is out: heuristic."""
_REPETITION = 0.3
"""Share of repeated text that marks a step's samples as loops: heuristic, healthy text stays
below.
"""


_LOOPS = ("samples/repetition", "val_samples/repetition")


class _Surroundings(NamedTuple):
    """Where signs are looked for around a fall, and how sure they must be."""

    before: int
    """Points before its edge."""
    after: int
    """Points after it."""
    out: int = _OUT
    """Points in a row beyond its limit that make a KL leave its band."""
    few: bool = True
    """Whether the fall was seen in few points, so that a KL must be far out."""


class _CollapseSign(NamedTuple):
    """Something around a fall that shows it to be the policy's fault."""

    step: int
    raised: int
    """First step at which it was certain."""
    is_strong: bool
    """Whether it tells beside a fall of few points, too: a KL far out, loops that last."""
    brief: str
    """A few words."""
    words: str
    """The same with how much."""


def _first_sign(
    context: RuleContext, reward: Series, edge: int, around: _Surroundings
) -> int | None:
    """Return the step of the first sign around a fall that it is the policy's fault, if any."""
    at = bisect_left(reward.steps, edge)
    if around.out == 1 and edge - reward.steps[at - 1] < _SPARSE:
        return None  # where points follow soon, there is no need to trust a single one
    stretch = _around(reward, edge, around.before, around.after)
    signs = _departures(context, stretch, edge, around.out)
    signs += _loops(context, stretch)
    if around.few:
        # A fall is less sure: what was out before it has nothing to do with it.
        signs = [one for one in signs if one.is_strong and one.step >= stretch[0]]
    return min([one.raised for one in signs], default=None)


def _signs_of(context: RuleContext, reward: Series, edge: int) -> tuple[str, list[str]]:
    """Return the signs around a fall with the worst that came after it: a few words on the first KL
    that is out and on loops, and a sentence on each.
    """
    stretch = _around(reward, edge, _BEFORE, _WRECK)
    out = _departures(context, stretch, edge)
    out = out or _departures(context, stretch, edge, out=1)
    loops = _loops(context, stretch)
    words = ", ".join(one.brief for one in (*out[:1], *loops))
    return words, [one.words for one in (*out, *loops)]


def _around(reward: Series, edge: int, before: int, after: int) -> tuple[int, int]:
    """Return the steps of the points so many before and after a step, as far as there are any."""
    at = bisect_left(reward.steps, edge)
    last = min(at + after, len(reward) - 1)
    return reward.steps[max(0, at - before)], reward.steps[last]


def _departures(
    context: RuleContext, stretch: tuple[int, int], edge: int, out: int = _OUT
) -> list[_CollapseSign]:
    """Return the KLs that left their bands between two steps around a fall."""
    return [
        departure
        for id in ("policy_kl", "reference_kl")
        if (series := context.run.indicator(id)) is not None
        and (departure := _departure(context, id, series, stretch, edge, out))
    ]


def _departure(
    context: RuleContext,
    indicator: str,
    series: Series,
    stretch: tuple[int, int],
    edge: int,
    out: int,
) -> _CollapseSign | None:
    """Return where a KL left its band between two steps, None where it did not."""
    steps, values = series.steps, series.values
    start, stop = bisect_left(steps, stretch[0]), bisect_right(steps, stretch[1])
    end = min(start + _PAST, bisect_left(steps, edge))
    past = finite(values[max(0, start - _BEFORE) : end])
    limit, threshold = _limits(context, indicator, past)
    first = _stretch(values[start:stop], limit, out)
    if first is None:
        return None
    first += start
    raised = steps[first + out - 1]
    # It may have left earlier; but what was out long before has nothing to do with the cliff.
    earliest = max(0, first - _LONG_OUT)
    while first > earliest and values[first - 1] > limit:
        first -= 1
    if first == earliest > 0:
        return None
    top = max(finite(values[first:stop]))
    usual = median(finite(values[max(0, first - _BEFORE) : first]) or [0.0])
    label = INDICATORS[indicator].label
    times, since = f"{number(top / threshold)} ×", f"from step {steps[first]}"
    return _CollapseSign(
        steps[first],
        raised,
        _is_far(series.key, top, usual, threshold),
        f"{label} {times} its threshold {since}",
        f"{label} ({series.key}) is up to {times} its threshold of {number(threshold)} {since} "
        f"(highest {number(top)})",
    )


def _is_far(key: str, top: float, usual: float, threshold: float) -> bool:
    if is_home_made(key):
        return top >= _LEAP * usual > 0
    return top >= max(_STRONG * min(threshold, _FAR_FROM), _OWN_PAST * usual)


def _stretch(values: Sequence[float], limit: float, out: int) -> int | None:
    """Return where the first stretch of values beyond a limit begins that is long enough."""
    length = 0
    for i, value in enumerate(values):
        length = length + 1 if limit < value < math.inf else 0
        if length == out:
            return i - out + 1
    return None


def _limits(
    context: RuleContext, indicator: str, past: Sequence[float]
) -> tuple[float, float]:
    """Return the end of a KL's healthy band, and the threshold that it is expressed in multiples
    of.
    """
    if indicator == "policy_kl":
        return _POLICY_KL, _POLICY_KL
    if context.run.dialect == "tutorial":
        band = kl_band(context.run, context.guide)
        target = target_kl(context.run, context.guide)
        return band.value, target.value
    limit = max(_POLICY_KL, _OWN_PAST * median(past or [0.0]))
    if len(past) < _PAST:
        # The first points are no reference for themselves.
        limit = min(limit, _FAR_FROM / _STRONG)
    return limit, limit


def _loops(context: RuleContext, stretch: tuple[int, int]) -> Sequence[_CollapseSign]:
    """Return where samples began to repeat themselves between two steps, nothing where they did
    not.
    """
    key = context.first_key(_LOOPS)
    series = context.run.series(key) if key else None
    if series is None:
        return ()
    steps, values = series.steps, series.values
    start, stop = bisect_left(steps, stretch[0]), bisect_right(steps, stretch[1])
    begin = max(0, start - _BEFORE)
    if median(values[begin:start] or [0.0]) > _REPETITION:
        return ()  # they did so long before
    usual = _usual_repetition(values[begin:stop])
    least = max(_REPETITION, 2 * usual)
    first = next((i for i in range(start, stop) if values[i] > least), None)
    if first is None:
        return ()
    found, step = values[first:stop], steps[first]
    sign = f"samples loop from step {step}"
    much = f"{max(found):.0%} of their text repeats itself, {usual:.0%} before ({key})"
    return [_CollapseSign(step, step, median(found) > least, sign, f"{sign}: {much}")]


def _usual_repetition(values: Sequence[float]) -> float:
    return median([one for one in values if one <= _REPETITION] or [0.0])


_LEVEL, _RECENT, _GAP = 40, 5, 15
"""Points that make the reward's level before, that must have fallen, and that the fall itself may
take: heuristic.
"""
_FEW_BEFORE, _FEW_RECENT, _FEW_GAP = 5, 2, 2
"""The same for logs of few points, each perhaps of a thousand steps: five before, found within
five.
"""
_FEW_SIGMAS = 5.0
"""Standard deviations that such a fall must exceed: ten points know them poorly."""
_AT_ONCE, _AT_FIRST = 0.75, 0.6
"""In a log whose points are far apart a single one is enough that has lost so much of the level. In
the first steps, which have no past but the first points, five that have lost so much.
"""
_JUMP, _JUMP_FLOOR = 100.0, 10.0
"""A KL to the reference that is at once so many times its highest, and beyond so many nats, has no
need of a falling reward: no healthy one, per token or of whole responses, leaps so far.
"""
_OF_MANY = _Surroundings(_BEFORE, 30, few=False)
_OF_FEW = _Surroundings(4 * _FEW_BEFORE, 2 * _FEW_BEFORE)
_OF_ONE = _OF_FEW._replace(out=1)


@diagnosis("policy-collapse")
def policy_collapse(context: RuleContext, rule: Rule) -> FindingHistory | str:
    """Find a cliff in the reward with a KL out of its band or samples that repeat themselves; else
    a KL that needs no fall.
    """
    reward = context.run.indicator("reward")
    if reward is None:
        return "the log has no reward"
    has_kl = {"policy_kl", "reference_kl"} & context.indicators.keys()
    if not has_kl and context.first_key(_LOOPS) is None:
        return "the log has no KL and no samples"
    falls: list[Judged] = []
    breaches, now = _jump(context)
    points, step = column_of([reward], context.end)
    for around, watch in _watches(points, rule.threshold):
        known = _collapses(watch, context, reward, around)
        breaches += known.values()
        if watch.open is not None and watch.open.since in known:
            falls.append(watch)
    if falls:
        now = _fallen(context, reward, falls[0], step)
    elif now is None and watch.needs:
        now = watch.needs
    return FindingHistory(now, [*_different(breaches)][-KEPT_BREACHES:])


def _jump(context: RuleContext) -> tuple[list[Breach], Told | str | None]:
    """Return where the KL to the reference jumped beyond all bounds, with the finding while it
    stays there and the reward does not gain.
    """
    kl = context.run.indicator("reference_kl")
    if kl is None:
        return [], None
    points, step = column_of([kl], context.end)
    jumps = scaled(points, _JUMP, _FEW_BEFORE, _JUMP_FLOOR)
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
    """Return the fall that holds."""
    assert watch.open is not None
    assert watch.spell is not None
    edge, facts = watch.open.since, watch.spell.facts
    signs, shown = _signs_of(context, reward, edge)
    foot = facts.get("foot", reward.values[-1])
    return Told(
        {"level": facts["level"], "foot": foot, "signs": signs},
        shown,
        case="kl-term" if weak_kl_term(context.run) else "",
        since=edge,
        step=step,
        key=reward.key,
    )


def _watches(points: Column, share: float) -> Sequence[tuple[_Surroundings, Judged]]:
    """Return the watches for a fall: in many points, in few, in the first steps of all, which have
    no level before, and at the first of few points that are far apart.
    """
    level = 2 * _FEW_BEFORE
    many = cliff(points, _LEVEL, _RECENT, _GAP, share)
    sizes = level, _FEW_RECENT, _FEW_GAP
    few = cliff(points, *sizes, share, _FEW_SIGMAS, unlike_all=True)
    start = vanish(points, 1 - _AT_FIRST, 0.5, _RECENT, _BEFORE)
    one = cliff(points, level, 1, 0, _AT_ONCE, sigmas=1.0, unlike_all=True)
    return ((_OF_MANY, many), (_OF_FEW, few), (_OF_FEW, start), (_OF_ONE, one))


def _collapses(
    watch: Judged, context: RuleContext, reward: Series, around: _Surroundings
) -> dict[int, Breach]:
    """Return the falls with a sign that they are the policy's, by their first step; each is raised
    when both were known.
    """
    found = {}
    for breach in watch.breaches:
        sign = _first_sign(context, reward, breach.since, around)
        if sign is not None:
            raised = max(breach.raised, sign)
            what = f"reward {breach.what}"
            found[breach.since] = breach._replace(raised=raised, what=what)
    return found
