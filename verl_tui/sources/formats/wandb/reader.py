"""W&B's transaction log, `wandb/{,offline-}run-<time>-<id>/run-<id>.wandb`, as it lies on disk,
online or offline.

Its chunks: `verl_tui.sources.formats.record_log`. The records are messages `Record` of
wandb/proto/wandb_internal.proto (wandb 0.31).

The step. W&B counts its own (`_step`), mostly the calls of `wandb.log`. verl passes the trainer's
step, others do not: TRL and Hugging Face log the trainer's as `train/global_step`, every ten steps
or so. So the step of a record is the trainer's if the record has it under one of the names of
`_STEPS`, else the trainer's last one; runs that never log it keep W&B's own count. No value is
changed by this, and `train/global_step` stays a metric.

Of the console that it keeps only what that says of the run's end is read: the history has the
metrics, and W&B's `output.log` the lines.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from verl_tui.records import Event, EventKind, Settings, Unreadable
from verl_tui.sources.fields.jsonl import integer
from verl_tui.sources.fields.lists import histograms
from verl_tui.sources.fields.protobuf import message
from verl_tui.sources.fields.row_batcher import MetricRow
from verl_tui.sources.fields.setting_values import flatten_settings
from verl_tui.sources.files.tail import opened
from verl_tui.sources.formats.console.bars import WHOLE_BAR
from verl_tui.sources.formats.console.errors import ErrorReader, may_fail
from verl_tui.sources.formats.console.prefixes import parted
from verl_tui.sources.formats.format import Parts
from verl_tui.sources.formats.record_log import BLOCK, RecordLog, first_record
from verl_tui.sources.formats.wandb.items import (
    HISTORY_ITEM,
    STATS_ITEM,
    item_of,
    items_of,
    json_value,
    values_of,
)
from verl_tui.text import one_line, safe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from verl_tui.records import Record


_ENDS = {EventKind.TRACEBACK, EventKind.FATAL, EventKind.STOPPED}
_LONGEST = 2**16
"""Bytes of a line without an end that are kept."""


class KeptConsole:
    """Reads the pieces of one console."""

    def __init__(self) -> None:
        self.last: Event | None = None
        """Its last words on an end, None where further steps came after them."""
        self._is_new = False
        """True if no step came after them: that of the last step may, as it waits for more."""
        self._begin()

    def _begin(self) -> None:
        self._events = ErrorReader()
        self._line = b""

    def step(self) -> None:
        """Note that a step was logged: tracebacks before it ended nothing."""
        self.last = self.last if self._is_new else None
        self._is_new = False
        self._begin()

    def concerns(self, piece: bytes) -> bool:
        """Return whether a piece may say something of an end; a quick test, since most do not."""
        return bool(self._line) or self._events.is_open or may_fail(piece)

    def read(self, written: bytes, number: int) -> None:
        """Take a piece of the trainer's output.

        Args:
            written: What was written, of any length.
            number: The number of its record.
        """
        *lines, rest = (self._line + written.replace(b"\r", b"\n")).split(b"\n")
        self._line = rest[-_LONGEST:]
        for line in lines:
            _, prefix, part = parted(WHOLE_BAR.sub(b"", line), added=False)
            for event in self._events.read(prefix, part, number) if part else ():
                if event.kind in _ENDS and _is_own(event):
                    self.last = event._replace(actor="")
                    self._is_new = True


def _is_own(event: Event) -> bool:
    """Return whether the process that logs to W&B says why it ended, not only that it does."""
    other = event.actor and not event.actor.startswith("rank")
    return not other and not event.text.endswith("Traceback (most recent call last):")


# Field numbers, by message.
_HISTORY, _CONFIG, _STATS, _RUN, _EXIT, _ENVIRONMENT = 2, 5, 7, 17, 18, 26  # Record
_OUTPUT, _OUTPUT_RAW = 4, 13  # Record: a line of the console, a piece of it
_OUTPUT_TEXT = 3  # OutputRecord, OutputRawRecord
_HISTORY_STEP = 2  # HistoryRecord; a message whose first field is the step
_STATS_TIME = 2  # StatsRecord
_UPDATE = 1  # ConfigRecord
_RUN_CONFIG = 4  # RunRecord
_RUN_TEXTS = {
    1: "id", 2: "entity", 3: "project", 6: "group", 7: "job_type", 8: "name", 9: "notes",
    12: "sweep", 13: "host",
}  # fmt: skip
_ENVIRONMENT_TEXTS = {6: "program", 12: "host", 18: "gpu"}
_EXIT_CODE = 1  # RunExitRecord
_CTRL_C = 255
"""The exit code that wandb states for a KeyboardInterrupt (wandb/sdk/lib/exit_hooks.py)."""

_STEPS = (
    "train/global_step",
    "global_step",
    "trainer/global_step",
    "training/global_step",
    "eval/global_step",
)
"""Names of the trainer's step: TRL and Hugging Face, OpenRLHF, Lightning, verl."""
_TIMED = "profiling/"
"""TRL's time of a function, logged during a step, or at step 0 (trl/extras/profiling.py)."""
_ENOUGH = 100
"""Records of the history after which a trainer that has not stated its step is taken to do so
never: TRL's are logged behind dozens of a step's timings.
"""
_MOST_SCHEMAS = 10_000


