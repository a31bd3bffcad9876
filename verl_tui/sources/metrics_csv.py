"""Metrics as CSV: a header of names, one row a step, as `export csv` and many trainers' own exports write them.

Exporters that cannot write `/` in a name write `_`: names that verl is known to log get theirs back.
"""

from __future__ import annotations

import csv
import math
from typing import TYPE_CHECKING

from verl_tui.metrics import slashed
from verl_tui.sources.gather import Row
from verl_tui.sources.jsonl import integer, unreadable
from verl_tui.sources.lines import LineReader
from verl_tui.text import safe
from verl_tui.times import parse_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from verl_tui.records import Record

name = "metrics CSV"
rank = 3
anchor = True

_STEPS = ("step", "global_step", "_step", "global_steps", "training/global_step", "training_global_step", "iteration")
"""Columns that may hold the step, best first; case does not matter."""
_TIME = "time"
"""Column that may hold moments as text, as the app writes them; a number there is a metric."""
_TRUTH = {"true": 1.0, "false": 0.0}
_BOM = "\ufeff"


def matches(path: Path, head: bytes) -> bool:
    """Tell whether a `.csv` begins with a header that names a step, and a row of numbers."""
    if path.suffix.lower() != ".csv":
        return False
    lines = head.split(b"\n", 2)
    header = _fields(lines[0])
    at = _step_column(header)
    if at is None or len(header) < 2:
        return False
    if len(lines) < 2 or not lines[1].strip():
        return True
    row = _fields(lines[1])
    return at < len(row) and _step(row[at]) is not None


def reader(path: Path) -> LineReader:
    """Return a reader for one file."""
    return LineReader(CsvDecoder())


class CsvDecoder:
    """Decodes rows by the header that the file begins with."""

    note: str | None = None

    def __init__(self) -> None:
        self._header: list[str] | None = None
        self._names: list[str] = []
        self._at = 0

    def decode(self, line: bytes, number: int) -> Sequence[Row | Record]:
        """Return the row of one line."""
        if not line.strip():
            return ()
        fields = _fields(line)
        if self._header is None or fields == self._header:
            return self._begin(fields, line, number)
        if len(fields) != len(self._header):
            return (unreadable(line, number, f"{len(fields)} fields where the header has {len(self._header)}"),)
        step = _step(fields[self._at])
        if step is None:
            return (unreadable(line, number, f"no step in column {self._at + 1}"),)
        pairs = [
            (name, value)
            for i, (name, field) in enumerate(zip(self._names, fields, strict=True))
            if i != self._at and (value := _number(field)) is not None
        ]
        time = parse_time(fields[self._names.index(_TIME)]) if _TIME in self._names else None
        return (Row(step, tuple(name for name, _ in pairs), tuple(value for _, value in pairs), time),)

    def last(self, line: bytes, number: int) -> Sequence[Row | Record] | None:  # noqa: ARG002
        """A row without an end may lack digits of its last number."""
        return None

    def restart(self) -> Sequence[Row | Record]:
        """The file starts anew, with a header."""
        self._header = None
        return ()

    def _begin(self, fields: list[str], line: bytes, number: int) -> Sequence[Row | Record]:
        at = _step_column(fields)
        if at is None:
            return (unreadable(line, number, "the header names no step"),)
        self._header, self._at = fields, at
        self._names = [slashed(safe(field.strip(), 200)) for field in fields]
        return ()


def _fields(line: bytes) -> list[str]:
    text = line.decode("utf-8", "replace").strip("\r\n").removeprefix(_BOM).replace("\0", "")
    try:
        return next(csv.reader([text]), [])
    except csv.Error:
        return [text]


def _step_column(header: Iterable[str]) -> int | None:
    names = [field.strip().lower() for field in header]
    return next((names.index(wanted) for wanted in _STEPS if wanted in names), None)


def _step(field: str) -> int | None:
    known = integer(field)
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
