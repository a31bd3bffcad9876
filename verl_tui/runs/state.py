"""State, pace and expected end of a run, as pure functions of the run and the time."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from verl_tui.records import EventKind
from verl_tui.runs.pace import ahead, expected, pace

if TYPE_CHECKING:
    from verl_tui.runs.run import Run

_ENDED_AFTER = 3600.0
_ENDED_PACES = 20
"""An unfinished log is called ended after an hour or twenty paces, whichever is longer (indicator guide, part 3)."""
_STALL_FLOOR = 120.0
_STALL_PACES = 5
"""A run is stalled after five times the usual gap of the step that is due, but never before two minutes: heuristic."""
_STALL_LONGEST = 1.5
"""Nor before half as long again as the longest step of its kind took: heuristic."""
_STALL_UNKNOWN = 900.0
"""Without a known pace, a quarter of an hour of silence counts as a stall: heuristic, longer than engines take to
start and compile."""
_QUIET_CRASH = 60.0
"""A traceback alone may be harmless; with this much silence after it the run is called crashed."""


class State(Enum):
    """Public states of a run (indicator guide, part 5)."""

    WAITING = "waiting"
    RUNNING = "running"
    STALLED = "stalled"
    FINISHED = "finished"
    CRASHED = "crashed"
    ENDED = "ended?"
    UNKNOWN = "unknown"


def remaining(run: Run, now: float) -> float | None:
    """Return the seconds until the last step, reckoned from the newest record on; None where it cannot be told.

    Only a run that is going has an end to wait for.
    """
    coming = ahead(run)
    return coming.seconds if coming is not None and state(run, now) is State.RUNNING else None


def silence(run: Run, now: float) -> float | None:
    """Return the seconds since the newest record, None where no record has a time."""
    return None if run.last_record is None else max(0.0, now - run.last_record)


def last_write(run: Run) -> float | None:
    """Return when any of the run's files last changed, in seconds since the epoch."""
    return max((s.status.modified for s in run.sources.values() if s.status.modified is not None), default=None)


def state(run: Run, now: float) -> State:
    """Return the state of a run.

    Args:
        run: The run.
        now: Seconds since the epoch.
    """
    outcome = run.outcome
    step, total = run.step, run.total_steps
    quiet = silence(run, now)
    written = last_write(run)
    idle = max(0.0, now - written) if written is not None else quiet
    if outcome is not None and outcome.kind in (EventKind.FINISHED, EventKind.EXITED):
        return State.FINISHED
    if outcome is not None and outcome.kind is EventKind.FATAL:
        return State.CRASHED
    if step is not None and total is not None and step >= total > 0:
        return State.FINISHED
    if outcome is not None and idle is not None and idle > _QUIET_CRASH:
        return State.CRASHED
    if step is None:
        return State.ENDED if idle is not None and idle > _ENDED_AFTER else State.WAITING
    if quiet is None:
        return State.UNKNOWN
    return _by_silence(run, quiet)


def _by_silence(run: Run, quiet: float) -> State:
    usual = pace(run)
    if quiet > max(_ENDED_AFTER, _ENDED_PACES * (usual.seconds if usual else 0.0)):
        return State.ENDED
    return State.STALLED if quiet > patience(run) else State.RUNNING


def patience(run: Run) -> float:
    """Return after how many seconds without a step a run counts as stalled, by the kind of the step that is due."""
    due = expected(run)
    if due is None:
        return _STALL_UNKNOWN
    return max(_STALL_FLOOR, _STALL_PACES * due.seconds, _STALL_LONGEST * due.longest)
