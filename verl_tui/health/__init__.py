"""Health of a run: the guide's rules and the diagnoses, and the judge that asks them all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.health import crash, hang, not_finite, plateau, restart
from verl_tui.health.finding import Episode, Finding, NotJudged, Severity, Verdict
from verl_tui.health.guide import Band, Guide, Rule, load_guide
from verl_tui.health.limits import response_limit
from verl_tui.health.moment import moment
from verl_tui.health.rule import RuleOnRun

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from verl_tui.health.moment import Moment
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

DIAGNOSES: Mapping[str, Callable[[Rule, Moment], Finding | NotJudged | None]] = {
    "crash": crash.judge,
    "hang": hang.judge,
    "not-finite": not_finite.judge,
    "plateau": plateau.judge,
    "restart": restart.judge,
}
"""Id -> diagnosis, in the order of showing. Each reads its figures from its entry in `guide.toml`."""


class Judge:
    """Judges one run. Remembers how far it has read, so that judging costs what is new."""

    def __init__(self, guide: Guide, run: Run) -> None:
        self.guide = guide
        self.run = run
        self._rules = [RuleOnRun(rule) for rule in guide.rules if rule.condition != "diagnosis"]
        self._diagnoses = [rule for rule in guide.rules if rule.condition == "diagnosis"]
        self._revision: int | None = None
        self._judged: list[Finding | NotJudged] = []

    def verdict(self, now: float) -> Verdict:
        """Judge the run as it is.

        Args:
            now: Seconds since the epoch; only liveness depends on it, never what is said of the numbers.
        """
        look = moment(self.run, self.guide, now)
        if self._revision != self.run.revision:
            self._judged = self._judge_rules(look)
            self._revision = self.run.revision
        judged = [*self._judged, *self._diagnose(look)]
        findings = [one for one in judged if isinstance(one, Finding)]
        findings.sort(key=lambda one: (-one.severity, one.since_step if one.since_step is not None else -1))
        return Verdict(tuple(findings), tuple(one for one in judged if isinstance(one, NotJudged)))

    def band(self, indicator_id: str) -> tuple[float | None, float | None] | None:
        """Return the healthy band of an indicator in this run, for charts; None where the guide knows none."""
        limit = response_limit(self.run, self.guide).value
        return self.guide.band(indicator_id, self.run.dialect, limit)

    def _judge_rules(self, look: Moment) -> list[Finding | NotJudged]:
        results: dict[str, list[tuple[Finding, ...] | NotJudged]] = {}
        for judged in self._rules:
            results.setdefault(judged.rule.id, []).append(self._judge_rule(judged, look))
        return [one for id, variants in results.items() for one in _merge(id, variants)]

    def _judge_rule(self, judged: RuleOnRun, look: Moment) -> tuple[Finding, ...] | NotJudged:
        if judged.rule.id in self.guide.silenced:
            return NotJudged(judged.rule.id, "silenced in your settings")
        try:
            return judged.judge(look)
        except Exception as error:  # noqa: BLE001 - the border of a rule: one that fails is shown, never takes more down
            return NotJudged(judged.rule.id, f"failed: {error!r}")

    def _diagnose(self, look: Moment) -> list[Finding | NotJudged]:
        results: list[Finding | NotJudged] = []
        for rule in self._diagnoses:
            if rule.id in self.guide.silenced:
                results.append(NotJudged(rule.id, "silenced in your settings"))
                continue
            try:
                found = DIAGNOSES[rule.id](rule, look)
            except Exception as error:  # noqa: BLE001 - the same border
                found = NotJudged(rule.id, f"failed: {error!r}")
            if found is not None:
                results.append(found)
        return results


def _merge(id: str, variants: list[tuple[Finding, ...] | NotJudged]) -> list[Finding | NotJudged]:
    """Return what the variants of a rule say together: it was judged if one of them was."""
    judged = [variant for variant in variants if not isinstance(variant, NotJudged)]
    if judged:
        return [finding for findings in judged for finding in findings]
    reasons = dict.fromkeys(variant.reason for variant in variants if isinstance(variant, NotJudged))
    return [NotJudged(id, "; ".join(reasons))]
