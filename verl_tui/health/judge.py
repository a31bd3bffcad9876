"""Judges runs: applies the rules of the guide and the diagnoses, each with its life on one run: its
findings now in words, and what it ever found.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from verl_tui import debug_log
from verl_tui.health.columns import find_in_columns
from verl_tui.health.conditions.column import KEPT_BREACHES, Breach, Found, open_breach
from verl_tui.health.consequences import (
    in_words,
    new_lines,
    with_causes,
    with_first_moves,
)
from verl_tui.health.diagnoses import DIAGNOSES
from verl_tui.health.diagnoses.dead_groups import may_be_constant
from verl_tui.health.diagnosis import BlockDiagnosis, find_in_blocks
from verl_tui.health.finding import (
    LACKS,
    SEVERITIES,
    TOO_LARGE,
    Episode,
    Finding,
    NotJudged,
    Severity,
    Verdict,
    failed,
    failure,
)
from verl_tui.health.limits import CAUSES
from verl_tui.health.rule_context import RuleContext, rule_context
from verl_tui.indicators import INDICATORS
from verl_tui.patterns import pattern
from verl_tui.runs.cached import LastResult

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from verl_tui.health.guide import Guide, Rule
    from verl_tui.runs.run import Run

_Result: TypeAlias = "Sequence[Finding] | NotJudged"


class RuleOnRun:
    """One rule, or diagnosis, with what it has found on one run."""

    # there are a hundred for each of up to thousands of runs
    __slots__ = (
        *("_diagnosis", "_has_failed", "_past"),
        *("by_clock", "episodes", "kept", "result", "rule"),
    )

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        is_code = rule.condition == "diagnosis"
        self._diagnosis = DIAGNOSES.get(rule.name) if is_code else None
        self.by_clock = self._diagnosis is not None and self._diagnosis.by_clock
        """Whether it depends on the clock."""
        self.result: _Result = ()
        """The findings now, or that it does not judge."""
        self.episodes: Sequence[Episode] = ()
        """All findings so far; they depend on the numbers alone, unless it goes by the clock."""
        self._past: Sequence[Breach] = ()
        """Earlier findings of a diagnosis that only sees the present."""
        self.kept: dict[Hashable, LastResult] = defaultdict(LastResult)
        """Figures by their name."""
        self._has_failed = False

    def judge(self, context: RuleContext) -> None:
        """Judge a run as it is; no verdict where its sums overflow."""
        id = self.rule.id
        reason = "silenced in your settings"
        if id not in context.guide.silenced:
            try:
                with np.errstate(over="raise", divide="ignore", invalid="ignore"):
                    self.result = self._judged(context)
                return
            except (OverflowError, FloatingPointError):
                reason = TOO_LARGE
            except Exception as error:  # noqa: BLE001 - shown; affects no other rule
                reason = failure(error)
                if not self._has_failed:  # it may fail at every step
                    debug_log.note_error(f"rule {id} on {context.run.name}", error)
                self._has_failed = True
        self.result = NotJudged(id, reason)

    def _judged(self, context: RuleContext) -> _Result:
        rule, run = self.rule, context.run
        found = self._found(context)
        self.episodes = tuple(chain(*map(self._episodes_of, found)))
        reasons = [one.now for one in found if isinstance(one.now, str)]
        if reasons and len(reasons) == len(found):
            return NotJudged(rule.id, reasons[0])
        now = [one.now for one in found if isinstance(one.now, Finding)]
        causes = [one.words(run) for one in CAUSES[rule.causes](run)] if now else []
        return tuple([replace(one, evidence=(*one.evidence, *causes)) for one in now])

    def _episodes_of(self, found: Found) -> Iterator[Episode]:
        """Yield breaches as findings of the past."""
        for since, raised, what, cleared, severity in found.breaches:
            worst = self.rule.severity if severity is None else severity
            words = f"{found.title} {what}".lstrip()
            yield Episode(self.rule.id, worst, since, raised, cleared, words, found.key)

    def _found(self, context: RuleContext) -> Sequence[Found]:
        """Return what is found now and before, in each of its columns."""
        if not self._diagnosis:
            return find_in_columns(context, self.kept)
        for one in self._diagnosis.requires:
            if one not in context.indicators:
                return [Found(f"{LACKS} no {INDICATORS[one].label}")]
        found = self._diagnosis.find(context)
        if isinstance(found, BlockDiagnosis):
            return [find_in_blocks(context, found, self.kept["blocks"])]
        if isinstance(found, Found):
            return [found]
        return [self._remembered(found, context.run.step or 0)]

    def _remembered(self, found: Finding | str | None, step: int) -> Found:
        """Return what was found with what there is at a step, by its own step if it has one."""
        breaches = [*self._past]
        held = open_breach(breaches)
        if isinstance(found, Finding) and found.certain:
            if not held:
                since = step if found.since_step is None else found.since_step
                raised = since if found.step is None else found.step
                new = Breach(since, raised, found.message)
                if breaches and new.raised <= (breaches[-1].cleared or 0):
                    new = breaches.pop()._replace(cleared=None)
                breaches.append(new)
        elif held:
            breaches[-1] = held._replace(cleared=step)
        self._past = breaches[-KEPT_BREACHES:]
        return Found(found, self._past)


class Judge:
    """Judges one run, again whenever it has changed."""

    def __init__(self, guide: Guide, run: Run) -> None:
        self.guide = guide
        self.run = run
        self._rules = sorted(map(RuleOnRun, guide.rules), key=attrgetter("by_clock"))
        self._revision: int | None = None
        """At which the rules that depend on the numbers alone have judged."""
        self._known = Verdict()
        """What was said last."""

    def verdict(self, now: float) -> Verdict:
        """Judge the run as it is.

        Args:
            now: Seconds since the epoch; only diagnoses of the run's life depend on it.
        """
        try:
            return self._verdict(now)
        except Exception as error:  # noqa: BLE001 - one run's failure is no other's
            debug_log.note_error(f"judging {self.run.name}", error)
            reason = failure(error)
            ids = dict.fromkeys(rule.id for rule in self.guide.rules)
            return Verdict(not_judged=tuple(NotJudged(id, reason) for id in ids))

    def _verdict(self, now: float) -> Verdict:
        context = rule_context(self.run, self.guide, now)
        has_grown = self._revision != self.run.revision
        before = [one.result for one in self._rules]
        for one in self._rules:
            if one.by_clock or has_grown:
                one.judge(context._replace(rule=one.rule))
        # of many runs hardly any is another than a moment ago
        if has_grown or before != [one.result for one in self._rules]:
            self._revision = None  # until all is told
            self._known = self._summed_up(context)
            self._revision = self.run.revision
        return self._known

    def _summed_up(self, context: RuleContext) -> Verdict:
        """Return what all rules have found, with what follows from what."""
        results: dict[str, list[_Result]] = {}
        for one in self._rules:
            results.setdefault(one.rule.id, []).append(one.result)
        judged = [*chain(*map(_merge, results, results.values()))]
        findings = [one for one in judged if isinstance(one, Finding)]
        findings += _exported(self.run, self.guide, findings)
        findings = sorted(with_first_moves(findings, context), key=_weight)
        explained = with_causes(findings, self.guide, self.run)
        history = chain(*map(attrgetter("episodes"), self._rules))
        return Verdict(
            tuple(sorted([_completed(one, context) for one in explained], key=_weight)),
            tuple(one for one in judged if isinstance(one, NotJudged)),
            tuple(sorted(history, key=lambda episode: episode.raised_step or 0)),
        )

    def forget_figures(self) -> None:
        """Forget all but the verdict, for a run that will hardly go on; if it does, it is read
        again from its beginning.
        """
        kept = [one.kept for one in self._rules if one.kept]
        for figures in kept:
            figures.clear()
        if kept:
            self.run.forget_series()


_STANDSTILL = frozenset({"crash", "hang"})
"""Diagnoses of runs that do not go on."""
_DIAGNOSED = frozenset(name.partition("/")[0] for name in DIAGNOSES)


def _weight(finding: Finding) -> tuple[int, bool, bool, int]:
    """Return the sort key: the worst first; among equals what keeps the run from going on, then
    diagnoses before the symptoms that they explain, then the earliest.
    """
    since = finding.since_step if finding.since_step is not None else -1
    rank = (finding.id not in _STANDSTILL, finding.id not in _DIAGNOSED)
    return (-finding.severity, *rank, since)


def _completed(finding: Finding, context: RuleContext) -> Finding:
    """Return a finding with what is new in the log there, if it is a cause itself and judges a
    metric, and without advice that the log refutes.
    """
    finding = _fitting(finding, context)
    series, since = context.known(finding.key), finding.begun
    has_news = finding.consequence_of is None and finding.severity > Severity.INFO
    if not has_news or not series or since is None or finding.id == "worker-errors":
        return finding
    news = in_words(new_lines(context.run, series.steps, since))
    return replace(finding, evidence=(*finding.evidence, *news))


def _merge(id: str, variants: list[_Result]) -> Sequence[Finding | NotJudged]:
    """Merge the variants of a rule: it was judged if one of them was, and none failed.

    The worst of several findings on one metric counts, the first among equals, with the step at
    which the first of them began; so it does where each variant found one, on whatever metrics,
    with the evidence of all.
    """
    reasons = {one.reason: None for one in variants if isinstance(one, NotJudged)}
    judged = [one for one in variants if not isinstance(one, NotJudged)]
    if not judged:
        return [NotJudged(id, "; ".join(reasons))]
    found: dict[str | None, list[Finding]] = {}
    for one in chain(*judged):
        found.setdefault(one.key, []).append(one)
    merged = [*map(_worst, found.values())]
    if len(merged) > 1 and max(map(len, judged)) == 1:
        worst = _worst(merged)
        evidence = chain(worst.evidence, *map(attrgetter("evidence"), merged))
        merged = [replace(worst, evidence=tuple(dict.fromkeys(evidence)))]
    if broken := "; ".join(filter(failed, reasons)):
        return [*merged, NotJudged(id, broken)]
    return merged


def _worst(findings: Sequence[Finding]) -> Finding:
    """Return the worst of some findings with the step at which the first of them began."""
    worst = max(findings, key=attrgetter("severity"))
    begun = min((one.begun for one in findings if one.begun is not None), default=None)
    return replace(worst, first_sign=None if begun == worst.since_step else begun)


def _exported(run: Run, guide: Guide, known: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the findings that an exporter states and that were not found here.

    Args:
        run: The run.
        guide: The rules, which say what a finding means.
        known: What was found in its metrics.
    """
    found = {one.id for one in known} | guide.silenced
    stated = [one for source in run.sources.values() for one in source.status.findings]
    for id, word in dict.fromkeys(stated):
        if id not in found and word in SEVERITIES:
            rule = guide.rule(id)
            meaning, advice = (rule.meaning, rule.advice) if rule else ("", "")
            yield Finding(
                id,
                SEVERITIES[word],
                "stated by verl-tui's exporter, which reads the log itself"
                + (f": {meaning}" if meaning else ""),
                advice=advice
                or "Look at the log with `verl-tui check` where the exporter runs.",
                source="verl_finding_active",
            )


