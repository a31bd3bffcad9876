"""From the paths a user names to runs with their files; asked again and again, since runs appear later."""

from __future__ import annotations

import glob
import os
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from verl_tui.sources import FORMATS, HEAD, console, tutorial
from verl_tui.sources.checkpoints import HOMES, checkpoint_step
from verl_tui.sources.rollouts import is_dump
from verl_tui.sources.settings import NAMES as SETTINGS
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from verl_tui.sources.format import Format

_DEEPEST = 12
_SUFFIXES = {".jsonl", ".log", ".out", ".err", ".txt", ".json", ".csv", ""}
_SKIPPED = {"node_modules", "__pycache__", "site-packages", *HOMES}
_ELSEWHERE = (
    (re.compile(r"events\.out\.tfevents\."), "TensorBoard events"),
    (re.compile(r"\.wandb$"), "a W&B transaction log"),
    (re.compile(r"trainer_state\.json$"), "a Hugging Face trainer state"),
)
"""Files users do have, in formats that are not read."""


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file and how to read it."""

    path: Path
    format: Format | None
    """None for settings."""


@dataclass(frozen=True, slots=True)
class FoundRun:
    """A run and its files."""

    name: str
    directory: Path
    files: tuple[FoundFile, ...]


@dataclass(frozen=True, slots=True)
class Discovery:
    """What the named paths lead to at one moment."""

    runs: tuple[FoundRun, ...]
    problems: tuple[str, ...]
    """Paths that lead nowhere and why, one sentence each."""
    waiting: tuple[str, ...]
    """Paths that may lead to something later, one sentence each."""


@dataclass(slots=True)
class _Folder:
    """Files of what may be one run, while the tree is walked."""

    directory: Path
    name: str
    anchors: list[FoundFile] = field(default_factory=list)
    extras: list[FoundFile] = field(default_factory=list)

    @property
    def kinds(self) -> Counter[str]:
        return Counter(file.format.name for file in self.anchors if file.format)


class Finder:
    """Finds the runs behind paths, directories and globs; remembers what it has recognised."""

    def __init__(self, specs: Sequence[str]) -> None:
        self.specs = tuple(specs)
        self._recognised: dict[Path, tuple[int, Format | None]] = {}
        self.directories: set[Path] = set()
        """Directories in which something may appear or grow."""

    def scan(self) -> Discovery:
        """Look at the file system once."""
        self.directories = set()
        folders: list[_Folder] = []
        problems: list[str] = []
        waiting: list[str] = []
        for spec in self.specs:
            paths = self._expand(spec)
            if not paths:
                pattern = glob.has_magic(spec)
                why = "nothing matches yet" if pattern else "no such file or directory"
                (waiting if pattern else problems).append(f"{one_line(spec)}: {why}")
            for path in paths:
                self._look(path, folders, problems, waiting)
        return Discovery(tuple(_named(folders)), tuple(dict.fromkeys(problems)), tuple(dict.fromkeys(waiting)))

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
        self.directories.add(fixed if fixed.is_dir() else fixed.parent)
        return sorted(Path(path) for path in glob.glob(expanded, recursive=True))  # noqa: PTH207 - absolute patterns too

    def _look(self, path: Path, folders: list[_Folder], problems: list[str], waiting: list[str]) -> None:
        name = one_line(str(path))
        if os.path.isdir(path):  # noqa: PTH112 - pathlib's raises where one may not look
            try:
                next(path.iterdir(), None)
            except OSError as error:
                problems.append(f"{name}: {(error.strerror or str(error)).lower()}")
                return
            found = self._walk(path, path, 0)
            if len(found) == 1:
                found[0].name = path.resolve().name
            folders.extend(found)
            if not found:
                waiting.append(f"{name}: no log in this directory yet (*.jsonl, *.log, *.out, *.txt, *.csv)")
            return
        self.directories.add(path.parent)
        file, why, wait = self._explicit(path)
        if file is None:
            (waiting if wait else problems).append(f"{name}: {why}")
            return
        folder = _Folder(path.parent, path.stem, [file])
        folder.extras = self._beside(file)
        folders.append(folder)

    def _explicit(self, path: Path) -> tuple[FoundFile | None, str, bool]:
        """Return a file named by the user, or why it cannot be read and whether that may change."""
        for pattern, kind in _ELSEWHERE:
            if pattern.search(path.name):
                return None, f"is {kind}, a format verl-tui does not read", False
        try:
            head = _head(path)
        except OSError as error:
            return None, (error.strerror or str(error)).lower(), False
        if not head.strip():
            return None, "empty so far", True
        for candidate in FORMATS:
            if candidate.matches(path, head):
                return FoundFile(path, candidate), "", False
        if b"\0" in head.strip(b"\0"):
            return None, "is a binary file, not a log", False
        # Named by the user, so it is read even where its beginning says nothing yet.
        return FoundFile(path, tutorial if path.suffix in (".jsonl", ".json") else console), "", False

    def _beside(self, file: FoundFile) -> list[FoundFile]:
        """Return settings and dumps that lie beside a file the user named."""
        extras: list[FoundFile] = []
        for entry in _entries(file.path.parent):
            path = Path(entry.path)
            if entry.name in SETTINGS:
                extras.append(FoundFile(path, None))
            elif entry.is_dir() and entry.name == ".hydra":
                extras.extend(self._hydra(path))
            elif entry.is_dir() and not entry.name.startswith("."):
                extras.extend(self._dumps(path))
        alone = sum(1 for e in _entries(file.path.parent) if e.is_file() and self._format(Path(e.path))) == 1
        return [extra for extra in extras if extra.format is None or alone]

    def _walk(self, top: Path, directory: Path, depth: int) -> list[_Folder]:
        """Return the runs at or below a directory."""
        self.directories.add(directory)
        relative = str(directory.relative_to(top)) if directory != top else directory.resolve().name
        here = _Folder(directory, relative)
        below: list[_Folder] = []
        for entry in _entries(directory):
            path = Path(entry.path)
            if entry.is_dir():
                if entry.name == ".hydra":
                    here.extras.extend(self._hydra(path))
                elif dumps := self._dumps(path):
                    here.extras.extend(dumps)
                elif depth < _DEEPEST and not _skipped(entry.name):
                    below.extend(self._walk(top, path, depth + 1))
            elif entry.name in SETTINGS:
                here.extras.append(FoundFile(path, None))
            elif (known := self._format(path)) is not None:
                (here.anchors if known.anchor else here.extras).append(FoundFile(path, known))
        return _grouped(here, below)

    def _hydra(self, directory: Path) -> list[FoundFile]:
        paths = (directory / name for name in ("overrides.yaml", "config.yaml"))
        return [FoundFile(path, None) for path in paths if path.is_file()]

    def _dumps(self, directory: Path) -> list[FoundFile]:
        """Return the dumps in a directory that holds them, newest step first."""
        dumps = [Path(entry.path) for entry in _entries(directory) if is_dump(Path(entry.path))]
        found = [FoundFile(path, known) for path in dumps if (known := self._format(path)) is not None]
        if found:
            self.directories.add(directory)
        return sorted(found, key=lambda file: -int(file.path.stem))

    def _format(self, path: Path) -> Format | None:
        """Return the format of a file, None where none matches; looks again only while the file is short."""
        if path.suffix.lower() not in _SUFFIXES:
            return None
        try:
            size = path.stat().st_size
            looked, known = self._recognised.get(path, (-1, None))
            if known is not None or size == looked or looked >= HEAD:
                return known
            head = _head(path)
        except OSError:
            return None
        known = next((candidate for candidate in FORMATS if head.strip() and candidate.matches(path, head)), None)
        self._recognised[path] = (size, known)
        return known


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(HEAD)


def _entries(directory: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []


def _skipped(name: str) -> bool:
    return name.startswith(".") or name in _SKIPPED or checkpoint_step(name) is not None


def _grouped(here: _Folder, below: list[_Folder]) -> list[_Folder]:
    """Decide what a directory and what was found below it are: one run, several, or part of a run above."""
    runs = [folder for folder in below if folder.anchors]
    kept_by_wandb = [folder for folder in runs if folder.directory.relative_to(here.directory).parts[0] == "wandb"]
    if here.anchors or len(kept_by_wandb) < len(runs):
        # W&B keeps a copy of the console of runs that have logs of their own.
        runs = [folder for folder in runs if folder not in kept_by_wandb]
    for folder in below:
        if not folder.anchors:
            here.extras.extend(folder.extras)
    kinds = sum((folder.kinds for folder in runs), here.kinds)
    whole = all(count == 1 for count in kinds.values())
    if here.anchors:
        if whole:
            return [_merged(here, runs)]
        return (_split(here) if max(here.kinds.values()) > 1 else [here]) + runs
    if len(runs) == 1 or (runs and whole and here.extras):
        return [_merged(here, runs)] if here.extras else runs
    if not runs:
        return [here] if here.extras else []
    samples = [file for file in here.extras if file.format is not None]
    if not samples:
        return runs
    directory = samples[0].path.parent
    return [*runs, _Folder(directory, str(directory.relative_to(here.directory)), extras=samples)]


def _merged(here: _Folder, runs: Iterable[_Folder]) -> _Folder:
    for folder in runs:
        here.anchors.extend(folder.anchors)
        here.extras.extend(folder.extras)
    return here


def _split(here: _Folder) -> list[_Folder]:
    """Split several logs in one directory into runs by the stem of their names; settings belong to none of them."""
    stems: dict[str, _Folder] = {}
    for file in here.anchors:
        folder = stems.setdefault(file.path.stem, _Folder(here.directory, file.path.stem))
        folder.anchors.append(file)
    return list(stems.values())


def _named(folders: list[_Folder]) -> list[FoundRun]:
    """Return the runs with names that differ, each file once."""
    taken: set[Path] = set()
    runs: list[tuple[_Folder, tuple[FoundFile, ...]]] = []
    for folder in folders:
        files = []
        for file in (*folder.anchors, *folder.extras):
            real = file.path.resolve()
            if real not in taken or file.format is None:
                taken.add(real)
                files.append(file)
        if any(file.format for file in files):
            runs.append((folder, tuple(files)))
    names = [one_line(folder.name, 120) for folder, _ in runs]
    for depth in range(1, 8):
        counts = Counter(names)
        if max(counts.values(), default=0) <= 1:
            break
        names = [
            one_line("/".join([*folder.directory.resolve().parts[-depth:], *_last(folder, found)]), 200)
            if counts[name] > 1
            else name
            for name, (folder, found) in zip(names, runs, strict=True)
        ]
    unique: dict[str, int] = {}
    out = []
    for name, (folder, found) in zip(names, runs, strict=True):
        unique[name] = unique.get(name, 0) + 1
        final = name if unique[name] == 1 else f"{name} ({unique[name]})"
        out.append(FoundRun(final, folder.directory, found))
    return out


def _last(folder: _Folder, files: tuple[FoundFile, ...]) -> list[str]:
    """Return the file's stem where the run is one file among others of its directory."""
    return [files[0].path.stem] if folder.name == files[0].path.stem else []
