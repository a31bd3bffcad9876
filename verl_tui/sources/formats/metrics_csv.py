"""Metrics as CSV: a header of names, one row a step, as `export csv` and many trainers' own exports
write them.

Exporters that cannot write `/` in a name write `_`: names that verl is known to log get theirs
back.
"""

from __future__ import annotations

import csv
import math
from typing import TYPE_CHECKING

from verl_tui.metrics import slashed
from verl_tui.records import Progress
from verl_tui.sources.fields.jsonl import integer, unreadable
from verl_tui.sources.fields.row_batcher import MetricRow
from verl_tui.sources.fields.steps import TRAINED, StepTracker, step_fields
from verl_tui.sources.formats.lines import LineReader
from verl_tui.text import safe
from verl_tui.times import parse_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from verl_tui.records import Record

name = "metrics CSV"
rank = 3
anchor = True

_TIME = "time"
"""Column that may hold moments as text, as the app writes them; a number there is a metric."""
_TRUTH = {"true": 1.0, "false": 0.0}
_BOM = "\ufeff"


def matches(path: Path, head: bytes) -> bool:
    """Tell whether a `.csv` begins with a header that names a step, or what only a training has,
    and a row.
    """
    if path.suffix.lower() != ".csv":
        return False
    lines = head.split(b"\n", 2)
    header = _names(_fields(lines[0]))
    fields = step_fields(header)
    where = [*fields.steps, *([fields.epoch] if fields.epoch else [])] or [
        name for name in header if name.lower().rpartition("/")[2] in TRAINED
    ]
    if not where or len(header) < 2:
        return False
    if len(lines) < 2 or not lines[1].strip():
        return True
    row = dict(zip(header, _fields(lines[1]), strict=False))
    return any(_number(row.get(name, "").partition("/")[0]) is not None for name in where)


def reader(path: Path) -> LineReader:
    """Return a reader for one file."""
    return LineReader(CsvDecoder())


class CsvDecoder:
    """Decodes rows by the header that the file begins with."""

    def __init__(self) -> None:
        self._header: list[str] | None = None
        self._names: list[str] = []
        self._metrics: frozenset[str] = frozenset()
        """Columns that hold what was measured."""
        self._where = step_fields(())
        self._place = StepTracker()
        self._total: int | None = None
        """Steps of the whole run, as far as told."""

    @property
    def note(self) -> str | None:
        """Return whether steps were counted."""
        return self._place.note

    def decode(self, line: bytes, number: int) -> Sequence[MetricRow | Record]:
        """Return the row of one line."""
        if not line.strip():
            return ()
        fields = _fields(line)
        if self._header is None or fields == self._header:
            self._begin(fields)
            return ()
        if len(fields) != len(self._header):
            return (
                unreadable(
                    line, number, f"{len(fields)} fields where the header has {len(self._header)}"
                ),
            )
        row = dict(zip(self._names, fields, strict=True))
        numbers = {
            name: value
            for name, field in row.items()
            if name in self._metrics and (value := _number(field)) is not None
        }
        if self._where.steps and all(_step(row[name]) is None for name in self._where.steps):
            return (
                unreadable(
                    line, number, f"no step in column {self._names.index(self._where.steps[0]) + 1}"
                ),
            )
        row |= {name: _whole(row[name]) for name in self._where.steps}
        try:
            step = self._place.of(row, self._where, keys=numbers)
        except ValueError as error:
            return (unreadable(line, number, str(error)),)
        time = parse_time(row[_TIME]) if _TIME in row else None
        return (*self._told_total(), MetricRow(step, tuple(numbers), tuple(numbers.values()), time))

    def last(self, line: bytes, number: int) -> Sequence[MetricRow | Record] | None:  # noqa: ARG002
        """A row without an end may lack digits of its last number."""
        return None

    def restart(self) -> Sequence[MetricRow | Record]:
        """The file starts anew, with a header."""
        self._header = None
        return ()

    def _begin(self, fields: list[str]) -> None:
        self._header, self._names = fields, _names(fields)
        self._where = step_fields(self._names)
        self._metrics = frozenset(self._names) - self._where.no_metrics
        self._place = StepTracker()

    def _told_total(self) -> Sequence[Record]:
        if self._place.total == self._total:
            return ()
        self._total = self._place.total
        return (Progress(total=self._total),)


def _fields(line: bytes) -> list[str]:
    text = line.decode("utf-8", "replace").strip("\r\n").removeprefix(_BOM).replace("\0", "")
    try:
        return next(csv.reader([text]), [])
    except csv.Error:
        return [text]


def _names(header: Iterable[str]) -> list[str]:
    """Return the metrics that the columns of a header hold."""
    return [slashed(safe(field.strip(), 200)) for field in header]


def _whole(field: str) -> str:
    """Return a step as an integer is written: spreadsheets write `3.0` and `1e3`."""
    step = _step(field)
    return field if step is None or "/" in field else str(step)


def _step(field: str) -> int | None:
    """Return the step that a field holds, `10` of `10/438`."""
    known = integer(field.partition("/")[0])
    value = _number(field) if known is None else None
    return known if value is None or not math.isfinite(value) else integer(value)


def _number(field: str) -> float | None:
    """Return a value; None for an empty field and for words."""
    text = field.strip()
    if not text:
        return None
    try:
        return float(text)
    except ValueError:
        return _TRUTH.get(text.lower())
