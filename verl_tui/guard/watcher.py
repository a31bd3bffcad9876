"""Follows runs without a screen and runs a command, once a run, when a circuit breaker trips."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from verl_tui.guard.bests import BestKeeper, begun, done, event, start, variables
from verl_tui.guard.following import OVER, RunFollower, is_over
from verl_tui.health.finding import Finding, Severity
from verl_tui.runs.views.state import State, state

if TYPE_CHECKING:
    from collections.abc import Iterator

    from verl_tui.guard.bests import EventLine, Process, Start
    from verl_tui.monitor import Monitor
    from verl_tui.runs.run import Run
    from verl_tui.runs.views.checkpoints import BestBy

BREAKERS = ("circuit-breaker-kl", "circuit-breaker-reward")
"""Findings that trip by default."""
QUIET, TRIPPED = 0, 2
"""Exit codes: nothing tripped; something did, `critical` as `check` has it."""
_FACTS = ("severity", "step", "since_step", "message", "evidence", "advice")
"""What is told of a finding beside its id."""
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


class Guard(RunFollower):
    """Knows the runs, what has tripped, and which command was run for which run."""

    def __init__(self, monitor: Monitor, orders: Orders, start: Start = start) -> None:
        """Begin to watch.

        Args:
            monitor: Takes what is read.
            orders: What to do, and when.
            start: Starts a command with additional environment variables.
        """
        super().__init__(monitor)
        self.orders = orders
        self.tripped = False
        self._start = None if orders.dry_run else start
        self._reported: set[tuple[str, str, str | None, int | None]] = set()
        self._acted: set[str] = set()
        self._running: dict[str, tuple[Run, Process]] = {}
        self._bests = None
        if orders.best is not None:
            self._bests = BestKeeper(orders.best, orders.command, self._start)

    @property
    def done(self) -> bool:
        """True if every run has ended or was stopped, and no command is under way."""
        busy = self._running or (self._bests is not None and self._bests.busy)
        return super().done and not busy

    def tick(self, now: float) -> Iterator[EventLine]:
        """Judge, act, and yield what has happened.

        Args:
            now: Seconds since the epoch.
        """
        yield from super().tick(now)
        yield from self._commands(now)
        if self._bests is not None:
            yield from self._bests.work(now)

    def look(self, run: Run, now: float) -> Iterator[EventLine]:
        """Act on one run."""
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
        if self._bests is not None:
            yield from self._bests.look(run, now)

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
        return finding.id not in _MAY_PASS or current in OVER or is_critical

    def _note_end(self, run: Run, current: State, now: float) -> Iterator[EventLine]:
        over = is_over(run, now)
        if over and run.name not in self._over and run.name not in self._running:
            self._over.add(run.name)
            yield event("ended", now, run, state=current.value, step=run.step)
        elif not over and run.name not in self._acted:
            self._over.discard(run.name)  # a resumed run is watched again

    def _trip(
        self, run: Run, finding: Finding, current: State, now: float
    ) -> Iterator[EventLine]:
        self.tripped = True
        ended = current in OVER
        told = {name: finding.as_data()[name] for name in ("id", *_FACTS)}
        yield event("tripped", now, run, **told, ended=ended)
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
            self._running[run.name] = run, process
        yield line

    def _commands(self, now: float) -> Iterator[EventLine]:
        for run, code in done(self._running):
            yield event("command-ended", now, run, code=code)
            if code == 0 and run.name not in self._over:
                self._over.add(run.name)
                yield event("ended", now, run, state="stopped", step=run.step)


def finding_facts(run: Run, finding: Finding, current: State) -> dict[str, str]:
    """Return the facts on a finding for a command, as environment variables."""
    facts = {name.upper(): finding.as_data()[name] for name in _FACTS}
    facts |= {"FINDING": finding.id, "KEY": finding.key, "STATE": current.value}
    return variables(run, facts | {"EVIDENCE": "\n".join(finding.evidence)})
