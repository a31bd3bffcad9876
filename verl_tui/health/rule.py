"""One rule of the guide on one run: finds its metrics, checks exemptions, feeds its condition."""

from __future__ import annotations

import math
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.health.applicability import DEPEND_ON_VALUES, EXEMPTIONS
from verl_tui.health.breach_filter import BreachFilter
from verl_tui.health.causes import CAUSES
from verl_tui.health.components import components, weights
from verl_tui.health.condition_feed import ConditionFeed
from verl_tui.health.conditions import make
from verl_tui.health.conditions.condition import Wording, number
from verl_tui.health.finding import Episode, Finding, NotJudged
from verl_tui.health.limits import LIMITS, Limit, response_limit, stated_limit
from verl_tui.health.rule_context import sign
from verl_tui.health.streams import Stream
from verl_tui.indicators import INDICATORS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from verl_tui.health.conditions.condition import Breach, Condition, Report
    from verl_tui.health.guide import Rule
    from verl_tui.health.rule_context import RuleContext
    from verl_tui.runs.series import Series

_TOGETHER = "mean of all"
_MANY = 5
"""Measurements whose mean says more than one: GPUs dip within every step."""
_FEWEST = 3
"""Points that a lasting breach has at least, however many measurements each is of."""
_MOST_PARTS = 12
_MOST_KEYS = 50
"""Most keys that a rule with a wildcard judges."""


class _Basis(NamedTuple):
    """All that a feed depends on beside the points: where one of these changes, it starts over."""

    keys: tuple[str, ...]
    limit: float
    """Threshold's unit; 1 where the threshold is absolute."""
    gate: float
    """Limit of a stream `at limit`."""
    scale: float
    restarts: tuple[int, ...]
    window: int
    """Points that make the evidence."""


