"""One rule of the guide on one run: finds its metrics, checks exemptions, asks its condition."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING

from verl_tui.health.applicability import BY_VALUES, FOR_WHOLE_RUN
from verl_tui.health.components import components, gaining_components
from verl_tui.health.conditions import make
from verl_tui.health.conditions.condition import Judged, open_breach
from verl_tui.health.finding import Episode, Finding, NotJudged, number
from verl_tui.health.inputs import column_of
from verl_tui.health.limits import LIMITS, Limit, all_cut, response_limit, stated_limit
from verl_tui.health.rule_context import present_names
from verl_tui.health.suspect_settings import CAUSES
from verl_tui.indicators import INDICATORS, factor
from verl_tui.runs.views.devices import logs_device_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from verl_tui.health.conditions.condition import Breach
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


class RuleOnRun:
    """One rule with its state for one run."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self._judged: dict[str, tuple[tuple[object, ...], Judged, int | None]] = {}
        """By key what its points show, with all that this depends on."""
        self._exempt: dict[str, tuple[tuple[object, ...], dict[int, bool]]] = {}
        """By key whether it was exempt at settled steps, with all but points that this depends
        on.
        """
        self._breaches: dict[str, Sequence[Breach]] = {}
        """The breaches of the latest judgement, by key."""
        self._by_values = [name for name in rule.unless if name in BY_VALUES]

    @property
    def episodes(self) -> Sequence[Episode]:
        """All breaches so far, in no order; they depend on the numbers alone."""
        rule = self.rule
        found = []
        for key, breaches in self._breaches.items():
            for breach in breaches:
                message = f"{rule.title} {breach.what}"
                steps = (breach.since, breach.raised, breach.cleared)
                found.append(Episode(rule.id, rule.severity, *steps, message, key))
        return found

    def judge(
        self, context: RuleContext
    ) -> Finding | tuple[Finding, ...] | NotJudged | None:
        """Return what the rule finds now, or why it does not judge."""
        self._breaches = {}
        rule = self.rule
        keys = _keys(context, rule)
        beside = context.key_of(rule.beside_indicator, rule.beside_metric)
        reason = self._other_dialect(context.run.dialect)
        if reason is None:
            reason = _what_is_missing(context, rule, keys, beside)
        if reason is not None:
            return NotJudged(rule.id, reason)
        groups = [keys] if rule.stream == _MEAN_OF_ALL else [[key] for key in keys]
        judged = [self._judge_metrics(context, group, beside) for group in groups]
        if all(isinstance(one, NotJudged) for one in judged):
            return judged[0]
        return tuple([one for one in judged if isinstance(one, Finding)])

    def _other_dialect(self, spoken: str) -> str | None:
        """Return why the rule does not judge logs of a dialect, None if it does."""
        rule = self.rule
        if spoken in rule.not_in:
            return rule.not_in[spoken]
        if spoken in rule.dialects:
            return None
        return f"judges only logs with {_whose(rule.dialects)} names; these are {_whose((spoken,))}"

    def _judge_metrics(
        self, context: RuleContext, keys: Sequence[str], beside: str | None
    ) -> Finding | NotJudged | None:
        """Judge one metric, or the mean of several, without those that are exempt."""
        reasons = [self._exemption(context, key) for key in keys]
        judged = [
            key for key, reason in zip(keys, reasons, strict=True) if reason is None
        ]
        if not judged:
            return NotJudged(self.rule.id, reasons[0] or "")
        inputs = [*judged, beside] if beside else judged
        found = map(context.run.series, inputs)
        series = [one for one in found if one is not None]
        return self._judge_series(context, judged, series)

    def _exemption(self, context: RuleContext, key: str) -> str | None:
        """Return why the rule does not apply to a metric in the whole run, None if it does."""
        names = (name for name in self.rule.unless if name not in BY_VALUES)
        reasons = (FOR_WHOLE_RUN[name](context, key) for name in names)
        return next(filter(None, reasons), None)

    def _judge_series(
        self, context: RuleContext, keys: Sequence[str], series: Sequence[Series]
    ) -> Finding | NotJudged | None:
        rule = self.rule
        key = keys[0]
        limit = LIMITS[rule.of](context.run, context.guide) if rule.of else None
        judged, step = self._judge_column(context, series, limit)
        breaches = self._not_exempt(context, keys, judged)
        self._breaches[key] = breaches
        if judged.has_enough and open_breach(breaches) is not None:
            return self._finding(context, key, judged, step, _note(rule, limit))
        reason = self._exempt_now(context, keys)
        if reason is None and not judged.has_enough:
            reason = f"needs {judged.condition.needs} points, has {judged.seen}"
        if not reason:
            return None
        return NotJudged(rule.id, reason)

    def _exempt_now(self, context: RuleContext, keys: Sequence[str]) -> str | None:
        """Return why the rule applies to none of the metrics by their values so far."""
        for name in self._by_values:
            reasons = [BY_VALUES[name](context, key) for key in keys]
            if all(reasons):
                return reasons[0]
        return None

    def _finding(
        self,
        context: RuleContext,
        key: str,
        judged: Judged,
        step: int | None,
        note: str,
    ) -> Finding | None:
        rule = self.rule
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
            step=step,
            key=key,
        )
        return replace(found, leads=rule.id != "truncation" or all_cut(context))

    def _not_exempt(
        self, context: RuleContext, keys: Sequence[str], judged: Judged
    ) -> Sequence[Breach]:
        """Return the breaches without those that were exempt by the values known at the time."""
        breaches = judged.breaches
        known = context.known(keys[0])
        if not self._by_values or not breaches or known is None:
            return breaches
        settled = self._exempt[keys[0]][1]

        def is_exempt(step: int) -> bool:
            found = settled.get(step)
            if found is None:
                found = self._exempt_now(context.at(step), keys) is not None
                if step != known.steps[-1]:  # the newest point may still change
                    settled[step] = found
            return found

        cooldown = judged.condition.cooldown
        return [*_without_exempt(breaches, known.steps, is_exempt, cooldown)]

    def _judge_column(
        self, context: RuleContext, series: Sequence[Series], limit: Limit | None
    ) -> tuple[Judged, int | None]:
        """Return what the metrics show, and the newest step; known where nothing is new."""
        rule = self.rule
        key = series[0].key
        gate = _gate(context, rule) if rule.stream == "at limit" else math.inf
        restarts = tuple([mark.step for mark in context.run.restarts])
        unit = limit.value if limit else 1.0
        scale, window = _scale(rule, series), _window(rule, series[0])
        same = tuple([(one.key, one.revision) for one in series])
        basis = (same, unit, gate, scale, restarts, window)
        if key not in self._exempt or self._exempt[key][0] != basis:
            self._exempt[key] = basis, {}
        newest = [(len(one), one.values[-1:].tobytes()) for one in series]
        of = (*basis, context.end, *newest)
        if key not in self._judged or self._judged[key][0] != of:
            points, step = column_of(series, context.end, rule.stream, scale, gate)
            condition = make(_with_window(rule, window), unit, restarts)
            self._judged[key] = of, Judged(condition, points), step
        return self._judged[key][1:]


