"""Split a file of several runs into these: a `/metrics` page, a chart saved at W&B as CSV, a
database of trackio.

A run within is named by a path below its file: `node.prom/grpo`. Of a page the run that is called
like the logs beside it belongs to them, of a database the one that was written last.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from verl_tui.sources.discovery import naming
from verl_tui.sources.discovery.found import FoundRun, stem
from verl_tui.sources.files.compressed import head
from verl_tui.sources.files.paths import unescaped
from verl_tui.sources.formats import metrics_csv
from verl_tui.sources.formats.prometheus_text import reader as exposition
from verl_tui.sources.formats.prometheus_text.page import (
    MOST_RUNS,
    NOBODYS,
    read_saved,
)
from verl_tui.sources.formats.trackio import database

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from verl_tui.sources.discovery.found import FoundFile

RunParts = dict[str, str]
"""The last parts of the paths of the runs in a file, with the run's name, empty where it is named
by its file.
"""
_LONGEST_HEADER = 2**20
"""Bytes of a table's header that are looked at."""


def is_trackio(file: FoundFile) -> bool:
    """True if a file is a database of trackio."""
    return file.format is not None and file.format.name == database.name


class RunsInFiles:
    """The runs in files of several; looks again only where one has changed."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[tuple[float, int], RunParts]] = {}
        self._left_out: dict[Path, int] = {}
        self._stored: dict[Path, tuple[int, dict[str, None]]] = {}
        """By database: the last row looked at, and the names in the order of their last rows."""

    @property
    def passed(self) -> Iterator[tuple[Path, str]]:
        """The files some of whose runs are not shown, and how many."""
        for path, count in self._left_out.items():
            if count:
                yield path, f"{count:,} further runs in it are not shown"

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
        parts = {file: dict(self._parts(file)) for file in run.files}
        called = _names_of_logs(run, parts)
        files: list[FoundFile] = []
        names: list[str] = []
        for file, inside in parts.items():
            own = _own(file, inside, called)
            if own is not None:
                names.append(inside.pop(own) or run.name)
                files.append(_within(file, own))
            elif not inside:
                files.append(file)
        if files:
            name = names[0] if len(names) == 1 and not called else run.name
            yield run._replace(name=name, files=tuple(files))
        for file, others in parts.items():
            yield from _other_runs(file, others, run.name)

    def _parts(self, file: FoundFile) -> RunParts:
        """Return the runs in a file; none where it is one run, or cannot be read."""
        path = file.path
        find = _FINDERS.get(file.format.name if file.format is not None else "")
        try:
            if is_trackio(file):
                return self._in_database(path)
            if find is None:
                return {}
            found = path.stat()
            stamp = found.st_mtime, found.st_size
            known = self._known.get(path)
            if known is None or known[0] != stamp:
                parts, left_out = find(path)
                shown = dict([*parts.items()][: MOST_RUNS + 1])
                known = self._known[path] = stamp, shown
                self._left_out[path] = left_out + len(parts) - len(shown)
        except (OSError, ValueError):
            return {}
        return known[1]

    def _in_database(self, path: Path) -> RunParts:
        """Return a database's runs, the last written one at the end; reads only rows added since
        the last look.
        """
        last, names = self._stored.get(path, (0, {}))
        try:
            with closing(database.open_database(path)) as opened:
                configured = opened.execute(
                    "SELECT run_name FROM configs ORDER BY id"
                ).fetchall()
                added = opened.execute(
                    "SELECT run_name, max(id) FROM metrics WHERE id > ?"
                    " GROUP BY run_name ORDER BY max(id)",
                    (last,),
                ).fetchall()
        except (sqlite3.Error, OSError, UnicodeDecodeError):
            configured, added = [], []
        for (run,) in configured:
            names.setdefault(str(run))
        for run, at in added:
            names.pop(str(run), None)
            names[str(run)] = None
            last = max(last, at)
        self._stored[path] = last, names
        return {
            name.replace("\0", "") or "unnamed": naming.visible(name) for name in names
        }


def _names_of_logs(run: FoundRun, parts: Mapping[FoundFile, RunParts]) -> set[str]:
    """Return the names of a run and its logs, none if all it has are files of several runs."""
    logs = [file for file in parts if file.is_log]
    names = set()
    for file in logs:
        if not parts[file] and file.format is not exposition:
            names |= {run.name, stem(file.path), file.title}
    return names


def _other_runs(file: FoundFile, parts: RunParts, called: str) -> Iterator[FoundRun]:
    for part, name in parts.items():
        one = _within(file, part)
        yield FoundRun(name or called, one.path, (one,))


def _in_table(path: Path) -> tuple[RunParts, int]:
    parts = metrics_csv.runs_in(head(path, _LONGEST_HEADER))
    return {part: unescaped(part) for part in parts}, 0


def _on_page(path: Path) -> tuple[RunParts, int]:
    """Return the runs of a page, and how many further ones there are; the figures without a run's
    name are one where they hold any beside its runs.
    """
    page = read_saved(head(path, exposition.LARGEST))
    runs = dict(page.runs)
    shared = runs.get(NOBODYS)
    if shared is not None and (len(runs) == 1 or not exposition.is_told(shared)):
        del runs[NOBODYS]
    return {exposition.part_of(run): run for run in runs}, page.left_out


_FINDERS = {exposition.name: _on_page, metrics_csv.name: _in_table}
"""What finds the runs in a file, by the name of its format."""


def _own(file: FoundFile, parts: Mapping[str, str], called: set[str]) -> str | None:
    """Return the part of a file that belongs to a run's other files, None if none does.

    Args:
        file: The file.
        parts: Its parts.
        called: Names of the logs beside it, empty if there are none.
    """
    if not parts:
        return None
    if is_trackio(file):
        return list(parts)[-1]
    if len(parts) == 1 or not called:
        return next(iter(parts))
    return next((part for part, name in parts.items() if name in called), None)


def _place(run: FoundRun) -> Sequence[str]:
    """Return the path of the database whose run is the only log, in parts; empty without one."""
    logs = [file for file in run.files if file.is_log]
    if len(logs) != 1 or not is_trackio(logs[0]):
        return ()
    return database.database_of(logs[0].path)[0].with_suffix("").parts


def _within(file: FoundFile, part: str) -> FoundFile:
    return file._replace(path=file.path / part)
