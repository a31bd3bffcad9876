"""Tells what happens to runs in lines that a program, or a model, supervises them by: few, and
short whatever a log wrote.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING

from verl_tui.guard.following import (
    ABSENT,
    Bests,
    EventLine,
    EventLines,
    RunFollower,
    event,
    is_gone,
    is_over,
)
from verl_tui.health.finding import Finding, Severity
from verl_tui.health.next_step import next_step
from verl_tui.runs.views.checkpoints import BestBy, best
from verl_tui.runs.views.state import State, state
from verl_tui.secrets import shown

if TYPE_CHECKING:
    from verl_tui.monitor import Monitor
    from verl_tui.runs.combined import RestartMark
    from verl_tui.runs.run import Run

VERSION = 1
"""Version of the events: grows when a field is removed or changes its meaning."""
LONGEST = 4000
"""Bytes of a line: 2,000 tokens at two bytes a token, which is on the safe side: JSON in English
has three to four, escaped signs two.
"""
_EVIDENCE = 8
"""Most pieces of evidence that are told."""
_GONE = {
    "state": State.UNKNOWN.value,
    "next": "its files were deleted or moved away: watch where they are now, if it goes on",
}


@dataclass
class _Known:
    """What was told of a run: step and restarts as of the last look; its findings by rule and
    metric, None where one is over; at how many looks in a row its files were missing.
    """

    step: int | None
    restarts: set[RestartMark]
    findings: dict[tuple[str, str | None], Finding | None] = field(default_factory=dict)
    missing: int = 0


class Events(RunFollower):
    """Knows what was told of each run."""

    def __init__(self, monitor: Monitor) -> None:
        """Begin to watch what the monitor reads."""
        super().__init__(monitor)
        self._known: dict[str, _Known] = {}
        self._bests = Bests(apart=60.0)
        self.critical: set[str] = set()
        """The runs that have ended with a critical finding."""

    def look(self, run: Run, now: float) -> EventLines:
        """Yield what has happened to a run since the last look."""
        before, current = self._states.get(run.name), state(run, now)
        self._states[run.name] = current
        if before is None:
            self._known[run.name] = _Known(run.step, set(run.restarts))
            yield self._told("start", run, now, total_steps=run.total_steps)
        known = self._known[run.name]
        yield from self._restarts(run, known, now)
        if before and before is not current:
            yield self._told("state", run, now, before=before.value)
        yield from self._findings(run, known, now)
        yield from self._end(run, known, now)

    def _end(self, run: Run, known: _Known, now: float) -> EventLines:
        """Yield a new best, and the end of a run."""
        known.missing = known.missing + 1 if is_gone(run) else 0
        gone = known.missing > ABSENT
        over = gone or is_over(run, now)
        yield from self._best(run, now, over=over)
        if over and run.name not in self._over:
            yield self._told("end", run, now, **_GONE if gone else {})
        is_bad = over and Severity.CRITICAL is self.monitor.verdicts[run.name].severity
        for names, holds in ((self._over, over), (self.critical, is_bad)):
            (names.add if holds else names.discard)(run.name)

    def _restarts(self, run: Run, known: _Known, now: float) -> EventLines:
        marks = set(run.restarts)
        for mark in sorted(marks - known.restarts):
            steps = {"from_step": known.step, "to_step": mark.step}
            yield self._told("restart", run, now, **steps, reason=mark.reason)
        known.step, known.restarts = run.step, marks

    def _findings(self, run: Run, known: _Known, now: float) -> EventLines:
        """Yield findings that are over, and those that are new, or of another weight or cause."""
        found = self.monitor.verdicts[run.name].findings[::-1]
        present = {(one.id, one.key): one for one in found}  # the worst of each
        for name, told in known.findings.items():
            if told and name not in present:
                known.findings[name] = None
                yield self._told("cleared", run, now, **_named(told))
        for name, one in reversed(present.items()):
            repeated, told = name in known.findings, known.findings.get(name)
            known.findings[name] = one
            if told is None or _weight(told) != _weight(one):
                yield self._told(
                    "finding", run, now, **_named(one), message=one.message,
                    evidence=list(one.evidence[:_EVIDENCE]), follows=one.consequence_of,
                    repeated=repeated,
                )  # fmt: skip

    def _best(self, run: Run, now: float, *, over: bool) -> EventLines:
        """Yield a new best, by validation where there is one."""
        by = "validation" if "validation" in run.indicators else "reward"
        new = self._bests.new(run, BestBy(by), now, at_once=over)
        if new is not None and not new[1]:
            top = new[0]
            saved = top.checkpoint and top.checkpoint.path
            facts = {"value": top.value, "best_step": top.step, "checkpoint": saved}
            yield self._told("best", run, now, metric=top.metric, key=top.key, **facts)

    def _told(self, kind: str, run: Run, now: float, **more: object) -> EventLine:
        current = self._states[run.name]
        first = next(iter(self.monitor.verdicts[run.name].primary), None)
        line = event(kind, now, run, state=current.value, step=run.step)
        return {**line, "next": next_step(run, first, current, best(run)), **more}


_weight = attrgetter("severity", "consequence_of")


def _named(one: Finding) -> EventLine:
    since = {"severity": one.severity.word, "since_step": one.since_step}
    return {"finding": one.id, "key": one.key, **since}


def bounded(line: EventLine) -> EventLine:
    """Return an event whose texts are safe, without keys and passwords, and cut where all of them
    together would be too long.
    """
    line = {"version": VERSION, **line}
    for most in (800, 400, 200, 100, 50, 25, 12):
        line = {name: _cut(value, most) for name, value in line.items()}
        if len(json.dumps(line)) < LONGEST:
            break
    return line


def _cut(value: object, most: int) -> object:
    if isinstance(value, list):
        return [_cut(one, most) for one in value]
    if isinstance(value, str):
        return shown(value, most)
    return value