_Schema = tuple[tuple[str, ...], tuple[str, ...], bool]
"""Of records with the same names: the names of their metrics, in the order in which the first such
record had them; the keys of these; whether they are of a finished step, not only of a part of one.
"""


class RecordDecoder:
    """Decodes records in their order; remembers the trainer's step, which some do not state."""

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self._step: int | None = 0
        """Step that the history has reached, None if a part of it was lost."""
        self._stated = False
        """True once a record has stated the trainer's step."""
        self._counted = 0
        """Records so far with W&B's own step."""
        self.began_to_state = False
        """True if a record has stated the trainer's step after others had W&B's own."""
        self._number = 0
        """Number of the current record."""
        self._schemas: dict[tuple[str, frozenset[str]], _Schema] = {}
        """By what begins their keys, and their names."""
        self._console = KeptConsole()
        self._read: dict[int, Callable[[bytes], Iterable[MetricRow | Record]]] = {
            _HISTORY: self._history,
            _STATS: self._stats,
            _CONFIG: self._config,
            _RUN: self._run,
            _ENVIRONMENT: partial(self._about, _ENVIRONMENT_TEXTS),
            _OUTPUT: self._output,
            _OUTPUT_RAW: self._output,
            _EXIT: self._exit,
        }

    @property
    def knows_steps(self) -> bool:
        """True once a record has stated the trainer's step, or enough have not."""
        return self._stated or self._counted >= _ENOUGH

    def lose(self) -> None:
        """Note that a part of the log is lost: the step is unknown until a record states one."""
        self._step = None

    def skipped(self) -> RecordDecoder:
        """Return a decoder of later records; if none so far has shown whose steps they have, it
        takes only the trainer's.
        """
        later = RecordDecoder(self._origin)
        later.lose()
        later._stated = self._stated or not self._counted
        return later

    def decode(self, record: bytes, number: int) -> Iterable[MetricRow | Record]:
        """Return the rows and other records of one message.

        Args:
            record: A message `Record`.
            number: Its number in the file, from 1.

        Raises:
            ValueError: It is no such message.
        """
        self._number = number
        found = message(record)
        for field in found.keys() & self._read.keys():
            return tuple(self._read[field](found.part(field) or b""))
        return ()

    def _history(self, record: bytes) -> Iterator[MetricRow | Record]:
        """Yield the metrics of one step, which come in any order."""
        items = items_of(record, HISTORY_ITEM)
        further, parts = values_of(items.others)
        numbers = items.numbers | further
        self._reach(numbers, items.other(_HISTORY_STEP))
        for flaw in parts.flaws:
            yield Unreadable(self._number, one_line(flaw.reason), "")
        names, keys, done = self._schema(numbers)
        if keys and self._step is not None:
            values = tuple(map(numbers.__getitem__, names))
            time = numbers.get("_timestamp")
            if done:
                self._console.step()
            yield MetricRow(
                self._step, keys, values, time, mean=not done, progress=done
            )
            yield from histograms(parts.found, self._step)

    def _reach(self, numbers: Mapping[str, float], own: bytes | None) -> None:
        """Note the step of a record of the history: the trainer's, else W&B's own."""
        steps = (integer(numbers.get(key)) for key in _STEPS)
        trainer = next((step for step in steps if step is not None), None)
        if trainer is not None:
            self.began_to_state = self.began_to_state or (
                self._counted > 0 and not self._stated
            )
            self._step = trainer
            self._stated = True
        elif not self._stated:
            counted = numbers.get("_step") if own is None else message(own).integer(1)
            self._step = integer(counted)
            self._counted += 1

    def _stats(self, record: bytes) -> Iterator[MetricRow]:
        """Yield system figures, at the step that the history has reached."""
        items = items_of(record, STATS_ITEM)
        further, _ = values_of(items.others)
        values = items.numbers | further
        if values and self._step is not None:
            names, keys, _ = self._schema(values, "system/")
            row = tuple(map(values.__getitem__, names))
            at = items.other(_STATS_TIME)
            time = None if at is None else _time(at)
            yield MetricRow(self._step, keys, row, time, mean=True, progress=False)

    def _schema(self, values: Mapping[str, float], prefix: str = "") -> _Schema:
        """Return the schema of a record; W&B's own names in the history are not metrics."""
        kind = prefix, frozenset(values)
        known = self._schemas.get(kind)
        if known is None:
            names = tuple(name for name in values if prefix or not name.startswith("_"))
            keys = tuple(prefix + safe(name, 300) for name in names)
            timed = any(name.startswith(_TIMED) for name in names)
            further = any(not name.startswith(_TIMED) for name in {*names} - {*_STEPS})
            known = names, keys, further or not timed
            if len(self._schemas) < _MOST_SCHEMAS:
                self._schemas[kind] = known
        return known

    def _config(self, record: bytes) -> Iterator[Settings]:
        """Yield settings as they are set or changed."""
        values: dict[str, Any] = {}
        for path, value in map(item_of, message(record).parts(_UPDATE)):
            if path[0] != "_wandb":
                values |= flatten_settings({".".join(path): json_value(value)})
        if values:
            yield Settings(values, self._origin)

    def _run(self, record: bytes) -> Iterator[Settings]:
        """Yield the run's settings and identity."""
        yield from self._config(message(record).part(_RUN_CONFIG) or b"")
        yield from self._about(_RUN_TEXTS, record)

    def _about(self, names: Mapping[int, str], record: bytes) -> Iterator[Settings]:
        """Yield the texts in some fields of a record."""
        found = message(record)
        known = [field for field in names if field in found]
        texts = {names[field]: found.text(field) for field in known}
        if texts:
            yield Settings(flatten_settings({"wandb": texts}), self._origin)

    def _output(self, record: bytes) -> Iterable[Event]:
        """Take a piece of the console, whose words on an end count once there is one."""
        if self._console.concerns(record):
            for text in message(record).parts(_OUTPUT_TEXT):
                self._console.read(text, self._number)
        return ()

    def _exit(self, record: bytes) -> Iterator[Event]:
        """Yield the end of the run with its exit code, and its cause where the console has it."""
        code = message(record).integer(_EXIT_CODE)
        said = f"W&B: the run exited with code {code}"
        self._console.read(b"\n", self._number)
        cause = self._console.last
        kind = EventKind.FATAL if code else EventKind.EXITED
        if code == _CTRL_C and cause is None:
            kind = EventKind.STOPPED
            said += ", that of a KeyboardInterrupt"
        yield Event(kind, said, self._number, bare=bool(code))
        if code and cause is not None:
            stopped = cause.kind is EventKind.STOPPED
            kind = cause.kind if stopped else EventKind.FATAL
            yield cause._replace(kind=kind, bare=not stopped)


