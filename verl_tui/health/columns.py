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
from verl_tui.health.exemptions import BY_VALUES, FOR_WHOLE_RUN, WITHOUT_BREACH
from verl_tui.health.finding import number
from verl_tui.health.inputs import column_of
from verl_tui.health.limits import LIMITS, all_cut, response_limit, stated_limit
from verl_tui.health.reward import components, gaining_components
from verl_tui.health.rule_context import present_names
from verl_tui.indicators import INDICATORS, factor
from verl_tui.runs.views.devices import logs_device_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from verl_tui.health.conditions.condition import Breach, Judged
    from verl_tui.health.exemptions import Exemption
    from verl_tui.health.guide import Rule
    from verl_tui.health.limits import Limit
    from verl_tui.health.rule_context import RuleContext
    from verl_tui.runs.series import Series

_MOST_PARTS, _MOST_KEYS = 12, 50
"""Most parts of the reward, and most keys that a rule with a wildcard judges."""
_OFTEN = 8
"""The first points of a breach are checked one by one, as many again at every second, and so on."""
_WHOSE = {
    "tutorial": "the verl tutorials'",
    "verl": "verl's own",
    "other": "other frameworks'",
}


class _Inputs(NamedTuple):
    """What a rule judges."""

    keys: Sequence[Sequence[str]]
    """The keys of each column."""
    beside: str | None
    limit: Limit | None
    """What its threshold is a multiple of."""
    gate: float
    """The limit of its stream."""


class _Known(NamedTuple):
    """What the points of a metric show, with all that this depends on."""

    basis: Hashable
    """All but the points that may still change."""
    newest: Hashable
    judged: Judged
    step: int | None
    """The newest step that was looked at."""
    exempt: dict[int, bool]
    """Whether the rule was exempt at some steps."""


class Columns:
    """The columns of one rule, with what is known of them, by key."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self._basis: Hashable = None
        self._inputs: str | _Inputs = ""
        """What it judges, or what is missing, by the run's metrics and settings."""
        self._known: dict[str, _Known] = {}

    def look(self, context: RuleContext) -> str | Sequence[FindingHistory]:
        """Return what is found in each column, or why none is judged."""
        run = context.run
        basis = run.keys_revision, run.dialect, len(run.settings)
        if basis != self._basis:
            self._basis, self._inputs = basis, _inputs(context, self.rule)
        if isinstance(self._inputs, str):
            return self._inputs
        return [self._judge(context, keys, self._inputs) for keys in self._inputs.keys]

    def _judge(
        self, context: RuleContext, keys: Sequence[str], of: _Inputs
    ) -> FindingHistory:
        """Judge one metric, or the mean of several, without those that are exempt."""
        rule = self.rule
        reasons = {key: _exempt(context, rule, [key], FOR_WHOLE_RUN) for key in keys}
        keys = [key for key, reason in reasons.items() if reason is None]
        if not keys:
            return FindingHistory(next(iter(reasons.values())), ())
        known = self._look(context, [*keys, of.beside] if of.beside else keys, of)
        breaches = _not_exempt(context, rule, keys, known)
        now: Told | str | None = known.judged.needs
        if now is None and open_breach(breaches) is not None:
            now = _told(context, rule, keys[0], known, of.limit)
        else:
            excuses = WITHOUT_BREACH if known.judged.open is None else BY_VALUES
            now = _exempt(context, rule, keys, excuses) or now
        return FindingHistory(now, breaches, key=keys[0])

    def _look(self, context: RuleContext, keys: Sequence[str], of: _Inputs) -> _Known:
        """Return what the metrics show; known where nothing is new."""
        rule, run = self.rule, context.run
        series = [*filter(None, map(run.series, keys))]
        scale = _scale(rule, series)
        restarts = tuple([mark.step for mark in run.restarts])
        threshold = rule.threshold * (of.limit.value if of.limit else 1.0)
        same = tuple([(one.key, one.revision) for one in series])
        basis = (same, threshold, of.gate, scale, restarts)
        newest = context.end, *[(len(s), s.values[-1:].tobytes()) for s in series]
        known = self._known.get(keys[0])
        if known is None or known.basis != basis or known.newest != newest:
            exempt = known.exempt if known and known.basis == basis else {}
            column, step = column_of(series, context.end, rule.stream, scale, of.gate)
            judged = KINDS[rule.condition].judge(column, rule, threshold, restarts)
            known = _Known(basis, newest, judged, step, exempt)
            self._known[keys[0]] = known
        return known


