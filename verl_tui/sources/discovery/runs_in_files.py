"""Split a file of several runs into these: a chart saved at W&B as CSV, a database of trackio.

A run within is named by a path below its file: `chart.csv/grpo`. Of a database the run that was
written last belongs to the logs beside it, as the only run in a file does; others are runs of their
own.
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING

from verl_tui.sources.discovery import naming
from verl_tui.sources.discovery.found import FoundFile, FoundRun
from verl_tui.sources.files import head, status_at, unescaped
from verl_tui.sources.formats import metrics_csv, trackio

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path


RunParts = dict[str, str]
"""The last parts of the paths of the runs in a file, with the run's name, empty where it is named
by its file.
"""
_LONGEST_HEADER = 2**20
"""Bytes of a table's header that are looked at."""
_MOST_RUNS = 100
"""Runs of one table that are shown."""


def is_trackio(file: FoundFile) -> bool:
    """True if a file is a database of trackio."""
    return file.format is trackio


class RunsInFiles:
    """The runs in files of several; looks again only where one has changed."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[object, RunParts]] = {}
        """Times and sizes of each file, and of what SQLite has not put into it yet; the runs."""
        self.passed: dict[Path, str] = {}
        """The tables some of whose runs are not shown, and how many."""

    def split(self, runs: Iterable[FoundRun]) -> list[FoundRun]:
        """Return runs, and each run in a file of several unless it is of the logs beside it.

        Runs of one name in several databases are told apart by these.
        """
        found = [one for run in runs for one in self._divided(run)]
        stored: dict[int, Sequence[str]] = {}
        """The paths of databases whose runs are the only log, in parts."""
        for at, run in enumerate(found):
            logs = [file for file in run.files if file.is_log]
            if len(logs) == 1 and is_trackio(logs[0]):
                place, _ = trackio.database_of(logs[0].path)
                stored[at] = place.with_suffix("").parts
        names = naming.distinct([found[at].name for at in stored], [*stored.values()])
        for at, name in zip(stored, names, strict=True):
            found[at] = found[at]._replace(name=name)
        return found

    def _divided(self, run: FoundRun) -> Iterator[FoundRun]:
        files: list[FoundFile] = []
        others: list[FoundRun] = []
        name = run.name
        for file in run.files:
            parts = self._parts(file)
            if parts and (is_trackio(file) or len(parts) == 1):
                last, named = parts.popitem()
                files.append(file._replace(path=file.path / last))
                name = named or name
            elif not parts:
                files.append(file)
            others += _runs_of(file, parts, run.name)
        if any(map(attrgetter("format"), files)):
            several = sum(file.is_log for file in files) > 1
            yield run._replace(name=run.name if several else name, files=tuple(files))
        yield from others

    def _parts(self, file: FoundFile) -> RunParts:
        """Return the runs in a file; none where it is one run, or cannot be read."""
        path = file.path
        if file.format not in (metrics_csv, trackio):
            return {}
        states = map(status_at, (path, trackio.log_of(path)))
        stamp = [(one.st_mtime, one.st_size) if one else None for one in states]
        known, parts = self._known.get(path, (None, {}))
        if known != stamp:
            with suppress(OSError, ValueError, sqlite3.Error):
                parts = _in_database(path) if is_trackio(file) else _in_table(path)
                self._known[path] = stamp, parts
        if is_trackio(file):
            return {**parts}
        if (left_out := len(parts) - _MOST_RUNS) > 0:
            self.passed[path] = f"{left_out:,} further runs in it are not shown"
        return dict(islice(parts.items(), _MOST_RUNS))


def _runs_of(file: FoundFile, parts: RunParts, called: str) -> Iterator[FoundRun]:
    """Yield runs in a file, named by that where they have no name."""
    for part, name in parts.items():
        one = file._replace(path=file.path / part)
        yield FoundRun(name or called, one.path, (one,))


def _in_database(path: Path) -> RunParts:
    return {
        name.replace("\0", "") or "unnamed": naming.visible(name)
        for name in trackio.runs_in(path)
    }


def _in_table(path: Path) -> RunParts:
    parts = metrics_csv.runs_in(head(path, _LONGEST_HEADER))
    return {part: unescaped(part) for part in parts}
