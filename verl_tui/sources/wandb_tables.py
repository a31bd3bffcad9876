"""W&B tables of samples on disk: `files/media/table/<name>_<W&B's step>_<hash>.table.json`, `{"columns", "data"}`.

verl's `val/generations` has one row a validation, `step, input_1, output_1, score_1, input_2, …`, and is written anew
with all rows at each (verl/utils/tracking.py, `ValidationGenerationsLogger`). Other trainers write one sample a row,
mostly of one step (TRL: `step, prompt, completion` and rewards). So where an earlier table of that name lies beside it,
only the rows of a table's last step are news. A row without a step is of W&B's step.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import orjson

from verl_tui.records import Restart, Unreadable
from verl_tui.sources.jsonl import integer, loads
from verl_tui.sources.sample import read_sample

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
_STEPS = ("step", "global_step")
_NAME = re.compile(r"^(?P<key>.+)_(?P<step>\d+)_[0-9a-f]+\.table\.json$")
_COLUMNS = re.compile(rb'"columns"\s*:\s*(\[[^\]]*\])')
_NUMBERED = re.compile(r"^(?P<field>\w+?)_(?P<number>\d+)$")
_VALIDATION = re.compile(r"val|eval|test", re.IGNORECASE)


def matches(path: Path, head: bytes) -> bool:
    """Tell whether a table's columns are those of samples; where they stand behind the data, reading will tell."""
    if not path.name.endswith(".table.json") or not head.lstrip().startswith(b"{"):
        return False
    found = _COLUMNS.search(head)
    if found is None:
        return True
    try:
        columns = orjson.loads(found[1])
    except orjson.JSONDecodeError:
        return False
    return any(read_sample(record) is not None for _, record in _records(columns, [""] * len(columns)))


def reader(path: Path) -> TableReader:
    """Return a reader for one table."""
    return TableReader(path)


class TableReader:
    """Waits for the whole table: JSON is complete when it can be read."""

    note: str | None = None

    def __init__(self, path: Path) -> None:
        self._path = path
        self._data: list[bytes] = []
        self._size = 0
        self._done = False
        """Whether the table has been read or given up."""

    def feed(self, data: bytes) -> tuple[Record, ...]:
        """Return the samples, once the file is whole."""
        if self._done or not data:
            return ()
        self._data.append(data)
        self._size += len(data)
        if self._size > _LARGEST:
            self._data, self._done = [], True
            return (Unreadable(1, f"larger than {_LARGEST >> 20} MiB", ""),)
        if not data.rstrip().endswith(b"}"):
            return ()
        try:
            table = loads(b"".join(self._data))
        except ValueError:
            return ()  # the end of an object within
        self._data, self._done = [], True
        return tuple(self._samples(table))

    def finish(self) -> tuple[Record, ...]:
        """Tell that a table is not whole where nobody may look again."""
        return () if self._done or not self._size else (Unreadable(1, "not complete, or no JSON", ""),)

    def restart(self, reason: str) -> tuple[Record, ...]:
        """Forget everything, the file starts anew."""
        self._data, self._size, self._done = [], 0, False
        return (Restart(reason),)

    def _samples(self, table: Any) -> Iterator[Record]:
        """Yield the samples of a table that no earlier one holds."""
        columns, rows = (table.get("columns"), table.get("data")) if isinstance(table, dict) else (None, None)
        if not isinstance(columns, list) or not isinstance(rows, list):
            yield Unreadable(1, 'no table: "columns" or "data" is missing', "")
            return
        key, step = _told(self._path)
        validation = _VALIDATION.search(key) is not None
        found = [
            sample
            for row in rows
            if isinstance(row, list)
            for at, record in _records(columns, row)
            if (sample := read_sample(record, step if at is None else at, validation=validation)) is not None
        ]
        last = found[-1].step if found and _is_continued(self._path, key, step) else None
        kept = [sample for sample in found if last is None or sample.step == last]
        yield from kept[:_SAMPLES_A_TABLE]


def _records(columns: list[Any], row: list[Any]) -> Iterator[tuple[int | None, dict[str, Any]]]:
    """Yield the records of a row with their step: one, or as many as its columns are numbered."""
    plain: dict[str, Any] = {}
    numbered: dict[str, dict[str, Any]] = {}
    for column, value in zip(map(str, columns), row, strict=False):
        found = _NUMBERED.match(column)
        if found is None:
            plain[column] = value
        else:
            numbered.setdefault(found["number"], {})[found["field"]] = value
    step = next((known for name in _STEPS if (known := integer(plain.pop(name, None))) is not None), None)
    if read_sample(plain) is not None or not numbered:
        numbered = {"": {f"{field}_{n}": value for n, fields in numbered.items() for field, value in fields.items()}}
    for fields in numbered.values():
        yield step, plain | fields


def _told(path: Path) -> tuple[str, int | None]:
    """Return name and step of a table, as its file's name and the folders below `media/table` tell."""
    found = _NAME.match(path.name)
    name, step = (found["key"], integer(found["step"])) if found else (path.name.partition(".")[0], None)
    parts = path.parent.parts
    if "table" in parts:
        name = "/".join((*parts[len(parts) - parts[::-1].index("table") :], name))
    return name, step


def _is_continued(path: Path, key: str, step: int | None) -> bool:
    """Tell whether an earlier table of the same name lies beside one."""
    try:
        others = [_told(other) for other in path.parent.iterdir() if other.name.endswith(".table.json")]
    except OSError:
        return False
    return any(name == key and at is not None and step is not None and at < step for name, at in others)
