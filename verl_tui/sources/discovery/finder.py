"""Find the runs behind the paths that a user names, again and again: runs appear later; assign
directories of checkpoints to them, and split files of several runs.
"""

from __future__ import annotations

import glob
import os
import re
import sqlite3
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from verl_tui.sources import pipe
from verl_tui.sources.discovery import naming
from verl_tui.sources.discovery.directory_walk import (
    DirectoryWalk,
    error_logs,
    extras_in,
    list_entries,
    settings_file,
)
from verl_tui.sources.discovery.found import Folder, FoundFile, FoundRun, stem
from verl_tui.sources.discovery.grouping import named_runs
from verl_tui.sources.discovery.passed_over import PassedOver, sentences
from verl_tui.sources.discovery.probing import NoLogError, Probe, reason_of
from verl_tui.sources.files import (
    HOMES,
    head,
    is_file,
    is_folder,
    one_spelling,
    status_at,
    unescaped,
)
from verl_tui.sources.folders.checkpoint_folders import homes
from verl_tui.sources.folders.setting_files import is_settings
from verl_tui.sources.formats import metrics_csv, trackio
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from verl_tui.sources.formats.format import Format
    from verl_tui.sources.http.addresses import Unreached


RunParts = dict[str, str]
"""The last parts of the paths of the runs in a file, with the run's name, empty where it is named
by its file.
"""
_LONGEST_HEADER = 2**20
"""Bytes of a table's header that are looked at."""
_MOST_RUNS = 100
"""Runs of one table that are shown."""
_HIGHEST = 4
"""Directories gone up to where a run's logs and its checkpoints lie side by side."""


def homes_around(directory: Path) -> list[Path]:
    """Return where the run with logs in a directory keeps its checkpoints: there, or beside it."""
    found = []
    place = directory
    for _ in range(_HIGHEST + 1):
        found += homes(place, 0)
        for name in HOMES:
            found += homes(place / name)
        place = Path(os.path.realpath(place))
        if not naming.is_generic(place.name):
            break
        place = place.parent
    return found


def with_checkpoints(runs: Sequence[FoundRun], found: Iterable[Path]) -> list[FoundRun]:
    """Return the runs with their checkpoints.

    Checkpoints belong to the run whose files lie nearest. If several are equally near, they belong
    to the one whose name is in their path; if there is none, to all: jobs that resume each other
    share them.

    Args:
        runs: The runs.
        found: The directories in which checkpoints lie.
    """
    below: dict[Path, dict[int, set[str]]] = defaultdict(dict)
    """The runs with files at or below each directory, with their names."""
    for at, run in enumerate(runs):
        names = _names(run)
        own = {run.directory, *(file.path.parent for file in run.files)}
        for place in own.union(*(one.parents for one in own)):
            below[place][at] = names
    owned: dict[int, list[Path]] = defaultdict(list)
    for home in dict.fromkeys(found) if runs else ():
        nearest = next(filter(below.__contains__, (home, *home.parents)))
        path = {*home.parts[len(nearest.parts) :]}
        for at in _owners(path, below[nearest]):
            owned[at].append(home)
    return [run._replace(checkpoints=tuple(owned[at])) for at, run in enumerate(runs)]


def _owners(path: set[str], near: dict[int, set[str]]) -> list[int]:
    """Return those of the nearest runs that checkpoints belong to, by the names in their path."""
    first, *others = near.values()
    path -= first.intersection(*others)
    return [at for at, names in near.items() if not path.isdisjoint(names)] or [*near]


def _names(run: FoundRun) -> set[str]:
    """Return the names that a run's checkpoints may lie under."""
    stems = {stem(file.path) for file in run.files if file.is_log}
    names = {run.name, run.directory.name, *stems, *(one.title for one in run.files)}
    return {name for name in names if name and not naming.is_generic(name)}


@dataclass(frozen=True, slots=True)
class Discovery:
    """The runs behind the named paths at one moment."""

    runs: tuple[FoundRun, ...]
    problems: tuple[str, ...]
    """Paths without anything to read and why, one sentence each."""
    waiting: tuple[str, ...]
    """Paths that may lead to something later, one sentence each."""
    passed: tuple[PassedOver, ...] = ()
    """Files that are not shown: unknown or unreadable logs."""
    read: bool = False
    """True if everything found has been read once and handed on."""
    unreached: tuple[Unreached, ...] = ()
    """Addresses without an answer so far."""

    @property
    def pending(self) -> tuple[str, ...]:
        """Everything that may lead to something later, one sentence each."""
        return (*(one.sentence for one in self.unreached), *self.waiting)


