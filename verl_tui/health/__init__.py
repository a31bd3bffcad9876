"""Health of a run: the guide's rules, the diagnoses, and the judge that applies them."""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from verl_tui.health.consequences import beginning, with_causes
from verl_tui.health.diagnoses import DIAGNOSES
from verl_tui.health.finding import Episode, Finding, NotJudged, Severity, Verdict
from verl_tui.health.guide import Band, Guide, Rule
from verl_tui.health.guide_settings import load_guide
from verl_tui.health.limits import response_limit
from verl_tui.health.rule import RuleOnRun
from verl_tui.health.rule_context import rule_context

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.health.diagnoses.diagnosis import Diagnosis
    from verl_tui.health.rule_context import RuleContext
    from verl_tui.runs.run import Run

__all__ = [
    "DIAGNOSES",
    "Band",
    "Episode",
    "Finding",
    "Guide",
    "Judge",
    "NotJudged",
    "Rule",
    "Severity",
    "Verdict",
    "load_guide",
]


class Judge:
    """Judges one run. Remembers how far it has read, so that judging costs what is new."""

    def __init__(self, guide: Guide, run: Run) -> None:
        self.guide = guide
        self.run = run
        self._rules = [RuleOnRun(rule) for rule in guide.rules if rule.condition != "diagnosis"]
        diagnoses = [
            DIAGNOSES[rule.name](rule) for rule in guide.rules if rule.condition == "diagnosis"
        ]
        self._by_numbers = [one for one in diagnoses if not one.alive]
        self._by_life = [one for one in diagnoses if one.alive]
        self._revision: int | None = None
        self._judged: list[Finding | NotJudged] = []
        self._episodes: list[Episode] = []

    def verdict(self, now: float) -> Verdict:
        """Judge the run as it is.

        Args:
            now: Seconds since the epoch; only liveness depends on it, never what is said of the
                numbers.
        """
        context = rule_context(self.run, self.guide, now)
        if self._revision != self.run.revision:
            self._judged = self._judge_numbers(context)
            self._episodes = [
                *self._episodes_of(self._rules),
                *self._episodes_of(self._by_numbers),
            ]
            self._revision = self.run.revision
        judged = [*self._judged]
        for one in self._by_life:
            judged += _merge(one.rule.id, [self._diagnose(one, context)])
        findings = [one for one in judged if isinstance(one, Finding)]
        findings.sort(key=_weight)
        return Verdict(
            with_causes(findings, self.guide, partial(beginning, self.run)),
            tuple(one for one in judged if isinstance(one, NotJudged)),
            tuple(
                sorted(
                    (*self._episodes, *self._episodes_of(self._by_life)),
                    key=lambda one: one.raised_step or 0,
                )
            ),
        )

    def _episodes_of(self, judges: Sequence[RuleOnRun] | Sequence[Diagnosis]) -> Iterator[Episode]:
        return (
            episode
            for one in judges
            if one.rule.id not in self.guide.silenced
            for episode in one.episodes
        )

    def band(self, indicator_id: str) -> tuple[float | None, float | None] | None:
        """Return the healthy band of an indicator in this run, for charts; None where the guide
        knows none.
        """
        limit = response_limit(self.run, self.guide).value
        return self.guide.band(indicator_id, self.run.dialect, limit)

    def _judge_numbers(self, context: RuleContext) -> list[Finding | NotJudged]:
        """Judge all that depends on the numbers alone, and merge the variants of each rule."""
        results: dict[str, list[tuple[Finding, ...] | NotJudged]] = {}
        for judged in self._rules:
            results.setdefault(judged.rule.id, []).append(self._judge_rule(judged, context))
        for diagnosis in self._by_numbers:
            results.setdefault(diagnosis.rule.id, []).append(self._diagnose(diagnosis, context))
        return [one for id, variants in results.items() for one in _merge(id, variants)]

    def _judge_rule(
        self, judged: RuleOnRun, context: RuleContext
    ) -> tuple[Finding, ...] | NotJudged:
        if judged.rule.id in self.guide.silenced:
            return NotJudged(judged.rule.id, "silenced in your settings")
        try:
            return judged.judge(context)
        except Exception as error:  # noqa: BLE001 - the border of a rule: one that fails is shown, never takes more down
            return NotJudged(judged.rule.id, f"failed: {error!r}")

    def _diagnose(
        self, diagnosis: Diagnosis, context: RuleContext
    ) -> tuple[Finding, ...] | NotJudged:
        id = diagnosis.rule.id
        if id in self.guide.silenced:
            return NotJudged(id, "silenced in your settings")
        try:
            found = diagnosis.judge(context)
        except Exception as error:  # noqa: BLE001 - the same border
            return NotJudged(id, f"failed: {error!r}")
        return found if isinstance(found, NotJudged) else (found,) if found is not None else ()


_DIAGNOSED = frozenset(name.partition("/")[0] for name in DIAGNOSES)


def _weight(finding: Finding) -> tuple[int, bool, int]:
    """Worst first; of these, diagnoses before the symptoms that they explain, then the earliest."""
    since = finding.since_step if finding.since_step is not None else -1
    return -finding.severity, finding.id not in _DIAGNOSED, since


def _merge(id: str, variants: list[tuple[Finding, ...] | NotJudged]) -> list[Finding | NotJudged]:
    """Merge the variants of a rule: it was judged if one of them was.

    For each metric the worst finding holds, of equally bad ones the first.
    """
    reasons = dict.fromkeys(one.reason for one in variants if isinstance(one, NotJudged))
    judged = [one for one in variants if not isinstance(one, NotJudged)]
    if not judged:
        return [NotJudged(id, "; ".join(reasons))]
    worst: dict[str | None, Finding] = {}
    for finding in chain.from_iterable(judged):
        known = worst.get(finding.key)
        if known is None or finding.severity > known.severity:
            worst[finding.key] = finding
    return [*worst.values()]
