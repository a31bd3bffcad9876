"""From the paths a user names to runs with their files; asked again and again, since runs appear
later.
"""

from __future__ import annotations

import glob
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from verl_tui.sources import pipe
from verl_tui.sources.discovery import by_step, naming, ranks
from verl_tui.sources.discovery import passed_over as passed
from verl_tui.sources.discovery.checkpoint_owners import Home, around, shared_out
from verl_tui.sources.discovery.entries import (
    entries_of,
    is_bookkeeping,
    leads_within,
    listed,
    may_tell,
    skipped,
)
from verl_tui.sources.discovery.found import Folder, FoundFile, FoundRun, log_of, stem, wandb_id
from verl_tui.sources.discovery.grouping import grouped, named
from verl_tui.sources.discovery.page_runs import PageRuns
from verl_tui.sources.discovery.passed_over import PassedOver, some
from verl_tui.sources.discovery.probing import MOST_ODD, Name, Probe, deserves_a_word, kind, why
from verl_tui.sources.discovery.trackio_runs import RunNames
from verl_tui.sources.discovery.wandb_copies import Copies
from verl_tui.sources.files import rotated
from verl_tui.sources.files.checkpoint_names import HOMES, checkpoint_step
from verl_tui.sources.files.compressed import head, plain
from verl_tui.sources.files.paths import is_file, is_folder
from verl_tui.sources.folders.checkpoints import homes, is_home
from verl_tui.sources.folders.settings import NAMES as SETTINGS
from verl_tui.sources.formats import FORMATS, HEAD, trainer_state, tutorial
from verl_tui.sources.formats.console import decoder as console
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from verl_tui.sources.http.addresses import Unreached


_DEEPEST = 12
MOST_DIRECTORIES = 20_000
"""Directories looked at below one path: beyond, somebody has named a whole disk."""


@dataclass(frozen=True, slots=True)
class Discovery:
    """What the named paths lead to at one moment."""

    runs: tuple[FoundRun, ...]
    problems: tuple[str, ...]
    """Paths that lead nowhere and why, one sentence each."""
    waiting: tuple[str, ...]
    """Paths that may lead to something later, one sentence each."""
    passed: tuple[PassedOver, ...] = ()
    """What lies below the paths and is not shown: unknown logs, what may not be read, folders
    without a log.
    """
    read: bool = False
    """Whether all that lay there when it was found has been read and handed on."""
    unreached: tuple[Unreached, ...] = ()
    """Addresses that nothing has come from so far."""

    @property
    def pending(self) -> tuple[str, ...]:
        """All that may lead to something later, one sentence each."""
        return (*(one.sentence for one in self.unreached), *self.waiting)


