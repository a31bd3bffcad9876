"""The files of a bundle: everything that is known of a run; and the archive: the same files give
the same bytes.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from verl_tui.bundle import processes, versions
from verl_tui.bundle.logs import LogEnd, read_end, without_samples
from verl_tui.check.data import report
from verl_tui.check.note import note_text
from verl_tui.exporters.csv import write_csv
from verl_tui.failures import note_failure
from verl_tui.given_files import why
from verl_tui.on_demand.samples import StepSamples
from verl_tui.plain_data import Data, mapped, plain
from verl_tui.rendering.charts.page import list_charts
from verl_tui.rendering.charts.plan import ChartLook
from verl_tui.rendering.charts.planned_data import chart_data
from verl_tui.rendering.charts.renderer import ChartRenderer
from verl_tui.rendering.log.target import texts
from verl_tui.rendering.session.snapshot import View
from verl_tui.rendering.text.piece import text_of
from verl_tui.runs.views.signs_of_life import worker_errors
from verl_tui.sources.formats import rollouts
from verl_tui.sources.formats.tables import (
    completions,
    parquet,
    sample_records,
    wandb_tables,
)
from verl_tui.text import fenced
from verl_tui.words import counted

if TYPE_CHECKING:
    from psutil import Process

    from verl_tui.monitor import Monitor
    from verl_tui.records import Sample
    from verl_tui.runs.run import Run
    from verl_tui.secrets import Mask

_OF_SAMPLES = {
    one.name for one in (completions, parquet, rollouts, sample_records, wandb_tables)
}
"""Formats of files that hold samples."""
_MOST_LOGS = 16
"""Number of newest logs whose ends are kept: the logs of many ranks all say much the same."""
_MOST_UNREADABLE = 200
"""Number of unreadable lines listed for each source, the last ones."""
_MOST_CSV = 8 * 2**20
"""Characters of the table of metrics that are kept: the header and the last rows."""
_CHARTS, _WIDTH, _HEIGHT = 12, 100, 14
_MOST_SAMPLES = 20
_PLACES = 4
"""Number of newest steps that samples are taken from, both of training and of validation."""
_SAMPLE_TEXT = 8000
"""Characters of each text of a sample that are kept."""
_ERROR_LINES = 25
_OPENING = 3
"""Lines of the report that say how it is, why, and what to do next."""
_NAMED = ("verl", "trl", "torch", "vllm", "sglang", "transformers", "ray", "python")
_README = """\
Evidence on a training run, gathered by `verl-tui bundle`.

summary.md is short and made to be pasted into an issue; the rest is what it rests on:

{contents}

Keys, tokens and passwords are written ***, home directories ~, and names of users and hosts USER,
HOST, EMAIL and IP (unless made with --keep-names). This goes by names and known forms: a secret of
an unknown form under a name that says nothing stays as it is. Samples are in it with --samples
only, except where a training prints them in a way that verl-tui does not know. So look through the
files before you publish them.

Files are bounded: of a log its last lines, of a long table its last steps. Where something is cut
off, its first line or the list above says so.
{problems}"""


@dataclass(frozen=True)
class Bundle:
    """What is known of a run, and what of it is wanted."""

    monitor: Monitor
    """Has read and judged; holds a reading of this machine's GPUs."""
    run: Run
    now: float
    """Seconds since the epoch."""
    lines: int = 1000
    """Last lines of each log."""
    stacks: bool = False
    """Whether to ask py-spy what the run's processes are doing."""
    samples: bool = False
    """Whether to add the newest samples, which may be private."""
    problems: list[str] = field(default_factory=list)
    """A sentence for all that could not be had."""

    def files(self) -> Sequence[BundledFile]:
        """Return the files of a bundle, unmasked. One that cannot be made is reported and does not
        affect the others: it may be the very reason for the bundle.
        """
        pieces: list[BundledFile] = []
        for what, files in _PARTS.items():
            try:
                pieces += files(self)
            except Exception as error:  # noqa: BLE001, PERF203 - whatever it is
                why = note_failure(f"gathering {what}", error)
                self.problems.append(f"{what}: {why}")
        wide = max(len(piece.name) for piece in pieces)
        contents = "\n".join(f"  {one.name:<{wide}}  {one.about}" for one in pieces)
        missing = "".join(f"- {one}\n" for one in self.problems)
        missing = f"\nNot in it:\n{missing}" if missing else ""
        about = _README.format(contents=contents, problems=missing)
        return [BundledFile("README.txt", "what this is", about), *pieces]

    @property
    def words(self) -> Iterable[str]:
        """Words in names of metrics and settings, which are nobody's names."""
        names = " ".join((*self.run.keys, *self.run.settings))
        return filter(None, re.split(r"[\W_]+", names))

    @cached_property
    def logs(self) -> dict[str, LogEnd]:
        """The ends of the logs by path, the newest logs first."""
        found = [
            status.path
            for status in sorted(texts(self.run), key=lambda one: -(one.modified or 0))
            if status.format not in (*_OF_SAMPLES, "settings")
            and Path(status.path).is_file()
        ]
        left = counted(len(found) - _MOST_LOGS, "further log")
        if len(found) > _MOST_LOGS:
            self.problems.append(
                f"{left} left out: only the newest {_MOST_LOGS} are in"
            )
        ends = {}
        for path in found[:_MOST_LOGS]:
            try:
                ends[path] = read_end(Path(path), self.lines)
            except OSError as error:  # noqa: PERF203 - of a few files
                self.problems.append(f"{path}: {why(error)}")
        return ends

    @cached_property
    def stated(self) -> Sequence[versions.StatedVersion]:
        """The versions that the run states."""
        versioned = {path: end.versioned for path, end in self.logs.items()}
        return versions.stated_versions(self.run, versioned)

    @cached_property
    def checked(self) -> Data:
        """The report of `check --json` on this run alone."""
        known = report(self.monitor, self.now)
        runs = [one for one in known["runs"] if one["name"] == self.run.name]
        return {**known, "runs": runs}

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


