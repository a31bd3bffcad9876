"""The columns that a rule judges on one run: its metrics, exemptions, what its condition finds."""

from __future__ import annotations

import math
from bisect import bisect_left
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.health.conditions import KINDS
from verl_tui.health.conditions.condition import open_breach
from verl_tui.health.diagnoses.diagnosis import FindingHistory, Told
from verl_tui.health.exemptions import BY_VALUES, FOR_WHOLE_RUN
from verl_tui.health.finding import number
from verl_tui.health.inputs import column_of
from verl_tui.health.limits import LIMITS, all_cut, response_limit, stated_limit
from verl_tui.health.reward import components, gaining_components
from verl_tui.health.rule_context import present_names
from verl_tui.indicators import INDICATORS, factor
from verl_tui.runs.views.devices import logs_device_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

    from verl_tui.health.conditions.condition import Breach, Judged
    from verl_tui.health.exemptions import Exemption
    from verl_tui.health.guide import Rule
    from verl_tui.health.limits import Limit
    from verl_tui.health.rule_context import RuleContext
    from verl_tui.runs.series import Series

_MEAN_OF_ALL = "mean of all"
_MOST_PARTS, _MOST_KEYS = 12, 50
"""Most parts of the reward, and most keys that a rule with a wildcard judges."""
_OFTEN = 30
"""The first points of a breach are checked one by one, as many again at every second, and so on."""
_WHOSE = {
    "tutorial": "the verl tutorials'",
    "verl": "verl's own",
    "other": "other frameworks'",
}


class _Known(NamedTuple):
    """What the points of a metric show, with all that this depends on."""

    basis: Hashable
    """All but the points that may still change."""
    newest: Hashable
    judged: Judged
    step: int | None
    """The newest step that was looked at."""
    exempt: dict[int, bool]
    """Whether the rule was exempt at settled steps."""


