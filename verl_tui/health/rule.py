"""A rule's life on one run: its findings now in words, and what it ever found."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from verl_tui.health.blocks import blocks, settled
from verl_tui.health.columns import Columns
from verl_tui.health.conditions.condition import KEPT_BREACHES, Breach, open_breach
from verl_tui.health.conditions.windows import rolling
from verl_tui.health.diagnoses import DIAGNOSES
from verl_tui.health.diagnoses.diagnosis import (
    FindingHistory,
    InBlocks,
    Told,
    words_of,
)
from verl_tui.health.finding import Episode, Finding, NotJudged, filled
from verl_tui.health.limits import CAUSES
from verl_tui.indicators import INDICATORS

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from verl_tui.health.blocks import Blocks
    from verl_tui.health.diagnoses.diagnosis import Onset, Onsets, Remark
    from verl_tui.health.guide import Rule
    from verl_tui.health.rule_context import RuleContext


class RuleOnRun:
    """One rule, or diagnosis, with what it has found on one run."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self._diagnosis = DIAGNOSES.get(rule.name)
        if rule.condition != "diagnosis":
            self._diagnosis = None
        self.alive = self._diagnosis is not None and self._diagnosis.alive
        """Whether it depends on the clock."""
        self.episodes: Sequence[Episode] = ()
        """All findings so far; they depend on the numbers alone, unless it is alive."""
        self._columns = Columns(rule)
        self._present = FindingHistory(None, (), sentences=True)
        """What was found each time that it looked, if it looks at the present only."""
        self._remarks: tuple[Hashable, dict[int, Remark]] = None, {}
        """All that remarks depend on, and the remark of each breach by the step that raised it."""
        self._looked: _Looked | None = None

    def judge(self, context: RuleContext) -> Sequence[Finding] | NotJudged:
        """Return the findings now, or that it does not judge."""
        found = self._look(context)
        self.episodes = [
            one for history in found for one in self._told(context, history)
        ]
        reasons = [one.now for one in found if isinstance(one.now, str)]
        if reasons and len(reasons) == len(found):
            return NotJudged(self.rule.id, reasons[0])
        told = [one.now for one in found if isinstance(one.now, Told)]
        return [self._finding(context, one) for one in told]

    def _look(self, context: RuleContext) -> Sequence[FindingHistory]:
        """Return what is found now and before, in each of its columns."""
        if self._diagnosis is None:
            columns = self._columns.look(context)
            if not isinstance(columns, str):
                return columns
            return [FindingHistory(columns, ())]
        found = self._lacks(context) or self._diagnosis.look(context, self.rule)
        if isinstance(found, InBlocks):
            self._looked = _looked(context, self.rule, found, self._looked)
            history = self._looked.found
            found = found.then(context, history) if found.then else history
        if not isinstance(found, FindingHistory):
            found = self._present = self._remembered(found, context.run.step or 0)
        return [found]

    def _lacks(self, context: RuleContext) -> str | None:
        """Return which indicator the log lacks, as a reason."""
        needed = self._diagnosis.requires if self._diagnosis else ()
        missing = [id for id in needed if id not in context.indicators]
        return f"the log has no {INDICATORS[missing[0]].label}" if missing else None

    def _told(self, context: RuleContext, found: FindingHistory) -> Iterator[Episode]:
        """Yield breaches as findings of the past, each with what was known when it was raised:
        later points do not change the history.
        """
        rule = self.rule
        run = context.run
        basis = run.keys, len(run.settings), len(run.restarts)
        if basis != self._remarks[0]:
            self._remarks = basis, {}
        known = self._remarks[1]
        for since, raised, what, cleared in found.breaches:
            message = what if found.sentences else f"{rule.title} {what}"
            severity, words = rule.severity, ""
            if found.remark is not None:
                if raised not in known:
                    known[raised] = found.remark(context.at(raised))
                severity, words = known[raised]
            message += words
            yield Episode(rule.id, severity, since, raised, cleared, message, found.key)

    def _remembered(self, found: Told | str | None, step: int) -> FindingHistory:
        """Return what was found with what there is at a step, by its own step if it has one."""
        breaches = [*self._present.breaches]
        held = open_breach(breaches)
        is_told = isinstance(found, Told) and found.certain
        if held is not None and not is_told:
            breaches[-1] = held._replace(cleared=step)
        elif held is None and isinstance(found, Told) and is_told:
            new = Breach(*_when(found, step), self._message(found))
            if breaches and new.raised <= (breaches[-1].cleared or 0):
                new = breaches.pop()._replace(cleared=None)
            breaches.append(new)
        kept = breaches[-KEPT_BREACHES:]
        return self._present._replace(now=found, breaches=kept)

    def _message(self, told: Told) -> str:
        words = words_of(self.rule.name, told.case)
        return told.message or filled(words["message"], _known(told))

    def _finding(self, context: RuleContext, told: Told) -> Finding:
        """Return what is told in words."""
        words = words_of(self.rule.name, told.case)
        own = [filled(one, _known(told)) for one in words.get("evidence", ())]
        found = self.rule.finding(
            self._message(told),
            [*own, *told.evidence, *CAUSES[self.rule.causes](context.run)],
            since=told.since,
            step=told.step,
            key=told.key,
            severity=told.severity,
            advice=words.get("advice") if told.advice is None else told.advice,
        )
        return replace(found, leads=told.leads)


