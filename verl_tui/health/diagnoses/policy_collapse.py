"""The policy breaks: the reward falls off a cliff as a KL leaves its band or samples loop."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from statistics import median
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from verl_tui.health.condition_feed import ConditionFeed
from verl_tui.health.conditions.cliff import Cliff
from verl_tui.health.conditions.condition import Breaches, number
from verl_tui.health.diagnoses.diagnosis import Diagnosis
from verl_tui.health.finding import Finding, NotJudged
from verl_tui.health.limits import kl_band, target_kl
from verl_tui.health.suspect_settings import drift_causes
from verl_tui.means import finite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.health.conditions.condition import Breach
    from verl_tui.health.guide import Rule
    from verl_tui.health.rule_context import RuleContext
    from verl_tui.runs.series import Series

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
_STRONG = 3.0
"""Beside a cliff of few points a KL must be so many times its threshold: a batch alone shows
less.
"""
_BEFORE, _AFTER = 50, 30
"""Points before and after the cliff's edge among which a KL may have left its band."""
_WRECK = 200
"""Points after the edge in which the worst KL and samples are searched for."""
_LONG_OUT = 300
"""Points after which a KL outside its band counts as old: heuristic."""
_FAR_FROM = 1.0
"""A higher threshold counts as this one: three nats are far from any reference."""
_OUT = 3
"""Points in a row beyond its limit that make a KL leave its band."""
_POLICY_KL = 0.1
"""The guide's limit."""
_OWN_PAST = 2.5
"""Without a threshold (verl's own names) a KL of this many times its own past is out: heuristic."""
_REPETITION = 0.3
"""Share of repeated text that marks a step's samples as loops: heuristic, healthy text stays
below.
"""
_GENERAL = (
    "Stop the run and go back to the last good checkpoint. Then a higher KL coefficient "
    "(the guide's band is 0.01 to 0.1), a lower learning rate or a narrower clip."
)
_TUTORIAL = (
    "Stop the run and go back to the last good checkpoint. Then kl_coef 0.02 with the adaptive "
    "controller (target_kl 0.05), kl_coef kept within [0.01, 0.1]."
)


class _Departure(NamedTuple):
    """A KL that has left its band."""

    key: str
    step: int
    threshold: float
    """The guide's threshold."""
    top: float
    """Highest value from there on."""
    title: str
    usual: float
    """Median of the values before."""
    raised: int
    """First step at which it was certain."""

    @property
    def times(self) -> str:
        """How many times its threshold the metric was."""
        return f"{number(self.top / self.threshold)} ×"

    @property
    def words(self) -> str:
        """How far it is out, and since when."""
        return (
            f"{self.title} ({self.key}) is up to {self.times} "
            f"its threshold of {number(self.threshold)} from step {self.step} "
            f"(highest {number(self.top)})"
        )

    @property
    def sign(self) -> str:
        """The same in fewer words."""
        return f"{self.title} {self.times} its threshold from step {self.step}"


class _Loops(NamedTuple):
    """Samples that repeat themselves."""

    key: str
    step: int
    top: float
    """Largest share of repeated text from there on."""
    usual: float
    lasts: bool
    """True if most steps with samples from there on show it."""


