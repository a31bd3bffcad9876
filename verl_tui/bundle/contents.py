"""The files of a bundle: everything that is known of a run."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from verl_tui.bundle import processes, versions
from verl_tui.bundle.archive import BundledFile
from verl_tui.bundle.curves import charts, metrics_csv
from verl_tui.bundle.log_ends import read_end
from verl_tui.bundle.samples import newest_samples
from verl_tui.bundle.summary import readme, summary
from verl_tui.bundle.without_samples import without_samples
from verl_tui.check import report
from verl_tui.check.note import note_text
from verl_tui.failures import note_failure
from verl_tui.plain_data import plain
from verl_tui.rendering.log.target import texts
from verl_tui.runs.views.signs_of_life import worker_errors
from verl_tui.sources.formats import rollouts, sample_records
from verl_tui.sources.formats.tables import completions, parquet, wandb_tables
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from psutil import Process

    from verl_tui.bundle.log_ends import LogEnd
    from verl_tui.monitor import Monitor
    from verl_tui.records import GpuReading
    from verl_tui.runs.run import Run
    from verl_tui.runs.source_state import SourceState

_OF_SAMPLES = frozenset(
    {
        completions.name,
        parquet.name,
        rollouts.name,
        sample_records.name,
        wandb_tables.name,
    }
)
"""Formats of files that hold samples."""
_NO_LOGS = _OF_SAMPLES | {"settings"}
_MOST_LOGS = 16
"""Number of newest logs whose ends are kept: the logs of many ranks all say much the same."""
_MOST_UNREADABLE = 200
"""Number of unreadable lines listed for each source, the last ones."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The optional contents of a bundle."""

    lines: int = 1000
    """Last lines of each log."""
    stacks: bool = False
    """Whether to ask py-spy what the run's processes are doing."""
    samples: bool = False
    """Whether to add the newest samples, which may be private."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """The files of a bundle, unmasked."""

    pieces: Sequence[BundledFile]
    words: frozenset[str]
    """Words in names of metrics and settings, which are nobody's names."""
    problems: Sequence[str]
    """A sentence for all that could not be had."""


def gather(monitor: Monitor, run: Run, now: float, wanted: Wanted) -> Gathered:
    """Return the files of a bundle. A file that cannot be made is reported and does not affect the
    others: it may be the very reason for the bundle.

    Args:
        monitor: Has read and judged; holds a reading of this machine's GPUs.
        run: One of its runs.
        now: Seconds since the epoch.
        wanted: What goes into it.
    """
    evidence = _Evidence(monitor, run, now, wanted, [])
    pieces: list[BundledFile] = []
    problems = evidence.problems
    for what, files in _PARTS.items():
        try:
            pieces += list(files(evidence))
        except Exception as error:  # noqa: BLE001, PERF203 - whatever it is
            problems.append(f"{what}: {note_failure(f'gathering {what}', error)}")
    about = readme(pieces, problems)
    pieces.insert(0, BundledFile("README.txt", "what this is", about))
    names = " ".join((*run.keys, *run.settings))
    words = frozenset(re.split(r"[\W_]+", names)) - {""}
    return Gathered(pieces, words, problems)


@dataclass(frozen=True)
class _Evidence:
    """The material that the files are made from."""

    monitor: Monitor
    run: Run
    now: float
    wanted: Wanted
    problems: list[str]

    @cached_property
    def logs(self) -> dict[str, LogEnd]:
        """The ends of the logs by path."""
        return dict(_logs(self.run, self.wanted.lines, self.problems))

    @cached_property
    def stated(self) -> Sequence[versions.StatedVersion]:
        """The versions that the run states."""
        return versions.stated_versions(
            self.run, {path: end.head for path, end in self.logs.items()}
        )

    @cached_property
    def checked(self) -> dict[str, Any]:
        """The report of `check --json` on this run alone."""
        known = report(self.monitor, self.now)
        known["runs"] = [one for one in known["runs"] if one["name"] == self.run.name]
        return known

    @cached_property
    def note(self) -> str:
        """The same for people."""
        return note_text(
            self.checked, self.monitor, self.now, verbose=True, unfolded=True
        )

    @cached_property
    def processes(self) -> list[Process]:
        """The processes of the run."""
        return processes.processes_of(self.run)


_Part: TypeAlias = "Callable[[_Evidence], Iterable[BundledFile]]"


def _logs(run: Run, most: int, problems: list[str]) -> Iterator[tuple[str, LogEnd]]:
    """Yield the ends of a run's logs, the newest logs first; list unreadable ones among the
    problems.
    """
    found = [
        status
        for status in sorted(texts(run), key=lambda status: -(status.modified or 0.0))
        if status.format not in _NO_LOGS and Path(status.path).is_file()
    ]
    left = len(found) - _MOST_LOGS
    if left > 0:
        problems.append(
            f"{counted(left, 'further log')} left out: only the newest {_MOST_LOGS} are in"
        )
    for status in found[:_MOST_LOGS]:
        try:
            yield status.path, read_end(Path(status.path), most)
        except OSError as error:  # noqa: PERF203 - of a few files
            why = (error.strerror or str(error)).lower()
            problems.append(f"{status.path}: {why}")