class Finder:
    """Finds the runs behind paths, directories and globs; remembers the formats of files."""

    def __init__(self, specs: Sequence[str]) -> None:
        self.specs = tuple(specs)
        self._probe = Probe()
        self.moved: Mapping[Path, Path] = {}
        """Files that are read where they were moved to."""
        self._within: dict[Path, tuple[object, RunParts]] = {}
        """Times and sizes of each file, and of what SQLite has not put into it yet; the runs."""
        self._begin()

    def _begin(self) -> None:
        self._probe.begin()
        self.directories: set[Path] = set()
        """Directories in which something may appear or grow."""
        self._homes: list[Path] = []
        """The directories in which checkpoints lie."""
        self._folders: list[Folder] = []
        self._passed: list[tuple[Path, str]] = []
        self._problems: list[str] = []
        self._waiting: list[str] = []

    @property
    def changed(self) -> set[Path]:
        """The files that the last scan took for another format than the one before: only a part of
        their beginning had been there.
        """
        return self._probe.changed

    def scan(self) -> Discovery:
        """Look at the file system once."""
        self._begin()
        for spec in self.specs:
            if pipe.is_meant(spec):
                stdin = FoundFile(pipe.PATH, pipe)
                self._folders.append(Folder(pipe.PATH, [stdin], stem="stdin"))
                continue
            for path in self._expand(spec):
                self._find(path)
        found = self._split(named_runs(self._folders))
        shown = {file.path for run in found for file in run.files}
        return Discovery(
            tuple(with_checkpoints(found, self._homes)),
            tuple(dict.fromkeys(self._problems)),
            tuple(dict.fromkeys(self._waiting)),
            tuple(
                PassedOver(one_line(str(path), 1000), why)
                for path, why in dict.fromkeys(self._passed)
                if path not in shown
                if f"{one_line(str(path))}: {why}" not in self._problems
            ),
        )

    def _expand(self, spec: str) -> list[Path]:
        """Return the paths that a user's word stands for; note if there are none."""
        name, problem = one_line(spec), "no such file or directory"
        expanded = os.path.expanduser(spec)  # noqa: PTH111 - pathlib normalises the pattern away
        try:
            if expanded.strip():  # where pathlib takes the current directory
                with suppress(PermissionError):
                    # in a directory that may not be entered: reported when read
                    Path(expanded).stat()
                return [one_spelling(expanded)]
        except OSError as error:
            if one_spelling(expanded) in self.moved:
                return []
            problem = reason_of(error)
        except ValueError:  # a zero byte
            pass
        if not glob.has_magic(expanded):
            self._problems.append(f"{name}: {problem}")
            return []
        fixed = Path(re.split(r"[*?\[]", expanded)[0] or ".")
        self.directories.add(fixed if is_folder(fixed) else fixed.parent)
        found = glob.glob(expanded, recursive=True)  # noqa: PTH207 - absolute patterns too
        if not found:
            self._waiting.append(f"{name}: nothing matches yet")
        return sorted(set(map(one_spelling, found)))

    def _find(self, path: Path) -> None:
        """Find the runs at one path; an error costs this path alone."""
        self._probe.closed.clear()
        try:
            if is_folder(path):
                self._find_below(path)
            else:
                self._find_file(path)
            self._passed += self._probe.closed.items()
        except Exception as error:  # noqa: BLE001 - a net at the border
            self._problems.append(f"{one_line(str(path))}: {reason_of(error)}")

    def _find_file(self, path: Path) -> None:
        """Add the run of a file that the user named."""
        self.directories.add(path.parent)
        name = one_line(str(path))
        out = path.with_suffix(".out")
        if path.suffix == ".err" and is_file(out):
            path = out  # Slurm's two are one log, recognised by the first
        try:
            file = self._probe.named(path)
        except NoLogError as error:
            sentences = self._waiting if error.waits else self._problems
            sentences.append(f"{name}: {error}")
            return
        folder = Folder(path.parent, [file], stem=stem(path))
        folder.files += [*error_logs(folder), *self._beside(file)]
        self._homes += homes_around(path.parent)
        self._folders.append(folder)

    def _find_below(self, path: Path) -> None:
        """Add the runs at and below a directory, and what is passed over there."""
        name = one_line(str(path))
        walk = DirectoryWalk(path, self._probe, self.directories)
        found = walk.runs()
        reason = self._probe.closed.pop(path, None) or walk.problem
        if reason:
            self._problems.append(f"{name}: {reason}")
        for folder in found:
            folder.top = path
            folder.alone = len(found) == 1
        self._folders += found
        if any(file.format for folder in found for file in folder.files):
            self._homes += walk.homes
            if naming.is_generic(path.resolve().name):
                self._homes += homes_around(path)
        elif reason is None:
            self._waiting.append(f"{name}: {self._no_log(walk)}")
        self._passed += walk.unknown.items()

    def _no_log(self, walk: DirectoryWalk) -> str:
        """Return a sentence that a directory holds no log yet, and which of its files were
        opened.
        """
        opened = (
            PassedOver(one_line(str(each.relative_to(walk.top))), why)
            for each, why in walk.silent.items()
        )
        why = "; ".join(sentences(opened))
        if not (why or walk.unknown or self._probe.closed):
            why = "looking for *.jsonl, *.log, *.out, *.txt, *.csv"
        return "no log in this directory yet" + (f": {why}" if why else "")

    def _beside(self, file: FoundFile) -> list[FoundFile]:
        """Return settings, and dumps if there is no other log, beside a file the user named."""
        settings: list[FoundFile] = []
        dumps: list[FoundFile] = []
        logs = 0
        for entry in _entries(file.path.parent):
            path = Path(entry.path)
            if is_folder(entry):
                names = [one.name for one in _entries(path)]
                for found in extras_in(path, names, self._probe):
                    (dumps if found.format else settings).append(found)
                continue
            logs += is_file(entry) and self._probe.known(path) is not None
            if is_settings(path):
                settings.append(settings_file(path))
        self.directories.update(one.path for one in dumps)
        return [*settings, *(dumps if logs == 1 else ())]

    # -- files of several runs ---------------------------------------------------------------------
    # A chart saved at W&B as CSV, a database of trackio: a run within is named by a path below its
    # file, `chart.csv/grpo`. Of a database the run that was written last belongs to the logs beside
    # it, as the only run in a file does; others are runs of their own.

    def _split(self, runs: Iterable[FoundRun]) -> list[FoundRun]:
        """Return runs, and each run in a file of several unless it is of the logs beside it.

        Runs of one name in several databases are told apart by these.
        """
        found = [one for run in runs for one in self._divided(run)]
        stored: dict[int, Sequence[str]] = {}
        """The paths of databases whose runs are the only log, in parts."""
        for at, run in enumerate(found):
            logs = [file for file in run.files if file.is_log]
            if len(logs) == 1 and logs[0].format is trackio:
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
            if not parts:
                files.append(file)
            elif file.format is trackio:
                last, name = parts.popitem()
                files.append(file._replace(path=file.path / last))
            for part, named in parts.items():  # those without a name: as the file
                one = file._replace(path=file.path / part)
                others.append(FoundRun(named or run.name, one.path, (one,)))
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
        if self._within.get(path, (None,))[0] != stamp:
            with suppress(OSError, ValueError, sqlite3.Error):
                self._within[path] = stamp, _parts_of(path, file.format)
        _, parts = self._within.get(path, (None, {}))
        most = None if file.format is trackio else _MOST_RUNS
        shown = dict(islice(parts.items(), most))
        if left_out := len(parts) - len(shown):
            why = f"{left_out:,} further runs in it are not shown"
            self._passed.append((path, why))
        return shown


def _entries(directory: Path) -> list[os.DirEntry[str]]:
    """Return the entries of a directory, none where it cannot be read."""
    with suppress(OSError):
        return list_entries(directory)
    return []


def _parts_of(path: Path, format: Format) -> RunParts:
    if format is trackio:
        names = trackio.runs_in(path)
        return {
            one.replace("\0", "") or "unnamed": naming.visible(one) for one in names
        }
    parts = metrics_csv.runs_in(head(path, _LONGEST_HEADER))
    return {part: unescaped(part) for part in parts}
