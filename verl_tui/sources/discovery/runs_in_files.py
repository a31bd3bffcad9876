"""Split a file of several runs into these: a chart saved at W&B as CSV, a database of trackio.

A run within is named by a path below its file: `chart.csv/grpo`. Of a database the run that was
written last belongs to the logs beside it, as the only run in a file does; others are runs of their
own.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.sources.discovery import naming
from verl_tui.sources.discovery.found import FoundRun
from verl_tui.sources.files.compressed import head
from verl_tui.sources.files.paths import status_at, unescaped
from verl_tui.sources.formats import metrics_csv
from verl_tui.sources.formats.trackio import database

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from verl_tui.sources.discovery.found import FoundFile

RunParts = dict[str, str]
"""The last parts of the paths of the runs in a file, with the run's name, empty where it is named
by its file.
"""
_LONGEST_HEADER = 2**20
"""Bytes of a table's header that are looked at."""
_MOST_RUNS = 100
"""Runs of one table that are shown."""
_LATEST = """
    SELECT run_name FROM (
        SELECT run_name, 0 AS written, id FROM configs
        UNION ALL SELECT run_name, 1, max(id) FROM metrics GROUP BY run_name
    ) ORDER BY written, id
"""
"""The names in a database of trackio, the run that was written last at the end."""


class _RunsInFile(NamedTuple):
    stamp: tuple[tuple[float, int], ...]
    """Time and size of the file, and of what SQLite has not put into it yet."""
    parts: RunParts
    left_out: int = 0
    """Further runs, which are not shown."""


def is_trackio(file: FoundFile) -> bool:
    """True if a file is a database of trackio."""
    return file.format is not None and file.format.name == database.name


class RunsInFiles:
    """The runs in files of several; looks again only where one has changed."""

    def __init__(self) -> None:
        self._known: dict[Path, _RunsInFile] = {}

    @property
    def passed(self) -> Iterator[tuple[Path, str]]:
        """The files some of whose runs are not shown, and how many."""
        for path, known in self._known.items():
            if known.left_out:
                yield path, f"{known.left_out:,} further runs in it are not shown"

    def split(self, runs: Iterable[FoundRun]) -> list[FoundRun]:
        """Return runs, and each run in a file of several unless it is of the logs beside it.

        Runs of one name in several databases are told apart by these.
        """
        found = [one for run in runs for one in self._divided(run)]
        stored = {at: place for at, run in enumerate(found) if (place := _place(run))}
        names = naming.distinct([found[at].name for at in stored], [*stored.values()])
        for at, name in zip(stored, names, strict=True):
            found[at] = found[at]._replace(name=name)
        return found

    def _divided(self, run: FoundRun) -> Iterator[FoundRun]:
        files: list[FoundFile] = []
        others: list[FoundRun] = []
        name = run.name
        for file in run.files:
            parts = dict(self._parts(file))
            if parts and (is_trackio(file) or len(parts) == 1):
                last, named = parts.popitem()
                files.append(_within(file, last))
                name = named or name
            elif not parts:
                files.append(file)
            others += _runs_of(file, parts, run.name)
        if any(map(attrgetter("format"), files)):
            several = len(list(filter(attrgetter("is_log"), files))) > 1
            named = run.name if several else name
            yield run._replace(name=named, files=tuple(files))
        yield from others

    def _parts(self, file: FoundFile) -> RunParts:
        """Return the runs in a file; none where it is one run, or cannot be read."""
        path = file.path
        find = _FINDERS.get(file.format.name if file.format is not None else "")
        if find is None:
            return {}
        known = self._known.get(path, _RunsInFile((), {}))
        stamp = tuple(map(_stamp, (path, Path(f"{path}-wal"))))
        if known.stamp != stamp:
            try:
                known = _RunsInFile(stamp, *find(path))
            except (OSError, ValueError, sqlite3.Error):
                return known.parts
            self._known[path] = known
        return known.parts


def _stamp(path: Path) -> tuple[float, int]:
    status = status_at(path)
    return (0.0, 0) if status is None else (status.st_mtime, status.st_size)


def _runs_of(
    file: FoundFile, parts: Mapping[str, str], called: str
) -> Iterator[FoundRun]:
    """Yield runs in a file, named by that where they have no name."""
    for part, name in parts.items():
        one = _within(file, part)
        yield FoundRun(name or called, one.path, (one,))


def _in_database(path: Path) -> tuple[RunParts, int]:
    with closing(database.open_database(path)) as opened:
        names = [str(name) for (name,) in opened.execute(_LATEST)]
    last = dict.fromkeys(reversed(names))
    return {
        name.replace("\0", "") or "unnamed": naming.visible(name)
        for name in reversed(last)
    }, 0


def _in_table(path: Path) -> tuple[RunParts, int]:
    parts = metrics_csv.runs_in(head(path, _LONGEST_HEADER))
    shown = {part: unescaped(part) for part in parts[:_MOST_RUNS]}
    return shown, len(parts) - len(shown)


_FINDERS = {
    metrics_csv.name: _in_table,
    database.name: _in_database,
}
"""What finds the runs in a file, by the name of its format."""


def _place(run: FoundRun) -> Sequence[str]:
    """Return the path of the database whose run is the only log, in parts; empty without one."""
    logs = [file for file in run.files if file.is_log]
    if len(logs) != 1 or not is_trackio(logs[0]):
        return ()
    return database.database_of(logs[0].path)[0].with_suffix("").parts


def _within(file: FoundFile, part: str) -> FoundFile:
    return file._replace(path=file.path / part)