class PolicyCollapse(Diagnosis):
    """A cliff in the reward, with a KL out of its band or samples that repeat themselves."""

    by_stretches: ClassVar[bool] = True

    def __init__(self, rule: Rule) -> None:
        super().__init__(rule)
        self._key = ""
        self._start_over()

    def _start_over(self) -> None:
        share = self.rule.threshold
        self._many_points = ConditionFeed(
            lambda: Cliff(window=_LEVEL, recent=_RECENT, gap=_GAP, share=share)
        )
        self._few_points = ConditionFeed(
            lambda: Cliff(
                window=2 * _FEW_BEFORE,
                recent=_FEW_RECENT,
                gap=_FEW_GAP,
                share=share,
                sigmas=_FEW_SIGMAS,
                unlike_all=True,
            )
        )

    def judge(self, context: RuleContext) -> Finding | NotJudged | None:
        """Look for a cliff, then for a KL or samples that show it to be the policy's fault."""
        reward = context.run.indicator("reward")
        if reward is None:
            return NotJudged(self.rule.id, "the log has no reward")
        if not _has_signs(context):
            return NotJudged(self.rule.id, "the log has neither a KL nor samples")
        if reward.key != self._key:
            self._key = reward.key
            self._start_over()
        cliff, step = self._many_points.update([reward], context.end)
        few, _ = self._few_points.update([reward], context.end)
        if few.seen < few.needs:
            return NotJudged(self.rule.id, f"needs {few.needs} points, has {few.seen}")
        collapses = _collapses(cliff, context, reward, few=False)
        in_few = _collapses(few, context, reward, few=True)
        self._note([*collapses.values(), *in_few.values()])
        for one, known in ((cliff, collapses), (few, in_few)):
            if one.fall is not None and one.fall[0] in known:
                return self._finding(context, reward, one.fall, step)
        return None

    def _note(self, collapses: list[Breach]) -> None:
        self.breaches = Breaches(cooldown=0)
        at = 0
        for breach in sorted(collapses, key=lambda one: (one.raised, one.since)):
            before = self.breaches.all[-1] if self.breaches.all else None
            if before is not None and breach.since <= (before.cleared or breach.since):
                continue  # both windows saw the same fall
            at += 2
            what = f"collapsed: reward {breach.what}"
            self.breaches.begin(breach.since, breach.raised, what, at)
            if breach.cleared is not None:
                self.breaches.end(breach.cleared, at + 1)

    def _finding(
        self,
        context: RuleContext,
        reward: Series,
        fall: tuple[int, float, float],
        step: int | None,
    ) -> Finding:
        edge, level, foot = fall
        stretch = _around(reward, edge, _BEFORE, _WRECK)
        out = _departures(context, stretch)
        loops = _loops(context, stretch)
        causes = drift_causes(context.run)
        cliff = f"reward cliff at step {edge}"
        way = f"from {number(level)} to {number(foot)}"
        evidence = [f"{cliff}: {way} ({reward.key})"]
        evidence += [departure.words for departure in out]
        signs = [departure.sign for departure in out[:1]]
        if loops is not None:
            sign = f"samples loop from step {loops.step}"
            signs.append(sign)
            evidence.append(
                f"{sign}: {loops.top:.0%} of their text repeats itself, "
                f"{loops.usual:.0%} before ({loops.key})"
            )
        evidence += [cause.words for cause in causes]
        names = {cause.name for cause in causes}
        return Finding(
            self.rule.id,
            self.rule.severity,
            f"the policy collapsed: {cliff}, {way}; {', '.join(signs)}",
            step=step,
            since_step=edge,
            evidence=tuple(evidence),
            advice=_TUTORIAL if names & {"kl_coef", "kl_controller"} else _GENERAL,
            source=self.rule.source,
            key=reward.key,
        )


def _has_signs(context: RuleContext) -> bool:
    has_kl = "policy_kl" in context.indicators or "reference_kl" in context.indicators
    return has_kl or _loops_key(context) is not None


def _collapses(
    cliff: Cliff, context: RuleContext, reward: Series, *, few: bool
) -> dict[int, Breach]:
    """Return the falls with a sign that they are the policy's, by their first step; each is raised
    when both were known.
    """
    found = {}
    for breach in cliff.breaches.all:
        sign = _first_sign(context, reward, breach.since, few=few)
        if sign is not None:
            found[breach.since] = breach._replace(raised=max(breach.raised, sign))
    return found


def _first_sign(
    context: RuleContext, reward: Series, edge: int, *, few: bool = False
) -> int | None:
    """Return the step of the first sign around a cliff that it is the policy's fault, if any.

    Args:
        context: The run.
        reward: Its reward.
        edge: First step of the fall.
        few: Whether the fall was seen in few points, so that a KL must be far out.
    """
    if few:
        stretch = _around(reward, edge, 4 * _FEW_BEFORE, 2 * _FEW_BEFORE)
    else:
        stretch = _around(reward, edge, _BEFORE, _AFTER)
    loops = _loops(context, stretch)
    out = _departures(context, stretch)
    if few:
        # A fall is less sure: what was out before it has nothing to do with it.
        out = [one for one in out if _is_far(one) and one.step >= stretch[0]]
    signs = [departure.raised for departure in out]
    if loops is not None and (loops.lasts or not few):
        signs.append(loops.step)
    return min(signs, default=None)