class RuleOnRun:
    """One rule, with what it remembers of one run."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self._patterns = [pattern for pattern in rule.metric if "*" in pattern]
        self._matching: tuple[int, list[str]] = (-1, [])
        """Number of names, and the keys of those that match: a log gets further names, and never
        loses one.
        """
        self._feeds: dict[str, tuple[_Basis, ConditionFeed[Condition]]] = {}
        self._filters: dict[str, tuple[ConditionFeed[Condition], int, BreachFilter]] = {}
        """By key, with the feed and its turn that it belongs to."""
        self._breaches: dict[str, Sequence[Breach]] = {}
        """The breaches of the latest judgement, by key."""
        self._by_values = [name for name in rule.unless if name in DEPEND_ON_VALUES]
        self._for_good = [name for name in rule.unless if name not in DEPEND_ON_VALUES]

    @property
    def episodes(self) -> Iterator[Episode]:
        """All breaches so far, in no order; they depend on the numbers alone."""
        for key, breaches in self._breaches.items():
            for breach in breaches:
                yield Episode(
                    self.rule.id,
                    self.rule.severity,
                    breach.since,
                    breach.raised,
                    breach.cleared,
                    f"{self.rule.title} {breach.what}",
                    key,
                )

    def judge(self, context: RuleContext) -> tuple[Finding, ...] | NotJudged:
        """Return what the rule finds now, or why it does not judge."""
        self._breaches = {}
        rule = self.rule
        if (reason := self._other_dialect(context.run.dialect)) is not None:
            return NotJudged(rule.id, reason)
        keys = self._keys(context)
        beside = _resolve(context, rule.beside_indicator, rule.beside_metric)
        if (reason := self._missing(keys, beside)) is not None:
            return NotJudged(rule.id, reason)
        if rule.stream == _TOGETHER:
            return self._judge_together(context, keys)
        return self._judge_keys(context, keys, beside or "")

    def _other_dialect(self, spoken: str) -> str | None:
        """Return why the rule does not judge logs of a dialect, None if it does."""
        rule = self.rule
        if spoken in rule.not_in:
            return rule.not_in[spoken]
        if spoken in rule.dialects:
            return None
        return f"judges only logs with {_whose(rule.dialects)} names; these are {_whose((spoken,))}"

    def _missing(self, keys: Sequence[str], beside: str | None) -> str | None:
        """Return which input the log lacks, None if it has all."""
        rule = self.rule
        if not keys and rule.parts:
            return "the log has no components of the reward"
        if not keys:
            return f"the log has no {_names(rule.indicator, rule.metric)}"
        if beside is None and (rule.beside_indicator or rule.beside_metric):
            return f"the log has no {_names(rule.beside_indicator, rule.beside_metric)}"
        return None

    def _keys(self, context: RuleContext) -> list[str]:
        if self.rule.parts:
            return _parts(context)
        if self._patterns:
            if self._matching[0] != len(context.names):
                self._matching = (len(context.names), _matching(context.names, self._patterns))
            return self._matching[1]
        key = _resolve(context, self.rule.indicator, self.rule.metric)
        return [key] if key else []

    def _judge_together(
        self, context: RuleContext, keys: Sequence[str]
    ) -> tuple[Finding, ...] | NotJudged:
        """Judge the mean of several metrics, without those that are exempt."""
        exempt = {key: reason for key in keys if (reason := self._exempt(context, key)) is not None}
        left = [key for key in keys if key not in exempt]
        if not left:
            return NotJudged(self.rule.id, next(iter(exempt.values())))
        judged = self._judge_series(
            context, left, [one for key in left if (one := context.series(key)) is not None]
        )
        return judged if isinstance(judged, NotJudged) else (judged,) if judged is not None else ()

    def _judge_keys(
        self, context: RuleContext, keys: list[str], beside: str
    ) -> tuple[Finding, ...] | NotJudged:
        findings: list[Finding] = []
        exempt: list[NotJudged] = []
        for key in keys:
            judged = self._judge_key(context, key, beside)
            if isinstance(judged, NotJudged):
                exempt.append(judged)
            elif judged is not None:
                findings.append(judged)
        if exempt and len(exempt) == len(keys):
            return exempt[0]
        return tuple(findings)

    def _judge_key(self, context: RuleContext, key: str, beside: str) -> Finding | NotJudged | None:
        if (reason := self._exempt(context, key)) is not None:
            return NotJudged(self.rule.id, reason)
        series = [
            one
            for one in (context.series(key), context.series(beside) if beside else None)
            if one is not None
        ]
        return self._judge_series(context, [key], series)

    def _exempt(self, context: RuleContext, key: str) -> str | None:
        """Return why the rule does not apply to a metric in this run, None if it does."""
        return next(
            (reason for name in self._for_good if (reason := EXEMPTIONS[name](context, key))), None
        )

    def _exempt_now(self, context: RuleContext, keys: Sequence[str]) -> str | None:
        """Return why the rule applies to none of the metrics by their numbers so far."""
        for name in self._by_values:
            reasons = [EXEMPTIONS[name](context, key) for key in keys]
            if all(reasons):
                return reasons[0]
        return None

    def _judge_series(
        self, context: RuleContext, keys: Sequence[str], series: Sequence[Series]
    ) -> Finding | NotJudged | None:
        rule, key = self.rule, keys[0]
        limit = LIMITS[rule.of](context.run, context.guide) if rule.of else None
        feed = self._feed(context, series, limit)
        condition, step = feed.update(series, context.end)
        self._breaches[key] = breaches = self._not_exempt(context, keys, feed, condition)
        if condition.seen < condition.needs:
            reason = self._exempt_now(context, keys)
            return NotJudged(
                rule.id, reason or f"needs {condition.needs} points, has {condition.seen}"
            )
        if not breaches or breaches[-1].cleared is not None:
            reason = self._exempt_now(context, keys)
            return NotJudged(rule.id, reason) if reason else None
        report = condition.report(
            Wording(rule.title, context.duration, _note(rule, limit), rule.says)
        )
        return None if report is None else self._finding(context, key, report, step)

    def _finding(self, context: RuleContext, key: str, report: Report, step: int | None) -> Finding:
        rule = self.rule
        label = f" ({rule.label})" if rule.label else ""
        return Finding(
            rule.id,
            rule.severity,
            report.message + label,
            step=step,
            since_step=report.since,
            evidence=(
                *(f"{key}: {sentence}" for sentence in report.evidence),
                *self._causes(context),
            ),
            advice=rule.advice or None,
            source=rule.source,
            key=key,
        )

    def _not_exempt(
        self,
        context: RuleContext,
        keys: Sequence[str],
        feed: ConditionFeed[Condition],
        condition: Condition,
    ) -> Sequence[Breach]:
        """Return the breaches, without those that were exempt by the numbers at the time."""
        breaches, known = condition.breaches, context.known(keys[0])
        if not self._by_values or not breaches.all or known is None:
            return breaches.all
        known_filter = self._filters.get(keys[0])
        if known_filter is None or known_filter[:2] != (feed, feed.turn):
            known_filter = self._filters[keys[0]] = (feed, feed.turn, BreachFilter())
        return known_filter[2].cut(
            breaches.all,
            known.steps,
            lambda step: self._exempt_now(context.at(step), keys) is not None,
            breaches.cooldown,
        )

    def _causes(self, context: RuleContext) -> Iterator[str]:
        if self.rule.causes:
            yield from (cause.words for cause in CAUSES[self.rule.causes](context.run))

    def _feed(
        self, context: RuleContext, series: Sequence[Series], limit: Limit | None
    ) -> ConditionFeed[Condition]:
        key = series[0].key
        basis = self._basis(context, series, limit)
        known = self._feeds.get(key)
        if known is not None and known[0] == basis:
            return known[1]
        rule = self.rule
        if basis.window != rule.window:
            rule = replace(rule, window=basis.window)
        feed = ConditionFeed(
            lambda: make(rule, basis.limit, basis.restarts),
            Stream(rule.stream, scale=basis.scale, limit=basis.gate),
        )
        self._feeds[key] = (basis, feed)
        return feed

    def _basis(self, context: RuleContext, series: Sequence[Series], limit: Limit | None) -> _Basis:
        rule = self.rule
        scale = sign(rule.indicator, series[0].key)
        if rule.percent and max(one.highest for one in series) <= 1.0:
            scale *= 100.0
        return _Basis(
            tuple(one.key for one in series),
            limit.value if limit else 1.0,
            _gate(context, rule) if rule.stream == "at limit" else math.inf,
            scale,
            tuple(mark.step for mark in context.run.restarts),
            _window(rule, series[0]),
        )


def _parts(context: RuleContext) -> list[str]:
    """Return the keys of the reward's parts; a single one is the reward itself."""
    found = components(context.run.keys, context.indicators.get("reward"))
    known = weights(context.run, found)
    return (
        [key for key in found if known.get(key, 0.0) >= 0][:_MOST_PARTS] if len(found) > 1 else []
    )


