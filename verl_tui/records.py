"""Records: small and immutable, the only thing that crosses from the reading thread to the rest.

A source never touches a run. It yields records; `verl_tui.monitor` applies them.
Times are seconds since the Unix epoch, steps are the trainer's optimiser steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

SAMPLES = "samples"
"""Name of the format of files that hold samples alone: where they state no step, a run of them is
an evaluation.
"""
_NOTHING: Mapping[str, Any] = {}
"""Never changed: what is said where there is nothing."""


class MetricRows(NamedTuple):
    """Numbers of one or more steps that share the same keys.

    `columns[i][j]` is the value of `keys[i]` at `steps[j]`. A missing key is simply not in `keys`;
    a value that was logged but is not finite stays `nan` or `inf`.
    """

    keys: tuple[str, ...]
    steps: Sequence[int]
    columns: Sequence[Sequence[float]]
    orders: Sequence[int]
    """Place of each row among all rows of its file since the file began: of two values for one step
    the later holds.
    """
    times: Sequence[float] = ()
    """Wall-clock time of each row where the log states one, else empty."""
    mean: bool = False
    """True if a repeated step means several measurements to be averaged, false if the last
    one wins.
    """
    progress: bool = True
    """False if the rows mention steps without showing that training has reached them: figures of
    samples.
    """
    estimated: bool = False
    """True if the log states no steps: they were estimated from the records around the rows."""


class Histogram(NamedTuple):
    """Histogram of the values of one metric at one step, in bins of equal width.

    Its quantiles come beside it, as rows under `key/p05` … `key/p95`.
    """

    key: str
    step: int
    low: float
    """Where the first bin begins."""
    high: float
    """Where the last one ends; equal to `low` if all values are the same."""
    counts: Sequence[float]
    """Count in each of `verl_tui.distributions.BINS` bins."""
    order: int = 0
    """If several files are one log: its position in all of them, as for rows."""


class Sample(NamedTuple):
    """One prompt with one response. All text has passed `verl_tui.text.safe`."""

    step: int | None
    prompt: str
    response: str
    score: float | None = None
    ground_truth: str | None = None
    group: str | None = None
    """Samples of one prompt share a group; None if the log does not say."""
    extras: Mapping[str, Any] = _NOTHING
    """Further fields of the record: reward components, predictions, turns."""
    validation: bool = False


class Dump(NamedTuple):
    """A file with the samples of one step, read when it is shown."""

    step: int
    path: str
    validation: bool
    size: int
    """Bytes."""
    removed: bool = False
    """True if the file is no longer there."""
    modified: float | None = None
    """Time of its last change."""


@dataclass(frozen=True, slots=True)
class SampleFacts:
    """A sample without its text: enough to sort, group and count by."""

    index: int
    """Its place in the file or the log, from 0."""
    score: float | None
    group: str | None
    """Samples of one prompt share it."""
    length: int
    """Characters of the response."""
    numbers: Mapping[str, float]
    """Further fields that are numbers."""
    validation: bool
    prompt: str | None = None
    """The same for all samples of one prompt, at any step; None without a prompt."""


class Progress(NamedTuple):
    """Stated progress: tqdm bars, `Total training steps: N`, `Size of train dataloader: N`."""

    step: int | None = None
    total: int | None = None
    """Steps of the whole run."""
    elapsed: float | None = None
    """Seconds since the bar began, by its own count."""
    per_epoch: int | None = None
    """Steps of one pass over the data."""


class EventKind(Enum):
    """Turning points in the life of a run."""

    STARTED = "started"
    RESUMED = "resumed"
    CHECKPOINT = "checkpoint"
    BEST = "best"
    """A checkpoint whose name calls it the best; often without a step."""
    SAVED = "saved"
    """A checkpoint is known to be complete."""
    REMOVED = "removed"
    """A checkpoint is no longer there."""
    FINISHED = "finished"
    EXITED = "exited"
    """The process ended without an error code; its own words carry more weight."""
    TRACEBACK = "traceback"
    """A Python traceback: may be harmless (optional imports, clean-up at exit)."""
    FATAL = "fatal"
    """The driver itself died: Ray task error, out of memory, hydra's closing error line."""
    STOPPED = "stopped"
    """It was ended from outside: by a signal, a scheduler, the user."""
    STAGE = "stage"
    """The phase of the run between two steps; reported if nothing more comes."""
    WARNING = "warning"
    """A line of trouble that ends nothing by itself."""


