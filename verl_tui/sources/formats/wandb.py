"""W&B's transaction log, `wandb/{,offline-}run-<time>-<id>/run-<id>.wandb`, as it lies on disk,
online or offline.

Its chunks: `verl_tui.sources.formats.record_log`. The records are messages `Record` of
wandb/proto/wandb_internal.proto (wandb 0.31).

The step. W&B counts its own (`_step`), mostly the calls of `wandb.log`. verl passes the trainer's
step, others do not: TRL and Hugging Face log the trainer's as `train/global_step`, every ten steps
or so. So the step of a record is the trainer's if the record has it (`TrackerStep`), else the
trainer's last one; runs that never log it keep W&B's own count. No value is changed by this, and
`train/global_step` stays a metric.

Of the console that it keeps only what that says of the run's end is read: the history has the
metrics, and W&B's `output.log` the lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson

from verl_tui.patterns import pattern
from verl_tui.records import Event, EventKind, Record, Settings, Unreadable
from verl_tui.sources.fields.histograms import FieldHistograms, pop_histograms
from verl_tui.sources.fields.jsonl import (
    Fields,
    flatten,
    loads,
    numbers_in,
    worded_number,
)
from verl_tui.sources.fields.protobuf import MessageFields, message, seconds
from verl_tui.sources.fields.row_batcher import Item, MetricRow, metric_keys
from verl_tui.sources.fields.setting_values import flatten_settings
from verl_tui.sources.fields.steps import TRAINERS, TrackerStep
from verl_tui.sources.files import opened
from verl_tui.sources.formats.console.errors import ErrorReader, may_fail
from verl_tui.sources.formats.console.line_parts import WHOLE_BAR, parted
from verl_tui.sources.formats.console.step_lines import STEP
from verl_tui.sources.formats.record_log import BLOCK, RecordLog
from verl_tui.text import decoded, one_line

name = "W&B run"
rank = 4
anchor = True
absolute = True  # its records state seconds since the epoch

HEADER = b":W&B\xe1\xbe\0"
"""Name, magic number 0xBEE1 and version (wandb's core/pkg/leveldb/header.go)."""
_TITLED = 2 * BLOCK
"""Bytes within which a run states its name."""

# Field numbers, by message.
_HISTORY, _OUTPUT, _CONFIG, _STATS, _OUTPUT_RAW = 2, 4, 5, 7, 13  # Record
_RUN, _EXIT, _ENVIRONMENT = 17, 18, 26
_HISTORY_ITEM, _STATS_ITEM = 1, 3  # HistoryRecord, StatsRecord
_HISTORY_STEP = 2  # HistoryRecord; a message whose first field is the step
_STATS_TIME = 2  # StatsRecord
_KEY, _NESTED_KEY, _VALUE = 1, 2, 16  # HistoryItem, StatsItem, ConfigItem
_OUTPUT_TEXT = 3  # OutputRecord, OutputRawRecord
_UPDATE = 1  # ConfigRecord
_RUN_CONFIG = 4  # RunRecord
_EXIT_CODE = 1  # RunExitRecord
_CTRL_C = 255
"""The exit code that wandb states for a KeyboardInterrupt (wandb/sdk/lib/exit_hooks.py)."""

_TIMED = "profiling/"
"""TRL's time of a function, logged during a step, or at step 0 (trl/extras/profiling.py)."""
_ITEM = (
    rb"%b[\x00-\x7f]%b[\x00-\x7f]([ -~]{1,100})"
    rb"\x82\x01[\x00-\x7f](-?\d[-+.\deE]{0,100}|NaN|-?Infinity)"
)
_ITEMS = {
    _HISTORY_ITEM: pattern(_ITEM % (rb"\x0a", rb"[\x0a\x12]")),
    _STATS_ITEM: pattern(_ITEM % (rb"\x1a", rb"\x0a")),
}
"""Patterns of an item of the usual form, a short name and a number, each behind its tag and its
length. What follows a name, `\\x82\\x01`, never does within a text.
"""
_LONGEST = 2**16
"""Bytes of a line of the console without an end that are kept."""
_ENDS = {EventKind.TRACEBACK, EventKind.FATAL, EventKind.STOPPED}


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
        names = WandbReader().titles(file.read(size), "wandb.name")
    return next(filter(None, names), "" if names else None)


class WandbReader(RecordLog):
    """Reads one file; remembers the trainer's step, which some records do not state."""

    header = HEADER

    def __init__(self, _path: object = None) -> None:
        super().__init__()
        self._counter = TrackerStep()
        """The step that the history has reached, unknown if a part of it was lost."""
        self._counter.step = 0
        self._number = 0
        """Number of the current record."""
        self._errors = ErrorReader()
        self._line = b""
        """What was printed after the last line."""
        self._done = 0
        """Finished steps so far."""
        self._cause: tuple[int, Event] | None = None
        """The last words on an end, and how many steps had been finished then."""

    def lose(self) -> None:
        """Note that the step is unknown until a record states one: what follows may belong to a
        later one.
        """
        self._counter.step = None

    def decode(self, record: bytes, number: int) -> Iterable[Item]:
        """Return the rows and other records of one message."""
        self._number = number
        found = message(record)
        for field in found.keys() & _READ.keys():
            return _READ[field](self, found.part(field) or b"")
        return ()

    def _history(self, record: bytes) -> Iterator[Item]:
        """Yield the metrics of one step, which come in any order."""
        numbers, found, rest = _items(record, _HISTORY_ITEM)
        own = rest.part(_HISTORY_STEP)
        counted = numbers.get("_step") if own is None else message(own).integer(1)
        self._counter.reach(numbers, counted)
        for flaw in found.flaws:
            yield Unreadable(self._number, one_line(flaw), "")
        names, keys, done = _schema(frozenset(numbers))
        if keys and (at := self._counter.step) is not None:
            self._done += done
            values = tuple(map(numbers.__getitem__, names))
            time = numbers.get("_timestamp")
            yield MetricRow(at, keys, values, time, mean=not done, progress=done)
            yield from found.records(at)

    def _stats(self, record: bytes) -> Iterator[MetricRow]:
        """Yield system figures, at the step that the history has reached."""
        numbers, _, rest = _items(record, _STATS_ITEM)
        if numbers and (step := self._counter.step) is not None:
            names, keys, _ = _schema(frozenset(numbers), "system/")
            values = tuple(map(numbers.__getitem__, names))
            at = rest.part(_STATS_TIME)
            time = None if at is None else seconds(at)
            yield MetricRow(step, keys, values, time, mean=True, progress=False)

    def _config(self, record: bytes) -> Iterator[Settings]:
        """Yield settings as they are set or changed."""
        values: Fields = {}
        for path, value in map(_item, message(record).parts(_UPDATE)):
            if path[0] != "_wandb":
                values |= flatten_settings({".".join(path): value})
        if values:
            yield Settings(values)

    def _run(self, record: bytes) -> Iterator[Settings]:
        """Yield the run's settings and identity."""
        yield from self._config(message(record).part(_RUN_CONFIG) or b"")
        yield from self.about(record, "wandb.run")

    def _environment(self, record: bytes) -> Iterator[Settings]:
        """Yield where it runs."""
        return self.about(record, "wandb.environment")

    def _output(self, record: bytes) -> Sequence[Record]:
        """Take a piece of the console, whose words on an end count once there is one."""
        # most say nothing of an end
        if self._line or self._errors.is_open or may_fail(record):
            for text in message(record).parts(_OUTPUT_TEXT):
                written = self._line + text.replace(b"\r", b"\n")
                *lines, rest = written.split(b"\n")
                self._line = rest[-_LONGEST:]
                for line in lines:
                    self._heed(line)
        return ()

    def _heed(self, line: bytes) -> None:
        """Note what a line of the console says of an end; a step line says nothing."""
        if not self._errors.framed and STEP.match(line):
            return
        line = WHOLE_BAR.sub(b"", line)
        has_text = parted(line, added=False).text  # a bar that was cleared has none
        for event in self._errors.read(line, self._number) if has_text else ():
            if event.kind in _ENDS and _is_own(event):
                self._cause = self._done, event._replace(actor="")

    def _exit(self, record: bytes) -> Iterator[Event]:
        """Yield the end of the run with its exit code, and its cause where the console has it."""
        code = message(record).integer(_EXIT_CODE)
        said = f"W&B: the run exited with code {code}"
        self._heed(self._line)
        done, cause = self._cause or (0, None)
        if done + 1 < self._done:  # that of the last step may come late
            cause = None
        kind = EventKind.FATAL if code else EventKind.EXITED
        if code == _CTRL_C and not cause:
            kind = EventKind.STOPPED
            said += ", that of a KeyboardInterrupt"
        yield Event(kind, said, self._number, bare=bool(code))
        if code and cause:
            stopped = cause.kind is EventKind.STOPPED
            kind = cause.kind if stopped else EventKind.FATAL
            yield cause._replace(kind=kind, bare=not stopped)


_READ = {
    _HISTORY: WandbReader._history,
    _STATS: WandbReader._stats,
    _CONFIG: WandbReader._config,
    _RUN: WandbReader._run,
    _ENVIRONMENT: WandbReader._environment,
    _OUTPUT: WandbReader._output,
    _OUTPUT_RAW: WandbReader._output,
    _EXIT: WandbReader._exit,
}
reader = WandbReader


def _is_own(event: Event) -> bool:
    """Return whether the process that logs to W&B says why it ended, not only that it does."""
    other = event.actor and not event.actor.startswith("rank")
    return not other and not event.text.endswith("Traceback (most recent call last):")


@lru_cache(10_000)
def _schema(
    names: frozenset[str], prefix: str = ""
) -> tuple[Sequence[str], tuple[str, ...], bool]:
    """Return the metrics among names, their keys, and whether they are of a finished step, not only
    of a part of one. W&B's own names in the history are no metrics.
    """
    own = sorted(name for name in names if prefix or name[:1] != "_")
    timed = [name for name in own if name.startswith(_TIMED)]
    others = [name for name in own if TRAINERS not in name]
    done = not timed or len(timed) < len(others)
    return own, metric_keys(tuple(own), prefix), done


def _items(
    record: bytes, field: int
) -> tuple[dict[str, float], FieldHistograms, MessageFields]:
    """Return the numbers in a field of a record by W&B's names, `a.b` for `b` within `a`, the
    histograms in it, and the record's other fields.

    Nearly all items are a short name and a number. One by one they take eight times as long.

    Raises:
        ValueError: It is no record.
    """
    parts = _ITEMS[field].split(record)
    rest = message(b"".join(parts[::3]))
    written = parts[2::3]
    try:
        values = orjson.loads(b"[%b]" % b",".join(written))
    except ValueError:  # one is not finite
        values = list(map(float, written))
    names = b"\0".join(parts[1::3]).decode().split("\0") if written else ()
    numbers = dict(zip(names, values, strict=True))
    others = {".".join(path): one for path, one in map(_item, rest.parts(field))}
    members = flatten(others, ".")
    found = pop_histograms(members, ".")
    return numbers | numbers_in(_measured(members)) | found.figures, found, rest


def _item(written: bytes) -> tuple[tuple[str, ...], Any]:
    """Return the path of a value's name, and the value; the text of a broken one."""
    found = message(written)
    names = [*found.parts(_KEY), *found.parts(_NESTED_KEY)]
    text = found.part(_VALUE) or b""
    try:
        value = worded_number(loads(text))
    except ValueError:
        value = decoded(text)
    return tuple([decoded(one) for one in names]) or ("",), value


def _measured(members: Fields) -> Fields:
    """Return the members of objects without those of pictures, tables and the like."""
    others = tuple(key[:-5] for key in members if key.endswith("._type"))
    return {key: one for key, one in members.items() if not key.startswith(others)}
