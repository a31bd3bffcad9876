"""A rule's life on one run: its findings now in words, and what it ever found."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from verl_tui.health.blocks import InBlocks, cut, full_blocks, judge_blocks
from verl_tui.health.columns import look_at_columns
from verl_tui.health.conditions.condition import (
    KEPT_BREACHES,
    Breach,
    Found,
    open_breach,
)
from verl_tui.health.diagnoses import DIAGNOSES
from verl_tui.health.diagnoses.diagnosis import told
from verl_tui.health.finding import LACKS, Episode, Finding, NotJudged
from verl_tui.health.limits import CAUSES
from verl_tui.indicators import INDICATORS

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from verl_tui.health.blocks import BlocksJudged
    from verl_tui.health.guide import Rule
    from verl_tui.health.rule_context import RuleContext


class RuleOnRun:
    """One rule, or diagnosis, with what it has found on one run."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        is_code = rule.condition == "diagnosis"
        self._diagnosis = DIAGNOSES.get(rule.name) if is_code else None
        self.alive = self._diagnosis is not None and self._diagnosis.alive
        """Whether it depends on the clock."""
        self.episodes: Sequence[Episode] = ()
        """All findings so far; they depend on the numbers alone, unless it is alive."""
        self._past: Sequence[Breach] = ()
        """What was found each time that it looked, if it looks at the present only."""
        self._kept: dict[Hashable, tuple[Hashable, Any]] = {}
        """Figures with all that they depend on."""

    def judge(self, context: RuleContext) -> Sequence[Finding] | NotJudged:
        """Return the findings now, or that it does not judge."""
        rule = self.rule
        found = self._look(context)
        self.episodes = [*self._told(found)]
        reasons = [one.now for one in found if isinstance(one.now, str)]
        if reasons and len(reasons) == len(found):
            return NotJudged(rule.id, reasons[0])
        run = context.run
        causes = [one.words(run) for one in CAUSES[rule.causes](run)]
        now = (one.now for one in found if isinstance(one.now, Finding))
        return [replace(one, evidence=(*one.evidence, *causes)) for one in now]

    def _told(self, found: Sequence[Found]) -> Iterator[Episode]:
        """Yield breaches as findings of the past."""
        for one in found:
            for since, raised, what, cleared, severity in one.breaches:
                worst = self.rule.severity if severity is None else severity
                words = f"{one.title} {what}".lstrip()
                yield Episode(
                    self.rule.id, worst, since, raised, cleared, words, one.key
                )

    def _keep(self, name: Hashable, basis: Hashable, make: Callable[[], Any]) -> Any:
        """Return figures, made anew only where something that they depend on is another."""
        known = self._kept.get(name)
        if known is None or known[0] != basis:
            known = self._kept[name] = basis, make()
        return known[1]

    def _look(self, context: RuleContext) -> Sequence[Found]:
        """Return what is found now and before, in each of its columns."""
        if self._diagnosis is None:
            return look_at_columns(context, self.rule, self._keep)
        for one in self._diagnosis.requires:
            if one not in context.indicators:
                return [Found(f"{LACKS} no {INDICATORS[one].label}")]
        found = self._diagnosis.look(context, self.rule)
        if isinstance(found, InBlocks):
            found = self._in_blocks(context, found)
        if not isinstance(found, Found):
            found = self._remembered(found, context.run.step or 0)
        return [found]

    def _in_blocks(self, context: RuleContext, of: InBlocks) -> Found:
        series = [context.run.series(key) if key else None for key in of.keys.values()]
        count = full_blocks(series[0], of.size, context.end)
        if count < of.needs:
            least = of.needs * of.size + 1
            return Found(f"needs {least} points, has {len(series[0] or ())}")
        revisions = tuple([one and one.revision for one in series])
        known: BlocksJudged = self._keep(
            "blocks",
            (*of.metrics, of.of, revisions, count),
            lambda: judge_blocks(self.rule.name, of, cut(series, of.size, count)),
        )
        judged, now = known.judged, known.reason
        if judged.open is None:
            return Found(now, judged.breaches, self.rule.title)
        facts = judged.facts
        finding = told(
            self.rule,
            facts,
            facts.get("evidence", ()),
            facts.get("case", ""),
            since=facts["since"],
            step=known.last,
            key=facts["key"],
        )
        return Found(finding, judged.breaches, self.rule.title)

    def _remembered(self, found: Finding | str | None, step: int) -> Found:
        """Return what was found with what there is at a step, by its own step if it has one."""
        breaches = [*self._past]
        held = open_breach(breaches)
        if isinstance(found, Finding) and found.certain:
            if held is None:
                since = step if found.since_step is None else found.since_step
                raised = since if found.step is None else found.step
                new = Breach(since, raised, found.message)
                if breaches and new.raised <= (breaches[-1].cleared or 0):
                    new = breaches.pop()._replace(cleared=None)
                breaches.append(new)
        elif held is not None:
            breaches[-1] = held._replace(cleared=step)
        self._past = breaches[-KEPT_BREACHES:]
        return Found(found, self._past)