def _around(reward: Series, edge: int, before: int, after: int) -> tuple[int, int]:
    """Return the steps of the points so many before and after a step, as far as there are any."""
    at = bisect_left(reward.steps, edge)
    last = min(at + after, len(reward) - 1)
    return reward.steps[max(0, at - before)], reward.steps[last]


def _is_far(departure: _Departure) -> bool:
    if departure.top < _STRONG * min(departure.threshold, _FAR_FROM):
        return False
    return departure.top >= _OWN_PAST * departure.usual


def _departures(context: RuleContext, stretch: tuple[int, int]) -> Sequence[_Departure]:
    found = (
        _departure(context, "policy_kl", "policy KL", stretch),
        _departure(context, "reference_kl", "reference KL", stretch),
    )
    return [one for one in found if one is not None]


def _departure(
    context: RuleContext, indicator: str, title: str, stretch: tuple[int, int]
) -> _Departure | None:
    """Return where a KL left its band between two steps, None where it did not."""
    series = context.run.indicator(indicator)
    if series is None:
        return None
    start = bisect_left(series.steps, stretch[0])
    stop = bisect_right(series.steps, stretch[1])
    limit, threshold = _limits(context, indicator, series, start)
    first = _stretch(series.values[start:stop], limit)
    if first is None:
        return None
    first += start
    raised = series.steps[first + _OUT - 1]
    # It may have left earlier; but what was out long before has nothing to do with the cliff.
    earliest = max(0, first - _LONG_OUT)
    while first > earliest and series.values[first - 1] > limit:
        first -= 1
    if first == earliest > 0:
        return None
    top = max(finite(series.values[first:stop]))
    past = finite(series.values[max(0, first - _BEFORE) : first])
    return _Departure(
        series.key,
        series.steps[first],
        threshold,
        top,
        title,
        median(past) if past else 0.0,
        raised,
    )


def _stretch(values: Sequence[float], limit: float) -> int | None:
    """Return where the first stretch of values beyond a limit begins that is long enough."""
    length = 0
    for i, value in enumerate(values):
        length = length + 1 if limit < value < math.inf else 0
        if length == _OUT:
            return i - _OUT + 1
    return None


def _limits(
    context: RuleContext, indicator: str, series: Series, start: int
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
    past = finite(series.values[max(0, start - _BEFORE) : start + 5])
    limit = max(_POLICY_KL, _OWN_PAST * median(past)) if past else math.inf
    return limit, limit


def _loops_key(context: RuleContext) -> str | None:
    for key in ("samples/repetition", "val_samples/repetition"):
        if key in context.names:
            return key
    return None


def _loops(context: RuleContext, stretch: tuple[int, int]) -> _Loops | None:
    """Return where samples began to repeat themselves between two steps, None where they did
    not.
    """
    key = _loops_key(context)
    series = context.run.series(key) if key else None
    if key is None or series is None:
        return None
    start = bisect_left(series.steps, stretch[0])
    stop = bisect_right(series.steps, stretch[1])
    begin = max(0, start - _BEFORE)
    earlier = series.values[begin:start]
    if earlier and median(earlier) > _REPETITION:
        return None  # they did so long before
    usual = _usual_repetition(series.values[begin:stop])
    least = max(_REPETITION, 2 * usual)
    first = next((i for i in range(start, stop) if series.values[i] > least), None)
    if first is None:
        return None
    found = series.values[first:stop]
    return _Loops(key, series.steps[first], max(found), usual, median(found) > least)


def _usual_repetition(values: Sequence[float]) -> float:
    healthy = [value for value in values if value <= _REPETITION]
    return median(healthy) if healthy else 0.0
