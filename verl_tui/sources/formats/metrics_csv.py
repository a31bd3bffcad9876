"""Metrics as CSV: a header of names, one row a step, as `export csv` and many trainers' own exports
write them.

Exporters that cannot write `/` in a name write `_`: names that verl is known to log get theirs
back. W&B's charts are saved with the run's name before each metric's, several runs in one file: a
run within is named by a path below it, `chart.csv/run-a`. TensorBoard's have the tag in the name of
the file.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui.metrics import slashed
from verl_tui.patterns import NamePattern, pattern
from verl_tui.sources.fields.jsonl import unreadable, written_number
from verl_tui.sources.fields.listed_things import listed_thing
from verl_tui.sources.fields.row_batcher import joined_notes
from verl_tui.sources.fields.steps import (
    TRAINED,
    is_sure_name,
    stated_step,
    step_fields,
)
from verl_tui.sources.files.paths import escaped, file_and_part
from verl_tui.sources.formats.lines import LineReader
from verl_tui.sources.formats.tutorial import TutorialDecoder
from verl_tui.text import safe

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from verl_tui.records import Record
    from verl_tui.sources.fields.row_batcher import MetricRow

name = "metrics CSV"
rank = 3
anchor = True

_OF_RUN = NamePattern(r"(?P<run>.+) - (?P<key>.+?)(?P<bound>__(?:MIN|MAX))?")
"""A column of a chart saved at W&B: of each metric its value, and the least and the greatest of the
steps that the chart draws as one.
"""
_SPLITS = frozenset({"train", "val", "valid", "validation", "test", "eval"})
"""What stands before metrics in other tables: no runs."""
_WANDBS = frozenset({"_step", "_runtime", "_timestamp"})
"""Columns of a chart that are no metrics."""
_WALL = "Wall time"
_CHART = [_WALL, "Step", "Value"]
"""Header of a chart saved in TensorBoard."""
_TAG = pattern(r"(?:run-.*-)?tag-(?P<tag>.+)", re.IGNORECASE)
"""Name of its file, without suffix."""
_FIRST_ROWS = 8
_OF_RUNS = frozenset({"Name", "State"})
"""Columns of W&B's table of runs, which has a row for each."""
_TRUTH = {"true": 1.0, "false": 0.0}
_BOM = "\ufeff"


def matches(path: Path, head: bytes) -> bool:
    """Return True for a `.csv` whose header names a step or a metric of trainings only, and whose
    rows are not of one thing after the other.
    """
    if path.suffix.lower() != ".csv":
        return False
    lines = head.split(b"\n", _FIRST_ROWS)
    header = _header(_told_apart(_fields(lines[0]))).names
    telling = _telling(header)
    if not telling:
        return False
    rows = [_typed(header, _fields(line)) for line in lines[1:] if line.strip()]
    told = [str(rows[0].get(name, "")).partition("/")[0] for name in telling if rows]
    numbers = any(_number(value) is not None for value in told)
    return not rows or (numbers and listed_thing(rows[: _FIRST_ROWS - 1]) is None)


def _telling(header: Sequence[str]) -> Sequence[str]:
    """Return the columns that show that a table is a training's."""
    if len(header) < 2 or _OF_RUNS.issubset(header):
        return ()
    fields = step_fields(header)
    places = (*fields.steps, *filter(None, [fields.epoch]))
    return places or tuple(filter(_is_trained, header))


def _is_trained(name: str) -> bool:
    return name.lower().rpartition("/")[2] in TRAINED


def reader(path: Path) -> LineReader:
    """Return a reader for one file, or for one of the runs in it."""
    file, run = file_and_part(path)
    found = _TAG.fullmatch(file.stem)
    return LineReader(CsvDecoder(tag=found["tag"] if found else "", run=run))


def runs_in(head: bytes) -> tuple[str, ...]:
    """Return the runs of a chart saved at W&B, as parts of a path; none where all is of one."""
    runs = _header(_told_apart(_fields(head.partition(b"\n")[0]))).runs
    return tuple(map(escaped, runs)) if len(runs) > 1 else ()


class _Header(NamedTuple):
    """What the header of a table says."""

    names: list[str]
    """Names of its columns as metrics, without what saving a chart adds to them; none for columns
    of other runs.
    """
    runs: list[str]
    """The runs that a chart saved at W&B is of; none if it is of none."""
    bounds: frozenset[str]
    """Names of the columns of least and greatest values."""


