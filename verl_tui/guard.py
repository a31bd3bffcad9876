"""Follows runs without a screen: for programs that supervise them by lines of what happens, few
and short whatever a log wrote; and for the guard, which runs a command, once a run when a circuit
breaker trips, or at each new best, as a trainer that saves its best checkpoint would.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from verl_tui.failures import note_failure
from verl_tui.given_files import NothingError, is_there, why
from verl_tui.health.finding import Finding, Severity
from verl_tui.health.next_step import next_step
from verl_tui.plain_data import mapped
from verl_tui.reading import refreshes
from verl_tui.records import CLOSED
from verl_tui.runs.run_id import run_id
from verl_tui.runs.views.checkpoints import Best, BestBy, best
from verl_tui.runs.views.signs_of_life import unattended
from verl_tui.runs.views.state import State, overdue, state, waited
from verl_tui.secrets import shown

if TYPE_CHECKING:
    from verl_tui.monitor import Monitor
    from verl_tui.runs.combined import RestartMark
    from verl_tui.runs.run import Run

ABSENT = 10
"""Ticks in a row without its log after which a run is gone: one that is rotated is away shortly."""
_SETTLED = 5.0
"""Seconds without a write from which an end is one: heuristic."""
_FAILED = {"state": State.UNKNOWN.value, "step": None, "next": "look at it yourself"}
OVER = frozenset({State.FINISHED, State.CRASHED, State.ENDED})
EventLine = dict[str, Any]
"""One line of output: `event` is its kind, `time` its time, `run` and `run_id` whose it is."""
EventLines: TypeAlias = "Iterator[EventLine]"
"""What happens, as it comes."""


class Bests:
    """Knows the best of each run so far."""

    def __init__(self, apart: float = 0.0) -> None:
        """Begin to watch; two bests of a run are reported no less than so many seconds apart."""
        self._apart = apart
        self._best: dict[tuple[str, BestBy], Best | None] = {}
        self._reported: dict[str, float] = {}

    def new(
        self, run: Run, by: BestBy, now: float, *, at_once: bool = False
    ) -> tuple[Best, bool] | None:
        """Return a new best of a run, and whether it was there at first."""
        name = run.name, by
        soon = now - self._reported.get(run.name, -math.inf) < self._apart
        if soon and not at_once:
            return None
        found = best(run, by.metric, lowest=by.lowest)
        first = name not in self._best
        known = self._best.setdefault(name, found)
        if not found or not (first or _is_better(found, known)):
            return None
        self._best[name] = found
        if not first:
            self._reported[run.name] = now
        return found, first


def _is_better(found: Best, known: Best | None) -> bool:
    """Return whether a best is a new and better one; a restarted run may lose its earlier best."""
    if not known:
        return True
    higher = found.value > known.value
    alike = found.value == known.value or found.step == known.step
    return not alike and higher is not found.lowest


def is_over(run: Run, now: float) -> bool:
    """Return whether a run has ended: a log without a writer on this host may be a copy that goes
    on with its next piece, and the last lines of a crash may say what they are about. Of standard
    input nothing more comes.
    """
    may_go_on = unattended(run) and not overdue(run, waited(run, now) or 0.0)
    is_written = 0 <= now - (run.modified or 0.0) < _SETTLED
    is_written &= CLOSED not in [one.writer for one in run.statuses]
    return state(run, now) in OVER and not may_go_on and not is_written


def is_gone(run: Run) -> bool:
    """Return whether all logs of a run are missing now."""
    files = [one for one in run.statuses if one.path.startswith("/")]
    logs = [one for one in files if one.records or one.problem]
    return bool(logs) and all(one.problem and not is_there(one.path) for one in logs)


class RunFollower:
    """Observes all runs; an error of ours is reported, once, and costs no other run."""

    def __init__(self, monitor: Monitor) -> None:
        """Begin to watch what the monitor reads."""
        self.monitor = monitor
        self.now = 0.0
        """The time of the present tick, in seconds since the epoch."""
        self._states: dict[str, State] = {}
        self._over: set[str] = set()
        """The runs that have ended or were stopped."""
        self._failures: dict[str, str] = {}
        """Why a run could not be observed when that was last tried."""

    @property
    def done(self) -> bool:
        """True if every run has ended or was stopped; what is no training is not waited for."""
        over = self._over | {*self.unreadable}
        return bool(self._over) and over >= self.monitor.runs.keys()

    @property
    def unreadable(self) -> list[str]:
        """The runs in whose files there is no training."""
        return [n for n, one in self._states.items() if one is State.NO_TRAINING]

    def tick(self, now: float) -> EventLines:
        """Judge, act, and yield what has happened.

        Args:
            now: Seconds since the epoch.
        """
        self.now = now
        self.monitor.judge(now)
        for run in list(self.monitor.runs.values()):
            try:
                yield from self.observe(run)
            except Exception as error:  # noqa: BLE001, PERF203 - a net at the border
                said = (
                    f"cannot be guarded: {note_failure(f'guarding {run.name}', error)}"
                )
                if self._failures.get(run.name) != said:
                    self._failures[run.name] = said
                    yield self.event("unguarded", run, message=said, **_FAILED)

    def observe(self, run: Run) -> EventLines:
        """Act on one run, and yield what has happened to it."""
        raise NotImplementedError

    def event(self, kind: str, run: Run, **more: object) -> EventLine:
        """Return one line of output."""
        at = datetime.fromtimestamp(self.now, timezone.utc)
        return {
            "time": at.isoformat(timespec="milliseconds"),
            "event": kind,
            "run": run.name,
            "run_id": run_id(run),
            **more,
        }


def follow(
    specs: Sequence[str],
    follower: RunFollower,
    stop: Callable[[], object],
    say: Callable[[str], object],
) -> Iterator[tuple[float, EventLines]]:
    """Yield each tick until every run has ended, or it is stopped: its time, and what has happened,
    which is found out as it is taken.

    Args:
        specs: Paths, directories and globs; runs that appear later are watched, too.
        follower: Observes the runs.
        stop: Says whether to end.
        say: Takes a sentence, where there is no training.
    """
    monitor, say = follower.monitor, cache(say)
    with closing(refreshes(specs, monitor, clock=time.time, stop=stop)) as following:
        for _ in following:
            now = time.time()
            yield now, follower.tick(now)
            if follower.done:
                known = (one for run in monitor.runs.values() for one in run.statuses)
                if all(one.writer == CLOSED and not one.records for one in known):
                    raise NothingError("nothing readable in standard input")
                break
            if len(none := follower.unreadable) == len(monitor.runs):
                say(f"nothing readable so far in {', '.join(none)}; it is waited for")


# -- what happens, for programs --------------------------------------------------------------------


VERSION = 1
"""Version of the events: grows when a field is removed or changes its meaning."""
LONGEST = 4000
"""Bytes of a line: 2,000 tokens at two bytes a token, which is on the safe side: JSON in English
has three to four, escaped signs two.
"""
_EVIDENCE = 8
"""Most pieces of evidence that an event states."""
_GONE = {
    "state": State.UNKNOWN.value,
    "next": "its files were deleted or moved away: watch where they are now, if it goes on",
}


@dataclass
class _Known:
    """What was reported of a run: step and restarts as of the last tick; its findings by rule and
    metric, None where one is over; for how many ticks in a row its files were missing.
    """

    step: int | None
    restarts: set[RestartMark]
    findings: dict[tuple[str, str | None], Finding | None] = field(default_factory=dict)
    missing: int = 0


class Events(RunFollower):
    """Knows what was reported of each run."""

    def __init__(self, monitor: Monitor) -> None:
        """Begin to watch what the monitor reads."""
        super().__init__(monitor)
        self._known: dict[str, _Known] = {}
        self._bests = Bests(apart=60.0)
        self.critical: set[str] = set()
        """The runs that have ended with a critical finding."""

    def observe(self, run: Run) -> EventLines:
        """Yield what has happened to a run since the last tick."""
        before, current = self._states.get(run.name), state(run, self.now)
        self._states[run.name] = current
        if not before:
            self._known[run.name] = _Known(run.step, set(run.restarts))
            yield self._line("start", run, total_steps=run.total_steps)
        known = self._known[run.name]
        yield from self._restarts(run, known)
        if before and before is not current:
            yield self._line("state", run, before=before.value)
        yield from self._findings(run, known)
        yield from self._end(run, known)

    def _end(self, run: Run, known: _Known) -> EventLines:
        """Yield a new best, and the end of a run."""
        known.missing = known.missing + 1 if is_gone(run) else 0
        gone = known.missing > ABSENT
        over = gone or is_over(run, self.now)
        yield from self._best(run, over=over)
        if over and run.name not in self._over:
            yield self._line("end", run, **_GONE if gone else {})
        is_bad = over and Severity.CRITICAL is self.monitor.verdicts[run.name].severity
        for names, holds in ((self._over, over), (self.critical, is_bad)):
            (names.add if holds else names.discard)(run.name)

    def _restarts(self, run: Run, known: _Known) -> EventLines:
        marks = set(run.restarts)
        for mark in sorted(marks - known.restarts):
            yield self._line(
                "restart",
                run,
                from_step=known.step,
                to_step=mark.step,
                reason=mark.reason,
            )
        known.step, known.restarts = run.step, marks

    def _findings(self, run: Run, known: _Known) -> EventLines:
        """Yield findings that are over, and those that are new, or of another weight or cause."""
        found = self.monitor.verdicts[run.name].findings[::-1]
        present = {(one.id, one.key): one for one in found}  # the worst of each
        for name, before in known.findings.items():
            if before and name not in present:
                known.findings[name] = None
                yield self._line("cleared", run, **_named(before))
        for name, one in reversed(present.items()):
            repeated, before = name in known.findings, known.findings.get(name)
            known.findings[name] = one
            if not before or _weight(before) != _weight(one):
                yield self._line(
                    "finding", run, **_named(one), message=one.message,
                    evidence=list(one.evidence[:_EVIDENCE]), follows=one.consequence_of,
                    repeated=repeated,
                )  # fmt: skip

    def _best(self, run: Run, *, over: bool) -> EventLines:
        """Yield a new best, by validation where there is one."""
        by = "validation" if "validation" in run.indicators else "reward"
        new = self._bests.new(run, BestBy(by), self.now, at_once=over)
        if new and not new[1]:
            top = new[0]
            yield self._line(
                "best",
                run,
                metric=top.metric,
                key=top.key,
                value=top.value,
                best_step=top.step,
                checkpoint=top.checkpoint and top.checkpoint.path,
            )

    def _line(self, kind: str, run: Run, **more: object) -> EventLine:
        current = self._states[run.name]
        first = next(iter(self.monitor.verdicts[run.name].primary), None)
        line = self.event(kind, run, state=current.value, step=run.step)
        return {**line, "next": next_step(run, first, current, best(run)), **more}


_weight = attrgetter("severity", "consequence_of")


def _named(one: Finding) -> EventLine:
    return {
        "finding": one.id,
        "key": one.key,
        "severity": one.severity.word,
        "since_step": one.since_step,
    }


def bounded(line: EventLine) -> EventLine:
    """Return an event whose texts are safe, without keys and passwords, and cut where all of them
    together would be too long.
    """
    line = {"version": VERSION, **line}
    for most in (800, 400, 200, 100, 50, 25, 12):
        line = mapped(line, partial(shown, longest=most))
        if len(json.dumps(line)) < LONGEST:
            break
    return line


# -- the guard -------------------------------------------------------------------------------------


BREAKERS = ("circuit-breaker-kl", "circuit-breaker-reward")
"""Findings that trip by default."""
QUIET, TRIPPED = 0, 2
"""Exit codes: nothing tripped; something did, `critical` as `check` has it."""
_FACTS = ("severity", "step", "since_step", "message", "evidence", "advice")
"""What is told of a finding beside its id."""
_OF_BEST = ("metric", "key", "step", "value")
_MAY_PASS = frozenset({"crash", "hang"})
"""Findings that trip only where they are critical, or the run is over."""
_Facts: TypeAlias = "Mapping[str, object]"
_Process: TypeAlias = "subprocess.Popen[bytes]"


def start(command: Sequence[str], facts: Mapping[str, str]) -> _Process:
    """Start a command with the facts in its environment; its output goes to standard error."""
    # The user's own words are handed on as they are, through no shell.
    return subprocess.Popen(  # noqa: S603 - that is what a guard is for
        list(command),
        env={**os.environ, **facts},
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr.fileno(),
    )


class Orders(NamedTuple):
    """The findings that trip, and the command to run."""

    ids: frozenset[str] = frozenset(BREAKERS)
    """Findings that trip."""
    command: tuple[str, ...] = ()
    """Program and arguments, empty to only report."""
    dry_run: bool = False
    best: BestBy | None = None
    """Run the command at each new best by this metric, and only report findings that trip; None:
    run it when one trips.
    """


class Guard(RunFollower):
    """Knows the runs, what has tripped, and which command was run for which run: one at a time for
    each, then for the newest best.
    """

    def __init__(
        self,
        monitor: Monitor,
        orders: Orders,
        start: Callable[[Sequence[str], Mapping[str, str]], _Process] = start,
    ) -> None:
        """Begin to watch.

        Args:
            monitor: Takes what is read.
            orders: What to do, and when.
            start: Starts a command with additional environment variables.
        """
        super().__init__(monitor)
        self.orders = orders
        self.tripped = False
        self._start = start
        self._bests = Bests()
        self._reported: dict[tuple[str, str, str | None, int | None], bool] = {}
        """What has tripped, and whether the run had ended then."""
        self._acted: set[str] = set()
        """The runs that a finding has started the command for."""
        self._waiting: dict[str, tuple[Run, _Facts]] = {}
        """What is told of a run to the command that starts next for it."""
        self._running: dict[str, tuple[Run, _Process]] = {}

    @property
    def done(self) -> bool:
        """True if every run has ended or was stopped, and no command is under way."""
        return super().done and not self._running and not self._waiting

    def tick(self, now: float) -> EventLines:
        """Judge, act, and yield what has happened.

        Args:
            now: Seconds since the epoch.
        """
        yield from super().tick(now)
        for name, (run, process) in [*self._running.items()]:
            if (code := process.poll()) is None:
                continue
            del self._running[name]
            yield self.event("command-ended", run, code=code)
            if code == 0 and name in self._acted - self._over:
                self._over.add(name)
                yield self.event("ended", run, state="stopped", step=run.step)
        for name in [one for one in self._waiting if one not in self._running]:
            yield self._begun(*self._waiting.pop(name))

    def observe(self, run: Run) -> EventLines:
        """Act on one run."""
        current = state(run, self.now)
        if run.name not in self._states:
            yield self.event("watching", run, paths=list(run.paths))
        if self._states.get(run.name) is not current:
            self._states[run.name] = current
            yield self.event("state", run, state=current.value, step=run.step)
        over = current in OVER
        for finding in self.monitor.verdicts[run.name].findings:
            name = (run.name, finding.id, finding.key, finding.begun)
            # a copy that seemed to have ended may go on with its next piece, and trips again
            if over < self._reported.get(name, 2) and self._trips(finding, current):
                self._reported[name] = over
                yield self._trip(run, finding, current)
        yield from self._note_end(run, current)
        if self.orders.best is not None:
            yield from self._best(run, self.orders.best)

    def _trips(self, finding: Finding, current: State) -> bool:
        # A consequence of another finding trips through that one, where that one trips at all.
        ids = self.orders.ids
        if finding.id not in ids or finding.consequence_of in ids:
            return False
        # An error that may still be caught, a stopped process, a slow start: these are shown on the
        # screen, and stop nothing.
        is_critical = finding.severity is Severity.CRITICAL
        return finding.id not in _MAY_PASS or current in OVER or is_critical

    def _note_end(self, run: Run, current: State) -> EventLines:
        over, busy = (
            is_over(run, self.now),
            {*self._over, *self._waiting, *self._running},
        )
        if over and run.name not in busy:
            self._over.add(run.name)
            yield self.event("ended", run, state=current.value, step=run.step)
        elif not over and run.name not in self._acted:
            self._over.discard(run.name)  # a resumed run is watched again

    def _trip(self, run: Run, finding: Finding, current: State) -> EventLine:
        self.tripped = True
        ended = current in OVER
        told = {name: finding.as_data()[name] for name in _FACTS}
        # A run that has ended needs no stopping: an archived log must not set anything off.
        stops = self.orders.command and self.orders.best is None
        if stops and not ended and run.name not in self._acted:
            self._acted.add(run.name)
            facts = {name.upper(): value for name, value in told.items()}
            facts |= {"FINDING": finding.id, "KEY": finding.key, "STATE": current.value}
            facts["EVIDENCE"] = "\n".join(finding.evidence)
            self._waiting[run.name] = run, facts
        return self.event("tripped", run, id=finding.id, **told, ended=ended)

    def _best(self, run: Run, by: BestBy) -> EventLines:
        """Yield a new best; the first look only reports the best before the guard."""
        new = self._bests.new(run, by, self.now)
        if not new:
            return
        found, first = new
        exact, nearest = found.checkpoint, found.nearest
        told = {name: getattr(found, name) for name in _OF_BEST}
        told["path"] = exact and exact.path
        yield self.event("best", run, **told, before=first)
        if self.orders.command and not first:
            facts = {name.upper(): value for name, value in told.items()}
            facts["VALUE"] = repr(found.value)
            facts["NEAREST_STEP"] = nearest and nearest.step
            facts["NEAREST_PATH"] = nearest and nearest.path
            self._waiting[run.name] = run, facts

    def _begun(self, run: Run, facts: _Facts) -> EventLine:
        """Start the command; return the line that says so, or why it cannot be started."""
        argv, pid = list(self.orders.command), None
        named = {"RUN": run.name, "RUN_ID": run_id(run)}
        named["PATHS"] = os.pathsep.join(run.paths)
        texts = {
            f"VERL_TUI_{name}": "" if fact is None else str(fact).replace("\0", "")
            for name, fact in {**named, **facts}.items()
        }
        if not self.orders.dry_run:
            try:
                process = self._start(argv, texts)
            except OSError as error:
                return self.event("problem", run, message=f"{argv[0]}: {why(error)}")
            self._running[run.name] = run, process
            pid = process.pid
        dry = self.orders.dry_run
        return self.event("command", run, argv=argv, pid=pid, dry_run=dry)
