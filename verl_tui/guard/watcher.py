"""Follows runs without a screen and runs a command, once a run, when a circuit breaker trips."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from verl_tui import debug_log
from verl_tui.guard.bests import BestKeeper, begun, event, start, variables
from verl_tui.health.finding import Severity
from verl_tui.monitor import Monitor
from verl_tui.reading import refreshes
from verl_tui.runs.run import Run
from verl_tui.runs.run_id import run_id
from verl_tui.runs.views.signs_of_life import unattended
from verl_tui.runs.views.state import State, patience, state, waited
from verl_tui.text import one_line

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator, Sequence

    from verl_tui.config import Config
    from verl_tui.guard.bests import EventLine, Process, Start
    from verl_tui.health.finding import Finding
    from verl_tui.runs.views.checkpoints import BestBy

BREAKERS = ("circuit-breaker-kl", "circuit-breaker-reward")
"""Findings that trip by default."""
QUIET, TRIPPED = 0, 2
"""Exit codes: nothing tripped; something did, `critical` as `check` has it."""
_BETWEEN = 0.5
"""Seconds between two looks; without news they cost next to nothing, and a run may hang without a
word.
"""
_OVER = frozenset({State.FINISHED, State.CRASHED, State.ENDED})
_MAY_PASS = frozenset({"crash", "hang"})
"""Findings that trip only where they are critical, or the run is over."""


@dataclass(frozen=True, slots=True)
class Orders:
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


class Guard:
    """Knows the runs, what has tripped, and which command was run for which run."""

    def __init__(
        self,
        monitor: Monitor,
        orders: Orders,
        start: Start = start,
    ) -> None:
        """Begin to watch.

        Args:
            monitor: Takes what is read.
            orders: What to do, and when.
            start: Starts a command with additional environment variables.
        """
        self.monitor = monitor
        self.orders = orders
        self.tripped = False
        self._start = None if orders.dry_run else start
        self._states: dict[str, State] = {}
        self._reported: set[tuple[str, str, str | None, int | None]] = set()
        self._acted: set[str] = set()
        self._running: dict[str, Process] = {}
        self._over: set[str] = set()
        self._failures: dict[str, str] = {}
        """Why a run could not be guarded when it was last tried."""
        self._bests = None
        if orders.best is not None:
            self._bests = BestKeeper(orders.best, orders.command, self._start)

    @property
    def done(self) -> bool:
        """True if every run has ended or was stopped, and no command is under way."""
        busy = self._running or (self._bests is not None and self._bests.busy)
        return (
            bool(self.monitor.runs)
            and self._over >= self.monitor.runs.keys()
            and not busy
        )

    def tick(self, now: float) -> Iterator[EventLine]:
        """Judge, act, and yield what has happened.

        Args:
            now: Seconds since the epoch.
        """
        self.monitor.judge(now)
        for run in list(self.monitor.runs.values()):
            yield from self._look(run, now)
        yield from self._commands(now)
        if self._bests is not None:
            yield from self._bests.work(now)

    def _look(self, run: Run, now: float) -> Iterator[EventLine]:
        """Act on one run; an error is reported, once, and leaves no other run unguarded."""
        try:
            yield from self._judge_run(run, now)
            if self._bests is not None:
                yield from self._bests.look(run, now)
        except Exception as error:  # noqa: BLE001 - a net at the border
            why = one_line(f"cannot be guarded: {type(error).__name__}: {error}", 200)
            if self._failures.get(run.name) != why:
                self._failures[run.name] = why
                debug_log.note_error(f"guarding {run.name}", error)
                yield event("unguarded", now, run, message=why)

    def _judge_run(self, run: Run, now: float) -> Iterator[EventLine]:
        current = state(run, now)
        if run.name not in self._states:
            yield event("watching", now, run, paths=list(run.paths))
        if self._states.get(run.name) is not current:
            self._states[run.name] = current
            yield event("state", now, run, state=current.value, step=run.step)
        for finding in self.monitor.verdicts[run.name].findings:
            name = (run.name, finding.id, finding.key, finding.begun)
            if name not in self._reported and self._trips(finding, current):
                self._reported.add(name)
                yield from self._trip(run, finding, current, now)
        yield from self._note_end(run, current, now)

    def _trips(self, finding: Finding, current: State) -> bool:
        # A consequence of another finding trips through that one, where that one trips at all.
        if (
            finding.id not in self.orders.ids
            or finding.consequence_of in self.orders.ids
        ):
            return False
        # An error that may still be caught, a stopped process, a slow start: these are shown on the
        # screen, and stop nothing.
        is_critical = finding.severity is Severity.CRITICAL
        return finding.id not in _MAY_PASS or current in _OVER or is_critical

    def _note_end(self, run: Run, current: State, now: float) -> Iterator[EventLine]:
        # A log without a writer on this host may be a copy that goes on with its next piece.
        may_go_on = unattended(run) and (waited(run, now) or 0.0) <= patience(run)
        over = current in _OVER and not may_go_on
        if over and run.name not in self._over and run.name not in self._running:
            self._over.add(run.name)
            yield event("ended", now, run, state=current.value, step=run.step)
        elif not over and run.name not in self._acted:
            self._over.discard(run.name)  # a resumed run is watched again

    def _trip(
        self, run: Run, finding: Finding, current: State, now: float
    ) -> Iterator[EventLine]:
        self.tripped = True
        ended = current in _OVER
        yield event(
            "tripped",
            now,
            run,
            id=finding.id,
            severity=finding.severity.word,
            step=finding.step,
            since_step=finding.since_step,
            message=finding.message,
            evidence=list(finding.evidence),
            advice=finding.advice,
            ended=ended,
        )
        # A run that has ended needs no stopping: an archived log must not set anything off.
        if (
            ended
            or run.name in self._acted
            or not self.orders.command
            or self._bests is not None
        ):
            return
        self._acted.add(run.name)
        facts = finding_facts(run, finding, current)
        process, line = begun(run, now, self.orders.command, facts, self._start)
        if process is not None:
            self._running[run.name] = process
        yield line

    def _commands(self, now: float) -> Iterator[EventLine]:
        for name, process in list(self._running.items()):
            code = process.poll()
            if code is None:
                continue
            del self._running[name]
            run = self.monitor.runs.get(name, Run(name))
            yield event("command-ended", now, run, code=code)
            if code == 0 and name not in self._over:
                self._over.add(name)
                yield event("ended", now, run, state="stopped", step=run.step)


def finding_facts(run: Run, finding: Finding, current: State) -> dict[str, str]:
    """Return the facts on a finding for a command, as environment variables."""
    return variables(
        {
            "RUN": run.name,
            "RUN_ID": run_id(run),
            "PATHS": os.pathsep.join(run.paths),
            "STATE": current.value,
            "FINDING": finding.id,
            "SEVERITY": finding.severity.word,
            "STEP": finding.step,
            "SINCE_STEP": finding.since_step,
            "KEY": finding.key,
            "MESSAGE": finding.message,
            "EVIDENCE": "\n".join(finding.evidence),
            "ADVICE": finding.advice,
        }
    )


def follow(
    specs: Sequence[str],
    config: Config,
    orders: Orders,
    *,
    clock: Callable[[], float],
    write: Callable[[EventLine], None],
    stop: threading.Event,
    looked: Callable[[Monitor, float], None] | None = None,
) -> Guard:
    """Watch until every run has ended, or `stop` is set.

    Args:
        specs: Paths, directories and globs; runs that appear later are watched, too.
        config: The user's configuration.
        orders: What to do, and when.
        clock: Seconds since the epoch.
        write: Takes each event.
        stop: Ends the watching.
        looked: Is called after each look, with the runs as they were judged and the time.
    """
    guard = Guard(Monitor(config), orders)
    following = refreshes(
        specs, guard.monitor, between=_BETWEEN, clock=clock, stop=stop
    )
    with closing(following):
        for _ in following:
            now = clock()
            for event in guard.tick(now):
                write(event)
            if looked is not None:
                looked(guard.monitor, now)
            if guard.done:
                break
    return guard
