"""Decodes the records of a W&B log (`Record` in wandb/proto/wandb_internal.proto, wandb 0.31).

The step. W&B counts its own (`_step`), mostly the calls of `wandb.log`. verl passes the trainer's
step, others do not: TRL and Hugging Face log the trainer's as `train/global_step`, every ten steps
or so. So the step of a record is the trainer's if the record has it under one of the names of
`_STEPS`, else the trainer's last one; runs that never log it keep W&B's own count. No value is
changed by this, and `train/global_step` stays a metric.
"""

from __future__ import annotations

import math
import re
from datetime import datetime, timezone
from itertools import repeat
from operator import add
from typing import TYPE_CHECKING, Any

from verl_tui.records import Event, EventKind, Settings, Unreadable
from verl_tui.sources.fields.jsonl import integer, loads
from verl_tui.sources.fields.lists import histograms, split
from verl_tui.sources.fields.protobuf import fields, signed
from verl_tui.sources.fields.row_batcher import MetricRow
from verl_tui.sources.fields.setting_values import flatten_settings
from verl_tui.text import one_line, safe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from verl_tui.records import Record
    from verl_tui.sources.fields.lists import FieldSplit

# Field numbers, by message.
_HISTORY, _CONFIG, _STATS, _RUN, _EXIT, _ENVIRONMENT = 2, 5, 7, 17, 18, 26  # Record
_HISTORY_ITEM, _HISTORY_STEP, _STEP_NUM = 1, 2, 1  # HistoryRecord, HistoryStep
_STATS_TIME, _STATS_ITEM = 2, 3  # StatsRecord
_SECONDS, _NANOS = 1, 2  # google.protobuf.Timestamp
_KEY, _NESTED_KEY, _VALUE = 1, 2, 16  # HistoryItem, StatsItem, ConfigItem
_UPDATE = 1  # ConfigRecord
_RUN_CONFIG, _RUN_TAGS, _RUN_START, _RUN_GIT = 4, 10, 17, 21  # RunRecord
_RUN_TEXTS = {
    1: "id",
    2: "entity",
    3: "project",
    6: "group",
    7: "job_type",
    8: "name",
    9: "notes",
    12: "sweep",
    13: "host",
}
_GIT_TEXTS = {1: "git.remote", 2: "git.commit"}  # GitRepoRecord
_ENVIRONMENT_TEXTS = {
    2: "python",
    6: "program",
    12: "host",
    18: "gpu",
    25: "cudaVersion",
}  # EnvironmentRecord
_EXIT_CODE = 1  # RunExitRecord

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
_WORDS = {
    b"true": 1.0,
    b"false": 0.0,
    b"null": math.nan,
    b'"NaN"': math.nan,
    b'"Infinity"': math.inf,
    b'"-Infinity"': -math.inf,
}
"""Values that are no numbers in JSON; Python parses bare `NaN` and `Infinity` itself."""
_ITEM = (
    rb"%b([\x00-\x7f])%b([\x00-\x7f])([ -~]{1,100})\x82\x01([\x00-\x7f])([-+.\dEINaefinty]{1,100})"
)
"""An item of the usual form: tag, length, name (tag, length, text), value (tag, length, number)."""
_PLAIN = {
    field: (re.compile(b"(?:%b)+" % item), re.compile(item))
    for field, item in (
        (_HISTORY_ITEM, _ITEM % (rb"\x0a", rb"[\x0a\x12]")),
        (_STATS_ITEM, _ITEM % (rb"\x1a", rb"\x0a")),
    )
}
"""Patterns of several items and of one, by the field that holds them."""
_DEEPEST = 40
_MOST_SCHEMAS = 10_000

_Span = tuple[int, int]
_Path = tuple[str, ...]


