"""Metrics as CSV: a header of names, one row a step, as `export csv` and many trainers' own exports
write them.

Exporters that cannot write `/` in a name write `_`: names that verl is known to log get theirs
back. W&B's charts are saved with the run's name before each metric's, TensorBoard's with the tag in
the name of the file.
"""

from __future__ import annotations

import csv
import math
import re
from typing import TYPE_CHECKING

from verl_tui.metrics import slashed
from verl_tui.patterns import pattern
from verl_tui.records import Progress
from verl_tui.sources.fields.jsonl import integer, unreadable
from verl_tui.sources.fields.row_batcher import MetricRow, joined_notes
from verl_tui.sources.fields.steps import TRAINED, StepTracker, step_fields
from verl_tui.sources.formats.lines import LineParts, LineReader
from verl_tui.text import safe
from verl_tui.times import parse_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from verl_tui.records import Record

name = "metrics CSV"
rank = 3
anchor = True

_TIME = "time"
"""Column that may hold times as text, as the app writes them; a number there is a metric."""
_OF_RUN = pattern(r"(?P<run>.+) - (?P<key>.+?)(?P<bound>__(?:MIN|MAX))?")
"""A column of a chart saved at W&B: of each metric its value, and the least and the greatest of the
steps that the chart draws as one.
"""
_WALL = "Wall time"
_CHART = [_WALL, "Step", "Value"]
"""Header of a chart saved in TensorBoard."""
_TAG = pattern(r"(?:run-.*-)?tag-(?P<tag>.+)", re.IGNORECASE)
"""Name of its file, without suffix."""
_TRUTH = {"true": 1.0, "false": 0.0}
_BOM = "\ufeff"


def matches(path: Path, head: bytes) -> bool:
    """Return True for a `.csv` whose header names a step or a metric of trainings only."""
    if path.suffix.lower() != ".csv":
        return False
    lines = head.split(b"\n", 2)
    header = _names(_fields(lines[0]))
    fields = step_fields(header)
    telling = list(fields.steps)
    if fields.epoch:
        telling.append(fields.epoch)
    telling = telling or list(filter(_is_trained, header))
    if not telling or len(header) < 2:
        return False
    if len(lines) < 2 or not lines[1].strip():
        return True
    row = dict(zip(header, _fields(lines[1]), strict=False))
    values = [row.get(name, "").partition("/")[0] for name in telling]
    return any(_number(value) is not None for value in values)


def _is_trained(name: str) -> bool:
    return name.lower().rpartition("/")[2] in TRAINED


def reader(path: Path) -> LineReader:
    """Return a reader for one file."""
    return LineReader(CsvDecoder(tag=_tag(path)))


def _tag(path: Path) -> str:
    found = _TAG.fullmatch(path.stem)
    return found["tag"] if found is not None else ""


class CsvDecoder:
    """Decodes rows by the header that the file begins with."""

    def __init__(self, header: Sequence[str] = (), *, tag: str = "") -> None:
        """Begin a file.

        Args:
            header: Its header, where it is known already.
            tag: TensorBoard's name of the metric, if the file is called after one.
        """
        self.tag = tag
        """TensorBoard's name of the metric."""
        self._bounds: frozenset[str] = frozenset()
        """Columns of the least and greatest values."""
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
        """Say how many steps were counted, and what was left out."""
        bounds = None
        if self._bounds:
            bounds = (
                "W&B's columns of least and greatest values (__MIN, __MAX) are left out"
            )
        return joined_notes(self._place.note, bounds)

    @property
    def standing(self) -> object:
        """The header, and what steps and totals depend on; None where that is more."""
        place = self._place.standing
        if place is None:
            return None
        return (self._header, place, self._total)

    @property
    def counts_most(self) -> bool:
        """True if steps were counted: none is stated."""
        return self._place.counts_all

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
        numbers = {}
        for name, field in row.items():
            value = _number(field) if name in self._metrics else None
            if value is not None:
                numbers[name] = value
        steps = self._where.steps
        if steps and all(_step(row[name]) is None for name in steps):
            raise ValueError(f"no step in column {self._names.index(steps[0]) + 1}")
        row |= {name: _whole(row[name]) for name in steps}
        step = self._place.of(row, self._where, keys=numbers)
        return MetricRow(step, tuple(numbers), tuple(numbers.values()), _time(row))

    def last(self, line: bytes, number: int) -> Sequence[MetricRow | Record] | None:  # noqa: ARG002
        """Return None: a row without an end may lack digits of its last number."""
        return None

    def restart(self) -> Sequence[MetricRow | Record]:
        """Expect a header: the file starts again."""
        self._header = None
        return ()

    def _begin(self, fields: list[str]) -> None:
        self._header = fields
        self._names = _names(_charted(fields, self.tag))
        self._where = step_fields(self._names)
        self._bounds = frozenset(_names(_bounds(fields)))
        others = {_WALL, *self._bounds, *self._where.no_metrics}
        self._metrics = frozenset(self._names) - others
        self._place = StepTracker()

    def _total_change(self) -> Sequence[Record]:
        if self._place.total == self._total:
            return ()
        self._total = self._place.total
        return (Progress(total=self._total),)


def _fields(line: bytes) -> list[str]:
    text = line.decode("utf-8", "replace").strip("\r\n")
    text = text.removeprefix(_BOM).replace("\0", "")
    try:
        return next(csv.reader([text]), [])
    except csv.Error:
        return [text]


def _names(header: Iterable[str]) -> list[str]:
    """Return the names of a header's columns as metrics."""
    return [slashed(safe(field.strip(), 200)) for field in header]


def _time(row: Mapping[str, str]) -> float | None:
    """Return when a row was written, as it states it."""
    return parse_time(row.get(_TIME)) or parse_time(_number(row.get(_WALL, "")))


def _charted(header: list[str], tag: str) -> list[str]:
    """Return a header without what saving a chart adds to the names of metrics."""
    if tag and header == _CHART:
        return [*header[:2], tag]
    return _of_one_run(header) if _bounds(header) else header


def _of_one_run(header: list[str]) -> list[str]:
    """Return the metrics' own names, if all columns are of the same run."""
    own = header[:1]
    runs = set()
    for field in header[1:]:
        column = _OF_RUN.fullmatch(field)
        if column is None:
            return header
        own.append(column["key"] + (column["bound"] or ""))
        runs.add(column["run"])
    return own if len(runs) <= 1 else header


def _bounds(header: Iterable[str]) -> list[str]:
    """Return the names of the columns of least and greatest values, if a chart of W&B has any."""
    names = []
    for column in filter(None, map(_OF_RUN.fullmatch, header)):
        if column["bound"]:
            names += [column[0], column["key"] + column["bound"]]
    return names


def _whole(field: str) -> str:
    """Return a step written as an integer: spreadsheets write `3.0` and `1e3`."""
    step = _step(field)
    if step is None or "/" in field:
        return field
    return str(step)


def _step(field: str) -> int | None:
    """Return the step in a field, 10 for `10/438`."""
    known = integer(field.partition("/")[0])
    if known is not None:
        return known
    value = _number(field)
    if value is None or not math.isfinite(value):
        return None
    return integer(value)


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

    def opening(self, path: Path) -> LineReader:
        """Return a fresh reader."""
        return reader(path)

    def reader(self, opening: LineReader, at: int) -> LineReader:  # noqa: ARG002
        """Return a fresh reader that knows the header."""
        known = opening.decoder
        assert isinstance(known, CsvDecoder)
        return LineReader(CsvDecoder(known.header, tag=known.tag))


parts = _CsvParts(CsvDecoder)
