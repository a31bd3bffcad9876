"""Walk a directory tree and return the runs in it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from verl_tui.patterns import pattern
from verl_tui.sources.discovery import naming, passed_over
from verl_tui.sources.discovery.found import (
    WANDB,
    Folder,
    FoundFile,
    log_name,
    note_log,
)
from verl_tui.sources.discovery.grouping import grouped_runs
from verl_tui.sources.discovery.probing import (
    HYDRA,
    NameClass,
    Probe,
    classify_name,
    is_worth_reporting,
)
from verl_tui.sources.files import checkpoint_step, head, is_file, is_folder
from verl_tui.sources.folders.checkpoint_folders import is_home
from verl_tui.sources.folders.setting_files import NAMES as SETTINGS
from verl_tui.sources.folders.setting_files import is_settings
from verl_tui.sources.formats import HEAD, mlflow_files, rollouts
from verl_tui.sources.formats.catalog import OWN
from verl_tui.sources.formats.console import reader as console
from verl_tui.sources.formats.metrics_json import in_checkpoints, trainer_state
from verl_tui.sources.formats.tables import parquet, table_step

_DEEPEST = 12
MOST_DIRECTORIES = 20_000
"""Directories read below one path: with more, the user has named a whole disk."""
_MLFLOWS = {mlflow_files.META, "metrics"}
"""What lies in the folder of a run in MLflow's store."""
_EXPORTED = pattern(
    r"verl-tui-.+(?:-samples?(?:-\d+)*\.jsonl|\.csv|\.txt)|events\.out\.tfevents\..+\.verl-tui"
)
"""Files that verl-tui exported: read only if the user names them."""
_BOOKKEEPING = pattern(
    r"(?s)(?:[^/]*/)?(?:wandb/debug.*\.log|files/wandb-(?:summary|metadata)\.json)"
    r"|session_[^/]*/logs/(?:raylet|gcs_server|monitor|log_monitor|dashboard|runtime_env|agent"
    r"|ray_client|debug_state|io-worker|python-core|old|export|events?).*"
)
"""What W&B and Ray write of themselves beside logs."""
_WANDB_RUN = pattern(r"^(?:offline-)?run-\d{8}_\d{6}-(.+)$")
_WANDB_LOG = pattern(r"run-(.+)\.wandb")
_IN_WANDB_RUN = {"files", "logs"}
"""Directories beside the log of a W&B run."""
_SKIPPED = {"lost+found", "node_modules", "__pycache__", "site-packages"}