def _matching(names: Mapping[str, str], patterns: Sequence[str]) -> list[str]:
    found = (
        key
        for name, key in names.items()
        if any(fnmatchcase(name, pattern) for pattern in patterns)
    )
    return list(dict.fromkeys(found))[:_MOST_KEYS]


def _window(rule: Rule, series: Series) -> int:
    """Return the points that make the rule's evidence: fewer where each is the mean of many
    measurements of its own.

    Only of percentages, which are measured by the clock: the scores of one batch have that batch's
    prompts in common.
    """
    # The first ones only: the window must not change while a run goes on.
    if not rule.percent or len(series.counts) < _FEWEST or min(series.counts[:_FEWEST]) < _MANY:
        return rule.window
    return max(_FEWEST, math.ceil(rule.window / min(series.counts[:_FEWEST])))


def _resolve(context: RuleContext, indicator: str, metrics: tuple[str, ...]) -> str | None:
    """Return the log's own key of an indicator or of the first metric it has."""
    if indicator:
        return context.indicators.get(indicator)
    return next((context.names[name] for name in metrics if name in context.names), None)


def _gate(context: RuleContext, rule: Rule) -> float:
    if "prompt_length/max" in rule.beside_metric:
        limit = stated_limit(context.run, "max_prompt_length")
        return limit.value if limit else math.inf
    return response_limit(context.run, context.guide).value


def _note(rule: Rule, limit: Limit | None) -> str:
    if limit is None:
        return ""
    share = f"{rule.threshold:.0%}" if rule.threshold < 2 else f"{number(rule.threshold)} ×"
    return (
        limit.words
        if rule.threshold == 1
        else f"{share} {'of ' if '%' in share else ''}{limit.words}"
    )


def _names(indicator: str, metrics: tuple[str, ...]) -> str:
    if indicator:
        return INDICATORS[indicator].label if indicator in INDICATORS else indicator
    return " or ".join(metrics)


def _whose(dialects: tuple[str, ...]) -> str:
    words = {"tutorial": "the verl tutorials'", "verl": "verl's own", "other": "other frameworks'"}
    return " or ".join(words[dialect] for dialect in dialects)