def _inputs(context: RuleContext, rule: Rule) -> str | _Inputs:
    """Return what a rule judges, or why it judges nothing."""
    spoken = context.run.dialect
    if spoken in rule.not_in:
        return rule.not_in[spoken]
    if spoken not in rule.dialects:
        whose = " or ".join(_WHOSE[one] for one in rule.dialects)
        return f"judges only logs with {whose} names; these are {_WHOSE[spoken]}"
    keys = _keys(context, rule)
    beside = context.key_of(rule.beside_indicator, rule.beside_metric)
    if not keys:
        return _missing(context, rule)
    if beside is None and any((rule.beside_indicator, rule.beside_metric)):
        return _has_no(rule.beside_indicator, rule.beside_metric)
    limit = LIMITS[rule.of](context.run, context.guide) if rule.of else None
    columns = [keys] if rule.stream == "mean of all" else [*zip(keys, strict=True)]
    return _Inputs(columns, beside, limit, _gate(context, rule))


def _missing(context: RuleContext, rule: Rule) -> str:
    """Return what the log lacks of a rule's own metrics."""
    if rule.parts:
        return "the log has no components of the reward"
    if rule.indicator == "gpu_memory" and logs_device_memory(context.run):
        return "the log has the memory of single devices alone"
    return _has_no(rule.indicator, rule.metric)


def _keys(context: RuleContext, rule: Rule) -> Sequence[str]:
    """Return the key of the rule's indicator or metric, all keys that match its wildcards, or the
    reward's parts; a single one is the reward itself.
    """
    keys = context.run.keys
    if rule.parts:
        reward = context.indicators.get("reward")
        parts = gaining_components(context.run, reward)[:_MOST_PARTS]
        return parts if len(components(keys, reward)) > 1 else []
    if any("*" in name for name in rule.metric):
        return _matching(keys, rule.metric)
    key = context.key_of(rule.indicator, rule.metric)
    return [key] if key else []


@lru_cache(256)
def _matching(keys: tuple[str, ...], patterns: tuple[str, ...]) -> Sequence[str]:
    found = [
        key
        for name, key in present_names(keys).items()
        if any("*" in one and fnmatchcase(name, one) for one in patterns)
    ]
    return [*dict.fromkeys(found)][:_MOST_KEYS]


def _has_no(indicator: str, metrics: Sequence[str]) -> str:
    if indicator in INDICATORS:
        indicator = INDICATORS[indicator].label
    return f"the log has no {indicator or ' or '.join(metrics)}"


def _gate(context: RuleContext, rule: Rule) -> float:
    if rule.stream != "at limit":
        return math.inf
    limit: Limit | None = response_limit(context.run, context.guide)
    if "prompt_length/max" in rule.beside_metric:
        limit = stated_limit(context.run, "max_prompt_length")
    return limit.value if limit else math.inf


def _scale(rule: Rule, series: Sequence[Series]) -> float:
    """Return the factor from the log's values to the rule's unit."""
    scale = factor(rule.indicator, series[0].key) if rule.indicator else 1.0
    is_share = rule.percent and max([one.highest for one in series]) <= 1.0
    return scale * 100.0 if is_share else scale


def _told(
    context: RuleContext, rule: Rule, key: str, known: _Known, limit: Limit | None
) -> Told:
    """Return the breach that holds."""
    judged = known.judged
    assert judged.open is not None
    note = limit.words if limit is not None else ""
    if note and rule.threshold != 1:
        times = f"{number(rule.threshold)} ×"
        note = f"{f'{rule.threshold:.0%} of' if rule.threshold < 2 else times} {note}"
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
) -> Sequence[Breach]:
    """Return the parts of breaches in which the rule was not exempt by the values known at the
    time: from the first to the last such point.
    """
    series = context.known(keys[0])
    breaches = [*known.judged.breaches]
    if not breaches or series is None or not BY_VALUES.keys() & {*rule.unless}:
        return breaches
    steps, exempt = series.steps, known.exempt
    exempt.pop(steps[-1], None)  # the newest point may still change

    def is_exempt(at: int) -> bool:
        step = steps[at]
        if step not in exempt:
            reason = _exempt(context.at(step), rule, keys, BY_VALUES)
            exempt[step] = reason is not None
        return exempt[step]

    parts = (_free(one, steps, is_exempt) for one in breaches)
    return [*filter(None, parts)]


def _free(
    breach: Breach, steps: Sequence[int], is_exempt: Callable[[int], bool]
) -> Breach | None:
    """Return the part of a breach in which the rule was not exempt, None if it always was."""
    at = first = bisect_left(steps, breach.raised)
    cleared = breach.cleared
    over = len(steps) if cleared is None else bisect_left(steps, cleared)
    places = []
    while at < over:
        places.append(at)
        at += 1 + (at - first) // _OFTEN
    free = [at for at in places if not is_exempt(at)]
    if not free:
        return None
    if free[-1] != places[-1]:
        cleared = steps[places[places.index(free[-1]) + 1]]
    return breach._replace(raised=steps[free[0]], cleared=cleared)
