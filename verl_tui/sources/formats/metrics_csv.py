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
from verl_tui.sources.formats.lines import LineParts, LineReader
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
"""Column that may hold times as text, as the app writes them; a number there is a metric."""
_TRUTH = {"true": 1.0, "false": 0.0}
_BOM = "\ufeff"


def matches(path: Path, head: bytes) -> bool:
    """Return True for a `.csv` whose header names a step or a metric of trainings only."""
    if path.suffix.lower() != ".csv":
        return False
    lines = head.split(b"\n", 2)
    header = _names(_fields(lines[0]))
    fields = step_fields(header)
    where = [*fields.steps, *filter(None, [fields.epoch])] or list(filter(_is_trained, header))
    if not where or len(header) < 2:
        return False
    if len(lines) < 2 or not lines[1].strip():
        return True
    row = dict(zip(header, _fields(lines[1]), strict=False))
    return any(_number(row.get(name, "").partition("/")[0]) is not None for name in where)


def _is_trained(name: str) -> bool:
    return name.lower().rpartition("/")[2] in TRAINED


def reader(path: Path) -> LineReader:
    """Return a reader for one file."""
    return LineReader(CsvDecoder())


class CsvDecoder:
    """Decodes rows by the header that the file begins with."""

    def __init__(self, header: Sequence[str] = ()) -> None:
        """Begin a file.

        Args:
            header: Its header, where it is known already.
        """
        self._header: list[str] | None = None
        self._names: list[str] = []
        self._metrics: frozenset[str] = frozenset()
        """Columns that hold metrics."""
        self._where = step_fields(())
        self._place = StepTracker()
        self._total: int | None = None
        """Total of steps last passed on."""
        if header:
            self._begin(list(header))

    @property
    def header(self) -> Sequence[str]:
        """The names of its columns, as the file has them; none before they were read."""
        return self._header or ()

    @property
    def note(self) -> str | None:
        """Say how many steps were counted."""
        return self._place.note

    @property
    def counts_steps(self) -> bool:
        """True if steps depend on the rows before: they were counted, or count within epochs."""
        return self._place.relative

    def decode(self, line: bytes, number: int) -> Sequence[MetricRow | Record]:
        """Return the row of one line."""
        if not line.strip():
            return ()
        fields = _fields(line)
        if self._header is None or fields == self._header:
            self._begin(fields)
            return ()
        try:
            row = self._row(fields, len(self._header))
        except ValueError as error:
            return (unreadable(line, number, str(error)),)
        return (*self._total_change(), row)

    def _row(self, fields: list[str], columns: int) -> MetricRow:
        """Return the metrics of a row.

        Raises:
            ValueError: It does not fit the header, or states no step.
        """
        if len(fields) != columns:
            raise ValueError(f"{len(fields)} fields where the header has {columns}")
        row = dict(zip(self._names, fields, strict=True))
        numbers = {
            name: value
            for name, field in row.items()
            if name in self._metrics and (value := _number(field)) is not None
        }
        steps = self._where.steps
        if steps and all(_step(row[name]) is None for name in steps):
            raise ValueError(f"no step in column {self._names.index(steps[0]) + 1}")
        row |= {name: _whole(row[name]) for name in steps}
        step = self._place.of(row, self._where, keys=numbers)
        time = parse_time(row[_TIME]) if _TIME in row else None
        return MetricRow(step, tuple(numbers), tuple(numbers.values()), time)

    def last(self, line: bytes, number: int) -> Sequence[MetricRow | Record] | None:  # noqa: ARG002
        """Return None: a row without an end may lack digits of its last number."""
        return None

    def restart(self) -> Sequence[MetricRow | Record]:
        """Expect a header: the file starts again."""
        self._header = None
        return ()

    def _begin(self, fields: list[str]) -> None:
        self._header, self._names = fields, _names(fields)
        self._where = step_fields(self._names)
        self._metrics = frozenset(self._names) - self._where.no_metrics
        self._place = StepTracker()

    def _total_change(self) -> Sequence[Record]:
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
    """Return the names of a header's columns as metrics."""
    return [slashed(safe(field.strip(), 200)) for field in header]


def _whole(field: str) -> str:
    """Return a step written as an integer: spreadsheets write `3.0` and `1e3`."""
    step = _step(field)
    return field if step is None or "/" in field else str(step)


def _step(field: str) -> int | None:
    """Return the step in a field, 10 for `10/438`."""
    known = integer(field.partition("/")[0])
    value = _number(field) if known is None else None
    return known if value is None or not math.isfinite(value) else integer(value)


def _number(field: str) -> float | None:
    """Return a value; None for an empty field and for words."""
    if not field:
        return None
    try:
        return float(field)
    except ValueError:
        return _TRUTH.get(field.strip().lower())


class _CsvParts(LineParts):
    """Reads rows by the header at the beginning of their file."""

    def reader(self, opening: LineReader, at: int) -> LineReader:  # noqa: ARG002
        """Return a fresh reader that knows the header."""
        known = opening.decoder
        return LineReader(CsvDecoder(known.header if isinstance(known, CsvDecoder) else ()))


parts = _CsvParts(CsvDecoder)
