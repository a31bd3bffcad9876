"""One rule of the guide on one run: finds its input, asks its silences, feeds what is new, says
what holds now.
"""

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

    from verl_tui.health.conditions.condition import Breach, Condition
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
"""Keys that a rule with a wildcard judges at most."""


class _Basis(NamedTuple):
    """What a watch depends on beside the points: where one of these changes, it starts over."""

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
        self._watches: dict[str, tuple[_Basis, ConditionFeed]] = {}
        self._gates: dict[str, tuple[ConditionFeed, int, BreachFilter]] = {}
        """By key, with the watch and its turn that it belongs to."""
        self._looked: dict[str, Sequence[Breach]] = {}
        """The breaches as they stood when they were looked at last, by key."""
        self._by_numbers = [name for name in rule.unless if name in DEPEND_ON_VALUES]
        self._for_good = [name for name in rule.unless if name not in DEPEND_ON_VALUES]

    @property
    def episodes(self) -> Iterator[Episode]:
        """All that was found so far, in no order; told by the numbers alone, whenever they were
        looked at.
        """
        for key, breaches in self._looked.items():
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
        self._looked = {}
        rule, spoken = self.rule, context.run.dialect
        if spoken in rule.not_in:
            return NotJudged(rule.id, rule.not_in[spoken])
        if spoken not in rule.dialects:
            return NotJudged(
                rule.id,
                f"judges only logs with {_whose(rule.dialects)} names; these are {_whose((spoken,))}",
            )
        keys = self._keys(context)
        if not keys and rule.parts:
            return NotJudged(rule.id, "the log has no components of the reward")
        if not keys:
            return NotJudged(rule.id, f"the log has no {_names(rule.indicator, rule.metric)}")
        beside = _resolve(context, rule.beside_indicator, rule.beside_metric)
        if beside is None and (rule.beside_indicator or rule.beside_metric):
            return NotJudged(
                rule.id, f"the log has no {_names(rule.beside_indicator, rule.beside_metric)}"
            )
        if rule.stream == _TOGETHER:
            return self._judge_together(context, keys)
        return self._judge_keys(context, keys, beside or "")

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
        """Judge the mean of those of several metrics that nothing excuses."""
        excuses = {
            key: reason for key in keys if (reason := self._excuse(context, key)) is not None
        }
        left = [key for key in keys if key not in excuses]
        if not left:
            return NotJudged(self.rule.id, next(iter(excuses.values())))
        judged = self._judge_series(
            context, left, [one for key in left if (one := context.series(key)) is not None]
        )
        return judged if isinstance(judged, NotJudged) else (judged,) if judged is not None else ()

    def _judge_keys(
        self, context: RuleContext, keys: list[str], beside: str
    ) -> tuple[Finding, ...] | NotJudged:
        findings: list[Finding] = []
        excuses: list[NotJudged] = []
        for key in keys:
            judged = self._judge_key(context, key, beside)
            if isinstance(judged, NotJudged):
                excuses.append(judged)
            elif judged is not None:
                findings.append(judged)
        if excuses and len(excuses) == len(keys):
            return excuses[0]
        return tuple(findings)

    def _judge_key(self, context: RuleContext, key: str, beside: str) -> Finding | NotJudged | None:
        if (reason := self._excuse(context, key)) is not None:
            return NotJudged(self.rule.id, reason)
        series = [
            one
            for one in (context.series(key), context.series(beside) if beside else None)
            if one is not None
        ]
        return self._judge_series(context, [key], series)

    def _excuse(self, context: RuleContext, key: str) -> str | None:
        """Return what excuses a metric in this run, whatever its numbers are."""
        return next(
            (reason for name in self._for_good if (reason := EXEMPTIONS[name](context, key))), None
        )

    def _excuse_now(self, context: RuleContext, keys: Sequence[str]) -> str | None:
        """Return what excuses all of the metrics by the numbers up to a moment."""
        for name in self._by_numbers:
            reasons = [EXEMPTIONS[name](context, key) for key in keys]
            if all(reasons):
                return reasons[0]
        return None

    def _judge_series(
        self, context: RuleContext, keys: Sequence[str], series: Sequence[Series]
    ) -> Finding | NotJudged | None:
        rule, key = self.rule, keys[0]
        limit = LIMITS[rule.of](context.run, context.guide) if rule.of else None
        watch = self._watch(context, series, limit)
        condition, step = watch.update(series, context.end)
        self._looked[key] = breaches = self._unexcused(context, keys, watch, condition)
        if condition.seen < condition.needs:
            reason = self._excuse_now(context, keys)
            return NotJudged(
                rule.id, reason or f"needs {condition.needs} points, has {condition.seen}"
            )
        if not breaches or breaches[-1].cleared is not None:
            reason = self._excuse_now(context, keys)
            return NotJudged(rule.id, reason) if reason else None
        report = condition.report(
            Wording(rule.title, context.duration, _note(rule, limit), rule.says)
        )
        if report is None:
            return None
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

    def _unexcused(
        self, context: RuleContext, keys: Sequence[str], watch: ConditionFeed, condition: Condition
    ) -> Sequence[Breach]:
        """Return the breaches, without those that a silence excused by the numbers at the time."""
        breaches, known = condition.breaches, context.known(keys[0])
        if not self._by_numbers or not breaches.all or known is None:
            return breaches.all
        gate = self._gates.get(keys[0])
        if gate is None or gate[:2] != (watch, watch.turn):
            gate = self._gates[keys[0]] = (watch, watch.turn, BreachFilter())
        return gate[2].cut(
            breaches.all,
            known.steps,
            lambda step: self._excuse_now(context.at(step), keys) is not None,
            breaches.cooldown,
        )

    def _causes(self, context: RuleContext) -> Iterator[str]:
        if self.rule.causes:
            yield from (cause.words for cause in CAUSES[self.rule.causes](context.run))

    def _watch(
        self, context: RuleContext, series: Sequence[Series], limit: Limit | None
    ) -> ConditionFeed:
        key = series[0].key
        scale = sign(self.rule.indicator, key)
        if self.rule.percent and max(one.highest for one in series) <= 1.0:
            scale *= 100.0
        restarts = tuple(mark.step for mark in context.run.restarts)
        gate = _gate(context, self.rule) if self.rule.stream == "at limit" else math.inf
        keys = tuple(one.key for one in series)
        basis = _Basis(
            keys,
            limit.value if limit else 1.0,
            gate,
            scale,
            restarts,
            _window(self.rule, series[0]),
        )
        known = self._watches.get(key)
        if known is not None and known[0] == basis:
            return known[1]
        rule = (
            self.rule
            if basis.window == self.rule.window
            else replace(self.rule, window=basis.window)
        )
        watch = ConditionFeed(
            lambda: make(rule, basis.limit, basis.restarts),
            Stream(rule.stream, scale=basis.scale, limit=basis.gate),
        )
        self._watches[key] = (basis, watch)
        return watch


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