class RecordDecoder:
    """Decodes records in their order; remembers the trainer's step, which some do not state."""

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self._step: int | None = 0
        """Step that the history has reached, None if a part of it was lost."""
        self._stated = False
        """True once a record has stated the trainer's step."""
        self._number = 0
        """Number of the current record."""
        self._schemas: dict[frozenset[Any], tuple[tuple[Any, ...], tuple[str, ...]]] = {}
        self._read: dict[int, Callable[[bytes, _Span], Iterable[MetricRow | Record]]] = {
            _HISTORY: self._history,
            _STATS: self._stats,
            _CONFIG: self._config,
            _RUN: self._run,
            _ENVIRONMENT: self._environment,
        }

    def lose(self) -> None:
        """Note that a part of the log is lost: the step is unknown until a record states one."""
        self._step = None

    def decode(self, record: bytes, number: int) -> Iterable[MetricRow | Record]:
        """Return the rows and other records of one message.

        Args:
            record: A message `Record`.
            number: Its number in the file, from 1.

        Raises:
            ValueError: It is no such message.
        """
        self._number = number
        for field, _, span in fields(record, 0, len(record)):
            if isinstance(span, int):
                continue
            if field in self._read:
                return tuple(self._read[field](record, span))
            if field == _EXIT:
                return (_exit(record, span, number),)
        return ()

    def _history(self, data: bytes, span: _Span) -> Iterator[MetricRow | Record]:
        """Yield the metrics of one step, which come in any order."""
        numbers, parts, step = _history_items(data, span)
        self._reach(numbers, step)
        time = numbers.get("_timestamp")
        kept = {key: value for key, value in numbers.items() if not key.startswith("_")}
        yield from (Unreadable(self._number, one_line(flaw.reason), "") for flaw in parts.flaws)
        if kept and self._step is not None:
            yield self._row(kept, "", time, progress=_is_step(kept))
            yield from histograms(parts.found, self._step)

    def _reach(self, numbers: Mapping[str, float], own: int | None) -> None:
        """Note the step of a record of the history: the trainer's, else W&B's own."""
        steps = (integer(numbers.get(key)) for key in _STEPS)
        trainer = next((step for step in steps if step is not None), None)
        if trainer is not None:
            self._step, self._stated = trainer, True
        elif not self._stated:
            self._step = integer(numbers.get("_step") if own is None else own)

    def _stats(self, data: bytes, span: _Span) -> Iterator[MetricRow]:
        """Yield system figures, at the step that the history has reached."""
        values, rest = _plain(data, span, _STATS_ITEM)
        time = None
        for field, part in _spans(data, rest):
            if field == _STATS_TIME:
                time = _time(data, part)
            elif field == _STATS_ITEM:
                path, value = _item(data, part)
                if (known := _number(value)) is not None:
                    values[path[0]] = known
        if values and self._step is not None:
            yield self._row(values, "system/", time, measured=True, progress=False)

    def _row(
        self,
        values: Mapping[str, float],
        prefix: str,
        time: float | None,
        *,
        measured: bool = False,
        progress: bool,
    ) -> MetricRow:
        """Return a row whose keys stand in the order in which the first such row had them."""
        assert self._step is not None
        names = frozenset(values)
        known = self._schemas.get(names)
        if known is None:
            known = tuple(values), tuple(prefix + safe(key, 300) for key in values)
            if len(self._schemas) < _MOST_SCHEMAS:
                self._schemas[names] = known
        order, keys = known
        row = tuple([values[key] for key in order])
        return MetricRow(self._step, keys, row, time, mean=measured, progress=progress)

    def _config(self, data: bytes, span: _Span) -> Iterator[Settings]:
        """Yield settings as they are set or changed."""
        values: dict[str, Any] = {}
        for field, _, part in fields(data, *span):
            if field == _UPDATE and isinstance(part, tuple):
                path, value = _item(data, part)
                if path[0] != "_wandb":
                    values |= flatten_settings({".".join(path): _json(value)})
        if values:
            yield Settings(values, self._origin)

    def _run(self, data: bytes, span: _Span) -> Iterator[Settings]:
        """Yield the run's identity and settings."""
        values: dict[str, Any] = {}
        tags = []
        for field, _, part in fields(data, *span):
            if isinstance(part, int):
                continue
            if field in _RUN_TEXTS:
                values[_RUN_TEXTS[field]] = _text(data, part)
            elif field == _RUN_TAGS:
                tags.append(_text(data, part))
            elif field == _RUN_GIT:
                values |= _texts(data, part, _GIT_TEXTS)
            elif field == _RUN_START:
                values["start_time"] = _date(_time(data, part))
            elif field == _RUN_CONFIG:
                yield from self._config(data, part)
        if tags:
            values["tags"] = ", ".join(tags)
        yield Settings(flatten_settings({"wandb": values}), self._origin)

    def _environment(self, data: bytes, span: _Span) -> Iterator[Settings]:
        """Yield the run's environment."""
        if values := _texts(data, span, _ENVIRONMENT_TEXTS):
            yield Settings(flatten_settings({"wandb": values}), self._origin)


def _is_step(keys: Iterable[str]) -> bool:
    """Return True if a record of the history is of a finished step, not only of a part of one."""
    if any(not key.startswith(_TIMED) and key not in _STEPS for key in keys):
        return True
    return not any(key.startswith(_TIMED) for key in keys)


def _exit(data: bytes, span: _Span, number: int) -> Event:
    """Return the end of the run with its exit code."""
    code = next(
        (signed(v) for f, _, v in fields(data, *span) if f == _EXIT_CODE and isinstance(v, int)), 0
    )
    kind = EventKind.FATAL if code else EventKind.EXITED
    return Event(kind, f"W&B: the run exited with code {code}", number, bare=bool(code))