_Part: TypeAlias = "Callable[[Bundle], Iterable[BundledFile]]"


def _summary(of: Bundle) -> str:
    """Return the verdict, versions, the first finding and the last error as Markdown."""
    (run,) = of.checked["runs"]
    here = versions.installed()
    stated = (" ".join(one[:2]) for one in of.stated if one.package in _NAMED)
    parts = [
        f"### Training run\n{fenced(chr(10).join(of.note.splitlines()[:_OPENING]))}",
        f"- versions that the run states: {', '.join(stated) or 'none'}",
        f"- seen by: verl-tui {here['verl-tui']}, Python {here['python']}, {here['platform']}",
        f"- sources: {_formats(run['sources'])}",
    ]
    for first in run["findings"][:1]:
        words = f"{first['severity']} {first['id']}: {first['message']}"
        finding = fenced("\n".join((words, *first["evidence"])))
        parts.append(f"\n**First finding**\n\n{finding}")
    error = next((end.tracebacks[-1] for end in of.logs.values() if end.tracebacks), "")
    if error:
        last = fenced("\n".join(error.splitlines()[-_ERROR_LINES:]))
        parts.append(f"\n**Last error**\n\n{last}")
    return "\n".join(parts) + "\n"


def _formats(sources: Sequence[Data]) -> str:
    counts = Counter(one["program"] or one["format"] for one in sources)
    unreadable = sum(one["unreadable"] for one in sources)
    words = ", ".join(f"{count} × {name}" for name, count in counts.items())
    return f"{words}; unreadable lines: {unreadable}"


def _log_pieces(of: Bundle) -> Iterator[BundledFile]:
    for number, (path, end) in enumerate(of.logs.items(), 1):
        name = f"logs/{number:02}-{Path(path).name}"
        lines = end.lines if of.samples else without_samples(end.lines)
        text = "\n".join((f"# {path}: {end.note}", *lines)) + "\n"
        yield BundledFile(f"{name}.txt", end.note.partition(";")[0], text)
        if end.tracebacks:
            text = "\n\n".join(end.tracebacks) + "\n"
            about = f"{counted(len(end.tracebacks), 'kind')} of traceback in it"
            yield BundledFile(f"{name}.tracebacks.txt", about, text)


def _sources(of: Bundle) -> Iterator[Data]:
    for state in of.run.sources.values():
        kept = list(state.unreadable)[-_MOST_UNREADABLE:]
        if state.status.format in _OF_SAMPLES and not of.samples:
            kept = [one._replace(excerpt="") for one in kept]
        yield {
            **state.status._asdict(),
            "format": state.status.title,
            "step": state.step,
            "segment": state.segment,
            "unreadable_lines": kept,
        }


def _events(of: Bundle) -> Data:
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
        for path, error in worker_errors(of.run)
    ]
    restarts, events = list(of.run.restarts), list(of.run.events)
    return {"events": events, "reported_errors": errors, "restarts": restarts}


def _metrics(of: Bundle) -> Iterator[BundledFile]:
    """Yield all numeric metrics as CSV; only the last steps of a table that is too long."""
    out = io.StringIO(newline="")
    write_csv(of.run, out)
    text, about = out.getvalue(), "all numeric metrics by step"
    if len(text) > _MOST_CSV:
        header, _, rows = text.partition("\n")
        kept = rows[-_MOST_CSV:].partition("\n")[2]
        steps = f"{kept.count(chr(10)):,} of {rows.count(chr(10)):,} steps"
        text, about = f"{header}\n{kept}", f"all numeric metrics, the last {steps}"
    yield BundledFile("metrics.csv", about, text)


def _charts(of: Bundle) -> str:
    """Return the first charts of the dashboard as text."""
    view = View(of.monitor, of.run, of.now)
    drawn = []
    for one in list_charts(view)[:_CHARTS]:
        rows = ChartRenderer().rows(chart_data(one, view, ChartLook()), _WIDTH, _HEIGHT)
        drawn.append("\n".join(text_of(row).rstrip() for row in rows))
    return "\n\n".join(drawn or ["This run has no numbers to draw."]) + "\n"