class Finder:
    """Finds the runs behind paths, directories and globs; remembers what it has recognised."""

    def __init__(self, specs: Sequence[str]) -> None:
        self.specs = tuple(specs)
        self._probe = Probe()
        self._copies = Copies()
        self.directories: set[Path] = set()
        """Directories in which something may appear or grow."""
        self._trackio = RunNames()
        self._pages = PageRuns()
        self._entered: set[tuple[int, int]] = set()
        """Device and inode of the directories looked at below the path that is being looked at."""
        self._walked: dict[Path, bool] = {}
        """These directories, and whether each holds what only a training leaves."""
        self._unknown: dict[Path, str] = {}
        """Files below it that deserve a word, and why nothing of them is shown."""
        self._homes: list[Home] = []
        """Directories with checkpoints."""

    @property
    def undecided(self) -> bool:
        """Whether runs were left out at the last look that another look may tell apart."""
        return self._copies.left

    def scan(self, reported: Mapping[Path, Sequence[str]] | None = None) -> Discovery:
        """Look at the file system once; `reported`: see
        `verl_tui.sources.discovery.wandb_copies.Copies.begin`.
        """
        self._probe.begin()
        self._copies.begin(reported)
        self.directories = set()
        self._homes = []
        folders: list[Folder] = []
        over: list[PassedOver] = []
        problems: list[str] = []
        waiting: list[str] = []
        for spec in self.specs:
            if pipe.is_meant(spec):
                folders.append(
                    Folder(pipe.PATH, "stdin", extras=[FoundFile(pipe.PATH, pipe)], stem="stdin")
                )
                continue
            paths = self._expand(spec)
            if not paths:
                pattern = glob.has_magic(spec)
                reason = "nothing matches yet" if pattern else "no such file or directory"
                (waiting if pattern else problems).append(f"{one_line(spec)}: {reason}")
            for path in paths:
                try:
                    self._probe.closed.clear()
                    self._look(path, folders, problems, waiting)
                    over += self._passed_over(path, folders)
                except Exception as error:  # noqa: BLE001, PERF203 - a net at the border
                    problems.append(f"{one_line(str(path))}: {why(error)}")
        runs = shared_out(list(self._pages.apart(self._trackio.apart(named(folders)))), self._homes)
        shown = {str(file.path) for run in runs for file in run.files}
        over = [one for one in dict.fromkeys(over) if one.path not in shown]
        return Discovery(
            tuple(runs), tuple(dict.fromkeys(problems)), tuple(dict.fromkeys(waiting)), tuple(over)
        )

    def _expand(self, spec: str) -> list[Path]:
        expanded = os.path.expanduser(spec)  # noqa: PTH111 - pathlib normalises the pattern away
        try:
            Path(expanded).stat()
        except PermissionError:
            return [Path(expanded)]  # below a directory one may not enter: the look at it says so
        except (OSError, ValueError):
            pass
        else:
            return [Path(expanded)]
        if not glob.has_magic(expanded):
            return []
        fixed = Path(re.split(r"[*?\[]", expanded)[0] or ".")
        self.directories.add(fixed if is_folder(fixed) else fixed.parent)
        return sorted(Path(path) for path in glob.glob(expanded, recursive=True))  # noqa: PTH207 - absolute patterns too

    def _look(
        self, path: Path, folders: list[Folder], problems: list[str], waiting: list[str]
    ) -> None:
        name = one_line(str(path))
        if is_folder(path):
            try:
                next(path.iterdir(), None)
            except OSError as error:
                problems.append(f"{name}: {why(error)}")
                return
            self._look_into(path, name, folders, problems, waiting)
            return
        self.directories.add(path.parent)
        path = _first_half(path)
        file, reason, wait = self._explicit(path)
        if file is None:
            (waiting if wait else problems).append(f"{name}: {reason}")
            return
        folder = Folder(path.parent, stem(path), [file], stem=stem(path))
        folder.anchors.extend(_halves(folder))
        folder.extras = self._beside(file)
        self._homes += [Home(home, path.parent) for home in around(path.parent)]
        folders.append(folder)

    def _look_into(
        self, path: Path, name: str, folders: list[Folder], problems: list[str], waiting: list[str]
    ) -> None:
        """Look at a directory that can be read."""
        self._entered.clear()
        self._walked.clear()
        self._unknown.clear()
        known = len(self._homes)
        found = self._walk(path, path, 0)
        self._unknown |= self._copies.stepless
        if len(self._entered) >= MOST_DIRECTORIES:
            problems.append(
                f"{name}: more than {MOST_DIRECTORIES:,} directories, only so many were looked at"
            )
        for folder in found:
            folder.top, folder.alone = path, len(found) == 1
        folders.extend(found)
        if any(file.format for folder in found for file in (*folder.anchors, *folder.extras)):
            if naming.says_nothing(path.resolve().name):
                self._homes += [Home(home, path) for home in around(path.resolve())]
            return
        if path.name in HOMES or checkpoint_step(path.name) is not None:
            self._homes += [
                Home(home, path) for home in homes(path if path.name in HOMES else path.parent)
            ]
        given = [home._replace(given=True) for home in self._homes[known:]]
        self._homes[known:] = given
        if not given or len(self.specs) == 1:
            waiting.append(f"{name}: {self._no_log(path)}")

    def _passed_over(self, top: Path, folders: Sequence[Folder]) -> Iterable[PassedOver]:
        """Yield what below a path is not shown and deserves a word."""
        yield from (
            PassedOver(one_line(str(path), 1000), reason)
            for path, reason in self._probe.closed.items()
        )
        if not is_folder(top):
            return
        yield from (
            PassedOver(one_line(str(path), 1000), reason) for path, reason in self._unknown.items()
        )
        for path in sorted(self._probe.crowded & self._walked.keys()):
            yield PassedOver(
                one_line(str(path), 1000),
                f"only {MOST_ODD} of its files of unknown kinds were looked at",
            )
        here = [folder for folder in folders if folder.top == top and folder.anchors]
        logs = [
            file.path
            for folder in here
            for file in (*folder.anchors, *folder.extras)
            if file.format
        ]
        for path in passed.folders(self._walked, {folder.directory for folder in here}, logs, top):
            yield PassedOver(one_line(str(path), 1000), passed.NO_LOG)

    def _no_log(self, top: Path) -> str:
        """Return that there is no log below a directory yet, and what of the files there was looked
        at.
        """
        sizes = {
            one_line(str(path.relative_to(top))): size
            for path, size in self._probe.sizes(top).items()
            if kind(path.name) is Name.LOG
        }
        told = {
            "empty so far": sorted(name for name, size in sizes.items() if size == 0),
            "of no known format": sorted(name for name, size in sizes.items() if size > 0),
        }
        closed = sorted(
            one_line(str(path.relative_to(top)))
            for path in self._probe.closed
            if top in path.parents
        )
        said = [
            f"{some(names)} {'is' if len(names) == 1 else 'are'} {reason}"
            for reason, names in told.items()
            if names
        ]
        said += [f"{some(closed)} could not be read"] if closed else []
        return "no log in this directory yet: " + (
            ", ".join(said) or "looking for *.jsonl, *.log, *.out, *.txt, *.csv"
        )

    def _explicit(self, path: Path) -> tuple[FoundFile | None, str, bool]:
        """Return a file named by the user, or why it cannot be read and whether that may change."""
        try:
            begin = head(rotated.newest(path), HEAD)
        except OSError as error:
            return None, why(error), False
        if not begin.strip():
            return None, "empty so far", True
        for candidate in FORMATS:
            if candidate.matches(plain(path), begin):
                return FoundFile(path, candidate, title=naming.title(begin)), "", False
        if b"\0" in begin.strip(b"\0"):
            return None, "is a binary file, not a log", False
        # Named by the user, so it is read even where its beginning says nothing yet.
        format = tutorial if plain(path).suffix in (".jsonl", ".json") else console
        return FoundFile(path, format, title=naming.title(begin)), "", False

    def _beside(self, file: FoundFile) -> list[FoundFile]:
        """Return settings and dumps that lie beside a file the user named."""
        extras: list[FoundFile] = []
        for entry in entries_of(file.path.parent):
            path = Path(entry.path)
            if entry.name in SETTINGS:
                extras.append(self._settings(path))
            elif is_folder(entry) and entry.name == ".hydra":
                extras.extend(self._hydra(path))
            elif is_folder(entry) and not entry.name.startswith("."):
                extras.extend(self._dumps(path))
        alone = (
            sum(
                is_file(e) and self._probe.known(Path(e.path)) is not None
                for e in entries_of(file.path.parent)
            )
            == 1
        )
        return [extra for extra in extras if extra.format is None or alone]

    def _walk(self, top: Path, directory: Path, depth: int) -> list[Folder]:
        """Return the runs at or below a directory; one that links lead to again is not looked at
        again.
        """
        if not self._enter(directory):
            return []
        self.directories.add(directory)
        relative = str(directory.relative_to(top)) if directory != top else directory.resolve().name
        here = Folder(directory, relative, extras=self._dumps(directory))
        below: list[Folder] = []
        try:
            entries = [
                entry
                for entry in listed(directory)
                if not (entry.is_symlink() and leads_within(entry, top))
            ]
        except OSError as error:
            entries = []
            self._probe.note(directory, error)
        names = {entry.name for entry in entries}
        self._walked[directory] = ".hydra" in names
        if is_home(entries):
            self._keep_home(directory, top)
        dumped = bool(here.extras)
        taken = {file.path for file in here.extras}
        for entry in filter(may_tell, entries):
            if is_folder(entry):
                below.extend(self._folder(top, entry, depth, here))
            else:
                self._file(entry, here, top, taken, dumped=dumped, hydra=".hydra" in names)
        here.anchors.extend(_halves(here))
        if (state := trainer_state.in_checkpoints(directory, entries)) is not None:
            here.anchors.append(FoundFile(state, trainer_state))
        self._leave_unsure(here, below)
        return grouped(here, below, self._copies)

    def _keep_home(self, home: Path, top: Path) -> None:
        self._homes.append(Home(home, top))
        self._walked[home] = True

    def _folder(self, top: Path, entry: os.DirEntry[str], depth: int, here: Folder) -> list[Folder]:
        """Take what a directory within adds to the run here; return the runs below it."""
        path = Path(entry.path)
        if entry.name == ".hydra":
            here.extras.extend(self._hydra(path))
        elif dumps := self._dumps(path):
            here.extras.extend(dumps)
        elif entry.name in HOMES:
            for home in homes(path):
                self._keep_home(home, top)
        elif depth < _DEEPEST and not skipped(entry.name) and not is_bookkeeping(path):
            return self._walk(top, path, depth + 1)
        return []

    def _file(
        self,
        entry: os.DirEntry[str],
        here: Folder,
        top: Path,
        taken: set[Path],
        *,
        dumped: bool,
        hydra: bool,
    ) -> None:
        """Take what a file adds to the run here; `taken` are the logs that it has: their older
        parts are no others.
        """
        path = Path(entry.path)
        if entry.name in SETTINGS:
            here.extras.append(self._settings(path))
            return
        if (
            is_bookkeeping(path)
            or ranks.is_of_ray(path)
            or (dumped and by_step.is_of_a_step(entry.name))
        ):
            return
        written, path = path, path.parent / (rotated.base(entry.name) or entry.name)
        if path in taken:
            return
        # Hydra's own log holds what Python's logging said; what the training printed went
        # elsewhere.
        known = self._probe.known(written, doubted=hydra and path.suffix == ".log")
        if known is not None:
            taken.add(path)
            kept = here.anchors if known.format.anchor else here.extras
            kept.append(FoundFile(path, known.format, sure=known.sure, title=known.title))
        elif (
            deserves_a_word(entry.name)
            and self._probe.size(written)
            and not passed.is_data(path, top)
        ):
            self._unknown[written] = passed.UNKNOWN

    def _leave_unsure(self, here: Folder, below: Sequence[Folder]) -> None:
        """Leave consoles out that have no step where there is a better log of the same run."""
        sure = [file for file in here.anchors if file.sure and file.format is console]
        if not sure:
            return
        alike = {log_of(file) for file in sure} | {passed.shape(file.path) for file in sure}
        for folder in (here, *below):
            left = [
                file
                for file in folder.anchors
                if not file.sure and not {log_of(file), passed.shape(file.path)} & alike
            ]
            folder.anchors = [file for file in folder.anchors if file not in left]
            # W&B's copy of the console says all again.
            self._unknown |= {
                file.path: passed.UNSURE for file in left if wandb_id(file.path) is None
            }

    def _enter(self, directory: Path) -> bool:
        """Note that a directory is looked at; return whether it is new and there are not too
        many.
        """
        try:
            stat = directory.stat()
        except OSError as error:
            self._probe.note(directory, error)
            return False
        identity = (stat.st_dev, stat.st_ino)
        if identity in self._entered or len(self._entered) >= MOST_DIRECTORIES:
            return False
        self._entered.add(identity)
        return True

    def _hydra(self, directory: Path) -> list[FoundFile]:
        paths = (directory / name for name in ("overrides.yaml", "config.yaml"))
        return [self._settings(path) for path in paths if is_file(path)]

    def _settings(self, path: Path) -> FoundFile:
        """Return a file of settings, with what it calls the experiment."""
        return FoundFile(path, None, title=self._probe.title(path))

    def _dumps(self, directory: Path) -> list[FoundFile]:
        """Return a directory as one source where it holds dumps or tables; the first that can be
        read tells.
        """
        formats = by_step.formats(
            directory, [entry.name for entry in entries_of(directory)], self._probe
        )
        if formats:
            self.directories.add(directory)
        return [FoundFile(directory, format) for format in formats]


def _first_half(path: Path) -> Path:
    """Return Slurm's `job.out` for a `job.err`: together they are one log, of which the first is
    recognised.
    """
    path = path.parent / (rotated.base(path.name) or path.name)
    other = path.with_suffix(".out")
    return other if path.suffix == ".err" and is_file(other) else path


def _halves(here: Folder) -> list[FoundFile]:
    """Return Slurm's `job.err` beside each `job.out`: progress bars and tracebacks, that say little
    by themselves.
    """
    known = {file.path for file in here.anchors}
    outs = [file.path for file in here.anchors if file.path.suffix == ".out"]
    errs = [path.with_suffix(".err") for path in outs]
    return [FoundFile(path, console) for path in errs if path not in known and is_file(path)]
