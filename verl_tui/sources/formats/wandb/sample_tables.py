"""W&B tables of samples on disk: `files/media/table/<name>_<W&B's step>_<hash>.table.json`,
`{"columns", "data"}`.

verl's `val/generations` has one row a validation, `step, input_1, output_1, score_1, input_2, …`,
and is rewritten with all rows at each (verl/utils/tracking.py, `ValidationGenerationsLogger`).
Other trainers write one sample a row (TRL: `step, prompt, completion` and rewards), of one step or
all so far. So if a table begins with the rows of an earlier one of its name beside it, only the
further rows are read, and a table logged twice is read once. Columns are recognised in any
capitalisation. A row without a step has W&B's step.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from verl_tui.patterns import pattern
from verl_tui.records import Unreadable
from verl_tui.sources.fields.jsonl import integer, loads
from verl_tui.sources.fields.rewards import RewardSum
from verl_tui.sources.fields.sample import (
    is_validation,
    plain_field,
    read_sample,
)
from verl_tui.sources.files.tail import opened
from verl_tui.sources.formats.documents import WholeReader

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from verl_tui.records import Record, Sample

name = "W&B table"
rank = 4
anchor = False
_LARGEST = 256 * 2**20
"""Bytes; a larger file is no table of samples."""
_SAMPLES_A_TABLE = 4096
"""Samples kept of one table."""
_NAME = pattern(r"^(?P<key>.+)_(?P<step>\d+)_[0-9a-f]+\.table\.json$")
_COLUMNS = pattern(rb'"columns"\s*:\s*(\[[^\[\]]*\])')
_NUMBERED = pattern(r"^(?P<field>\w+?)_(?P<number>\d+)$")


def matches(path: Path, head: bytes) -> bool:
    """Return True if a table's columns are those of samples, or come only behind the data."""
    if not path.name.endswith(".table.json") or not head.lstrip().startswith(b"{"):
        return False
    found = _COLUMNS.search(head)
    if found is None:
        return True
    try:
        columns = orjson.loads(found[1])
    except orjson.JSONDecodeError:
        return False
    records = _records(columns, [""] * len(columns))
    return any(read_sample(record) is not None for record in records)


def reader(path: Path) -> TableReader:
    """Return a reader for one table."""
    return TableReader(path)


class TableReader(WholeReader):
    """Waits for the whole table: JSON is complete when it can be read."""

    ends = (b"}",)

    def __init__(self, path: Path) -> None:
        super().__init__(_LARGEST)
        self._path = path
        self._rewards = RewardSum(path=path)

    @property
    def note(self) -> str | None:
        """Say how rewards were summed."""
        return self._rewards.note

    def parse(self, data: bytes) -> Iterator[Record]:
        """Yield the samples of a whole table that no earlier one holds."""
        table = loads(data)
        table = table if isinstance(table, dict) else {}
        columns = table.get("columns")
        rows = table.get("data")
        if not isinstance(columns, list) or not isinstance(rows, list):
            yield Unreadable(1, 'no table: "columns" or "data" is missing', "")
            return
        at = _table_at(self._path)
        samples = self._samples_of(columns, _new_rows(at, rows), at)
        yield from islice(samples, _SAMPLES_A_TABLE)

    def _samples_of(
        self, columns: list[Any], rows: list[Any], table: _Table
    ) -> Iterator[Sample]:
        """Yield the samples in rows of a table."""
        validation = is_validation(table.key)
        for row in rows:
            for record in _records(columns, row) if isinstance(row, list) else ():
                sample = self._rewards.sample(record, table.step, validation=validation)
                if sample is not None:
                    yield sample


def _records(columns: list[Any], row: list[Any]) -> Iterator[dict[str, Any]]:
    """Yield the records of a row: one, or one for each number of its columns."""
    plain: dict[str, Any] = {}
    numbered: dict[str, dict[str, Any]] = {}
    for column, value in zip(map(plain_field, map(str, columns)), row, strict=False):
        found = _NUMBERED.match(column)
        if found is None:
            plain[column] = value
        else:
            numbered.setdefault(found["number"], {})[found["field"]] = value
    if numbered and read_sample(plain) is None:
        yield from (plain | fields for fields in numbered.values())
        return
    for n, fields in numbered.items():
        plain |= {f"{field}_{n}": value for field, value in fields.items()}
    yield plain


class _Table(NamedTuple):
    """What the name of a table's file says."""

    path: Path
    key: str
    """Its name, with the folders below `table`."""
    step: int | None


def _table_at(path: Path) -> _Table:
    found = _NAME.match(path.name)
    name = path.name.partition(".")[0] if found is None else found["key"]
    parts = path.parent.parts
    below = parts[len(parts) - parts[::-1].index("table") :] if "table" in parts else ()
    step = integer(found["step"]) if found is not None else None
    return _Table(path, "/".join((*below, name)), step)


def _new_rows(table: _Table, rows: list[Any]) -> list[Any]:
    """Return the rows that the table before it does not hold: a growing one is rewritten whole."""
    if table.step is None:
        return rows
    try:
        beside = map(_table_at, table.path.parent.glob("*.table.json"))
        before = {one.step or 0: one for one in beside if one.key == table.key}
        steps = [step for step in before if step < table.step]
        known = _rows(before[max(steps)].path) if steps else []
    except (OSError, ValueError):
        return rows
    return rows[len(known) :] if rows[: len(known)] == known else rows


def _rows(path: Path) -> list[Any]:
    """Return the rows of another table.

    Raises:
        OSError: It cannot be read.
        ValueError: It is no JSON, or no table, or too large.
    """
    if path.stat().st_size > _LARGEST:
        raise ValueError("too large")
    with opened(path) as file:
        table = loads(file.read())
    rows = table.get("data") if isinstance(table, dict) else None
    return rows if isinstance(rows, list) else []