def _log_pieces(logs: dict[str, LogEnd], *, samples: bool) -> Iterator[BundledFile]:
    for number, (path, end) in enumerate(logs.items(), 1):
        name = f"logs/{number:02}-{Path(path).name}"
        lines = end.lines if samples else without_samples(end.lines)
        text = "\n".join((f"# {path}: {end.note}", *lines)) + "\n"
        yield BundledFile(f"{name}.txt", end.note.partition(";")[0], text)
        if end.tracebacks:
            text = "\n\n".join(end.tracebacks) + "\n"
            about = f"{counted(len(end.tracebacks), 'kind')} of traceback in it"
            yield BundledFile(f"{name}.tracebacks.txt", about, text)


def _source(state: SourceState, wanted: Wanted) -> dict[str, Any]:
    kept = list(state.unreadable)[-_MOST_UNREADABLE:]
    if state.status.format in _OF_SAMPLES and not wanted.samples:
        kept = [one._replace(excerpt="") for one in kept]
    return {
        **state.status._asdict(),
        "format": state.status.title,
        "step": state.step,
        "segment": state.segment,
        "unreadable_lines": kept,
    }


def _event_data(run: Run) -> dict[str, Any]:
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
    return {
        "events": list(run.events),
        "reported_errors": errors,
        "restarts": list(run.restarts),
    }


def _gpus_read(reading: GpuReading | None) -> dict[str, Any]:
    if reading is None:
        return {"problem": "not read"}
    devices = []
    for gpu in reading.gpus:
        used = [
            {"pid": one.pid, "name": one.name, "memory": one.memory}
            for one in gpu.processes or ()
        ]
        devices.append({**asdict(gpu), "processes": used})
    return {"problem": reading.problem, "gpus": devices}


def _stack_pieces(of: Sequence[Process], problems: list[str]) -> Iterator[BundledFile]:
    found, missing = processes.stacks(of)
    problems += [f"stacks: {sentence}" for sentence in missing]
    for pid, text in found.items():
        yield BundledFile(
            f"stacks/{pid}.txt", "what py-spy says that the process is at", text
        )


def _sample_pieces(of: _Evidence) -> Iterator[BundledFile]:
    found = newest_samples(of.run, of.problems)
    yield BundledFile("samples.json", "the newest samples", found)


def _settings(run: Run) -> dict[str, Any]:
    # The name stands beside each value, so that secrets are recognised by it.
    return {"values": dict(run.settings), "origins": dict(run.settings_origin)}


def _versions(of: _Evidence) -> dict[str, Any]:
    return {
        "stated_by_the_run": of.stated,
        "installed_where_the_bundle_was_made": versions.installed(),
    }


def _processes(of: _Evidence) -> dict[str, Any]:
    problem = None if of.processes else processes.NO_PROCESS
    return {"problem": problem, "processes": processes.process_facts(of.processes)}


def _one(name: str, about: str, content: Callable[[_Evidence], Any]) -> _Part:
    """Return what makes a part of one file."""
    return lambda of: [BundledFile(name, about, plain(content(of)))]


_PARTS: Mapping[str, _Part] = {
    "summary": _one("summary.md", "what to paste into an issue",
        lambda of: summary(of.checked, of.note, of.stated, of.logs)),
    "verdict": _one("check.txt", "verdict and findings with their evidence",
        lambda of: of.note),
    "report": _one("check.json", "the same for programs, with each source",
        lambda of: of.checked),
    "settings": _one("settings.json", "settings of the run, each with its origin",
        lambda of: _settings(of.run)),
    "versions": _one("versions.json", "versions: stated by the run, and installed here", _versions),
    "sources": _one("sources.json", "state of each source, and its unreadable lines",
        lambda of: [_source(state, of.wanted) for state in of.run.sources.values()]),
    "events": _one("events.json", "starts, ends, errors and checkpoints that the logs tell of",
        lambda of: _event_data(of.run)),
    "log ends": lambda of: _log_pieces(of.logs, samples=of.wanted.samples),
    "metrics": lambda of: [BundledFile("metrics.csv", *metrics_csv(of.run))],
    "charts": _one("charts.txt", "the most important curves",
        lambda of: charts(of.monitor, of.run, of.now)),
    "gpus": _one("gpus.json", "the GPUs of the machine that made this bundle",
        lambda of: _gpus_read(of.monitor.gpus)),
    "processes": _one("processes.json", "processes of the run on that machine", _processes),
    "stacks": lambda of: _stack_pieces(of.processes, of.problems) if of.wanted.stacks else (),
    "samples": lambda of: _sample_pieces(of) if of.wanted.samples else (),
}  # fmt: skip
"""The parts in their order in the archive, each with what makes its files."""
