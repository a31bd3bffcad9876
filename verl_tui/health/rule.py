"""One rule of the guide on one run: finds its metrics, checks exemptions, asks its condition."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import compress
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.health.conditions import KINDS
from verl_tui.health.conditions.condition import open_breach
from verl_tui.health.exemptions import BY_VALUES, FOR_WHOLE_RUN
from verl_tui.health.finding import Episode, Finding, NotJudged, number
from verl_tui.health.inputs import column_of
from verl_tui.health.limits import (
    CAUSES,
    LIMITS,
    Limit,
    all_cut,
    response_limit,
    stated_limit,
)
from verl_tui.health.reward import components, gaining_components
from verl_tui.health.rule_context import present_names
from verl_tui.indicators import INDICATORS, factor
from verl_tui.runs.views.devices import logs_device_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

    from verl_tui.health.conditions.condition import Breach, Judged
    from verl_tui.health.guide import Rule
    from verl_tui.health.rule_context import RuleContext
    from verl_tui.runs.series import Series

_MEAN_OF_ALL = "mean of all"
_MANY = 5
"""Measurements a point from which on fewer points are enough: GPUs dip within every step."""
_FEWEST = 3
"""Fewest points of a lasting breach, however many measurements each is the mean of."""
_MOST_PARTS = 12
_MOST_KEYS = 50
"""Most keys that a rule with a wildcard judges."""


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


class RuleOnRun:
    """One rule with its state for one run."""

    alive = False
    """Whether it depends on the clock."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.episodes: list[Episode] = []
        """All breaches so far, in no order; they depend on the numbers alone."""
        self._known: dict[str, _Known] = {}
        """By key."""

    def judge(
        self, context: RuleContext
    ) -> Finding | tuple[Finding, ...] | NotJudged | None:
        """Return what the rule finds now, or why it does not judge."""
        self.episodes = []
        rule = self.rule
        keys = _keys(context, rule)
        beside = context.key_of(rule.beside_indicator, rule.beside_metric)
        reason = _other_dialect(rule, context.run.dialect)
        reason = reason or _what_is_missing(context, rule, keys, beside)
        if reason is not None:
            return NotJudged(rule.id, reason)
        groups = [keys] if rule.stream == _MEAN_OF_ALL else [[key] for key in keys]
        judged = [self._judge_metrics(context, group, beside) for group in groups]
        if all(isinstance(one, NotJudged) for one in judged):
            return judged[0]
        return tuple([one for one in judged if isinstance(one, Finding)])

    def _judge_metrics(
        self, context: RuleContext, keys: Sequence[str], beside: str | None
    ) -> Finding | NotJudged | None:
        """Judge one metric, or the mean of several, without those that are exempt."""
        reasons = [_exemption(context, self.rule, key) for key in keys]
        keys_judged = [*compress(keys, (reason is None for reason in reasons))]
        if not keys_judged:
            return NotJudged(self.rule.id, reasons[0] or "")
        inputs = [*keys_judged, beside] if beside else keys_judged
        series = [*filter(None, map(context.run.series, inputs))]
        return self._judge_series(context, keys_judged, series)

    def _judge_series(
        self, context: RuleContext, keys: Sequence[str], series: Sequence[Series]
    ) -> Finding | NotJudged | None:
        rule, key = self.rule, keys[0]
        limit = LIMITS[rule.of](context.run, context.guide) if rule.of else None
        known = self._known[key] = self._judge_column(context, series, limit)
        judged = known.judged
        breaches = [*_not_exempt(context, rule, keys, known)]
        self.episodes += [
            Episode(
                *(rule.id, rule.severity, since, raised, cleared),
                f"{rule.title} {what}",
                key,
            )
            for since, raised, what, cleared in breaches
        ]
        if judged.needs is None and open_breach(breaches) is not None:
            return self._finding(context, key, known, _note(rule, limit))
        reason = _exempt_now(context, rule, keys)
        reason = reason or judged.needs
        return NotJudged(rule.id, reason) if reason else None

    def _finding(
        self, context: RuleContext, key: str, known: _Known, note: str
    ) -> Finding | None:
        rule, judged = self.rule, known.judged
        if judged.open is None:
            return None
        message, *evidence = judged.report(
            rule.title, context.duration, note, rule.says
        )
        found = rule.finding(
            message + (f" ({rule.label})" if rule.label else ""),
            (
                *(f"{key}: {sentence}" for sentence in evidence),
                *CAUSES[rule.causes](context.run),
            ),
            since=judged.open.since,
            step=known.step,
            key=key,
        )
        return replace(found, leads=rule.id != "truncation" or all_cut(context))

    def _judge_column(
        self, context: RuleContext, series: Sequence[Series], limit: Limit | None
    ) -> _Known:
        """Return what the metrics show; known where nothing is new."""
        rule, key = self.rule, series[0].key
        gate = _gate(context, rule)
        restarts = tuple([mark.step for mark in context.run.restarts])
        unit = limit.value if limit else 1.0
        scale, window = _scale(rule, series), _window(rule, series[0])
        same = tuple([(one.key, one.revision) for one in series])
        basis = (same, unit, gate, scale, restarts, window)
        points = [(len(one), one.values[-1:].tobytes()) for one in series]
        newest = (context.end, *points)
        known = self._known.get(key)
        exempt: dict[int, bool] = {}
        if known is not None and known.basis == basis:
            if known.newest == newest:
                return known
            exempt = known.exempt
        column, step = column_of(series, context.end, rule.stream, scale, gate)
        find = KINDS[rule.condition].judge
        threshold = rule.threshold * unit
        judged = find(column, replace(rule, window=window), threshold, restarts)
        return _Known(basis, newest, judged, step, exempt)


