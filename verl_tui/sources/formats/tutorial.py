"""The tutorials' JSONL: records with a scope, `{"scope": "ppo", "step": 120, "policy_loss":
-0.18}`, or flat ones.

Also reads any other program's JSONL of flat records with a step, under the record's own keys.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui.records import Progress, Restart
from verl_tui.sources.fields.devices import Worker, devices, is_name, names_one, worker
from verl_tui.sources.fields.jsonl import Flaw, JsonDecoder, first_object, flatten, number
from verl_tui.sources.fields.lists import histograms, split
from verl_tui.sources.fields.row_batcher import MetricRow
from verl_tui.sources.fields.sample import read_sample
from verl_tui.sources.fields.steps import (
    TRAINED,
    StepFields,
    StepTracker,
    is_sure,
    stated,
    step_fields,
)
from verl_tui.sources.formats.lines import LineReader
from verl_tui.text import safe, strip_ansi
from verl_tui.times import parse_elapsed, parse_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from verl_tui.records import Record

name = "tutorial JSONL"
rank = 5
anchor = True

_MEASURED = {"reward", "sample", "system"}
"""Scopes logged many times a step: their numbers are averaged. In all others the last record of a
step holds.
"""
_ABOUT = frozenset(
    {
        "timestamp",
        "time",
        "ts",
        "level",
        "scope",
        "step",
        "global_step",
        "logger",
        "name",
        "pid",
        "rank",
    }
)
"""Fields that say where and when a record was written, not what was measured."""
_LOG_TEXT = re.compile(rb"\b(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL)\b")
_LOOKED_AT = 8
"""Lines of a file among which a record has to be: loggers begin with words of their own."""
_MOST_SCHEMAS = 1000
"""Sets of fields remembered: a file has a handful, a broken one any number."""


def matches(path: Path, head: bytes) -> bool:
    """Tell whether one of the first objects has a scope, or a step or an epoch with numbers beside
    it.
    """
    found = list(_first_records(head))
    if any(isinstance(record.get("scope"), str) for record in found[:1]):
        return True
    if path.suffix.lower() == ".json" and len(found) == 1 and not any(map(is_sure, found[0])):
        return False  # a document of its own, such as a model's settings
    return any(map(_measures, found))


def _first_records(head: bytes) -> Iterator[dict[str, Any]]:
    for line in head.split(b"\n", _LOOKED_AT)[:_LOOKED_AT]:
        if (record := first_object(line)) is not None:
            yield record


def _measures(record: dict[str, Any]) -> bool:
    """Tell whether a record states where in the training it is, and a number beside that; or what
    only training has.
    """
    flat = flatten(record)
    fields = step_fields(flat)
    step = stated(flat, fields)[0] if all(_small(flat[name]) for name in fields.steps) else None
    if step is None and number(flat.get(fields.epoch or "", "")) is None:
        return any(
            key.rpartition("/")[2] in TRAINED
            for key, value in flat.items()
            if number(value) is not None
        )
    about = {*_ABOUT, *fields.steps, fields.total or "", fields.epoch or ""}
    return bool(split(flat).numbers(about))


def _small(value: object) -> bool:
    return not isinstance(value, int | float) or abs(value) < 2**62


def reader(path: Path) -> LineReader:
    """Return a reader for one file."""
    return LineReader(TutorialDecoder())


class _Schema(NamedTuple):
    """What the names of a record's fields say."""

    fields: StepFields
    about: frozenset[str]
    """Fields that measure nothing."""
    named: bool
    """Whether they may say of which rank or device it is."""


