"""State, pace and expected end of a run, as pure functions of the run and the time."""

from __future__ import annotations

import math
from enum import Enum
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.records import EventKind

if TYPE_CHECKING:
    from verl_tui.runs.run import Run

_GAPS = 30
"""Recent gaps between steps that make the pace."""
_ENDED_AFTER = 3600.0
_ENDED_PACES = 20
"""An unfinished log is called ended after an hour or twenty paces, whichever is longer (indicator guide, part 3)."""
_STALL_FLOOR = 120.0
_STALL_PACES = 5
"""A run is stalled after five paces without a step, but never before two minutes: heuristic. The first step, a
validation or a checkpoint often take several times the usual gap."""
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


class Pace(NamedTuple):
    """How long a step takes."""

    seconds: float
    """Seconds from one step to the next."""
    origin: str
    """How that is known."""


def pace(run: Run) -> Pace | None:
    """Return the run's usual time from step to step, None where nothing tells."""
    for indicator in ("reward", "policy_loss", "response_length", "entropy"):
        series = run.indicator(indicator)
        if series is None or len(series) < 3:
            continue
        steps, times = series.steps[-_GAPS:], series.times[-_GAPS:]
        gaps = [
            (times[i] - times[i - 1]) / (steps[i] - steps[i - 1])
            for i in range(1, len(steps))
            if times[i] > times[i - 1]
        ]
        if len(gaps) >= 2:
            return Pace(median(gaps), "times of the records")
    series = run.indicator("step_time")
    if series is not None:
        taken = [value for value in series.tail(_GAPS) if math.isfinite(value) and value > 0]
        # The first step compiles and warms up.
        taken = taken[1:] if len(taken) == len(series) and len(taken) > 1 else taken
        if taken:
            return Pace(median(taken), series.key)
    return None


def remaining(run: Run, now: float) -> float | None:
    """Return the seconds until the last step at the present pace, None where it cannot be told.

    Only a run that is going has an end to wait for.
    """
    total, step, usual = run.total_steps, run.step, pace(run)
    if total is None or step is None or usual is None or state(run, now) is not State.RUNNING:
        return None
    return max(0, total - step) * usual.seconds


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
    if outcome is not None and outcome.kind is EventKind.FINISHED:
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
    seconds = usual.seconds if usual else 0.0
    if quiet > max(_ENDED_AFTER, _ENDED_PACES * seconds):
        return State.ENDED
    patience = max(_STALL_FLOOR, _STALL_PACES * seconds) if usual else _STALL_UNKNOWN
    return State.STALLED if quiet > patience else State.RUNNING