def _when(told: Told, step: int) -> tuple[int, int]:
    """Return since when it holds, and at which step that was found."""
    since = step if told.since is None else told.since
    return since, since if told.step is None else told.step


def _known(told: Told) -> Mapping[str, object]:
    """Return all that its words may name."""
    return {"since": told.since, "key": told.key, **told.facts}


class _Looked(NamedTuple):
    """What a diagnosis found block by block: blocks that it has looked at are not looked at
    again.
    """

    basis: Hashable
    """All that it depends on besides the number of blocks."""
    blocks: int = 0
    """How many blocks there are."""
    following: int = 0
    """The first block to look at: that at which the breach that holds begins, if one does."""
    over: int | None = None
    """The block at which the last breach was over."""
    past: Sequence[Breach] = ()
    """The breaches that are over."""
    found: FindingHistory = FindingHistory(None, ())


def _looked(
    context: RuleContext, rule: Rule, of: InBlocks, known: _Looked | None
) -> _Looked:
    """Return what a diagnosis finds in all full blocks, by what is known of the first of them."""
    series = [context.run.series(key) if key else None for key in of.keys]
    count, revisions = settled(series, of.size, context.end)
    basis = of.keys, of.of, revisions
    if known is None or basis != known.basis or count < known.blocks:
        known = _Looked(basis)
    if count < of.needs:
        has = len(series[0]) if series[0] is not None else 0
        reason = f"needs {of.needs * of.size + 1} points, has {has}"
        return known._replace(found=FindingHistory(reason, ()))
    if count == known.blocks:
        return known
    return _look(rule, blocks(series, of.size, count), of, known)


def _look(rule: Rule, whole: Blocks, of: InBlocks, known: _Looked) -> _Looked:
    """Return what is found with what the new blocks show."""
    signs = of.find(whole, of)
    known = known._replace(blocks=len(whole))
    past, over = known.past, known.over
    for place, sign, end in _spells(signs, of, known.following):
        told = _at_block(whole, of, sign.told(place, sign.since), place)
        what = filled(words_of(rule.name, told.case)["what"], _known(told))
        breach, before = Breach(sign.since, int(whole.settled[place]), what), past
        if over is not None and place - over <= of.patience:
            *before, breach = past  # it comes back
        if end is None:
            shown = place + int(np.flatnonzero(sign.lasts[place:])[-1])
            told = _at_block(whole, of, sign.told(shown, breach.since), shown)
            told = told._replace(since=breach.since, step=int(whole.last[-1]))
            breaches = [*before, breach._replace(cleared=None)]
            found = FindingHistory(told, breaches)
            return known._replace(following=place, over=over, past=past, found=found)
        over = end
        breach = breach._replace(cleared=int(whole.settled[end]))
        past = [*before, breach][-KEPT_BREACHES:]
    found = FindingHistory(signs.reason, past)
    return known._replace(following=len(whole), over=over, past=past, found=found)


def _at_block(whole: Blocks, of: InBlocks, told: Told, at: int) -> Told:
    """Return what is told with what all that judge blocks know at one of them."""
    level = float(whole.levels[0][at])
    own = {"size": of.size, "last": int(whole.last[at]), "lead": of.keys[0]}
    return told._replace(facts={**own, "level": level, **told.facts})


def _spells(
    signs: Onsets, of: InBlocks, start: int
) -> Iterator[tuple[int, Onset, int | None]]:
    """Yield the blocks from a place on at which failures begin, with the block at which each is
    over; None if it lasts.
    """
    start = max(start, of.needs - 1)
    for place in np.flatnonzero(signs.begins).tolist():
        sign = signs.at(place) if place >= start else None
        if sign is None:
            continue
        quiet = ~sign.lasts
        quiet[: place + 1] = False
        ends = np.flatnonzero(rolling(quiet, of.patience) == of.patience)
        end = int(ends[0]) if len(ends) else None
        yield place, sign, end
        if end is None:
            return
        start = end + 1
