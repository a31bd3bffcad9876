"""State, pace and expected end of a run, as pure functions of the run and the time."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from verl_tui.evaluation import PREFIX
from verl_tui.patterns import pattern
from verl_tui.records import SAMPLES, EventKind, SourceStatus
from verl_tui.runs.cached import cached_by_revision
from verl_tui.runs.combined import starts
from verl_tui.runs.time.forecast import expected_step, pace, remaining_seconds
from verl_tui.runs.views.signs_of_life import (
    began_anew,
    evidence,
    gpus_work,
    last_troubles,
    last_written,
    unattended,
    writer,
)
from verl_tui.words import counted

if TYPE_CHECKING:
    from verl_tui.runs.run import Run

_ENDED_AFTER = 3600.0
_ENDED_PACES = 20
"""An unfinished log is called ended after an hour or twenty paces, whichever is longer (indicator
guide, part 3).
"""
_STALL_FLOOR = 120.0
_STALL_PACES = 5
"""A run is stalled after five times the usual gap of the step that is due, but never before two
minutes: heuristic.
"""
_STALL_LONGEST = 1.5
"""Nor before half as long again as the longest step of its kind took: heuristic."""
_STALL_UNKNOWN = 900.0
"""Without a known pace, a quarter of an hour of silence counts as a stall: heuristic, longer than
engines take to start and compile.
"""
_LATE_FLOOR = 30.0
_LATE_PACES = 2
"""A step is overdue after twice the usual gap, the longest so far, and half a minute: heuristic."""
_FRESH_LOG = 120.0
_DOUBT = 2.0
"""Factor by which patience grows if the log was written to within the last two minutes, or GPUs
work: something is going on.
"""
_OF_EVALUATIONS = frozenset({SAMPLES, "settings", "checkpoints"})
"""Formats of what may lie beside an evaluation."""
_CONSOLE = "console"
"""The format of text that no other format recognises."""
_CLOCKS = 3600.0
"""Seconds by which the clocks of two hosts may differ: what is dated later than that proves nothing
of the present: heuristic.
"""
_CTRL_C = pattern(
    r"KeyboardInterrupt|SIGINT|Received 2 death|got signal: 2\b|\bInterrupt\s*$|\d Interrupt\s"
    r"|(?:code|status)[\s:=]{1,4}(?:-2|130)\b"
)
"""What says that it was SIGINT, by name, number or exit code, of an end that came from outside."""
_QUIET_CRASH = 60.0
"""A traceback alone may be harmless; with this much silence after it the run is called crashed,
until it goes on.
"""


class State(Enum):
    """Public states of a run (indicator guide, part 5)."""

    WAITING = "waiting"
    RUNNING = "running"
    STALLED = "stalled"
    FINISHED = "finished"
    CRASHED = "crashed"
    ENDED = "ended?"
    UNKNOWN = "unknown"
    NO_TRAINING = "no training"
    """Its files have no line of a training."""


def state_words(run: Run, current: Enum | str) -> str:
    """Return a state for people, its value is for programs: `stopped?` where the log has no word of
    its end.

    Args:
        run: The run.
        current: Its state, or the value of that.
    """
    said = getattr(current, "value", current)
    if said != State.ENDED.value:
        return str(said)
    return "stopped" if interrupted(run) else "stopped?"


def remaining(run: Run, now: float) -> float | None:
    """Return the seconds from the newest record to the last step, None where unknown.

    Only a running run has an end to wait for, and only while records come.
    """
    return remaining_seconds(run) if goes_on(run, now) else None


def time_left(run: Run, now: float) -> float | None:
    """Return the seconds from now to the last step, None where unknown."""
    coming = remaining(run, now)
    return None if coming is None else max(0.0, coming - (silence(run, now) or 0.0))


def goes_on(run: Run, now: float) -> bool:
    """Return whether a run makes steps: it is running, without an error, and no step is overdue."""
    if state(run, now) is not State.RUNNING or run.outcome:
        return False
    quiet = waited(run, now) or 0.0
    due = expected_step(run) if quiet > _LATE_FLOOR else None
    return not due or quiet <= max(_LATE_PACES * due.seconds, due.longest)


def silence(run: Run, now: float) -> float | None:
    """Return the seconds since the newest record, None where no record has a time, or one that is
    yet to come.
    """
    if run.last_record is None or ahead(run, now):
        return None
    return max(0.0, now - run.last_record)


def ahead(run: Run, now: float) -> float | None:
    """Return how many seconds from now the newest record is dated, None where clocks explain it."""
    early = (run.last_record or now) - now
    return early if early > _CLOCKS else None


def waited(run: Run, now: float) -> float | None:
    """Return for how many seconds a run could have made a step and has not, None where no record
    has a time: its silence without the time in which it was stopped or its host slept.
    """
    quiet = silence(run, now)
    return None if quiet is None else max(0.0, quiet - run.lost(now))


@cached_by_revision
def state(run: Run, now: float) -> State:
    """Return the state of a run.

    Args:
        run: The run.
        now: Seconds since the epoch.
    """
    said = _stated(run)
    if said:
        return said
    if any(status.to_come for status in run.statuses):
        # of a replay: no silence is one
        return State.WAITING if run.step is None else State.RUNNING
    quiet = max(_idle(run, now) or 0.0, run.quiet_after_end)
    # an error came, and nothing went on after it
    if run.outcome and (quiet > _QUIET_CRASH or _let_go(run)):
        return State.CRASHED
    return _evaluated(run, now) if is_evaluation(run) else _by_life(run, now)


def _stated(run: Run) -> State | None:
    """Return how the run ended according to its own log, None if the log does not say."""
    kind = run.outcome.kind if run.outcome else None
    if kind is EventKind.FATAL:
        return State.CRASHED
    if kind is EventKind.FINISHED or _is_complete(run):
        return State.FINISHED
    if kind is EventKind.STOPPED:
        return State.ENDED if interrupted(run) else State.CRASHED
    if kind is EventKind.EXITED:
        # W&B ends so too where the trainer has crashed: without an error code, long before its last
        # step.
        short = run.total_steps and not _reached(run, 1)
        return State.ENDED if short else State.FINISHED
    return None


def _is_complete(run: Run) -> bool:
    """Return whether the last step was made, and no debugger waits behind it."""
    return _reached(run, 0) and not any(one.debugged for one in run.sources.values())


def _reached(run: Run, short: int) -> bool:
    """Return whether a run has made its last step, or all but so many: some bars are not painted at
    their end.
    """
    return bool(
        run.step and run.total_steps and run.step >= run.total_steps - short > 0
    )


def _let_go(run: Run) -> bool:
    """Return whether no process holds the log with the run's ending any more."""
    ended = [(one.status, one.ending) for one in run.sources.values() if one.ending]
    if any(end.bare for _, end in ended):
        return True  # W&B logs its exit with an error
    holder = writer(run)
    if holder:
        return holder.gone
    return any(status.unheld for status, end in ended if end is run.outcome)