def _with_window(rule: Rule, window: int) -> Rule:
    # Called at each point, while the window hardly ever differs.
    return rule if window == rule.window else replace(rule, window=window)


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
    if "prompt_length/max" in rule.beside_metric:
        limit = stated_limit(context.run, "max_prompt_length")
        return limit.value if limit else math.inf
    return response_limit(context.run, context.guide).value


def _note(rule: Rule, limit: Limit | None) -> str:
    if limit is None:
        return ""
    if rule.threshold == 1:
        return limit.words
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
        for at in _looked_at(breach, steps):
            is_open = bool(parts) and parts[-1].cleared is None
            if is_exempt(steps[at]) is not is_open:
                continue
            if is_open:
                paused = at
                parts[-1] = parts[-1]._replace(cleared=steps[at])
            elif parts and at - paused <= cooldown:
                parts[-1] = parts[-1]._replace(cleared=None)
            else:
                parts.append(breach._replace(raised=steps[at], cleared=None))
        for part in parts:
            end = breach.cleared if part.cleared is None else part.cleared
            yield part._replace(cleared=end)


def _looked_at(breach: Breach, steps: Sequence[int]) -> Iterator[int]:
    first = at = bisect_left(steps, breach.raised)
    stop = len(steps)
    if breach.cleared is not None:
        stop = bisect_left(steps, breach.cleared)
    while at < stop:
        yield at
        at += 1 + (at - first) // _OFTEN