def _gpus(of: Bundle) -> Data:
    reading = of.monitor.gpus
    if not reading:
        return {"problem": "not read"}
    return {"problem": reading.problem, "gpus": [asdict(gpu) for gpu in reading.gpus]}


def _processes(of: Bundle) -> Data:
    problem = None if of.processes else processes.NO_PROCESS
    facts = [processes.process_facts(one) for one in of.processes]
    return {"problem": problem, "processes": facts}


def _stacks(of: Bundle) -> Iterator[BundledFile]:
    found, missing = processes.stacks(of.processes)
    of.problems.extend(f"stacks: {sentence}" for sentence in missing)
    for pid, text in found.items():
        about = "what py-spy says that the process is at"
        yield BundledFile(f"stacks/{pid}.txt", about, text)


def _samples(of: Bundle) -> list[Data]:
    """Return the newest samples; add what cannot be read to the problems."""
    found: list[Sample] = []
    for place in reversed(of.run.samples.places[-_PLACES:]):
        try:
            step = StepSamples(of.run.samples, place)
            found += step.first(_MOST_SAMPLES - len(found))
        except OSError as error:
            of.problems.append(f"samples of step {place.step}: {why(error)}")
        if len(found) >= _MOST_SAMPLES:
            break
    if not found:
        of.problems.append("samples: the run has none")
    cut = itemgetter(slice(_SAMPLE_TEXT))
    return [mapped(sample._asdict(), cut) for sample in found]


def _one(name: str, about: str, content: Callable[[Bundle], Any]) -> _Part:
    """Return a function that makes a part with a single file."""
    return lambda of: [BundledFile(name, about, plain(content(of)))]


_PARTS: Mapping[str, _Part] = {
    "summary": _one("summary.md", "what to paste into an issue", _summary),
    "verdict": _one("check.txt", "verdict and findings with their evidence",
        lambda of: of.note),
    "report": _one("check.json", "the same for programs, with each source",
        lambda of: of.checked),
    # The name stands beside each value, so that secrets are recognised by it.
    "settings": _one("settings.json", "settings of the run, each with its origin",
        lambda of: {
            "values": dict(of.run.settings), "origins": dict(of.run.config.origins)}),
    "versions": _one("versions.json", "versions: stated by the run, and installed here",
        lambda of: {
            "stated_by_the_run": of.stated,
            "installed_where_the_bundle_was_made": versions.installed()}),
    "sources": _one("sources.json", "state of each source, and its unreadable lines",
        lambda of: list(_sources(of))),
    "events": _one("events.json", "starts, ends, errors and checkpoints that the logs tell of",
        _events),
    "log ends": _log_pieces,
    "metrics": _metrics,
    "charts": _one("charts.txt", "the most important curves", _charts),
    "gpus": _one("gpus.json", "the GPUs of the machine that made this bundle", _gpus),
    "processes": _one("processes.json", "processes of the run on that machine", _processes),
    "stacks": lambda of: _stacks(of) if of.stacks else (),
    "samples": lambda of: _one("samples.json", "the newest samples", _samples)(of)
        if of.samples else (),
}  # fmt: skip
"""The parts in their order in the archive, each with what makes its files."""


# -- the archive -----------------------------------------------------------------------------------


_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The first time that a zip file can state."""


class BundledFile(NamedTuple):
    """A file of a bundle."""

    name: str
    """Its path in the archive."""
    about: str
    """A few words for the list of contents."""
    content: Any
    """A text; else mappings, lists, texts and numbers, which become JSON; bytes once masked."""


def masked_files(
    pieces: Sequence[BundledFile], mask: Mask, words: Iterable[str]
) -> list[BundledFile]:
    """Return the files with everything hidden that gives access or names people.

    Args:
        pieces: The files as they were gathered.
        mask: Hides; learns the names of users and hosts from all files first.
        words: Names of metrics and settings, which are nobody's.
    """
    mask.spare(words)
    for piece in pieces:
        mask.learn(_as_text(piece.content))
    found = []
    for name, about, content in pieces:
        hide = mask.text if isinstance(content, str) else mask.data
        data = _as_text(hide(content)).encode("utf-8", "replace")
        found.append(BundledFile(mask.text(name), about, data))
    return found


def _as_text(content: Any) -> str:
    """Return a text as it is, data as JSON, which knows neither NaN nor infinity."""
    if isinstance(content, str):
        return content
    return json.dumps(content, indent=2, ensure_ascii=False, default=str) + "\n"


def zipped(files: Iterable[BundledFile]) -> bytes:
    """Return the files as a zip archive, in the order given and without times."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            info = zipfile.ZipInfo(file.name, _EPOCH)
            info.create_system = 3  # Unix, whose file modes follow
            info.external_attr = 0o100600 << 16  # a file for its owner alone
            archive.writestr(info, file.content, zipfile.ZIP_DEFLATED)
    return out.getvalue()
