"""Metrics as CSV: a header of names, one row a step, as `export csv` and many trainers' own exports
write them.

Exporters that cannot write `/` in a name write `_`: names that verl is known to log get theirs
back. W&B's charts are saved with the run's name before each metric's, several runs in one file: a
run within is named by a path below it, `chart.csv/run-a`.
"""

from __future__ import annotations

import csv
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.metrics import slashed
from verl_tui.patterns import NamePattern
from verl_tui.sources.fields.jsonl import Fields, names, unreadable, written_number
from verl_tui.sources.fields.row_batcher import Item, joined_notes
from verl_tui.sources.fields.steps import is_sure_name, stated_step, step_fields
from verl_tui.sources.files import escaped, file_and_part, why_unread
from verl_tui.sources.formats.lines import LineReader
from verl_tui.sources.formats.tutorial import TutorialDecoder, are_measured
from verl_tui.text import decoded, safe

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Sequence
    from pathlib import Path


name = "metrics CSV"
rank = 3
anchor = True

_OF_RUN = NamePattern(r"(?P<run>.+) - (?P<key>.+?)(?P<bound>__(?:MIN|MAX))?")
"""A column of a chart saved at W&B: of each metric its value, and the least and the greatest of the
steps that the chart draws as one.
"""
_SPLITS = frozenset(names("split"))
"""What stands before metrics in other tables: no runs."""
_WANDBS = frozenset({"_step", "_runtime", "_timestamp"})
"""Columns of a chart that are no metrics."""
_FIRST_ROWS = 8
_OF_RUNS = frozenset({"Name", "State"})
"""Columns of W&B's table of runs, which has a row for each."""
_TRUTH = {"true": 1.0, "false": 0.0}
_BOM = "\ufeff"
_BOUNDS = "W&B's columns of least and greatest values (__MIN, __MAX) are left out"


def matches(path: Path, head: bytes) -> bool:
    """Return True for a `.csv` whose first rows have a step or a metric of trainings only, and are
    not of one thing after the other.
    """
    if path.suffix.lower() != ".csv" or why_unread(head):
        return False
    first, *lines = head.split(b"\n", _FIRST_ROWS)[:_FIRST_ROWS]
    names = _header(_told_apart(_fields(first))).names
    rows = [_typed(names, _fields(line)) for line in lines if line.strip()]
    return not _OF_RUNS.issubset(names) and are_measured(rows)


def reader(path: Path) -> LineReader:
    """Return a reader for one file, or for one of the runs in it."""
    return LineReader(CsvDecoder(file_and_part(path)[1]))


def runs_in(head: bytes) -> tuple[str, ...]:
    """Return the runs of a chart saved at W&B, as parts of a path; none where all is of one."""
    runs = _header(_told_apart(_fields(head.partition(b"\n")[0]))).runs
    return tuple(map(escaped, runs)) if len(runs) > 1 else ()


class CsvDecoder(TutorialDecoder):
    """Decodes rows by the header that the file begins with, each as a record of JSON with the same
    words would be.
    """

    parted = False

    def __init__(self, run: str | None = None) -> None:
        """Begin a file; `run` is the one to read of several in it, None the first."""
        super().__init__()
        self.run = run
        self._written: list[str] = []
        """The header as the file has it, with columns of one name; none before it was read."""
        self._header = _header([])

    @property
    def note(self) -> str | None:
        """Say how many steps were counted, and what was left out."""
        many = len(self._header.runs)
        others = many > 1 and self.run is None
        return joined_notes(
            super().note,
            _BOUNDS if self._header.bounded else None,
            f"holds {many} runs; the first one is shown" if others else None,
        )

    def decode(self, line: bytes, number: int) -> Iterable[Item]:
        """Return the row of one line."""
        if not line.strip():
            return ()
        fields = _fields(line)
        if not self._written or fields == self._written:
            self._written = fields
            self._header = _header(_told_apart(fields), self.run)
            self._steps = step_fields(self._header.names)
            return ()
        columns = len(self._written)
        if len(fields) != columns:
            reason = f"{len(fields)} fields where the header has {columns}"
            return (unreadable(line, number, reason),)
        return self.records([_typed(self._header.names, fields)], line, number)

    def read(self, record: Fields) -> Iterable[Item]:
        """Return the row of a record."""
        steps = self._steps.steps
        if steps and stated_step(record, self._steps)[0] is None:
            column = self._header.names.index(steps[0]) + 1
            raise ValueError(f"no step in column {column}")
        return super().read(record)

    def last(self, line: bytes, number: int) -> Iterable[Item] | None:
        """Return the row of a line without an end, None where its last number may lack digits: it
        neither stands in quotes, nor is left out.
        """
        quoted = line.endswith((b'"', b'"\r')) and line.count(b'"') % 2 == 0
        whole = len(_fields(line)) == len(self._written) > 0
        if not whole or not (quoted or not self._header.names[-1]):
            return None
        return self.decode(line, number)


def _fields(line: bytes) -> list[str]:
    text = decoded(line).strip("\r\n")
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
        again = f" ({seen[field]})" if seen[field] > 1 and field else ""
        apart.append(f"{run}{again}{dash}{key}" if run else field + again)
    return apart


class _Header(NamedTuple):
    """What the header of a table says."""

    names: list[str]
    """Names of its columns as metrics, empty for those that are not read."""
    runs: list[str]
    """The runs that a chart saved at W&B is of; none if it is of none."""
    bounded: bool
    """Whether it has columns of least and greatest values."""


def _header(fields: Sequence[str], run: str | None = None) -> _Header:
    """Return what a header says.

    Args:
        fields: Its fields, told apart.
        run: The run to read, of several in a chart; None for the first.
    """
    columns = list(filter(None, map(_OF_RUN.fullmatch, fields[1:])))
    bounded = any(one["bound"] for one in columns)
    runs = list(dict.fromkeys(one["run"] for one in columns))
    if len(columns) < max(1, len(fields) - 1) or not _is_chart(
        fields[0], runs, bounded
    ):
        return _Header(list(map(_plain, fields)), [], bounded=False)
    shown = next((one for one in runs if escaped(one) == run), runs[0])
    names = [_plain(fields[0]), *(_own(one, shown) for one in columns)]
    others = {names[0], *_WANDBS}.difference(step_fields(names).steps)
    return _Header(["" if one in others else one for one in names], runs, bounded)


def _own(column: re.Match[str], run: str) -> str:
    """Return the metric of a column, nothing for another run's and for bounds."""
    return _plain(column["key"]) if column.group("run", "bound") == (run, None) else ""


def _is_chart(first: str, runs: Sequence[str], bounded: bool) -> bool:
    """Return whether columns are those of a chart: with least or greatest values, or behind steps
    and of no splits.
    """
    splits = not _SPLITS.isdisjoint(map(str.lower, runs))
    return bounded or (is_sure_name(first) and not splits)


def _plain(field: str) -> str:
    """Return the name of a column as a metric's, or as a field of records."""
    return "timestamp" if field == "Wall time" else slashed(safe(field.strip(), 200))


def _typed(names: Sequence[str], fields: Sequence[str]) -> Fields:
    """Return the fields of a row by name, numbers as such, without those that are empty."""
    found: Fields = {}
    for name, field in zip(names, fields, strict=False):
        if name and field:
            value = _number(field)
            found[name] = field if value is None else value
    return found


def _number(field: str) -> float | None:
    """Return a value; None for an empty field and for words."""
    known = written_number(field)
    return _TRUTH.get(field.strip().lower()) if known is None else known