class CsvDecoder(TutorialDecoder):
    """Decodes rows by the header that the file begins with, each as a record of JSON with the same
    words would be.
    """

    def __init__(self, *, tag: str = "", run: str | None = None) -> None:
        """Begin a file.

        Args:
            tag: TensorBoard's name of the metric, if the file is called after one.
            run: The run to read, of several in the file; None for the first.
        """
        super().__init__()
        self.tag = tag
        self.run = run
        self._written: list[str] = []
        """The header as the file has it, with columns of one name."""
        self._begin([])

    def _begin(self, header: list[str]) -> None:
        self.header = header
        """The names of its columns, as the file has them; none before they were read."""
        names, self._runs, self._bounds = _header(header, self.tag, self.run)
        others = {*self._bounds, *(_WANDBS if self._runs else ())}
        self._steps = step_fields(names)
        steps = self._steps.steps
        if self._runs and names[0] not in steps:
            others.add(names[0])
        self._names = ["" if one in others - {*steps} else one for one in names]
        """Names of the columns that are read, empty for others."""

    @property
    def note(self) -> str | None:
        """Say how many steps were counted, and what was left out."""
        bounds = (
            "W&B's columns of least and greatest values (__MIN, __MAX) are left out"
        )
        many = len(self._runs)
        others = f"holds {many} runs; the first one is shown"
        return joined_notes(
            super().note,
            bounds if self._bounds else None,
            others if many > 1 and self.run is None else None,
        )

    def decode(self, line: bytes, number: int) -> Sequence[MetricRow | Record]:
        """Return the row of one line."""
        if not line.strip():
            return ()
        fields = _fields(line)
        if not self.header or fields == self._written:
            self._written = fields
            self._begin(_told_apart(fields))
            return ()
        columns = len(self.header)
        if len(fields) != columns:
            reason = f"{len(fields)} fields where the header has {columns}"
            return (unreadable(line, number, reason),)
        return self.records([_typed(self._names, fields)], line, number)

    def read(self, record: dict[str, Any]) -> Iterable[MetricRow | Record]:
        """Return the row of a record."""
        steps = self._steps.steps
        if steps and stated_step(record, self._steps)[0] is None:
            raise ValueError(f"no step in column {self._names.index(steps[0]) + 1}")
        return super().read(record)

    def last(self, line: bytes, number: int) -> Sequence[MetricRow | Record] | None:
        """Return the row of a line without an end, None where its last number may lack digits: it
        neither stands in quotes, nor is left out.
        """
        quoted = line.endswith((b'"', b'"\r')) and line.count(b'"') % 2 == 0
        whole = len(_fields(line)) == len(self.header) > 0
        if not whole or not (quoted or not self._names[-1]):
            return None
        return self.decode(line, number)

    def restart(self) -> Sequence[MetricRow | Record]:
        """Expect a header: the file starts again."""
        self.header = []
        return super().restart()


def _fields(line: bytes) -> list[str]:
    text = line.decode("utf-8", "replace").strip("\r\n")
    text = text.removeprefix(_BOM).replace("\0", "")
    try:
        return next(csv.reader([text]), [])
    except csv.Error:
        return [text]


def _told_apart(header: Sequence[str]) -> list[str]:
    """Return a header whose columns of one name are numbered: runs at W&B may share theirs."""
    seen: Counter[str] = Counter()
    apart = []
    for field in header:
        seen[field] += 1
        run, dash, key = field.rpartition(" - ")
        again = f" ({seen[field]})" if seen[field] > 1 else ""
        apart.append(f"{run}{again}{dash}{key}" if run else field + again)
    return apart


def _header(fields: Sequence[str], tag: str = "", run: str | None = None) -> _Header:
    """Return what a header says.

    Args:
        fields: Its fields, told apart.
        tag: TensorBoard's name of the metric, if the file is called after one.
        run: The run to read, of several in a chart; None for the first.
    """
    if tag and fields == _CHART:
        fields = [*fields[:2], tag]
    columns = list(map(_OF_RUN.fullmatch, fields[1:]))
    charted = list(filter(None, columns))
    bounded = list(map(_is_bound, columns))
    runs: list[str] = []
    if charted and all(columns):
        runs = _runs(fields[0], charted, bounded=any(bounded))
    if runs:
        shown = next((one for one in runs if escaped(one) == run), runs[0])
        fields = [fields[0], *(_key(one, shown) for one in charted)]
    names = list(map(_plain, fields))
    return _Header(names, runs, frozenset(compress(names[1:], bounded)))


def _runs(first: str, charted: Sequence[re.Match[str]], *, bounded: bool) -> list[str]:
    """Return the runs of a chart; none where its first column is no step, or its columns are those
    of splits, and none of least or greatest values.
    """
    runs = list(dict.fromkeys(one["run"] for one in charted))
    splits = not _SPLITS.isdisjoint(map(str.lower, runs))
    return runs if bounded or (is_sure_name(first) and not splits) else []


def _plain(field: str) -> str:
    """Return the name of a column as a metric's, or as a field of records."""
    return "timestamp" if field == _WALL else slashed(safe(field.strip(), 200))


def _is_bound(column: re.Match[str] | None) -> bool:
    return column is not None and column["bound"] is not None


def _key(column: re.Match[str], run: str) -> str:
    """Return the metric of a column, nothing for another run's."""
    return column["key"] + (column["bound"] or "") if column["run"] == run else ""


def _typed(names: Sequence[str], fields: Sequence[str]) -> dict[str, Any]:
    """Return the fields of a row by name, numbers as such, without those that are empty."""
    found: dict[str, Any] = {}
    for name, field in zip(names, fields, strict=False):
        if name and field:
            value = _number(field)
            found[name] = field if value is None else value
    return found


def _number(field: str) -> float | None:
    """Return a value; None for an empty field and for words."""
    known = written_number(field)
    return _TRUTH.get(field.strip().lower()) if known is None else known
