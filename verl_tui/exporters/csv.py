"""Every numeric metric of a run as CSV: one row a step, under the log's own keys."""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TextIO

from verl_tui.exporters.file_names import unique_names
from verl_tui.failures import note_failure
from verl_tui.given_files import UsageError, is_there, replacing
from verl_tui.sources.files import is_folder
from verl_tui.text import cell
from verl_tui.words import few

if TYPE_CHECKING:
    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Series

_EXACT = 2.0**53
"""Integers below are exact as floats and lose nothing without their `.0`."""


class CsvColumn(NamedTuple):
    """One column: part of a series, or a text for each step."""

    key: str
    steps: Sequence[int]
    values: Sequence[float] | Sequence[str]


def export(runs: Sequence[Run], target: str) -> tuple[list[Path], list[str]]:
    """Write runs as CSV; return the files that were written, and a sentence for each run that has
    none because of an error of our own.

    Args:
        runs: At least one.
        target: A file; `-` for standard output; or a directory, which gets one file for each run.

    Raises:
        UsageError: Several runs are to go into one file.
        OSError: A file cannot be written.
    """
    path = Path(target)
    is_folder_name = target.endswith("/") or is_folder(path)
    may_become_one = len(runs) > 1 and not path.suffix and not is_there(path)
    if target != "-" and (is_folder_name or may_become_one):
        return _into_directory(runs, path)
    if len(runs) > 1:
        why = "cannot go into one file: name a directory with -o"
        listed = few((run.name for run in runs), 3)
        raise UsageError(f"{len(runs)} runs ({listed}) {why}")
    if target == "-":
        write_csv(runs[0], sys.stdout)
        return [], []
    _write(runs[0], path)
    return [path], []


def write_csv(run: Run, file: TextIO) -> None:
    """Write a run row by row: steps ascending, columns in the order of the log.

    Numbers keep their full precision, an absent value is an empty field, one that is not finite is
    `nan`, `inf` or `-inf`. Of a step that the log wrote twice (a restart from an earlier
    checkpoint) the newest value counts.

    Args:
        run: The run; it is not changed.
        file: Opened with `newline=""`, so that lines end as written here.
    """
    # The first column is the step already; a metric of that name would make the header ambiguous.
    found = (run.series(key) for key in run.keys if key != "step")
    columns = [series for series in found if series is not None]
    csv.writer(file, lineterminator="\n").writerows(csv_rows(columns))


def csv_rows(columns: Sequence[CsvColumn | Series]) -> Iterator[list[str]]:
    """Yield the header, then a row for each step; only one row is held in memory."""
    yield ["step", *(cell(column.key) for column in columns)]
    at = [0] * len(columns)
    # many columns may share them
    known = {id(column.steps): column.steps for column in columns}
    for step in sorted(set().union(*known.values())):
        row = [str(step)]
        for number, column in enumerate(columns):
            place = at[number]
            if place < len(column.steps) and column.steps[place] == step:
                value = column.values[place]
                row.append(value if isinstance(value, str) else exact(value))
                at[number] = place + 1
            else:
                row.append("")
        yield row


def exact(value: float) -> str:
    """Return a number in digits that read back as exactly this number."""
    if not value.is_integer() or abs(value) >= _EXACT:
        return repr(value)
    if value == 0 and math.copysign(1, value) < 0:
        return repr(value)
    return str(int(value))


def _into_directory(
    runs: Sequence[Run], directory: Path
) -> tuple[list[Path], list[str]]:
    directory.mkdir(parents=True, exist_ok=True)
    files, problems = [], []
    for run, name in zip(runs, unique_names(run.name for run in runs), strict=True):
        path = directory / f"{name}.csv"
        try:
            _write(run, path, ours=True)
            files.append(path)
        except OSError:
            raise
        except Exception as error:  # noqa: BLE001 - one run's failure is no other's
            why = note_failure(f"exporting {run.name}", error)
            problems.append(f"{path}: not written: {why}")
        finally:
            run.forget_series()
    return files, problems


def _write(run: Run, path: Path, *, ours: bool = False) -> None:
    with replacing(path, ours=ours) as file:
        write_csv(run, file)
