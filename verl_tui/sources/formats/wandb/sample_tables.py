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

from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

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

    from verl_tui.records import Record

name = "W&B table"
rank = 4
anchor = False
_LARGEST = 256 * 2**20
"""Bytes; a larger file is no table of samples."""
_SAMPLES_A_TABLE = 4096
"""Samples kept of one table."""
_NAME = pattern(r"(?P<key>.+)_(?P<step>\d+)_[0-9a-f]+\.table\.json")
_COLUMNS = pattern(rb'"columns"\s*:\s*(\[[^\[\]]*\])')
_NUMBERED = pattern(r"^(?P<field>\w+?)_(?P<number>\d+)$")


def matches(path: Path, head: bytes) -> bool:
    """Return True if a table's columns are those of samples, or come only behind the data."""
    if not path.name.endswith(".table.json") or not head.lstrip().startswith(b"{"):
        return False
    found = _COLUMNS.search(head)
    try:
        columns = loads(found[1]) if found is not None else ["prompt", "response"]
    except ValueError:
        return False
    records = _records(columns, [""] * len(columns))
    return any(read_sample(record) is not None for record in records)


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
        columns, rows = _parts(data)
        if columns is None:
            yield Unreadable(1, 'no table: "columns" or "data" is missing', "")
            return
        key, step = _named(self._path)
        known = _rows_before(self._path, key, step)
        validation = is_validation(key)
        found = (
            self._rewards.row_sample(record, step, validation=validation)
            for row in rows[len(known) if rows[: len(known)] == known else 0 :]
            for record in (_records(columns, row) if isinstance(row, list) else ())
        )
        yield from islice(filter(None, found), _SAMPLES_A_TABLE)


def _parts(data: bytes) -> tuple[list[Any] | None, list[Any]]:
    """Return the columns of a table, None where it is none, and its rows.

    Raises:
        ValueError: It is no JSON.
    """
    table = loads(data)
    table = table if isinstance(table, dict) else {}
    columns, rows = table.get("columns"), table.get("data")
    if isinstance(columns, list) and isinstance(rows, list):
        return columns, rows
    return None, []


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


def _named(path: Path) -> tuple[str, int | None]:
    """Return the name of a table, with the folders below `table`, and W&B's step."""
    _, inside, below = path.as_posix().rpartition("/table/")
    place = below if inside else path.name
    found = _NAME.fullmatch(place)
    if found is None:
        return place.partition(".")[0], None
    return found["key"], integer(found["step"])


def _rows_before(path: Path, key: str, step: int | None) -> list[Any]:
    """Return the rows of the table of the same name before one: a growing one is written whole."""
    before: dict[int, Path] = {}
    for one in path.parent.glob("*.table.json"):
        other, at = _named(one)
        if other == key and at is not None and step is not None and at < step:
            before[at] = one
    with suppress(OSError, ValueError):
        if before:
            with opened(before[max(before)]) as file:
                return _parts(file.read(_LARGEST))[1]
    return []


reader = TableReader