def _plain(data: bytes, span: _Span, field: int) -> tuple[dict[str, float], tuple[_Span, ...]]:
    """Return a row of items of the usual form by name, and the spans that are still to be read.

    Nearly all items are such: a short name and a number. One by one they take four times as long.
    """
    several, one = _PLAIN[field]
    row = several.search(data, *span)
    if row is None:
        return {}, (span,)
    sizes, name_sizes, names, number_sizes, numbers = zip(
        *one.findall(data, *row.span()), strict=True
    )
    in_names, in_numbers = [*map(len, names)], [*map(len, numbers)]
    lengths = (*map(add, map(add, in_names, in_numbers), repeat(5)), *in_names, *in_numbers)
    if b"".join((*sizes, *name_sizes, *number_sizes)) != bytes(lengths):
        return {}, (span,)
    try:
        values = dict(zip(map(bytes.decode, names), map(float, numbers), strict=True))
    except ValueError:
        return {}, (span,)
    return values, ((span[0], row.start()), (row.end(), span[1]))


def _spans(data: bytes, places: Iterable[_Span]) -> Iterator[tuple[int, _Span]]:
    """Yield number and span of each field that holds bytes."""
    for place in places:
        for field, _, part in fields(data, *place):
            if isinstance(part, tuple):
                yield field, part


def _history_items(data: bytes, span: _Span) -> tuple[dict[str, float], FieldSplit, int | None]:
    """Return a history record's metrics by name, its distributions, and W&B's step if stated."""
    numbers, rest = _plain(data, span, _HISTORY_ITEM)
    others: dict[_Path, bytes] = {}
    step = None
    for field, part in _spans(data, rest):
        if field == _HISTORY_ITEM:
            path, value = _item(data, part)
            others[path] = value
        elif field == _HISTORY_STEP:
            step = next(
                (
                    signed(v)
                    for f, _, v in fields(data, *part)
                    if f == _STEP_NUM and isinstance(v, int)
                ),
                0,
            )
    further, parts = _parts(others)
    return numbers | further, parts, step


def _item(data: bytes, span: _Span) -> tuple[_Path, bytes]:
    """Return the path of a value's name, and the value as JSON."""
    path, value = [], b""
    for field, _, part in fields(data, *span):
        if isinstance(part, tuple):
            if field in (_KEY, _NESTED_KEY):
                path.append(_text(data, part))
            elif field == _VALUE:
                value = data[slice(*part)]
    return tuple(path) or ("",), value


def _parts(values: Mapping[_Path, bytes]) -> tuple[dict[str, float], FieldSplit]:
    """Return a record's metrics and distributions by W&B's names: `a.b` for `b` within `a`."""
    numbers: dict[str, float] = {}
    objects: dict[str, Any] = {}
    for path, value in values.items():
        if len(path) > 1:
            _put(objects, path, _leaf(value))
        elif value[:1] in (b"{", b"["):
            objects[path[0]] = _json(value)
        elif (known := _number(value)) is not None:
            numbers[path[0]] = known
    members: dict[str, Any] = {}
    for name, value in objects.items():
        members |= _members(name, value) if isinstance(value, dict) else {name: value}
    parts = split(members, ".")
    return numbers | parts.numbers(), parts


def _put(objects: dict[str, Any], path: _Path, value: object) -> None:
    """Put a value into nested objects, which W&B writes value by value."""
    for name in path[:-1]:
        inner = objects.get(name)
        if not isinstance(inner, dict):
            inner = objects[name] = {}
        objects = inner
    objects[path[-1]] = value


def _members(name: str, members: Mapping[str, Any], depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield the members of an object, none if its `_type` is a picture, a table and the like."""
    if members.get("_type", "histogram") != "histogram" or depth > _DEEPEST:
        return
    for key, value in members.items():
        if isinstance(value, dict):
            yield from _members(f"{name}.{key}", value, depth + 1)
        else:
            yield f"{name}.{key}", value


def _number(text: bytes) -> float | None:
    try:
        return float(text)
    except ValueError:
        return _WORDS.get(text)


def _leaf(text: bytes) -> Any:
    known = _number(text)
    return _json(text) if known is None else known


def _json(text: bytes) -> Any:
    """Return what JSON says, None where it is broken."""
    try:
        return loads(text)
    except ValueError:
        return None


def _text(data: bytes, span: _Span) -> str:
    return data[slice(*span)].decode("utf-8", "replace")


def _texts(data: bytes, span: _Span, names: Mapping[int, str]) -> dict[str, str]:
    return {
        names[f]: _text(data, part)
        for f, _, part in fields(data, *span)
        if f in names and isinstance(part, tuple)
    }


def _time(data: bytes, span: _Span) -> float:
    """Return the seconds since the epoch of a `google.protobuf.Timestamp`."""
    found = {
        field: signed(value) for field, _, value in fields(data, *span) if isinstance(value, int)
    }
    return found.get(_SECONDS, 0) + found.get(_NANOS, 0) / 1e9


def _date(seconds: float) -> str | None:
    try:
        return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="seconds")
    except (OSError, OverflowError, ValueError):
        return None