def _other_dialect(rule: Rule, spoken: str) -> str | None:
    """Return why a rule does not judge logs of a dialect, None if it does."""
    if spoken in rule.not_in or spoken in rule.dialects:
        return rule.not_in.get(spoken)
    return f"judges only logs with {_whose(rule.dialects)} names; these are {_whose((spoken,))}"


def _exemption(context: RuleContext, rule: Rule, key: str) -> str | None:
    """Return why a rule does not apply to a metric in the whole run, None if it does."""
    names = (name for name in rule.unless if name not in BY_VALUES)
    reasons = (FOR_WHOLE_RUN[name](context, key) for name in names)
    return next(filter(None, reasons), None)


def _exempt_now(context: RuleContext, rule: Rule, keys: Sequence[str]) -> str | None:
    """Return why a rule applies to none of the metrics by their values so far."""
    for name in filter(BY_VALUES.__contains__, rule.unless):
        reasons = [BY_VALUES[name](context, key) for key in keys]
        if all(reasons):
            return reasons[0]
    return None


def _not_exempt(
    context: RuleContext, rule: Rule, keys: Sequence[str], known: _Known
) -> Iterable[Breach]:
    """Return the breaches without those that were exempt by the values known at the time."""
    breaches = known.judged.breaches
    series = context.known(keys[0])
    if not breaches or series is None or not BY_VALUES.keys() & {*rule.unless}:
        return breaches

    def is_exempt(step: int) -> bool:
        found = known.exempt.get(step)
        if found is None:
            found = _exempt_now(context.at(step), rule, keys) is not None
            if step != series.steps[-1]:  # the newest point may still change
                known.exempt[step] = found
        return found

    cooldown = known.judged.terms.cooldown
    return _without_exempt(breaches, series.steps, is_exempt, cooldown)


def _scale(rule: Rule, series: Sequence[Series]) -> float:
    """Return the factor from the log's values to the rule's unit."""
    scale = factor(rule.indicator, series[0].key) if rule.indicator else 1.0
    if rule.percent and max([one.highest for one in series]) <= 1.0:
        return scale * 100.0
    return scale


def _parts(context: RuleContext) -> list[str]:
    """Return the keys of the reward's parts; a single one is the reward itself."""
    reward = context.indicators.get("reward")
    if len(components(context.run.keys, reward)) < 2:
        return []
    return [*gaining_components(context.run, reward)[:_MOST_PARTS]]


