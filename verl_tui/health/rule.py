"""A rule's life on one run: its findings now in words, and what it ever found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from verl_tui.health.columns import Columns
from verl_tui.health.conditions.condition import KEPT_BREACHES, Breach, open_breach
from verl_tui.health.conditions.windows import blocks, full_blocks, rolling
from verl_tui.health.diagnoses import DIAGNOSES
from verl_tui.health.diagnoses.diagnosis import (
    FindingHistory,
    InBlocks,
    Told,
    words_of,
)
from verl_tui.health.finding import LACKS, Episode, NotJudged, filled
from verl_tui.health.limits import CAUSES
from verl_tui.indicators import INDICATORS

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from verl_tui.health.conditions.windows import Blocks
    from verl_tui.health.diagnoses.diagnosis import Diagnosis, Shown
    from verl_tui.health.finding import Finding, Severity
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
        self._columns = Columns(rule)
        self._present = FindingHistory(None, (), sentences=True)
        """What was found each time that it looked, if it looks at the present only."""
        self._basis: Hashable = None
        self._input: InBlocks | str | None = None
        """What it looks at in blocks, or what the log lacks, for these metrics and settings."""
        self._remarks: dict[int, tuple[Severity, str]] = {}
        """The remark of each breach, for these, by the step that raised it."""
        self._in_blocks: tuple[Hashable, FindingHistory] = None, self._present
        """All that findings in blocks depend on, and these."""

    def judge(self, context: RuleContext) -> Sequence[Finding] | NotJudged:
        """Return the findings now, or that it does not judge."""
        run = context.run
        basis = run.keys_revision, len(run.settings), len(run.restarts)
        if basis != self._basis:
            self._basis, self._input, self._remarks = basis, None, {}
        found = self._look(context)
        self.episodes = [one for of in found for one in self._told(context, of)]
        reasons = [one.now for one in found if isinstance(one.now, str)]
        if reasons and len(reasons) == len(found):
            return NotJudged(self.rule.id, reasons[0])
        return [*self._findings(context, found)]

    def _look(self, context: RuleContext) -> Sequence[FindingHistory]:
        """Return what is found now and before, in each of its columns."""
        if self._diagnosis is None:
            columns = self._columns.look(context)
            known = isinstance(columns, str)
            return [FindingHistory(columns, ())] if known else columns  # type: ignore
        found: Told | FindingHistory | InBlocks | str | None = self._input
        if found is None:
            found = self._looked(context, self._diagnosis)
        if isinstance(found, InBlocks):
            found = self._found_in_blocks(context, found)
        if not isinstance(found, FindingHistory):
            found = self._present = self._remembered(found, context.run.step or 0)
        return [found]

    def _looked(
        self, context: RuleContext, diagnosis: Diagnosis
    ) -> Told | FindingHistory | InBlocks | str | None:
        """Return what a diagnosis says; that is kept where nothing but another metric or setting
        can change it.
        """
        for one in diagnosis.requires:
            if one not in context.indicators:
                self._input = f"{LACKS} no {INDICATORS[one].label}"
                return self._input
        found = diagnosis.look(context, self.rule)
        lacks = isinstance(found, str) and found.startswith(LACKS)
        if not self.alive and (lacks or (isinstance(found, InBlocks) and found.lasts)):
            self._input = found  # type: ignore[assignment]
        return found

    def _found_in_blocks(self, context: RuleContext, of: InBlocks) -> FindingHistory:
        series = [context.run.series(key) if key else None for key in of.keys]
        count = full_blocks(series[0], of.size, context.end)
        if count < of.needs:
            points = (
                f"needs {of.needs * of.size + 1} points, has {len(series[0] or ())}"
            )
            return FindingHistory(points, ())
        revisions = tuple([one and one.revision for one in series])
        basis = of.keys, of.of, revisions, count
        if basis != self._in_blocks[0]:
            whole = blocks(series, of.size, count)
            self._in_blocks = basis, _in_blocks(self.rule, whole, of)
        return self._in_blocks[1]

    def _told(self, context: RuleContext, found: FindingHistory) -> Iterator[Episode]:
        """Yield breaches as findings of the past, each with what was known when it was raised:
        later points do not change the history.
        """
        rule, known = self.rule, self._remarks
        for since, raised, what, cleared in found.breaches:
            severity, words = rule.severity, ""
            if found.remark is not None:
                if raised not in known:
                    known[raised] = found.remark(context.at(raised))
                severity, words = known[raised]
            message = (what if found.sentences else f"{rule.title} {what}") + words
            yield Episode(rule.id, severity, since, raised, cleared, message, found.key)

    def _remembered(self, found: Told | str | None, step: int) -> FindingHistory:
        """Return what was found with what there is at a step, by its own step if it has one."""
        breaches = [*self._present.breaches]
        held = open_breach(breaches)
        if isinstance(found, Told) and found.certain:
            if held is None:
                since = step if found.since is None else found.since
                raised = since if found.step is None else found.step
                new = Breach(since, raised, self._message(found))
                if breaches and new.raised <= (breaches[-1].cleared or 0):
                    new = breaches.pop()._replace(cleared=None)
                breaches.append(new)
        elif held is not None:
            breaches[-1] = held._replace(cleared=step)
        return self._present._replace(now=found, breaches=breaches[-KEPT_BREACHES:])

    def _message(self, told: Told) -> str:
        words = words_of(self.rule.name, told.case)
        return told.message or filled(words["message"], _known(told))

    def _findings(
        self, context: RuleContext, found: Sequence[FindingHistory]
    ) -> Iterator[Finding]:
        """Yield what is found now in words."""
        for one in found:
            if isinstance(one.now, Told):
                yield self._finding(context, one.now)

    def _finding(self, context: RuleContext, told: Told) -> Finding:
        """Return what is told in words."""
        words = words_of(self.rule.name, told.case)
        own = [filled(one, _known(told)) for one in words.get("evidence", ())]
        return self.rule.finding(
            self._message(told),
            [*own, *told.evidence, *CAUSES[self.rule.causes](context.run)],
            since=told.since,
            step=told.step,
            key=told.key,
            severity=told.severity,
            advice=words.get("advice") if told.advice is None else told.advice,
            leads=told.leads,
        )


def _known(told: Told) -> Mapping[str, object]:
    """Return all that its words may name."""
    return {"since": told.since, "key": told.key, **told.facts}


def _in_blocks(rule: Rule, whole: Blocks, of: InBlocks) -> FindingHistory:
    """Return what a diagnosis finds in blocks."""
    shown = of.find(whole, of)
    breaches: list[Breach] = []
    over: int | None = None
    for place, lasts, end in _spells(shown, of):
        since = shown.since(place)
        told = _at_block(whole, of, shown.told(place, since), place)
        what = filled(words_of(rule.name, told.case)["what"], _known(told))
        breach = Breach(since, int(whole.settled[place]), what)
        if over is not None and place - over <= of.patience:
            breach = breaches.pop()  # it comes back
        if end is None:
            at = place + int(np.flatnonzero(lasts[place:]).max(initial=0))
            now = _at_block(whole, of, shown.told(at, breach.since), at)
            now = now._replace(since=breach.since, step=int(whole.last[-1]))
            return FindingHistory(now, [*breaches, breach._replace(cleared=None)])
        breaches.append(breach._replace(cleared=int(whole.settled[end])))
        over = end
    return FindingHistory(shown.reason, breaches[-KEPT_BREACHES:])


def _at_block(whole: Blocks, of: InBlocks, told: Told, at: int) -> Told:
    """Return what is told with what all that judge blocks know at one of them."""
    level = float(whole.levels[0][at])
    own = {"size": of.size, "last": int(whole.last[at]), "lead": of.keys[0]}
    return told._replace(facts={**own, "level": level, **told.facts})


def _spells(shown: Shown, of: InBlocks) -> Iterator[tuple[int, np.ndarray, int | None]]:
    """Yield the blocks at which failures begin, with those at which each shows, and the block at
    which it is over; None if it lasts.
    """
    start = of.needs - 1
    for place in np.flatnonzero(shown.begins).tolist():
        if place < start:
            continue
        lasts = shown.lasts(place) if callable(shown.lasts) else shown.lasts
        quiet = ~lasts
        quiet[: place + 1] = False
        ends = np.flatnonzero(rolling(quiet, of.patience) == of.patience)
        end = int(ends[0]) if len(ends) else None
        yield place, lasts, end
        if end is None:
            return
        start = end + 1
