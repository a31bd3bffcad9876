"""What is known of a run, as the files of a bundle."""

from __future__ import annotations

import io
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verl_tui.bundle import processes, versions
from verl_tui.bundle.curves import charts, table
from verl_tui.bundle.log_ends import read_end
from verl_tui.bundle.piece import Piece
from verl_tui.bundle.samples import newest_samples
from verl_tui.bundle.summary import readme, summary
from verl_tui.bundle.without_samples import without_samples
from verl_tui.check import report, write_text
from verl_tui.rendering.log.target import texts
from verl_tui.runs.views.worker_errors import worker_errors
from verl_tui.sources.formats import completions, parquet, rollouts, sample_records
from verl_tui.sources.formats.wandb import tables as wandb_tables
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.bundle.log_ends import LogEnd
    from verl_tui.monitor import Monitor
    from verl_tui.records import GpuReading
    from verl_tui.runs.run import Run
    from verl_tui.runs.source_state import SourceState

_OF_SAMPLES = frozenset(
    {completions.name, parquet.name, rollouts.name, sample_records.name, wandb_tables.name}
)
"""Formats of files that hold samples."""
_NO_LOGS = _OF_SAMPLES | {"settings"}
_MOST_LOGS = 16
"""Logs of which the end is kept, the newest ones: of many ranks all say much the same."""
_MOST_UNREADABLE = 200
"""Unreadable lines named of each source, the last ones."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What goes into a bundle beyond what always does."""

    lines: int = 1000
    """Last lines of each log."""
    stacks: bool = False
    """Whether to ask py-spy what the run's processes are at."""
    samples: bool = False
    """Whether to add the newest samples, which may be private."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """The files of a bundle, unmasked."""

    pieces: Sequence[Piece]
    words: frozenset[str]
    """Words in names of metrics and settings, which are nobody's names."""
    problems: Sequence[str]
    """A sentence for all that could not be had."""


def gather(monitor: Monitor, run: Run, now: float, wanted: Wanted) -> Gathered:
    """Return the files of a bundle.

    Args:
        monitor: Has read and judged; holds a reading of this machine's GPUs.
        run: One of its runs.
        now: Seconds since the epoch.
        wanted: What goes into it.
    """
    problems: list[str] = []
    logs = dict(_logs(run, wanted.lines, problems))
    stated = versions.stated(run, {path: end.head for path, end in logs.items()})
    known = _checked(monitor, run, now)
    text = write_text(known, monitor, now, verbose=True, unfolded=True)
    metrics, about_table = table(run)
    pids = processes.with_children(processes.pids(run, monitor.gpus))
    pieces = [
        Piece("summary.md", "what to paste into an issue", summary(known, text, stated, logs)),
        Piece("check.txt", "verdict and findings with their evidence", text),
        Piece("check.json", "the same for programs, with each source", known),
        Piece("settings.json", "settings of the run, each with its origin", _settings(run)),
        Piece("versions.json", "versions: stated by the run, and installed here", _all(stated)),
        Piece(
            "sources.json", "state of each source, and its unreadable lines", _sources(run, wanted)
        ),
        Piece(
            "events.json", "starts, ends, errors and checkpoints that the logs tell of", _told(run)
        ),
        *_log_pieces(logs, samples=wanted.samples),
        Piece("metrics.csv", about_table, metrics),
        Piece("charts.txt", "the most important curves", charts(monitor, run, now)),
        Piece("gpus.json", "the GPUs of the machine that made this bundle", _gpus(monitor.gpus)),
        Piece("processes.json", "processes of the run on that machine", _processes(pids)),
    ]
    if wanted.stacks:
        pieces += _stack_pieces(pids, problems)
    if wanted.samples:
        pieces.append(Piece("samples.json", "the newest samples", newest_samples(run, problems)))
    pieces.insert(0, Piece("README.txt", "what this is", readme(pieces, problems)))
    return Gathered(pieces, _words(run), problems)


def _checked(monitor: Monitor, run: Run, now: float) -> dict[str, Any]:
    """Return the report of `check --json` on this run alone."""
    known = report(monitor, now)
    known["runs"] = [one for one in known["runs"] if one["name"] == run.name]
    return known


