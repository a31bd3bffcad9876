"""The runs in databases of trackio: one file holds all runs of a project."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from verl_tui.sources.discovery import naming
from verl_tui.sources.formats.trackio import database
from verl_tui.sources.formats.trackio.database import database_of, open_database

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
                configured = opened.execute(
                    "SELECT run_name FROM configs ORDER BY id"
                ).fetchall()
                added = opened.execute(
                    "SELECT run_name, max(id) FROM metrics WHERE id > ?"
                    " GROUP BY run_name ORDER BY max(id)",
                    (last,),
                ).fetchall()
        except (sqlite3.Error, OSError, UnicodeDecodeError):
            return list(names)
        for (run,) in configured:
            names.setdefault(str(run))
        for run, at in added:
            names.pop(str(run), None)
            names[str(run)] = None
            last = max(last, at)
        self._known[path] = last, names
        return list(names)

    def split(self, runs: Iterable[FoundRun]) -> Iterator[FoundRun]:
        """Yield runs and those in databases; the last written one belongs to the logs beside it.

        Runs of one name in several databases are told apart by these.
        """
        found = list(self._divided(runs))
        places = [_place(run.files) for run in found]
        stored = [at for at, place in enumerate(places) if place]
        names = naming.distinct(
            [found[at].name for at in stored], [places[at] for at in stored]
        )
        for at, name in zip(stored, names, strict=True):
            found[at] = found[at]._replace(name=name)
        yield from found

    def _divided(self, runs: Iterable[FoundRun]) -> Iterator[FoundRun]:
        for run in runs:
            files: list[FoundFile] = []
            earlier: list[tuple[FoundFile, str]] = []
            for file in run.files:
                names = self.of(file.path) if is_trackio(file) else []
                files.append(_within(file, names[-1]) if names else file)
                earlier += [(_within(file, name), name) for name in names[:-1]]
            only = _only_log(files)
            own = database_of(only.path)[1] if only is not None else ""
            name = naming.visible(own) if own else run.name
            yield run._replace(name=name, files=tuple(files))
            for file, name in earlier:
                yield run._replace(
                    name=naming.visible(name), directory=file.path, files=(file,)
                )


def _only_log(files: Iterable[FoundFile]) -> FoundFile | None:
    """Return the run in a database that is the only log, else nothing."""
    logs = [file for file in files if file.format is not None and file.format.anchor]
    if len(logs) == 1 and is_trackio(logs[0]):
        return logs[0]
    return None


def _place(files: Iterable[FoundFile]) -> tuple[str, ...]:
    """Return the path of the database whose run is the only log, in parts; empty without one."""
    only = _only_log(files)
    if only is None:
        return ()
    database, _ = database_of(only.path)
    return database.with_suffix("").parts


def is_trackio(file: FoundFile) -> bool:
    """True if a file is a database of trackio."""
    return file.format is not None and file.format.name == database.name


def _within(file: FoundFile, run: str) -> FoundFile:
    return file._replace(path=file.path / (run.replace("\0", "") or "unnamed"))
