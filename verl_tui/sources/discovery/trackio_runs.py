"""The runs in databases of trackio: one file holds all runs of a project."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from verl_tui.sources.discovery import naming
from verl_tui.sources.formats.trackio import database
from verl_tui.sources.formats.trackio.database import database_of, open_database
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from verl_tui.sources.discovery.found import FoundFile, FoundRun


class RunNames:
    """The names of the runs in databases; reads only rows added since the last call."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[int, dict[str, None]]] = {}
        """By database: the last row looked at, and the names in the order of their last rows."""

    def of(self, path: Path) -> list[str]:
        """Return the names of a database's runs, the last written one at the end."""
        last, names = self._known.get(path, (0, {}))
        try:
            with closing(open_database(path)) as opened:
                configured = [
                    row[0] for row in opened.execute("SELECT run_name FROM configs ORDER BY id")
                ]
                added = opened.execute(
                    "SELECT run_name, max(id) FROM metrics WHERE id > ?"
                    " GROUP BY run_name ORDER BY max(id)",
                    (last,),
                ).fetchall()
        except (sqlite3.Error, OSError, UnicodeDecodeError):
            return list(names)
        for run in configured:
            names.setdefault(str(run))
        for run, at in added:
            names.pop(str(run), None)
            names[str(run)] = None
            last = max(last, at)
        self._known[path] = last, names
        return list(names)

    def split(self, runs: Iterable[FoundRun]) -> Iterator[FoundRun]:
        """Yield runs and those in databases; the last written one belongs to the logs beside it."""
        for run in runs:
            files: list[FoundFile] = []
            earlier: list[tuple[FoundFile, str]] = []
            for file in run.files:
                names = self.of(file.path) if is_trackio(file) else []
                files.append(_within(file, names[-1]) if names else file)
                earlier += [(_within(file, name), name) for name in names[:-1]]
            name = one_line(_name_of_only_log(files), 120) or run.name
            yield run._replace(name=name, files=tuple(files))
            for file, each in earlier:
                yield run._replace(name=naming.visible(each), directory=file.path, files=(file,))


def _name_of_only_log(files: Iterable[FoundFile]) -> str:
    """Return the run's name in a database that is the only log, else nothing."""
    logs = [file for file in files if file.format is not None and file.format.anchor]
    return database_of(logs[0].path)[1] if len(logs) == 1 and is_trackio(logs[0]) else ""


def is_trackio(file: FoundFile) -> bool:
    """True if a file is a database of trackio."""
    return file.format is not None and file.format.name == database.name


def _within(file: FoundFile, run: str) -> FoundFile:
    return file._replace(path=file.path / (run.replace("\0", "") or "unnamed"))