def _logs(run: Run, most: int, problems: list[str]) -> Iterator[tuple[str, LogEnd]]:
    """Yield the ends of a run's logs, the newest logs first; add what cannot be read."""
    found = [
        status
        for status in sorted(texts(run), key=lambda status: -(status.modified or 0.0))
        if status.format not in _NO_LOGS and Path(status.path).is_file()
    ]
    if (left := len(found) - _MOST_LOGS) > 0:
        problems.append(
            f"{counted(left, 'further log')} left out: only the newest {_MOST_LOGS} are in"
        )
    for status in found[:_MOST_LOGS]:
        if (end := _end(status.path, most, problems)) is not None:
            yield status.path, end


def _end(path: str, most: int, problems: list[str]) -> LogEnd | None:
    """Return the end of a log; None if it cannot be read, which is added to the problems."""
    try:
        return read_end(Path(path), most)
    except OSError as error:
        problems.append(f"{path}: {(error.strerror or str(error)).lower()}")
        return None


def _log_pieces(logs: dict[str, LogEnd], *, samples: bool) -> Iterator[Piece]:
    for number, (path, end) in enumerate(logs.items(), 1):
        name = f"logs/{number:02}-{Path(path).name}"
        lines = end.lines if samples else without_samples(end.lines)
        text = "\n".join((f"# {path}: {end.note}", *lines)) + "\n"
        yield Piece(f"{name}.txt", end.note.partition(";")[0], text)
        if end.tracebacks:
            text = "\n\n".join(end.tracebacks) + "\n"
            about = f"{counted(len(end.tracebacks), 'kind')} of traceback in it"
            yield Piece(f"{name}.tracebacks.txt", about, text)


def _settings(run: Run) -> dict[str, Any]:
    # Its name stands beside each value, so that secrets are known by it.
    return {
        "values": dict(run.settings),
        "origins": dict(run.settings_origin),
    }


def _all(stated: Sequence[versions.StatedVersion]) -> dict[str, Any]:
    return {
        "stated_by_the_run": [one._asdict() for one in stated],
        "installed_where_the_bundle_was_made": versions.installed(),
    }


def _sources(run: Run, wanted: Wanted) -> list[dict[str, Any]]:
    return [_source(state, wanted) for state in run.sources.values()]


def _source(state: SourceState, wanted: Wanted) -> dict[str, Any]:
    status = asdict(state.status)
    kept = list(state.unreadable)[-_MOST_UNREADABLE:]
    if state.status.format in _OF_SAMPLES and not wanted.samples:
        kept = [replace(one, excerpt="") for one in kept]
    return {
        **status,
        "format": state.status.title,
        "step": state.step,
        "segment": state.segment,
        "unreadable_lines": [asdict(one) for one in kept],
    }


def _told(run: Run) -> dict[str, Any]:
    events = [{**asdict(event), "kind": event.kind.value} for event in run.events]
    errors = [
        {
            "path": path,
            "actor": error.first.actor,
            "count": error.count,
            "first": error.first.text,
            "last": error.last.text,
            "first_step": error.since,
            "last_step": error.step,
        }
        for path, error in worker_errors(run)
    ]
    restarts = [asdict(one) for one in run.restarts]
    return {"events": events, "reported_errors": errors, "restarts": restarts}


def _gpus(reading: GpuReading | None) -> dict[str, Any]:
    if reading is None:
        return {"problem": "not read"}
    devices = []
    for gpu in reading.gpus:
        used = [
            {"pid": one.pid, "name": one.name, "memory": one.memory} for one in gpu.processes or ()
        ]
        devices.append({**asdict(gpu), "processes": used})
    return {"problem": reading.problem, "gpus": devices}


def _processes(pids: Sequence[int]) -> dict[str, Any]:
    return {"problem": None if pids else processes.NO_PROCESS, "processes": processes.facts(pids)}


def _stack_pieces(pids: Sequence[int], problems: list[str]) -> Iterator[Piece]:
    found, missing = processes.stacks(pids)
    problems += [f"stacks: {sentence}" for sentence in missing]
    for pid, text in found.items():
        yield Piece(f"stacks/{pid}.txt", "what py-spy says that the process is at", text)


def _words(run: Run) -> frozenset[str]:
    found = io.StringIO()
    for name in (*run.keys, *run.settings):
        found.write("".join(sign if sign.isalnum() else " " for sign in name) + " ")
    return frozenset(found.getvalue().split())
