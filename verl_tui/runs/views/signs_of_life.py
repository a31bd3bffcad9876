"""Signs that a run is alive, the process that writes its log, and what it is doing."""

from __future__ import annotations

from itertools import combinations_with_replacement
from math import inf
from operator import attrgetter
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.runs.cached import cached_by_revision
from verl_tui.runs.source_state import AGREE, SourceState, Trouble
from verl_tui.text import one_line
from verl_tui.times import age

if TYPE_CHECKING:
    from collections.abc import Iterator

    from verl_tui.records import Writer
    from verl_tui.runs.run import Run


_FRESH_GPUS = 30.0
"""Seconds for which a reading of GPUs is current."""
_IDLE = 5.0
"""Percent of utilisation up to which a GPU does nothing: heuristic."""
_KEPT_BACK = 150.0
"""Seconds by which an event file may lie behind what its process wrote elsewhere: TensorBoard
buffers records for up to 120.
"""
_LAST_WORDS = 5.0
"""Seconds after its end within which what a process wrote may be read: heuristic."""


class Evidence(NamedTuple):
    """A sign that a run was alive on this host, and is not the copy of a log."""

    words: str
    latest: float
    """When it was last seen, infinite while a process holds the file."""


@cached_by_revision
def writer(run: Run) -> Writer | None:
    """Return the process that writes a run's log, preferably a living one; None if none is
    known.

    W&B's own process may outlive the trainer, so it counts only if no other is known. One that is
    gone is not missed if steps came afterwards, or if it only created its file and another file of
    the run was written long after.
    """
    known = [
        one
        for state in run.sources.values()
        if (one := state.status.writer)
        and not (one.gone and _replaced(run, one, state))
    ]
    return min(
        known, key=lambda one: (one.name.startswith("wandb"), one.gone), default=None
    )


def _replaced(run: Run, one: Writer, state: SourceState) -> bool:
    """Return whether a run went on without the process that has written one of its files."""
    arrived = max(one.life.arrived or 0.0 for one in run.sources.values())
    later = (last_written(run) or 0.0) - (state.status.modified or 0.0)
    is_left = one.by_name and later > _KEPT_BACK
    return is_left or arrived - state.life.orphaned > _LAST_WORDS


@cached_by_revision
def began_anew(run: Run) -> bool:
    """Return whether a process that began after the run's newest record writes its log."""
    shown = (run.last_record or 0.0) + _LAST_WORDS
    known = (one.writer for one in run.statuses)
    return any(by and not by.gone and by.began > shown for by in known)


@cached_by_revision
def two_jobs(run: Run) -> str:
    """Say that two jobs write one log of a run, or the same metrics into two of one format; empty
    where no two are known. Ranks, workers and helpers are of the job that started them.
    """
    written = [
        (one, by.jobs)
        for one in run.sources.values()
        if (by := one.status.writer) and not by.gone
    ]
    for (one, jobs), (other, more) in combinations_with_replacement(written, 2):
        names = [*{**jobs, **more}.values()]
        shared = 2 * len(one.metrics & other.metrics) >= len(one.metrics)
        if len(names) > 1 and shared and one.status.format == other.status.format:
            return f"two trainings write into it: {' and '.join(names[:2])}"
    return ""


def evidence(run: Run, now: float) -> Evidence | None:
    """Return the best evidence that a run lives or lived just now, None where there is only a
    file's time.
    """
    return max(_signs(run, now), key=attrgetter("latest"), default=None)


@cached_by_revision
def last_written(run: Run) -> float | None:
    """Return when something was last written that may belong to a long step, not counting what is
    written regardless of training.
    """
    sources = run.sources.values()
    times = (one.status.modified for one in sources if not one.life.only_idles())
    return max(filter(None, times), default=None)


