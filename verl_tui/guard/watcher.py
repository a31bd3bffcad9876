"""Follows runs without a screen and runs a command: once a run when a circuit breaker trips, or at
each new best, as a trainer that saves its best checkpoint would.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from verl_tui.guard.events import (
    OVER,
    Bests,
    EventLine,
    EventLines,
    RunFollower,
    is_over,
)
from verl_tui.health.finding import Finding, Severity
from verl_tui.runs.run_id import run_id
from verl_tui.runs.views.state import State, state

if TYPE_CHECKING:
    from verl_tui.monitor import Monitor
    from verl_tui.runs.run import Run
    from verl_tui.runs.views.checkpoints import Best, BestBy

BREAKERS = ("circuit-breaker-kl", "circuit-breaker-reward")
"""Findings that trip by default."""
QUIET, TRIPPED = 0, 2
"""Exit codes: nothing tripped; something did, `critical` as `check` has it."""
_FACTS = ("severity", "step", "since_step", "message", "evidence", "advice")
"""What is told of a finding beside its id."""
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
        self._reported: set[tuple[str, str, str | None, int | None]] = set()
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

    def look(self, run: Run) -> EventLines:
        """Act on one run."""
        current = state(run, self.now)
        if run.name not in self._states:
            yield self.event("watching", run, paths=list(run.paths))
        if self._states.get(run.name) is not current:
            self._states[run.name] = current
            yield self.event("state", run, state=current.value, step=run.step)
        for finding in self.monitor.verdicts[run.name].findings:
            name = (run.name, finding.id, finding.key, finding.begun)
            if name not in self._reported and self._trips(finding, current):
                self._reported.add(name)
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
        if new is None:
            return
        found, first = new
        facts = _best_facts(found)
        told = {
            name: getattr(found, name) for name in ("metric", "key", "step", "value")
        }
        yield self.event("best", run, **told, path=facts["PATH"], before=first)
        if self.orders.command and not first:
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
                why = f"{argv[0]}: {(error.strerror or '').lower()}"
                return self.event("problem", run, message=why)
            self._running[run.name] = run, process
            pid = process.pid
        dry = self.orders.dry_run
        return self.event("command", run, argv=argv, pid=pid, dry_run=dry)


def _best_facts(found: Best) -> dict[str, object]:
    """Return the facts on a new best for a command."""
    exact, nearest = found.checkpoint, found.nearest
    return {
        "METRIC": found.metric,
        "KEY": found.key,
        "STEP": found.step,
        "VALUE": repr(found.value),
        "PATH": exact and exact.path,
        "NEAREST_STEP": nearest and nearest.step,
        "NEAREST_PATH": nearest and nearest.path,
    }