class Columns:
    """The columns of one rule, with what is known of them, by key."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self._known: dict[str, _Known] = {}

    def look(self, context: RuleContext) -> str | Sequence[FindingHistory]:
        """Return what is found in each column, or why none is judged."""
        rule = self.rule
        spoken = context.run.dialect
        if spoken in rule.not_in:
            return rule.not_in[spoken]
        if spoken not in rule.dialects:
            whose = " or ".join(_WHOSE[one] for one in rule.dialects)
            return f"judges only logs with {whose} names; these are {_WHOSE[spoken]}"
        keys = _keys(context, rule)
        beside = context.key_of(rule.beside_indicator, rule.beside_metric)
        missing = _what_is_missing(context, rule, keys, beside)
        if missing is not None:
            return missing
        groups = [keys] if rule.stream == _MEAN_OF_ALL else [[key] for key in keys]
        return [self._judge(context, group, beside) for group in groups]

    def _judge(
        self, context: RuleContext, keys: Sequence[str], beside: str | None
    ) -> FindingHistory:
        """Judge one metric, or the mean of several, without those that are exempt."""
        rule = self.rule
        reasons = {key: _exempt(context, rule, [key], FOR_WHOLE_RUN) for key in keys}
        keys = [key for key, reason in reasons.items() if reason is None]
        if not keys:
            return FindingHistory(next(iter(reasons.values())), ())
        inputs = [*keys, beside] if beside else keys
        series = [*filter(None, map(context.run.series, inputs))]
        limit = LIMITS[rule.of](context.run, context.guide) if rule.of else None
        known = self._known[keys[0]] = self._judge_column(context, series, limit)
        breaches = [*_not_exempt(context, rule, keys, known)]
        needs = known.judged.needs
        now: Told | str | None
        if needs is None and open_breach(breaches) is not None:
            now = _told(context, rule, keys[0], known, limit)
        else:
            now = _exempt(context, rule, keys, BY_VALUES) or needs
        return FindingHistory(now, breaches, key=keys[0])

    def _judge_column(
        self, context: RuleContext, series: Sequence[Series], limit: Limit | None
    ) -> _Known:
        """Return what the metrics show; known where nothing is new."""
        rule, key = self.rule, series[0].key
        gate, scale = _gate(context, rule), _scale(rule, series)
        restarts = tuple([mark.step for mark in context.run.restarts])
        unit = limit.value if limit else 1.0
        same = tuple([(one.key, one.revision) for one in series])
        basis = (same, unit, gate, scale, restarts)
        points = [(len(one), one.values[-1:].tobytes()) for one in series]
        newest = (context.end, *points)
        known = self._known.get(key)
        exempt: dict[int, bool] = {}
        if known is not None and known.basis == basis:
            if known.newest == newest:
                return known
            exempt = known.exempt
        column, step = column_of(series, context.end, rule.stream, scale, gate)
        judged = KINDS[rule.condition].judge(
            column, rule, rule.threshold * unit, restarts
        )
        return _Known(basis, newest, judged, step, exempt)


def _scale(rule: Rule, series: Sequence[Series]) -> float:
    """Return the factor from the log's values to the rule's unit."""
    scale = factor(rule.indicator, series[0].key) if rule.indicator else 1.0
    if rule.percent and max([one.highest for one in series]) <= 1.0:
        return scale * 100.0
    return scale


def _told(
    context: RuleContext, rule: Rule, key: str, known: _Known, limit: Limit | None
) -> Told:
    """Return the breach that holds."""
    judged = known.judged
    assert judged.open is not None
    note = limit.words if limit is not None else ""
    if limit is not None and rule.threshold != 1:
        share = (
            f"{rule.threshold:.0%} of"
            if rule.threshold < 2
            else f"{number(rule.threshold)} ×"
        )
        note = f"{share} {note}"
    message, *evidence = judged.report(rule.title, context.duration, note, rule.says)
    return Told(
        {},
        [f"{key}: {sentence}" for sentence in evidence],
        since=judged.open.since,
        step=known.step,
        key=key,
        message=message + (f" ({rule.label})" if rule.label else ""),
        leads=rule.id != "truncation" or all_cut(context),
    )


def _exempt(
    context: RuleContext,
    rule: Rule,
    keys: Sequence[str],
    exemptions: Mapping[str, Exemption],
) -> str | None:
    """Return why a rule applies to none of the metrics, None if it does to one."""
    for name in filter(exemptions.__contains__, rule.unless):
        reasons = [exemptions[name](context, key) for key in keys]
        if all(reasons):
            return reasons[0]
    return None


def _not_exempt(
    context: RuleContext, rule: Rule, keys: Sequence[str], known: _Known
) -> Iterable[Breach]:
    """Return the parts of breaches in which the rule was not exempt by the values known at the
    time; one that comes back soon is the same breach.
    """
    breaches = known.judged.breaches
    series = context.known(keys[0])
    if not breaches or series is None or not BY_VALUES.keys() & {*rule.unless}:
        return breaches
    steps = series.steps

    def is_exempt(step: int) -> bool:
        found = known.exempt.get(step)
        if found is None:
            found = _exempt(context.at(step), rule, keys, BY_VALUES) is not None
            if step != steps[-1]:  # the newest point may still change
                known.exempt[step] = found
        return found

    parts = (
        _parts(one, steps, is_exempt, known.judged.terms.cooldown) for one in breaches
    )
    return [part for some in parts for part in some]


def _parts(
    breach: Breach,
    steps: Sequence[int],
    is_exempt: Callable[[int], bool],
    cooldown: int,
) -> Sequence[Breach]:
    """Return the parts of a breach in which the rule was not exempt."""
    at = first = ended = bisect_left(steps, breach.raised)
    stop = len(steps)
    if breach.cleared is not None:
        stop = bisect_left(steps, breach.cleared)
    found: list[Breach] = []
    while at < stop:
        is_open = open_breach(found) is not None
        if is_exempt(steps[at]) is is_open:
            if is_open:
                ended = at
                found[-1] = found[-1]._replace(cleared=steps[at])
            elif found and at - ended <= cooldown:
                found[-1] = found[-1]._replace(cleared=None)
            else:
                found.append(breach._replace(raised=steps[at], cleared=None))
        at += 1 + (at - first) // _OFTEN
    if open_breach(found) is not None:
        found[-1] = found[-1]._replace(cleared=breach.cleared)
    return found


def _keys(context: RuleContext, rule: Rule) -> Sequence[str]:
    """Return the key of the rule's indicator or metric, all keys that match its wildcards, or the
    reward's parts; a single one is the reward itself.
    """
    if rule.parts:
        reward = context.indicators.get("reward")
        if len(components(context.run.keys, reward)) < 2:
            return []
        return gaining_components(context.run, reward)[:_MOST_PARTS]
    if any("*" in name for name in rule.metric):
        return _matching(context.run.keys, rule.metric)
    key = context.key_of(rule.indicator, rule.metric)
    return [key] if key else []


@lru_cache(256)
def _matching(keys: tuple[str, ...], patterns: tuple[str, ...]) -> Sequence[str]:
    # Called at each judgement, while keys hardly ever change.
    found = [
        key
        for name, key in present_names(keys).items()
        if any("*" in one and fnmatchcase(name, one) for one in patterns)
    ]
    return [*dict.fromkeys(found)][:_MOST_KEYS]


def _gate(context: RuleContext, rule: Rule) -> float:
    if rule.stream != "at limit":
        return math.inf
    if "prompt_length/max" in rule.beside_metric:
        limit = stated_limit(context.run, "max_prompt_length")
        return limit.value if limit else math.inf
    return response_limit(context.run, context.guide).value


def _what_is_missing(
    context: RuleContext, rule: Rule, keys: Sequence[str], beside: str | None
) -> str | None:
    """Return which input of the rule the log lacks, as a reason; None if it has all."""
    if not keys and rule.parts:
        return "the log has no components of the reward"
    if not keys:
        if rule.indicator == "gpu_memory" and logs_device_memory(context.run):
            return "the log has the memory of single devices alone"
        return _has_no(rule.indicator, rule.metric)
    if beside is None and (rule.beside_indicator or rule.beside_metric):
        return _has_no(rule.beside_indicator, rule.beside_metric)
    return None


def _has_no(indicator: str, metrics: Sequence[str]) -> str:
    if indicator in INDICATORS:
        indicator = INDICATORS[indicator].label
    return f"the log has no {indicator or ' or '.join(metrics)}"