_GO_BACK = pattern(r"\b(?:(G)|g)o back to (?:a|the) [^.;,]*")
_SCORER = pattern(
    r"Score by hand [^.]{0,200}\bthe scorer is constant\b[^.]{0,200}\. Otherwise (\w)"
)


def _fitting(finding: Finding, context: RuleContext) -> Finding:
    """Return a finding without the advice to go back to before the first step, or to look for a
    constant scorer while scores differ.
    """
    advice = finding.advice or ""
    if _GO_BACK.search(advice) and _from_the_start(finding, context):
        advice = _GO_BACK.sub(lambda one: f"{'S' if one[1] else 's'}tart anew", advice)
    if _SCORER.search(advice) and not may_be_constant(context.at(finding.step or 0)):
        advice = _SCORER.sub(lambda found: found[1].upper(), advice)
    return replace(finding, advice=advice or None)


def _from_the_start(finding: Finding, context: RuleContext) -> bool:
    """Return whether it began with the run's first steps: no checkpoint is from before."""
    series = context.known(finding.key or context.indicators.get("reward"))
    since = finding.begun
    saved = min(context.run.checkpoints, default=None)
    if not series or since is None or (saved is not None and saved < since):
        return False
    first, second = (*series.steps[:2], series.steps[0] + 1)[:2]
    return since <= first <= max(1, second - first)


def verdict_on_end(guide: Guide, end: Run, now: float) -> Verdict:
    """Judge what is known of a run whose logs have been read from near their end only.

    Only the rules of the guide that are `of_the_end` are asked, which look at nothing but their
    window: one that compares with the run's past could find something in a part of a log that the
    whole log refutes. A finding may be older than the part, so none says since when.

    Args:
        guide: The rules in force.
        end: The run as if that were all.
        now: Seconds since the epoch.
    """
    rules = tuple(rule for rule in guide.rules if rule.of_the_end)
    found = Judge(replace(guide, rules=rules), end).verdict(now).findings
    return Verdict(tuple(replace(one, since_step=None) for one in found))