def _time(written: bytes) -> float:
    """Return the seconds since the epoch of a `google.protobuf.Timestamp`."""
    found = message(written)
    return found.integer(1) + found.integer(2) / 1e9


name = "W&B run"
rank = 4
anchor = True
absolute = True  # its records state seconds since the epoch

HEADER = b":W&B\xe1\xbe\0"
"""Name, magic number 0xBEE1 and version (wandb's core/pkg/leveldb/header.go)."""
_TITLED = 2 * BLOCK
"""Bytes within which a run states its name."""


def matches(path: Path, head: bytes) -> bool:
    """Return whether a `.wandb` begins as W&B begins it; the header of a young run may still be on
    its way.
    """
    return path.suffix == ".wandb" and HEADER.startswith(head[: len(HEADER)])


def run_title(path: Path) -> str | None:
    """Return the name of a run at W&B, empty if it has none, None if its log does not state it
    yet.
    """
    try:
        return _title(path, min(path.stat().st_size, _TITLED))
    except OSError:
        return None


@lru_cache(maxsize=4096)
def _title(path: Path, size: int) -> str | None:
    with opened(path) as file:
        records = WandbReader(path).feed(file.read(size))
    settings = [record.values for record in records if isinstance(record, Settings)]
    names = [str(values.get("wandb.name") or "") for values in settings]
    return next(filter(None, names), "" if settings else None)


class WandbReader(RecordLog):
    """Reads one file."""

    header = HEADER

    def __init__(self, path: Path | str, at: int = 0) -> None:
        """Begin to read a file at a place."""
        self._origin = str(path)
        super().__init__(at)

    def _begin(self, at: int = 0) -> None:
        super()._begin(at)
        self._decoder = RecordDecoder(self._origin)

    def decode(self, record: bytes, number: int) -> Iterable[MetricRow | Record]:
        """Return what a record says."""
        return self._decoder.decode(record, number)

    def lose(self) -> None:
        """Note that the step is unknown until a record states one: what follows may belong to a
        later one.
        """
        self._decoder.lose()

    @property
    def needs_beginning(self) -> bool:
        """True if its first rows have W&B's steps, while the part before them may have had the
        trainer's.
        """
        return self._start > 0 and self._decoder.began_to_state

    @property
    def knows_steps(self) -> bool:
        """True once the history has shown whose steps its records have."""
        return self._decoder.knows_steps

    def later(self, at: int) -> WandbReader:
        """Return a reader of the records from a later place in the file on."""
        later = WandbReader(self._origin, at)
        later._decoder = self._decoder.skipped()
        return later


reader = WandbReader
parts = Parts(partial(first_record, header=len(HEADER)), WandbReader.later)
"""The beginning shows whose steps the records have. Where the history does not begin there, only
records that state the trainer's step are taken, and those that follow them.
"""
