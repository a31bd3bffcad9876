"""Files that were found, the logs that they are part of, and the folders that may be runs."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.patterns import pattern
from verl_tui.sources.formats.console import reader as console
from verl_tui.toml_tables import toml_table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from verl_tui.sources.formats.format import Format

WANDB = "wandb"
"""The directory in which W&B keeps its runs."""
ROTATED = pattern(
    r"(\.(?:log|jsonl|out|err|txt))(?:\.\d{1,4}|[.-]\d{4}-?\d\d-?\d\d[^.]*)$"
)
"""The end of the name of an older part of a log: `train.log.1`, `train.log-20241205`."""
_HPARAMS = pattern(r"\d{10}\.\d+")
"""A folder in which torch's `SummaryWriter.add_hparams` puts an event file of its own, named by the
time.
"""
_PROCESSES = toml_table(__file__, "processes.toml")["process"]
"""Where the logs of single processes lie."""


class FoundFile(NamedTuple):
    """A file, or a directory of dumps, and how to read it."""

    path: Path
    format: Format | None
    """None for settings."""
    log: str = ""
    """Name of the log that it is a part of, if its path does not show it."""
    sure: bool = True
    """False for a console without a step: it is a run only if there is no better one beside it."""
    title: str = ""
    """Name of the experiment in its beginning."""
    ordinal: int = 0
    """Its place among the run's sources, by age."""

    @property
    def is_log(self) -> bool:
        """True if it makes a run: settings and samples do not."""
        return self.format is not None and self.format.anchor


class FoundRun(NamedTuple):
    """A run and its files."""

    name: str
    directory: Path
    files: tuple[FoundFile, ...]
    checkpoints: tuple[Path, ...] = ()
    """Directories in which its checkpoints lie."""


@dataclass(slots=True, eq=False)
class Folder:
    """Files of what may be one run, while the tree is walked."""

    directory: Path
    files: list[FoundFile] = field(default_factory=list)
    stem: str = ""
    """Name of its files if it shares its directory with other runs."""
    wandb: str = ""
    """Id of the W&B run whose directory it is or lies in."""
    top: Path | None = None
    """Path that the user named, if the run was found below it."""
    alone: bool = False
    """True if there was no other run."""

    @property
    def name(self) -> str:
        """The name of its files, else of its directory."""
        return self.stem or self.directory.name

    @property
    def anchors(self) -> list[FoundFile]:
        """Its logs."""
        return [file for file in self.files if file.is_log]

    @property
    def extras(self) -> list[FoundFile]:
        """Its other files."""
        return [file for file in self.files if not file.is_log]


@lru_cache(maxsize=2**15)  # again every few seconds, with each scan
def member(path: Path) -> tuple[str, int] | None:
    """Return what the logs of all processes of a training have in common in their paths, and the
    rank of this one's, whose 0 usually holds most; None for the only log of a training.
    """
    for one in _PROCESSES:
        if found := re.fullmatch(one["path"], str(path), re.DOTALL):
            stated = {**one, **found.groupdict()}
            log = stated["log"]
            if "behind" in stated:
                log = str(Path(f"{log}#{stated['behind']}").with_suffix(""))
            return log, int(stated["rank"])
    return None


def is_events(path: Path) -> bool:
    """True for an event file of TensorBoard; its writer begins another at each start."""
    return ".tfevents." in path.name


def log_name(file: FoundFile) -> str:
    """Return the name of the log that a file is a part of."""
    if file.log:
        return file.log
    if is_events(file.path):
        folder = file.path.parent
        return str(folder.parent if _HPARAMS.fullmatch(folder.name) else folder)
    one = member(file.path)
    return one[0] if one else f"{file.path.parent}/{stem(file.path)}"


def note_log(folder: Folder, log: str) -> None:
    """Note that a folder's logs are parts of one of a name, if it has one."""
    folder.files = [
        file._replace(log=log) if file.is_log else file for file in folder.files
    ]


def stem(path: Path) -> str:
    """Return a file's name without its ending: `job-7` of `job-7.out`, `train` of
    `train.log.1`.
    """
    return ROTATED.sub(r"\1", path.name).rpartition(".")[0] or path.name


def one_log_each(folders: Iterable[Folder]) -> bool:
    """True if there is at most one log of each kind; files that continue each other are one."""
    files = (file for folder in folders for file in folder.anchors)
    logs = {(file.format, log_name(file)) for file in files}
    return len({kind for kind, _ in logs}) == len(logs)


def merge_into(here: Folder, runs: Iterable[Folder]) -> Folder:
    """Add the files of further folders to a run; return the run. Of W&B's runs its copy of the
    console is left out where the run has its own.
    """
    for folder in runs:
        has_own = bool(consoles(here))
        here.files += [one for one in folder.files if not (has_own and _is_copy(one))]
    return here


def consoles(folder: Folder) -> list[FoundFile]:
    """Return the consoles of a run, except W&B's copies."""
    logs = folder.anchors
    return [one for one in logs if one.format is console and not _is_copy(one)]


def _is_copy(file: FoundFile) -> bool:
    return file.format is console and file.log.startswith(f"{WANDB}/")


class FileOwners:
    """The runs that files were assigned to.

    A file stays with its first run even if later files suggest another one: nothing shown is
    taken away or shown twice. Only settings may belong to several runs.
    """

    def __init__(self) -> None:
        self._names: dict[Path, str] = {}
        """The name of the run that each file was first assigned to."""
        self._shared: dict[tuple[str, str], int] = {}
        """Places among a run's sources that several files of one log share."""

    def claimed(self, run: FoundRun) -> tuple[str, list[FoundFile]]:
        """Return a run's name, the one that its first file was found under, and those of its files
        that are no other run's.
        """
        files = [file for file in run.files if file.format]
        paths = [file.path for file in sorted(files, key=lambda file: not file.is_log)]
        name = next(filter(None, map(self._names.get, paths)), run.name)
        self._names = dict.fromkeys(paths, name) | self._names
        owner = self._names.get
        return name, [file for file in run.files if owner(file.path, name) == name]

    def ordinal(self, run: str, file: FoundFile, count: int) -> int:
        """Return a file's place among its run's sources, by age.

        The event files of one log share one: the later of two values is found by their times,
        see `verl_tui.sources.formats.tensorboard`.

        Args:
            run: Name of the run.
            file: One of its files.
            count: How many sources it has already.
        """
        if not is_events(file.path):
            return count
        return self._shared.setdefault((run, log_name(file)), count)

    def forget(self, files: set[Path]) -> list[str]:
        """Forget all files of the runs that some of these files belong to; return their names.

        Of what lies within a file, and of a directory that was one source, its files decide.
        """
        folders = {path.parent for path in files}
        gone = dict.fromkeys(
            name
            for path, name in self._names.items()
            if path in folders or not files.isdisjoint((path, *path.parents))
        )
        names, shared = self._names.items(), self._shared.items()
        self._names = {path: name for path, name in names if name not in gone}
        self._shared = {key: at for key, at in shared if key[0] not in gone}
        return [*gone]