class DirectoryWalk:
    """One walk through the directories at and below a path that the user named."""

    def __init__(self, top: Path, probe: Probe, directories: set[Path]) -> None:
        """Read nothing yet; `directories` receives those in which files may appear or grow."""
        self.top = top
        self._probe = probe
        self._entered: set[tuple[int, int]] = set()
        """Device and inode of the directories read."""
        self._directories = directories
        self.unknown: dict[Path, str] = {}
        """Files that are not shown though their names look like logs, and why."""
        self.silent: dict[Path, str] = {}
        """Other files that may become logs: empty ones, and such as are called as any text is."""
        self.homes: list[Path] = []
        """Those in which checkpoints lie."""

    def runs(self) -> list[Folder]:
        """Return the runs at and below the path."""
        return self._walk(self.top, 0, _wandb_id(self.top))

    @property
    def problem(self) -> str | None:
        """Return what was wrong with the tree, None if it was read in full."""
        if len(self._entered) < MOST_DIRECTORIES:
            return None
        return f"more than {MOST_DIRECTORIES:,} directories, only the first of them were looked at"

    def _walk(self, directory: Path, depth: int, wandb: str) -> list[Folder]:
        """Return the runs at or below a directory, none if it was read before through a link.

        Args:
            directory: The directory.
            depth: How far below the top it lies.
            wandb: The id of the W&B run whose directory lies above it.
        """
        entries = self._entries(directory)
        names = {entry.name: entry for entry in entries}
        wandb = _wandb_id(Path(directory.name), names) or wandb
        here = Folder(directory, extras_in(directory, names, self._probe), wandb=wandb)
        if depth and here.files and _holds_no_log(directory, names):
            return [here]
        if names.keys() >= _MLFLOWS:
            entries = [names[mlflow_files.META]]  # all that lies beside is read with it
        below = self._read(entries, here, depth)
        here.files += error_logs(here)
        state = filter(None, [in_checkpoints(directory, entries)])
        here.files += [FoundFile(one, trainer_state) for one in state]
        note_log(here, f"{WANDB}/{wandb}" if wandb else "")
        self._drop_stepless(here, below)
        young: set[Path] = set()
        found = grouped_runs(here, below, young)
        self.unknown |= dict.fromkeys(young, passed_over.NO_STEP)
        return found

    def _entries(self, directory: Path) -> list[os.DirEntry[str]]:
        """Return what lies in a directory; nothing if it was read before or cannot be, or there are
        too many.
        """
        try:
            status = directory.stat()
            identity = (status.st_dev, status.st_ino)
            if identity in self._entered or len(self._entered) >= MOST_DIRECTORIES:
                return []
            self._entered.add(identity)
            self._directories.add(directory)
            entries = list_entries(directory)
        except OSError as error:
            self._probe.note(directory, error)
            return []
        self.homes += [directory] * is_home(entries)
        return [one for one in entries if not _leads_within(one, self.top)]

    def _read(
        self, entries: Iterable[os.DirEntry[str]], here: Folder, depth: int
    ) -> list[Folder]:
        """Add the files in a directory to the run here; return what lies below it."""
        below: list[Folder] = []
        dumps = [*here.files]
        for entry in entries:
            name = entry.name
            if _is_of_step(name, dumps):
                continue
            if is_folder(entry):
                if depth < _DEEPEST and not _is_skipped(name, here.wandb):
                    below += self._walk(Path(entry.path), depth + 1, here.wandb)
            # by its name alone: making a path costs more
            elif name in SETTINGS or classify_name(name) is not NameClass.OTHER:
                self._add_file(Path(entry.path), here)
        return below

    def _add_file(self, path: Path, here: Folder) -> None:
        """Add a file to the run here if it is a log, or settings."""
        if is_settings(path):
            here.files.append(settings_file(path))
            return
        if _BOOKKEEPING.fullmatch("/".join(path.parts[-3:])):
            return
        known = self._probe.known(path)
        if known:
            here.files.append(known)
        elif (why := self._probe.why_unknown(path)) is not None:
            self._note_unknown(path, why)

    def _note_unknown(self, path: Path, why: str) -> None:
        named = is_worth_reporting(path.name) or path.parent.name == "logs"
        told = named and why != passed_over.EMPTY
        if why == OWN or (told and not passed_over.is_data(path, self.top)):
            self.unknown[path] = why
        elif classify_name(path.name) is NameClass.LOG:
            self.silent[path] = why

    def _drop_stepless(self, here: Folder, below: Sequence[Folder]) -> None:
        """Drop consoles without a step where there is a better log of the same run, unless they are
        called as that is.
        """
        sure = [file for file in here.anchors if file.sure and file.format is console]
        alike = set().union(*map(_log_names, sure))
        for folder in (here, *below) if sure else ():
            worse = _take_worse(folder, alike)
            if not folder.wandb:  # whose copy of the console repeats the console
                self.unknown |= dict.fromkeys(worse, passed_over.UNSURE)


def _take_worse(folder: Folder, better: set[str]) -> list[Path]:
    """Take the logs without a step from a folder that are called as none of the better ones is."""
    unsure = (one for one in folder.files if not one.sure)
    worse = [one for one in unsure if better.isdisjoint(_log_names(one))]
    folder.files = [one for one in folder.files if one not in worse]
    return [one.path for one in worse]


