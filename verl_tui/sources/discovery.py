"""From the paths a user names to runs with their files; asked again and again, since runs appear later."""

from __future__ import annotations

import errno
import glob
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from verl_tui.sources import FORMATS, HEAD, console, pipe, rollouts, tensorboard, trainer_state, tutorial
from verl_tui.sources.checkpoints import HOMES, checkpoint_step
from verl_tui.sources.compressed import SUFFIX, head, plain
from verl_tui.sources.grouping import WANDB, Folder, FoundFile, FoundRun, grouped, named, stem, wandb_id
from verl_tui.sources.paths import is_file, is_folder
from verl_tui.sources.rollouts import dump_step, is_dump
from verl_tui.sources.settings import NAMES as SETTINGS
from verl_tui.sources.trackio import RunNames
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.sources.format import Format

_DEEPEST = 12
MOST_DIRECTORIES = 20_000
"""Directories looked at below one path: beyond, somebody has named a whole disk."""
_MOST_NAMED = 3
"""Files named in one sentence."""
_SUFFIXES = {".jsonl", ".log", ".out", ".err", ".txt", ".json", ".csv", ".wandb", ".parquet", ".db", ""}
_EXPORTED = re.compile(r"verl-tui-.+(?:-samples?(?:-\d+)*\.jsonl|\.csv|\.txt)")
"""What the app itself has written, samples, tables and its screen as text: read only where it is named."""
_GONE = (None, errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
"""Errors not worth a word: what is no file, went meanwhile, or is a link to nothing."""
_SKIPPED = {"lost+found", "node_modules", "__pycache__", "site-packages", *HOMES}


@dataclass(frozen=True, slots=True)
class Discovery:
    """What the named paths lead to at one moment."""

    runs: tuple[FoundRun, ...]
    problems: tuple[str, ...]
    """Paths that lead nowhere and why, one sentence each."""
    waiting: tuple[str, ...]
    """Paths that may lead to something later, one sentence each."""
    read: bool = False
    """Whether all that lay there when it was found has been read and handed on."""


class Finder:
    """Finds the runs behind paths, directories and globs; remembers what it has recognised."""

    def __init__(self, specs: Sequence[str]) -> None:
        self.specs = tuple(specs)
        self._recognised: dict[Path, tuple[int, Format | None]] = {}
        self.directories: set[Path] = set()
        """Directories in which something may appear or grow."""
        self._trackio = RunNames()
        self._entered: set[tuple[int, int]] = set()
        """Device and inode of the directories looked at below the path that is being looked at."""
        self._closed: dict[Path, str] = {}
        """What below it could not be looked at, and why."""

    def scan(self) -> Discovery:
        """Look at the file system once."""
        self.directories = set()
        folders: list[Folder] = []
        problems: list[str] = []
        waiting: list[str] = []
        for spec in self.specs:
            if pipe.is_meant(spec):
                folders.append(Folder(pipe.PATH, "stdin", extras=[FoundFile(pipe.PATH, pipe)]))
                continue
            paths = self._expand(spec)
            if not paths:
                pattern = glob.has_magic(spec)
                why = "nothing matches yet" if pattern else "no such file or directory"
                (waiting if pattern else problems).append(f"{one_line(spec)}: {why}")
            for path in paths:
                try:
                    self._look(path, folders, problems, waiting)
                except Exception as error:  # noqa: BLE001, PERF203 - a net at the border
                    problems.append(f"{one_line(str(path))}: {_why(error)}")
        return Discovery(
            tuple(self._trackio.apart(named(folders))), tuple(dict.fromkeys(problems)), tuple(dict.fromkeys(waiting))
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

    def _look(self, path: Path, folders: list[Folder], problems: list[str], waiting: list[str]) -> None:
        name = one_line(str(path))
        if is_folder(path):
            try:
                next(path.iterdir(), None)
            except OSError as error:
                problems.append(f"{name}: {_why(error)}")
                return
            self._entered.clear()
            self._closed.clear()
            found = self._walk(path, path, 0)
            if len(self._entered) >= MOST_DIRECTORIES:
                problems.append(f"{name}: more than {MOST_DIRECTORIES:,} directories, only so many were looked at")
            for why in sorted(set(self._closed.values())):
                names = sorted(one_line(str(path)) for path, reason in self._closed.items() if reason == why)
                problems.append(f"{_some(names)}: {why}")
            if len(found) == 1:
                found[0].name = path.resolve().name
            folders.extend(found)
            if not any(file.format for folder in found for file in (*folder.anchors, *folder.extras)):
                waiting.append(f"{name}: {self._no_log(path)}")
            return
        self.directories.add(path.parent)
        path = _first_half(path)
        file, why, wait = self._explicit(path)
        if file is None:
            (waiting if wait else problems).append(f"{name}: {why}")
            return
        folder = Folder(path.parent, stem(path), [file])
        folder.anchors.extend(_halves(folder))
        folder.extras = self._beside(file)
        folders.append(folder)

    def _no_log(self, top: Path) -> str:
        """Return that there is no log below a directory yet, and what of the files there was looked at."""
        sizes = {
            str(path.relative_to(top)): size for path, (size, _) in self._recognised.items() if top in path.parents
        }
        told = {
            "empty so far": sorted(name for name, size in sizes.items() if size == 0),
            "of no known format": sorted(name for name, size in sizes.items() if size > 0),
        }
        closed = sorted(one_line(str(path.relative_to(top))) for path in self._closed if top in path.parents)
        said = [f"{_some(names)} {'is' if len(names) == 1 else 'are'} {why}" for why, names in told.items() if names]
        said += [f"{_some(closed)} could not be read"] if closed else []
        return "no log in this directory yet: " + (", ".join(said) or "looking for *.jsonl, *.log, *.out, *.txt, *.csv")

    def _explicit(self, path: Path) -> tuple[FoundFile | None, str, bool]:
        """Return a file named by the user, or why it cannot be read and whether that may change."""
        try:
            begin = head(path, HEAD)
        except OSError as error:
            return None, _why(error), False
        if not begin.strip():
            return None, "empty so far", True
        for candidate in FORMATS:
            if candidate.matches(plain(path), begin):
                return FoundFile(path, candidate), "", False
        if b"\0" in begin.strip(b"\0"):
            return None, "is a binary file, not a log", False
        # Named by the user, so it is read even where its beginning says nothing yet.
        return FoundFile(path, tutorial if plain(path).suffix in (".jsonl", ".json") else console), "", False

    def _beside(self, file: FoundFile) -> list[FoundFile]:
        """Return settings and dumps that lie beside a file the user named."""
        extras: list[FoundFile] = []
        for entry in _entries(file.path.parent):
            path = Path(entry.path)
            if entry.name in SETTINGS:
                extras.append(FoundFile(path, None))
            elif is_folder(entry) and entry.name == ".hydra":
                extras.extend(self._hydra(path))
            elif is_folder(entry) and not entry.name.startswith("."):
                extras.extend(self._dumps(path))
        alone = sum(is_file(e) and self._format(Path(e.path)) is not None for e in _entries(file.path.parent)) == 1
        return [extra for extra in extras if extra.format is None or alone]

    def _walk(self, top: Path, directory: Path, depth: int) -> list[Folder]:
        """Return the runs at or below a directory; one that links lead to again is not looked at again."""
        if not self._enter(directory):
            return []
        self.directories.add(directory)
        relative = str(directory.relative_to(top)) if directory != top else directory.resolve().name
        here = Folder(directory, relative, extras=self._dumps(directory))
        below: list[Folder] = []
        try:
            entries = _listed(directory)
        except OSError as error:
            entries = []
            self._note(directory, error)
        dumped = bool(here.extras)
        for entry in filter(_may_tell, entries):
            if is_folder(entry):
                below.extend(self._folder(top, entry, depth, here))
            else:
                self._file(entry, here, dumped=dumped)
        here.anchors.extend(_halves(here))
        if (state := trainer_state.in_checkpoints(directory, entries)) is not None:
            here.anchors.append(FoundFile(state, trainer_state))
        return grouped(here, below)

    def _folder(self, top: Path, entry: os.DirEntry[str], depth: int, here: Folder) -> list[Folder]:
        """Take what a directory within adds to the run here; return the runs below it."""
        path = Path(entry.path)
        if entry.name == ".hydra":
            here.extras.extend(self._hydra(path))
        elif dumps := self._dumps(path):
            here.extras.extend(dumps)
        elif depth < _DEEPEST and not _skipped(entry.name) and not _wandb_own(path):
            return self._walk(top, path, depth + 1)
        return []

    def _file(self, entry: os.DirEntry[str], here: Folder, *, dumped: bool) -> None:
        """Take what a file adds to the run here."""
        path = Path(entry.path)
        if entry.name in SETTINGS:
            here.extras.append(FoundFile(path, None))
        elif not (_wandb_own(path) or (dumped and is_dump(path))) and (known := self._format(path)) is not None:
            (here.anchors if known.anchor else here.extras).append(FoundFile(path, known))

    def _note(self, path: Path, error: Exception) -> None:
        """Keep why something that may be a log could not be looked at."""
        if not isinstance(error, OSError) or error.errno not in _GONE:
            self._closed[path] = _why(error)

    def _enter(self, directory: Path) -> bool:
        """Note that a directory is looked at; return whether it is new and there are not too many."""
        try:
            stat = directory.stat()
        except OSError as error:
            self._note(directory, error)
            return False
        identity = (stat.st_dev, stat.st_ino)
        if identity in self._entered or len(self._entered) >= MOST_DIRECTORIES:
            return False
        self._entered.add(identity)
        return True

    def _hydra(self, directory: Path) -> list[FoundFile]:
        paths = (directory / name for name in ("overrides.yaml", "config.yaml"))
        return [FoundFile(path, None) for path in paths if is_file(path)]

    def _dumps(self, directory: Path) -> list[FoundFile]:
        """Return a directory as one source where it holds dumps; the first that can be read tells."""
        paths = (Path(entry.path) for entry in _entries(directory) if dump_step(entry.name) is not None)
        if not any(self._format(path) is rollouts for path in paths):
            return []
        self.directories.add(directory)
        return [FoundFile(directory, rollouts)]

    def _format(self, path: Path) -> Format | None:
        """Return the format of a file, None where none matches; looks again only while the file is short."""
        looked, known = self._recognised.get(path, (-1, None))
        if known is not None or looked >= HEAD or not _may_be_log(path.name):
            return known
        try:
            size = path.stat().st_size
            if size == looked:
                return None
            begin = head(path, HEAD)
            known = next((one for one in FORMATS if begin.strip() and one.matches(plain(path), begin)), None)
        except Exception as error:  # noqa: BLE001 - a net at the border: it costs this file alone
            self._note(path, error)
            return None
        self._recognised[path] = (size, known)
        return known


def _some(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _why(error: Exception) -> str:
    if isinstance(error, OSError):
        return (error.strerror or str(error)).lower()
    return one_line(f"could not be looked at: {type(error).__name__}: {error}", 200)


def _entries(directory: Path) -> list[os.DirEntry[str]]:
    try:
        return _listed(directory)
    except OSError:
        return []


def _listed(directory: Path) -> list[os.DirEntry[str]]:
    with os.scandir(directory) as entries:
        # What is there goes before links to it: a run is called what it is called, not `latest`.
        logs = (entry for entry in entries if not _EXPORTED.fullmatch(entry.name))
        return sorted(logs, key=lambda entry: (entry.is_symlink(), entry.name))


def _may_tell(entry: os.DirEntry[str]) -> bool:
    """Tell from its name whether something may belong to a run; paths of all that does not are never made."""
    return entry.name in SETTINGS or _may_be_log(entry.name) or is_folder(entry)


def _may_be_log(name: str) -> bool:
    lower = name.lower()
    return os.path.splitext(lower.removesuffix(SUFFIX))[1] in _SUFFIXES or tensorboard.NAMED in name  # noqa: PTH122 - quick


def _skipped(name: str) -> bool:
    return name.startswith(".") or name in _SKIPPED or checkpoint_step(name) is not None


def _wandb_own(path: Path) -> bool:
    """Tell whether a path is W&B's own bookkeeping: `wandb/debug.log`, `wandb/run-…/logs`."""
    own = path.name.startswith("debug") and path.suffix == ".log" and path.parent.name == WANDB
    own = own or (path.name in ("wandb-summary.json", "wandb-metadata.json") and path.parent.name == "files")
    return own or (path.name == "logs" and wandb_id(path.parent) is not None)


def _first_half(path: Path) -> Path:
    """Return Slurm's `job.out` for a `job.err`: together they are one log, of which the first is recognised."""
    other = path.with_suffix(".out")
    return other if path.suffix == ".err" and is_file(other) else path


def _halves(here: Folder) -> list[FoundFile]:
    """Return Slurm's `job.err` beside each `job.out`: progress bars and tracebacks, that say little by themselves."""
    known = {file.path for file in here.anchors}
    outs = [file.path for file in here.anchors if file.path.suffix == ".out"]
    errs = [path.with_suffix(".err") for path in outs]
    return [FoundFile(path, console) for path in errs if path not in known and is_file(path)]