ENDS = (
    EventKind.FINISHED,
    EventKind.STOPPED,
    EventKind.FATAL,
    EventKind.EXITED,
    EventKind.TRACEBACK,
)
"""Kinds of events that end a run, the surest first."""


class Phase(NamedTuple):
    """The phase of training in which a run failed."""

    words: str
    """For a sentence: `scoring responses`."""
    function: str
    """The function in the traceback that shows it: `_validate() in ray_trainer.py`."""


class Event(NamedTuple):
    """A turning point, with the line that says so."""

    kind: EventKind
    text: str
    line: int
    """Line number in the source, from 1."""
    step: int | None = None
    actor: str = ""
    """The worker that said it, `AgentLoopWorker` or `rank 3`; empty for the driver, whose errors
    end the run.
    """
    where: str = ""
    """Its process and node, as far as they are stated: `pid 52003, ip 10.0.0.9`."""
    rank: int | None = None
    """Its rank."""
    raised: bool = False
    """True for an error that ended something: the exception of a traceback, a signal, a driver's
    last words; False for a line that only reports trouble.
    """
    chained: str = ""
    """`handled` if it was raised while the exception before it, of the same process, was handled;
    `caused` if that was its cause.
    """
    frame: str = ""
    """The innermost call of its traceback outside installed packages: `score() in reward.py:31`."""
    times: int = 1
    """How often it was printed, with lines alike that are not told one by one: by Ray's note, or as
    they were counted.
    """
    clock: int | None = None
    """Seconds of the day at which it was printed, as the line states them."""
    bare: bool = False
    """True if it only says that the run failed: any line that gives a reason takes precedence."""
    phase: Phase | None = None
    """What the run was doing, None if no traceback shows it."""


class Pulse(NamedTuple):
    """A sign that the process is alive, without news of its training: a time in a line, counters
    while it waits.
    """

    time: float | None
    """When, as the line states it."""
    counters: str
    """The counters, empty if it is only a time."""


CONSOLE = "console"
"""Origin of settings that the trainer printed."""
LAUNCH = "launch command"
"""Origin of settings that stood in the command that started the training."""


class Settings(NamedTuple):
    """Settings of the run as a flat mapping `actor_rollout_ref.actor.clip_ratio -> 0.2`."""

    values: Mapping[str, Any]
    origin: str = ""
    """Their origin: a path, `CONSOLE` or `LAUNCH`; empty for the path of their source."""


class Unreadable(NamedTuple):
    """One line that no reader understood."""

    line: int
    """Line number in the source, from 1."""
    reason: str
    excerpt: str
    """The beginning of the line, made safe."""


class Restart(NamedTuple):
    """The file was truncated or replaced: what follows is a new segment."""

    reason: str
    step: int | None = None
    """Given by a dump of samples: only the samples of this step are written again."""
    validation: bool = False
    """True if those samples are validation samples."""


Record = (
    MetricRows
    | Histogram
    | Sample
    | Dump
    | Progress
    | Event
    | Pulse
    | Settings
    | Unreadable
    | Restart
)
Records = tuple[Record, ...]


def digest(*parts: str) -> str:
    """Return a short word that stands for these, and hardly ever for others."""
    from hashlib import sha256

    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:12]


class Writer(NamedTuple):
    """The process on this host that holds a log open for writing, or created it."""

    pid: int
    """0 where it is only known to be gone."""
    name: str
    """Command as in the process list; empty if hidden."""
    gone: bool = False
    """True if it has ended, and no other process holds the file."""
    by_name: bool = False
    """True if only the file's name shows it: it created the file, but may no longer write it."""
    stopped: bool = False
    """True if it is stopped until it is continued: SIGSTOP, Ctrl+Z."""
    began: float = 0.0
    """When it began, in seconds since the epoch; 0 where only the file's name shows it."""
    jobs: Mapping[Any, str] = _NOTHING
    """The groups of processes that write the file, as far as known, each with the name of one."""

    @property
    def words(self) -> str:
        """Name it: `python train.py (process 4711)`."""
        if not self.pid:
            return self.name
        if self.by_name:
            return f"process {self.pid}, which began the event file,"
        return f"{self.name or 'a process'} (process {self.pid})"


CLOSED = Writer(0, "what wrote to standard input", gone=True)