def list_entries(directory: Path) -> list[os.DirEntry[str]]:
    """Return the entries of a directory by name, links last: a run gets its own name, not `latest`.

    Raises:
        OSError: It cannot be read.
    """
    with os.scandir(directory) as entries:
        logs = [entry for entry in entries if not _EXPORTED.fullmatch(entry.name)]
    return sorted(logs, key=lambda entry: (entry.is_symlink(), entry.name))


def _leads_within(link: os.DirEntry[str], top: Path) -> bool:
    """True if a link leads to a place inside or above `top`, or to a checkpoint."""
    if not link.is_symlink():
        return False
    target, whole = Path(os.path.realpath(link.path)), Path(os.path.realpath(top))
    if whole in target.parents:
        return not any(part.startswith(".") for part in target.relative_to(whole).parts)
    return target in (whole, *whole.parents) or checkpoint_step(target.name) is not None


def _is_skipped(name: str, wandb: str) -> bool:
    """True if a directory, of the W&B run of an id, is not entered because of its name."""
    if name.startswith("."):
        return name != HYDRA
    own = bool(wandb) and name == "logs"
    return own or name in _SKIPPED or checkpoint_step(name) is not None


def _wandb_id(directory: Path, names: Iterable[str] = ()) -> str:
    """Return the id of the W&B run whose directory a path is or lies in, or which has, under
    another name, these entries; empty outside of any.
    """
    logs = map(_WANDB_LOG.fullmatch, () if _IN_WANDB_RUN.isdisjoint(names) else names)
    of_parts = map(_WANDB_RUN.match, reversed(directory.parts))
    found = next(filter(None, (*of_parts, *logs)), None)
    return found[1] if found else ""


def _holds_no_log(directory: Path, names: Iterable[str]) -> bool:
    """Return whether a directory of settings or dumps is one of nothing else, as verl's are."""
    layout = rollouts.layout_in(directory, names)
    return directory.name == HYDRA or layout in (None, rollouts.VERL)


def _is_of_step(name: str, dumps: Sequence[FoundFile]) -> bool:
    """Return whether a file or folder is one of those that a directory has for each step."""
    step = rollouts.step_in(name)
    of_dump = step is not None and any(one.format is rollouts for one in dumps)
    return of_dump or bool(dumps and table_step(name) is not None)


def _log_names(file: FoundFile) -> set[str]:
    return {log_name(file), passed_over.shape(file.path)}


def settings_file(path: Path) -> FoundFile:
    """Return a file of settings with the name of the experiment in it."""
    title = ""
    with suppress(OSError):
        title = _title_in(path, path.stat().st_mtime_ns)
    return FoundFile(path, None, title=title)


@lru_cache(maxsize=2**15)
def _title_in(path: Path, _changed: int) -> str:
    return naming.experiment_name(head(path, HEAD))


def extras_in(directory: Path, names: Iterable[str], probe: Probe) -> list[FoundFile]:
    """Return the settings in a `.hydra` directory; any other one, with these entries, as a source
    for each format of dumps or tables that it holds.
    """
    if directory.name == HYDRA:
        paths = (directory / name for name in ("overrides.yaml", "config.yaml"))
        return [settings_file(path) for path in filter(is_file, paths)]
    tables = (directory / one for one in names if table_step(one) is not None)
    some = ((rollouts, _dumps(directory, names)), (parquet, tables))
    return [
        FoundFile(directory, format)
        for format, files in some
        if any(one.format is format for one in filter(None, map(probe.known, files)))
    ]


def _dumps(directory: Path, names: Iterable[str]) -> Iterator[Path]:
    """Yield what may be files of dumps in a directory with some entries."""
    layout = rollouts.layout_in(directory, names)
    if layout:
        for name in filter(layout.name.fullmatch, names):
            yield from rollouts.files_of(directory / name, layout)


def error_logs(here: Folder) -> list[FoundFile]:
    """Return Slurm's `job.err` for each `job.out`: alone its bars and tracebacks say little."""
    known = {file.path for file in here.anchors}
    errs = {path.with_suffix(".err") for path in known if path.suffix == ".out"}
    return [FoundFile(path, console) for path in sorted(errs - known) if is_file(path)]