def _evaluated(run: Run, now: float) -> State:
    """Return the state of samples without a training."""
    holder, idle = writer(run), _idle(run, now)
    over = idle is None or idle > _FRESH_LOG or (holder and holder.gone)
    return State.FINISHED if over else State.RUNNING


def _by_life(run: Run, now: float) -> State:
    """Return the state by the process that writes the log, else by when something was written."""
    holder = writer(run)
    if not holder:
        return _unheld(run, now)
    if holder.gone:
        return _gone(run)
    if holder.stopped:
        return State.STALLED
    return State.WAITING if _is_starting(run) else _by_silence(run, now)


def _unheld(run: Run, now: float) -> State:
    """Return the state of a run that no known process writes to."""
    if _is_no_training(run) and _is_abandoned(run, now):
        return State.NO_TRAINING
    if _is_starting(run):
        waits = (_idle(run, now) or 0.0) <= _ENDED_AFTER
        return State.WAITING if waits else State.ENDED
    return _gone(run) if unattended(run) else _by_silence(run, now)


def _is_starting(run: Run) -> bool:
    """Return whether a run has not made a step since it began."""
    begins = run.step is None or began_anew(run)
    return begins or starts(run.sources.values(), run.last_record or 0.0)


def _is_no_training(run: Run) -> bool:
    """Return whether a run's files have been read whole, and no line of them is of a training:
    notes that a shell's `*` named too, for one.
    """
    text = any(status.size and status.format == _CONSOLE for status in run.statuses)
    none = run.step is None and not run.events
    return text and none and all(map(_read_in_vain, run.statuses))


def _is_abandoned(run: Run, now: float) -> bool:
    """Return whether files have not changed for long, or no process of this host, to which all of
    them belong, holds any.
    """
    old = (_idle(run, now) or 0.0) > _STALL_UNKNOWN
    return old or all(status.unheld for status in run.statuses if status.size)


