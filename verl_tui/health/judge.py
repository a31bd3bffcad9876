"""Judges runs: applies the rules of the guide and the diagnoses."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from verl_tui import debug_log
from verl_tui.health.consequences import (
    in_words,
    new_lines,
    step_before,
    with_causes,
    with_first_moves,
)
from verl_tui.health.diagnoses import DIAGNOSES
from verl_tui.health.diagnoses.dead_groups import may_be_constant
from verl_tui.health.finding import (
    SEVERITIES,
    TOO_LARGE,
    Finding,
    NotJudged,
    Severity,
    Verdict,
    failed,
    failure,
)
from verl_tui.health.rule import RuleOnRun
from verl_tui.health.rule_context import RuleContext, rule_context
from verl_tui.patterns import pattern

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from verl_tui.health.finding import Episode
    from verl_tui.health.guide import Guide
    from verl_tui.runs.run import Run

_RuleResult: TypeAlias = "Sequence[Finding] | NotJudged"


class Judge:
    """Judges one run, anew where it has changed."""

    def __init__(self, guide: Guide, run: Run) -> None:
        self.guide = guide
        self.run = run
        self._by_numbers: Sequence[RuleOnRun] = ()
        """Empty until the run is judged, and while it rests."""
        self._by_time = _judges(guide, alive=True)
        self._revision: int | None = None
        self._judged: list[Finding | NotJudged] = []
        """Results of the rules that depend on the numbers alone, at this revision."""
        self._episodes: list[Episode] = []
        self._failed: set[str] = set()
        """Rules that have failed."""

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
            return Verdict(not_judged=tuple([NotJudged(id, reason) for id in ids]))

    def _verdict(self, now: float) -> Verdict:
        context = rule_context(self.run, self.guide, now)
        if self._revision != self.run.revision:
            self._by_numbers = self._by_numbers or _judges(self.guide, alive=False)
            self._judged, self._episodes = self._judge(self._by_numbers, context)
            self._revision = self.run.revision
        judged, episodes = self._judge(self._by_time, context)
        judged = [*self._judged, *judged]
        findings = [one for one in judged if isinstance(one, Finding)]
        findings += _exported(self.run, self.guide, findings)
        findings = sorted(with_first_moves(findings, context), key=_weight)
        not_judged = [one for one in judged if isinstance(one, NotJudged)]
        history = [*self._episodes, *episodes]
        history.sort(key=lambda episode: episode.raised_step or 0)
        explained = with_causes(findings, self.guide, partial(step_before, self.run))
        return Verdict(
            tuple(sorted([_told(one, context) for one in explained], key=_weight)),
            tuple(not_judged),
            tuple(history),
        )

    def rest(self) -> None:
        """Forget all but the verdict, for a run that will hardly go on; if it does, it is read
        again from its beginning.
        """
        if self._by_numbers:
            self._by_numbers = ()
            self.run.forget_series()

    def _judge(
        self, judges: Sequence[RuleOnRun], context: RuleContext
    ) -> tuple[list[Finding | NotJudged], list[Episode]]:
        """Return the results of rules, the variants of one rule merged, and their episodes."""
        results: dict[str, list[_RuleResult]] = {}
        episodes: list[Episode] = []
        for one in judges:
            result = self._result(one, context)
            results.setdefault(one.rule.id, []).append(result)
            episodes += one.episodes
        merged: list[Finding | NotJudged] = []
        for id, variants in results.items():
            merged += _merge(id, variants)
        return merged, episodes

    def _result(self, one: RuleOnRun, context: RuleContext) -> _RuleResult:
        """Return what a rule says; it says nothing of numbers that are too large for its sums."""
        id = one.rule.id
        if id in self.guide.silenced:
            return NotJudged(id, "silenced in your settings")
        try:
            return one.judge(context)
        except (OverflowError, FloatingPointError):
            return NotJudged(id, TOO_LARGE)
        except Exception as error:  # noqa: BLE001 - shown; affects no other rule
            if id not in self._failed:  # it may fail at every step
                self._failed.add(id)
                debug_log.note_error(f"rule {id} on {self.run.name}", error)
            return NotJudged(id, failure(error))


def _judges(guide: Guide, *, alive: bool) -> Sequence[RuleOnRun]:
    """Return fresh rules and diagnoses: those that depend on the clock, or on the numbers alone."""
    known = map(RuleOnRun, guide.rules)
    return [one for one in known if one.alive is alive]


_STANDSTILL = frozenset({"crash", "hang"})
"""Diagnoses of runs that do not go on."""
_DIAGNOSED = frozenset(name.partition("/")[0] for name in DIAGNOSES)


def _weight(finding: Finding) -> tuple[int, bool, bool, int]:
    """Worst first; of these, why nothing goes on, then diagnoses before the symptoms that they
    explain, then the earliest.
    """
    since = finding.since_step if finding.since_step is not None else -1
    rank = (finding.id not in _STANDSTILL, finding.id not in _DIAGNOSED)
    return (-finding.severity, *rank, since)


def _told(finding: Finding, context: RuleContext) -> Finding:
    """Return a finding with what is new in the log there, if it is a cause itself and judges a
    metric, and without advice that the log refutes.
    """
    finding = _fitting(finding, context)
    series, since = context.known(finding.key), finding.begun
    is_told = finding.consequence_of is None and finding.severity > Severity.INFO
    if not is_told or series is None or since is None or finding.id == "worker-errors":
        return finding
    news = in_words(new_lines(context.run, series.steps, since))
    return replace(finding, evidence=(*finding.evidence, *news))


def _merge(id: str, variants: list[_RuleResult]) -> Sequence[Finding | NotJudged]:
    """Merge the variants of a rule: it was judged if one of them was, and none failed.

    The worst of several findings on one metric counts, the first among equals, with the step at
    which the first of them began; so it does where each variant found one, on whatever metrics.
    """
    reasons = {one.reason: None for one in variants if isinstance(one, NotJudged)}
    judged = [one for one in variants if not isinstance(one, NotJudged)]
    if not judged:
        return [NotJudged(id, "; ".join(reasons))]
    told = _worst(judged)
    broken = "; ".join(filter(failed, reasons))
    return [*told, *([NotJudged(id, broken)] if broken else ())]


def _worst(judged: Sequence[Sequence[Finding]]) -> Sequence[Finding]:
    """Return the worst finding on each metric, or of all if no variant has several."""
    worst: dict[str | None, Finding] = {}
    for finding in (one for found in judged for one in found):
        known = worst.setdefault(finding.key, finding)
        first = max(known, finding, key=lambda one: one.severity)
        worst[finding.key] = _with_first_sign(first, (known, finding))
    told = [*worst.values()]
    several = len(told) > 1 and max(map(len, judged)) == 1
    return [_as_one(told)] if several else told


def _as_one(findings: Sequence[Finding]) -> Finding:
    """Return the worst of what variants found on several metrics, with the evidence of all."""
    worst = max(findings, key=lambda one: one.severity)
    evidence = (*worst.evidence, *(line for one in findings for line in one.evidence))
    worst = replace(worst, evidence=tuple(dict.fromkeys(evidence)))
    return _with_first_sign(worst, findings)


def _with_first_sign(worst: Finding, findings: Sequence[Finding]) -> Finding:
    """Return the worst of some findings with the step at which the first of them began."""
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
    if series is None or since is None or (saved is not None and saved < since):
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
    rules = tuple([rule for rule in guide.rules if rule.of_the_end])
    found = Judge(replace(guide, rules=rules), end).verdict(now).findings
    return Verdict(tuple([replace(one, since_step=None) for one in found]))