def _keys(context: RuleContext, rule: Rule) -> Sequence[str]:
    """Return the key of the rule's indicator or metric, all keys that match its wildcards, or the
    reward's parts.
    """
    if rule.parts:
        return _parts(context)
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


def _window(rule: Rule, series: Series) -> int:
    """Return the points that the rule looks at: fewer where each is the mean of many measurements.

    That holds for percentages only, which are sampled over time; the scores of one batch share its
    prompts.
    """
    if not rule.percent or len(series.counts) < _FEWEST:
        return rule.window
    # The first ones only: the window must not change while a run goes on.
    measurements = min(series.counts[:_FEWEST])
    if measurements < _MANY:
        return rule.window
    return max(_FEWEST, math.ceil(rule.window / measurements))


def _gate(context: RuleContext, rule: Rule) -> float:
    if rule.stream != "at limit":
        return math.inf
    if "prompt_length/max" in rule.beside_metric:
        limit = stated_limit(context.run, "max_prompt_length")
        return limit.value if limit else math.inf
    return response_limit(context.run, context.guide).value


def _note(rule: Rule, limit: Limit | None) -> str:
    if limit is None or rule.threshold == 1:
        return limit.words if limit else ""
    if rule.threshold < 2:
        return f"{rule.threshold:.0%} of {limit.words}"
    return f"{number(rule.threshold)} × {limit.words}"


def _what_is_missing(
    context: RuleContext, rule: Rule, keys: Sequence[str], beside: str | None
) -> str | None:
    """Return which input of the rule the log lacks, as a reason; None if it has all."""
    if not keys and rule.parts:
        return "the log has no components of the reward"
    if not keys:
        if rule.indicator == "gpu_memory" and logs_device_memory(context.run):
            return "the log has the memory of single devices alone"
        return f"the log has no {_names(rule.indicator, rule.metric)}"
    if beside is None and (rule.beside_indicator or rule.beside_metric):
        return f"the log has no {_names(rule.beside_indicator, rule.beside_metric)}"
    return None


def _names(indicator: str, metrics: tuple[str, ...]) -> str:
    if indicator in INDICATORS:
        return INDICATORS[indicator].label
    return indicator or " or ".join(metrics)


def _whose(dialects: tuple[str, ...]) -> str:
    words = {
        "tutorial": "the verl tutorials'",
        "verl": "verl's own",
        "other": "other frameworks'",
    }
    return " or ".join(words[dialect] for dialect in dialects)


_OFTEN = 30
"""The first points of a breach are checked one by one, as many again at every second, and so on."""


def _without_exempt(
    breaches: Iterable[Breach],
    steps: Sequence[int],
    is_exempt: Callable[[int], bool],
    cooldown: int,
) -> Iterator[Breach]:
    """Yield the parts of breaches in which the rule was not exempt.

    Args:
        breaches: The breaches, oldest first.
        steps: Steps of the metric's points.
        is_exempt: Returns whether the rule is exempt at a step, by what was known then.
        cooldown: Points within which a breach that is no longer exempt is the same as before.
    """
    for breach in breaches:
        parts: list[Breach] = []
        paused = 0
        at = first = bisect_left(steps, breach.raised)
        stop = len(steps)
        if breach.cleared is not None:
            stop = bisect_left(steps, breach.cleared)
        while at < stop:
            is_open = open_breach(parts) is not None
            if is_exempt(steps[at]) is is_open:
                if is_open:
                    paused = at
                    parts[-1] = parts[-1]._replace(cleared=steps[at])
                elif parts and at - paused <= cooldown:
                    parts[-1] = parts[-1]._replace(cleared=None)
                else:
                    parts.append(breach._replace(raised=steps[at], cleared=None))
            at += 1 + (at - first) // _OFTEN
        for part in parts:
            end = breach.cleared if part.cleared is None else part.cleared
            yield part._replace(cleared=end)
