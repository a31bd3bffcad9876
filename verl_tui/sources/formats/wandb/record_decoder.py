"""Decodes the records of a W&B log (`Record` in wandb/proto/wandb_internal.proto, wandb 0.31).

The step. W&B counts its own (`_step`), mostly the calls of `wandb.log`. verl passes the trainer's
step, others do not: TRL and Hugging Face log the trainer's as `train/global_step`, every ten steps
or so. So the step of a record is the trainer's if the record has it under one of the names of
`_STEPS`, else the trainer's last one; runs that never log it keep W&B's own count. No value is
changed by this, and `train/global_step` stays a metric.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from verl_tui.records import Event, EventKind, Settings, Unreadable
from verl_tui.sources.fields.jsonl import integer
from verl_tui.sources.fields.lists import histograms
from verl_tui.sources.fields.protobuf import message
from verl_tui.sources.fields.row_batcher import MetricRow
from verl_tui.sources.fields.setting_values import flatten_settings
from verl_tui.sources.formats.wandb.items import (
    HISTORY_ITEM,
    STATS_ITEM,
    item_of,
    items_of,
    json_value,
    values_of,
)
from verl_tui.sources.formats.wandb.kept_console import KeptConsole
from verl_tui.text import one_line, safe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from verl_tui.records import Record

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