def _read_in_vain(status: SourceStatus) -> bool:
    """Return whether a source has been read whole, and nothing of a training was in it."""
    found = (status.records, status.unreadable, status.problem, status.unread_form)
    return status.whole and not any(found)


def _gone(run: Run) -> State:
    """Return the state of a run whose process is gone without a message."""
    if _reached(run, 1):
        return State.FINISHED
    failed = any(
        one.of_worker and one.since == one.step  # else it was survived before
        for _, one in last_troubles(run)
    )
    return State.CRASHED if failed else State.ENDED


def _by_silence(run: Run, now: float) -> State:
    """Return the state by how long no step has come, UNKNOWN where no record has a time."""
    quiet = waited(run, now)
    if quiet is None:
        return State.UNKNOWN
    if not overdue(run, quiet) or (doubt(run, now) and quiet <= _DOUBT * patience(run)):
        return State.RUNNING
    sign, usual = evidence(run, now), pace(run)
    # a file's time alone may be that of a copy
    long = max(_ENDED_AFTER, _ENDED_PACES * (usual.seconds if usual else 0.0))
    if not sign or now - sign.latest > long:
        return _gone(run)
    return State.STALLED if _is_read(run) else State.UNKNOWN


def _is_read(run: Run) -> bool:
    """Return whether a log with steps can be read: the silence of others proves nothing."""
    logs = (one for one in run.sources.values() if one.step is not None)
    return any(not one.status.problem for one in logs)


def _idle(run: Run, now: float) -> float | None:
    """Return the seconds since any of the run's files changed, else since its newest record; None
    where that is yet to come.
    """
    changed = run.modified
    if changed is None:
        return silence(run, now)
    return max(0.0, now - changed) if changed - now <= _CLOCKS else None


def unread_form(run: Run) -> str:
    """Say which lines look like metrics that cannot be read; empty for a run with steps."""
    said = (status.unread_form for status in run.statuses)
    return "" if run.step is not None else next(filter(None, said), "")


def is_evaluation(run: Run) -> bool:
    """Return whether a run is an evaluation: samples without a step."""
    if run.step is not None or run.total_steps is not None:
        return False
    formats = {status.format for status in run.statuses if status.records}
    return SAMPLES in formats and formats <= _OF_EVALUATIONS


def is_of_one_step(run: Run) -> bool:
    """Return whether there is nothing of a run but samples of one step, or of none: its charts
    would be dots.
    """
    steps = {place.step for place in run.samples.places}
    unstated = run.step is None and run.total_steps is None
    return is_evaluation(run) or (unstated and len(steps) == 1)


def evaluated(run: Run) -> str:
    """Describe the result of an evaluation, or the newest samples of a training whose log is not
    there.
    """
    trained = run.series(f"{PREFIX}count")
    prefix = PREFIX if trained else f"val_{PREFIX}"
    count, score = (run.series(f"{prefix}{name}") for name in ("count", "score"))
    words = "an evaluation"
    if count:
        samples = counted(int(count.values[-1]), "sample")
        words = f"an evaluation of {samples}"
        if trained:
            words = f"{samples} of step {count.steps[-1]}"
    if score:
        words += f", mean score {score.values[-1]:.4g}"
    return words


def interrupted(run: Run) -> bool:
    """Return whether the user stopped the run at its terminal."""
    end = run.outcome
    return bool(end and end.kind is EventKind.STOPPED and _CTRL_C.search(end.text))


def patience(run: Run) -> float:
    """Return the seconds without a step after which a run counts as stalled, by the kind of the
    step that is due.
    """
    due = expected_step(run)
    if not due:
        return _STALL_UNKNOWN
    return max(_STALL_FLOOR, _STALL_PACES * due.seconds, _STALL_LONGEST * due.longest)


def overdue(run: Run, quiet: float) -> bool:
    """Return whether so many seconds without a step are more than a run has patience for."""
    return quiet > _STALL_FLOOR and quiet > patience(run)


def doubt(run: Run, now: float) -> str:
    """Name the evidence that a silent run may yet be at work; empty if there is none."""
    at = last_written(run)
    if at is not None and now - at <= _FRESH_LOG:
        return "its files still grow"
    return "this machine's GPUs still work" if gpus_work(run, now) else ""