@cached_by_revision
def unattended(run: Run) -> bool:
    """Return whether no process writes a run's log any more: nobody holds it, and it has not grown
    since we started to look.

    A run that is copied over from elsewhere looks the same until its next piece comes, unless a
    heartbeat tells.
    """
    if writer(run) or any(state.life.continued for state in run.sources.values()):
        return False
    newest = run.modified or 0.0
    return any(
        status.unheld and newest - (status.modified or 0.0) <= _KEPT_BACK
        for status in run.statuses
    )


def gpus_work(run: Run, now: float) -> bool | None:
    """Return whether this machine's GPUs work; None without a recent reading.

    Held memory proves nothing and is not looked at.
    """
    reading = run.gpus
    if not reading or now - reading.time > _FRESH_GPUS:
        return None
    known = [gpu.utilization for gpu in reading.gpus if gpu.utilization is not None]
    return max(known) > _IDLE if known else None


def _signs(run: Run, now: float) -> Iterator[Evidence]:
    for path, state in run.sources.items():
        name = one_line(PurePath(path).name, 60)
        life = state.life
        holder = state.status.writer
        if holder and not holder.gone and not holder.by_name:
            yield Evidence(f"{holder.words} holds {name} open for writing", inf)
        if life.arrived is not None:
            yield Evidence("steps came while we watched", life.arrived)
        if life.grew is not None:
            yield Evidence(f"{name} grew while we watched", life.grew)
        if sign := _by_times(state, name, now):
            yield sign


def _by_times(state: SourceState, name: str, now: float) -> Evidence | None:
    """Return the evidence of times in a log that agree with its file's own."""
    life = state.life
    status = state.status
    if status.modified is None or not life.agrees(status.modified):
        return None
    # A log that no process here holds may be copied over from where it is written, as long as it
    # goes on.
    if life.counters_stand() and (not status.unheld or now - status.modified <= AGREE):
        words = f"the heartbeat in {name} goes on while its counters stand still"
        return Evidence(words, status.modified)
    if status.unheld or (status.writer and status.writer.gone):
        return None
    return Evidence(f"the times in {name} agree with the file's own", status.modified)


def phase(run: Run) -> str | None:
    """Describe the last known activity of the run: a heartbeat, a printed stage, the longest timed
    part of the last step, in which a run that waits mostly is; None if nothing is known.
    """
    for state in run.sources.values():
        life = state.life
        if life.counters:
            if not life.counters_stand() or life.stood is None:
                return f"the last heartbeat: {life.counters}"
            still = f"its counters have stood still for {age(life.until_newest(life.stood))}"
            return f"the heartbeat goes on, {still}: {life.counters}"
    for state in reversed(run.sources.values()):
        if state.stage:
            words = one_line(state.stage.text, 120)
            return f"the last stage printed: {words} (line {state.stage.line})"
    seconds, part = max(_timers(run), default=(0.0, ""))
    if seconds > 0:
        return f"the longest timed part of the last step: {part}, {seconds:.2g} s"
    return None


def _timers(run: Run) -> Iterator[tuple[float, str]]:
    for key in run.keys:
        if key.startswith("timing_s/") and key != "timing_s/step":
            for seconds in run.tail(key, 1):
                yield seconds, key.partition("/")[2]


def all_trouble(run: Run) -> Iterator[tuple[str, SourceState, Trouble]]:
    """Yield all kinds of trouble, behind the path of their log and its state."""
    for path, state in run.sources.items():
        for trouble in state.troubles:
            yield path, state, trouble


def worker_errors(run: Run) -> list[tuple[str, Trouble]]:
    """Return the exceptions of a run's workers with the path of their log, the most frequent
    first.
    """
    found = [(path, one) for path, _, one in all_trouble(run) if one.of_worker]
    return sorted(found, key=lambda one: -one[1].count)


def last_troubles(run: Run) -> list[tuple[str, Trouble]]:
    """Return all trouble after the last step of its log with the path of that, in its order: the
    rest was survived.
    """
    found = ((path, it) for path, of, it in all_trouble(run) if it.step == of.step)
    return sorted(found, key=lambda one: one[1].fresh.line)