class SourceStatus(NamedTuple):
    """State of a source: the monitor watches itself."""

    path: str
    format: str
    """Name of the format, e.g. `console`."""
    rank: int = 0
    """Trust in the format, 0..15: where two sources give a value for one step, the higher rank
    holds.
    """
    ordinal: int = 0
    """Place among the run's sources, by age: of two equal ones the later holds."""
    records: int = 0
    unreadable: int = 0
    bytes_read: int = 0
    size: int = 0
    modified: float | None = None
    """Time of the file's last change."""
    problem: str | None = None
    """Why the source is down (permission, vanished), None while it is up."""
    note: str | None = None
    """A remark on its figures, e.g. that they cover a part only."""
    absolute: bool = False
    """True if the times that its records state count from the epoch, so that no zone is in
    doubt.
    """
    program: str | None = None
    """The program that wrote it, if several use the format and it shows: `TRL console`."""
    origin: str = ""
    """Made of where a log lies and of its first line, which stay while it grows; empty for what is
    no log.
    """
    findings: tuple[tuple[str, str], ...] = ()
    """Ids and severities of the findings that verl-tui's exporter states now."""

    @property
    def title(self) -> str:
        """Name for users."""
        return self.program or self.format

    @property
    def whole(self) -> bool:
        """True if all that is there has been read."""
        return self.bytes_read >= self.size

    writer: Writer | None = None
    """The process that writes it, None if hidden: another host, another container."""
    unheld: bool = False
    """True if all of this host's processes were looked at, and none holds the file, which lies on
    this host's disk.
    """
    counts_steps: bool = False
    """True if it does not state the steps of most records: they were counted or estimated."""
    unread_form: str = ""
    """Says which lines look like metrics that cannot be read, where it shows no step."""
    to_come: bool = False
    """True while a replay has more of it to play."""


class Reread(NamedTuple):
    """A run is read again from its beginning: a file turned out to have another format."""

    run: str
    left: bool
    """False if nothing is left that belongs to a run of this name."""


class Batch(NamedTuple):
    """A bounded number of records of one source of one run."""

    run: str
    """Name of the run, unique within the monitor."""
    status: SourceStatus
    records: tuple[Record, ...] = ()
    live: bool = False
    """True if the records were appended while we watched, so that their arrival time is their
    time.
    """

    def newest(self) -> dict[bool, int]:
        """Return the step that it has just brought, of rows that show progress and of others.

        Of several steps at once, all but the last came some time before; after an unfinished read,
        all may have.
        """
        found: dict[bool, int] = {}
        for rows in self.records if self.status.whole else ():
            if isinstance(rows, MetricRows):
                found[rows.progress] = max(
                    *rows.steps, found.get(rows.progress, rows.steps[0])
                )
        return found


POWER_CAP = "power cap"
"""A board that holds its own power limit: usual at full load in a data centre, unlike all other
throttling.
"""


class Preview(NamedTuple):
    """The ends of a run's long logs, to be shown until all of them have been read."""

    run: str
    """Name of the run."""
    end: tuple[Batch, ...]
    """The beginnings and ends of its logs."""


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process that computes on a device, as far as this host shows it."""

    pid: int
    name: str = ""
    """Command, e.g. `python -m verl.trainer.main_ppo`; empty if hidden, as in containers."""
    memory: int | None = None
    """Bytes."""
    cwd: str = ""
    """Directory it works in, empty if it cannot be seen."""
    line: frozenset[int] = frozenset()
    """Its own number, and those of the processes that it descends from."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """One reading of one device. None = the device or driver does not report it."""

    index: str
    """`0`, or `0:1` for MIG instance 1 of device 0."""
    name: str
    utilization: float | None = None
    """Share of the last interval in which a kernel ran, 0..100%."""
    memory_used: int | None = None
    """Bytes."""
    memory_total: int | None = None
    """Bytes."""
    temperature: float | None = None
    """Degrees Celsius."""
    power: float | None = None
    """Watts."""
    power_limit: float | None = None
    """Watts."""
    throttle: tuple[str, ...] | None = None
    """Reasons for slower clocks: `thermal`, `power brake`, `hw slowdown`, or `POWER_CAP`; empty
    where nothing does.
    """
    processes: tuple[GpuProcess, ...] | None = None
    """Processes on it, the greatest memory first."""
    fault: str = ""
    """Why the driver no longer reaches it, e.g. `fell off the bus`; empty while it does."""


@dataclass(frozen=True, slots=True)
class GpuReading:
    """All devices of this host at one moment, or why there are none."""

    time: float
    gpus: tuple[Gpu, ...] = ()
    problem: str | None = None
    """A sentence, e.g. `no NVIDIA driver here`; None while devices are read."""
    host: str = ""
    """Name of this host."""
