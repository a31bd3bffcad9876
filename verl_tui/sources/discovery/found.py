"""Files that were found, in the folders that may be runs."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from verl_tui.sources.discovery import ranks
from verl_tui.sources.formats.console import decoder as console

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from verl_tui.sources.formats.format import Format

WANDB = "wandb"
"""The directory in which W&B keeps its runs."""
_WANDB_RUN = re.compile(r"^(?:offline-)?run-\d{8}_\d{6}-(.+)$")
_HPARAMS = re.compile(r"\d{10}\.\d+")
"""A folder in which torch's `SummaryWriter.add_hparams` puts an event file of its own, named by the
time.
"""


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file, or a directory of dumps, and how to read it."""

    path: Path
    format: Format | None
    """None for settings."""
    log: str = ""
    """What files that continue or complete each other have in common, where their place does not
    tell.
    """
    sure: bool = True
    """False for a console without a step so far: it is a run only where no better one lies beside
    it.
    """
    title: str = ""
    """What its beginning calls the experiment."""


@dataclass(frozen=True, slots=True)
class FoundRun:
    """A run and its files."""

    name: str
    directory: Path
    files: tuple[FoundFile, ...]
    checkpoints: tuple[Path, ...] = ()
    """Directories in which its checkpoints lie."""


@dataclass(slots=True)
class Folder:
    """Files of what may be one run, while the tree is walked."""

    directory: Path
    name: str
    anchors: list[FoundFile] = field(default_factory=list)
    extras: list[FoundFile] = field(default_factory=list)
    stem: str = ""
    """What its files are called, where that is what tells it from others in its directory."""
    top: Path | None = None
    """What the user named, where the run was found below that."""
    alone: bool = False
    """Whether there was no other run."""

    @property
    def logs(self) -> set[tuple[str, str]]:
        """Its logs, by kind and name; files that continue each other are one log."""
        return {(file.format.name, log_of(file)) for file in self.anchors if file.format}

    @property
    def changed(self) -> float:
        """When a log of it was last written, 0 where that cannot be told."""
        return max((_changed(file.path) for file in self.anchors), default=0.0)


def wandb_id(path: Path) -> str | None:
    """Return the id of the W&B run in whose directory a path lies, None where it lies in none."""
    return next(
        (found.group(1) for part in reversed(path.parts) if (found := _WANDB_RUN.match(part))), None
    )


def is_events(path: Path) -> bool:
    """Tell from its name whether a file is one of a TensorBoard writer, which begins another at
    each start.
    """
    return ".tfevents." in path.name


def log_of(file: FoundFile) -> str:
    """Return what files that continue or complete each other have in common."""
    if file.log:
        return file.log
    if (kept := wandb_id(file.path)) is not None:
        return f"{WANDB}/{kept}"
    if is_events(file.path):
        folder = file.path.parent
        return str(folder.parent if _HPARAMS.fullmatch(folder.name) else folder)
    if (member := ranks.member(file.path)) is not None:
        return member.log
    return f"{file.path.parent}/{stem(file.path)}"


def stem(path: Path) -> str:
    """Return a file's name without its ending: `job-7` of `job-7.out`, `train` of
    `train.log.gz`.
    """
    return path.name.removesuffix(".gz").rpartition(".")[0] or path.name


def last_part(name: str) -> str:
    """Return the last part of a name that is a path."""
    return name.rstrip("/").rpartition("/")[2]


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def whole(folders: Iterable[Folder]) -> bool:
    """Tell whether there is no second log of any kind."""
    logs = {log for folder in folders for log in folder.logs}
    return len({kind for kind, _ in logs}) == len(logs)


def merged(here: Folder, runs: Iterable[Folder]) -> Folder:
    """Add what further folders hold to a run; return that."""
    for folder in runs:
        copied = reduced(folder) if has_console(here) else folder
        here.anchors.extend(copied.anchors)
        here.extras.extend(copied.extras)
    return here


def has_console(folder: Folder) -> bool:
    """Tell whether a run has a console other than W&B's copy of one."""
    return any(True for _ in consoles(folder))


def consoles(folder: Folder) -> Iterator[FoundFile]:
    """Yield the consoles of a run, but for W&B's copies."""
    return (
        file for file in folder.anchors if file.format is console and wandb_id(file.path) is None
    )


def reduced(copy: Folder) -> Folder:
    """Return W&B's run without its copy of the console: of runs that have a log of their own it
    says all again.
    """
    anchors = [
        file for file in copy.anchors if file.format is not console or wandb_id(file.path) is None
    ]
    return Folder(copy.directory, copy.name, anchors, copy.extras)