class TutorialDecoder(JsonDecoder):
    """Decodes scoped and flat records."""

    def __init__(self) -> None:
        self._place = StepTracker()
        self._total: int | None = None
        """Steps of the whole run, as far as told."""
        self._workers: set[Worker] = set()
        """The ranks and devices that records are of."""
        self._reached: dict[tuple[Worker, tuple[str, ...]], int] = {}
        """The last step of each, by what was measured."""
        self._schemas: dict[tuple[str, ...], _Schema] = {}

    @property
    def step(self) -> int:
        """Return the step of the last record."""
        return self._place.step

    @property
    def note(self) -> str | None:
        """Return whether steps were counted, and whether figures are means over ranks."""
        ranks, gpus = ({one[at] for one in self._workers} - {None} for at in (0, 1))
        several = (
            f"{len(ranks)} ranks"
            if len(ranks) > 1
            else f"{len(gpus)} devices"
            if len(gpus) > 1
            else ""
        )
        averaged = f"figures are means over {several}" if several else None
        return "; ".join(filter(None, (self._place.note, averaged))) or None

    def restart(self) -> Sequence[MetricRow | Record]:
        """Forget the step."""
        self._place, self._total = StepTracker(), None
        self._workers, self._reached = set(), {}
        return ()

    def last(self, line: bytes, number: int) -> Sequence[MetricRow | Record] | None:
        """Return the records of a line without an end."""
        return super().last(_json_part(line), number)

    def odd(self, line: bytes, number: int, reason: str) -> Sequence[MetricRow | Record]:
        """Return the records of a line that a logger began in its own words; plain log text says
        nothing.
        """
        part = _json_part(line)
        if part != line and (records := super().last(part, number)):
            return records
        return () if _LOG_TEXT.search(line[:200]) else super().odd(line, number, reason)

    def read(self, record: dict[str, Any]) -> Iterable[MetricRow | Record | Flaw]:
        """Return the row, the histograms and the sample of one object."""
        scope = record.get("scope")
        flat = flatten(record)
        fields, about, named = self._schema(flat)
        of = worker(flat) if named else None
        said = devices(flat, of)
        parts = split(
            {name: value for name, value in flat.items() if name not in said.whole}
            if said.whole
            else flat
        )
        numbers = parts.numbers(about) | said.own
        mean = scope in _MEASURED or self._one_of_many(of)
        prefix = f"{safe(scope, 100)}/" if isinstance(scope, str) and scope else ""
        keys = tuple(prefix + safe(key, 300) for key in numbers)
        step = self._place.of(flat, fields, keys=keys if keys and not mean else None)
        elapsed = parse_elapsed(record.get("elapsed_time"))
        if self._place.total != self._total or elapsed is not None:
            self._total = self._place.total
            yield Progress(step if elapsed is not None else None, self._total, elapsed)
        yield from parts.flaws
        if (
            of is not None
            and scope not in _MEASURED
            and (before := self._went_back(of, keys, step)) is not None
        ):
            yield Restart(f"steps went back from {before} to {step}")
        yield from histograms(parts.found, step, prefix, mean=mean)
        time = parse_time(record.get("timestamp", record.get("time", record.get("ts"))))
        if numbers:
            yield MetricRow(step, keys, tuple(numbers.values()), time, mean)
        if said.listed:
            listed = tuple(prefix + safe(key, 300) for key in said.listed)
            yield MetricRow(step, listed, tuple(said.listed.values()), time, mean=True)
        if scope in (None, "sample", "rollout") or scope not in _MEASURED:
            sample = read_sample(record, step)
            if sample is not None:
                yield sample

    def _one_of_many(self, of: Worker | None) -> bool:
        """Tell whether a record is of one of several ranks or devices: those of a step are to be
        averaged.
        """
        if of is None:
            return False
        if len(self._workers) < _MOST_SCHEMAS:
            self._workers.add(of)
        return len(self._workers) > 1

    def _went_back(self, of: Worker, keys: tuple[str, ...], step: int) -> int | None:
        """Return the step from which one of several ranks or devices went back, None where it did
        not.

        Of a single one, and of rows that are no means, `verl_tui.sources.fields.row_batcher`
        notices.
        """
        before = self._reached.get((of, keys))
        if before is None and len(self._reached) >= _MOST_SCHEMAS:
            return None
        went_back = before is not None and step < before and len(self._workers) > 1
        if went_back:
            self._reached.clear()
        self._reached[of, keys] = step
        return before if went_back else None

    def _schema(self, flat: dict[str, Any]) -> _Schema:
        names = tuple(flat)
        known = self._schemas.get(names)
        if known is None:
            fields = step_fields(names)
            known = _Schema(
                fields, fields.told | _ABOUT | set(filter(is_name, names)), names_one(names)
            )
            if len(self._schemas) < _MOST_SCHEMAS:
                self._schemas[names] = known
        return known


def _json_part(line: bytes) -> bytes:
    line = strip_ansi(line)
    start = line.find(b'{"')
    return line[start:] if start > 0 else line
