"""Walk a directory tree and return the runs in it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from verl_tui.patterns import pattern
from verl_tui.sources.discovery import passed_over
from verl_tui.sources.discovery.checkpoint_owners import CheckpointHome
from verl_tui.sources.discovery.directory_entries import (
    NameClass,
    classify_name,
    entries_of,
    is_bookkeeping,
    is_relevant,
    is_skipped,
    is_worth_reporting,
    kept_by_wandb,
    leads_within,
    list_entries,
    mlflow_run,
)
from verl_tui.sources.discovery.found import (
    WANDB,
    Folder,
    FoundFile,
    log_name,
    note_log,
    wandb_id,
)
from verl_tui.sources.discovery.grouping import grouped_runs
from verl_tui.sources.discovery.passed_over import EMPTY, is_data
from verl_tui.sources.discovery.probing import title_in
from verl_tui.sources.files import rotated
from verl_tui.sources.files.paths import is_file, is_folder
from verl_tui.sources.folders.checkpoint_folders import is_home
from verl_tui.sources.folders.setting_files import is_settings
from verl_tui.sources.formats import parquet, rollouts, trainer_state
from verl_tui.sources.formats.console import reader as console
from verl_tui.sources.formats.no_logs import OWN

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from verl_tui.sources.discovery.probing import Probe
    from verl_tui.sources.discovery.wandb_copies import Reports

_DEEPEST = 12
_HYDRA = ".hydra"
_STEPS_OF: tuple[Callable[[str], int | None], ...] = (
    rollouts.step_in,
    parquet.table_step,
)
"""What reads the step in the names of formats with one file a step, whose directories are one
source.
"""
_RAYS_OWN = pattern(
    r"(?:raylet|gcs_server|monitor|log_monitor|dashboard|runtime_env|agent|ray_client|debug_state"
    r"|io-worker|python-core|old|export|events?).*"
)
"""Ray's bookkeeping beside the logs of its workers."""
MOST_DIRECTORIES = 20_000
"""Directories read below one path: with more, the user has named a whole disk."""


class DirectoryWalk:
    """One walk through the directories at and below a path that the user named."""

    def __init__(
        self, top: Path, probe: Probe, reports: Reports, directories: set[Path]
    ) -> None:
        """Read nothing yet; `directories` receives those in which files may appear or grow."""
        self.top = top
        self._probe = probe
        self._reports = reports
        self._entered: set[tuple[int, int]] = set()
        """Device and inode of the directories read."""
        self._directories = directories
        self._taken: set[Path] = set()
        """Logs that have been found."""
        self.walked: set[Path] = set()
        """The directories read, without those of dumps."""
        self.unknown: dict[Path, str] = {}
        """Files that are not shown though their names look like logs, and why."""
        self.silent: dict[Path, str] = {}
        """Other files that may become logs: empty ones, and such as are called as any text is."""
        self.homes: list[CheckpointHome] = []

    def runs(self) -> list[Folder]:
        """Return the runs at and below the path."""
        return self._walk(self.top, 0, wandb_id(self.top))

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
        if not self._enter(directory):
            return []
        entries = self._entries(directory)
        wandb = wandb_id(Path(directory.name)) or wandb or kept_by_wandb(entries)
        here = Folder(directory, extras=extras_in(directory, self._probe), wandb=wandb)
        if depth and here.extras and _holds_no_log(directory):
            return [here]
        self.walked.add(directory)
        if is_home(entries):
            self.homes.append(CheckpointHome(directory, self.top))
        below = self._read(entries, here, depth)
        here.anchors += error_logs(here)
        state = trainer_state.in_checkpoints(directory, entries)
        if state is not None:
            here.anchors.append(FoundFile(state, trainer_state))
        if wandb:
            note_log(here, f"{WANDB}/{wandb}")
        self._drop_stepless(here, below)
        return grouped_runs(here, below, self._reports, self.unknown)

    def _read(
        self, entries: Iterable[os.DirEntry[str]], here: Folder, depth: int
    ) -> list[Folder]:
        """Add the files in a directory to the run here; return what lies below it."""
        below: list[Folder] = []
        dumped = bool(here.extras)
        if stored := mlflow_run(entries):
            self._add_file(stored, here)
            return below  # all that lies beside it is read with it
        for entry in filter(is_relevant, entries):
            path = Path(entry.path)
            if is_folder(entry):
                if depth < _DEEPEST and not _is_no_run(path, here):
                    below += self._walk(path, depth + 1, here.wandb)
            elif is_settings(path):
                here.extras.append(settings_file(path))
            elif not _is_no_log(path, dumped=dumped):
                self._add_file(path, here)
        return below

    def _entries(self, directory: Path) -> list[os.DirEntry[str]]:
        try:
            entries = list_entries(directory)
        except OSError as error:
            self._probe.note(directory, error)
            return []
        return [one for one in entries if not leads_within(one, self.top)]

    def _add_file(self, written: Path, here: Folder) -> None:
        """Add a log to the run here, of a rotated one its parts as one."""
        path = written.parent / (rotated.base(written.name) or written.name)
        if path in self._taken:
            return
        # Hydra's own log holds only what went through Python's logging, not what was printed.
        hydra = path.suffix == ".log" and is_folder(here.directory / _HYDRA)
        known = self._probe.known(written, doubted=hydra)
        if known is None:
            self._note_unknown(written)
            return
        self._taken.add(path)
        kept = here.anchors if known.is_log else here.extras
        kept.append(known._replace(path=path))

    def _note_unknown(self, path: Path) -> None:
        why = self._probe.why_unknown(path)
        if why is None:
            return
        named = is_worth_reporting(path.name) or path.parent.name == "logs"
        reported = named and why != EMPTY and not is_data(path, self.top)
        if reported or why == OWN:
            self.unknown[path] = why
        elif classify_name(path.name) is NameClass.LOG:
            self.silent[path] = why

    def _drop_stepless(self, here: Folder, below: Sequence[Folder]) -> None:
        """Drop consoles without a step where there is a better log of the same run."""
        sure = [file for file in here.anchors if file.sure and file.format is console]
        alike = set().union(*map(_log_names, sure))
        for folder in (here, *below) if sure else ():
            worse = _take_worse(folder, alike)
            # W&B's copy of the console repeats the console
            if not folder.wandb:
                self.unknown |= dict.fromkeys(worse, passed_over.UNSURE)

    def _enter(self, directory: Path) -> bool:
        """Note that a directory is read; return false if it was before or there are too many."""
        try:
            stat = directory.stat()
        except OSError as error:
            self._probe.note(directory, error)
            return False
        identity = (stat.st_dev, stat.st_ino)
        if identity in self._entered or len(self._entered) >= MOST_DIRECTORIES:
            return False
        self._entered.add(identity)
        self._directories.add(directory)
        return True


def _is_no_log(path: Path, *, dumped: bool) -> bool:
    """Return whether a file is bookkeeping or a part of a directory of dumps."""
    of_ray = path.parent.name == "logs" and "session_" in path.parent.parent.name
    return (
        is_bookkeeping(path)
        or (of_ray and _RAYS_OWN.match(path.name) is not None)
        or (dumped and _is_of_step(path.name))
    )


def _is_no_run(path: Path, here: Folder) -> bool:
    """Return whether a folder is bookkeeping, or holds a step's samples of the run around it."""
    dumped = any(file.format is rollouts for file in here.extras)
    of_dump = dumped and rollouts.step_in(path.name) is not None
    of_wandb = path.name == "logs" and bool(here.wandb)
    return of_dump or of_wandb or (is_skipped(path.name) and path.name != _HYDRA)


def _is_of_step(name: str) -> bool:
    return any(step(name) is not None for step in _STEPS_OF)


def _holds_no_log(directory: Path) -> bool:
    """Return whether a directory of settings or dumps is one of nothing else, as verl's are."""
    layout = rollouts.layout_in(directory, [one.name for one in entries_of(directory)])
    return directory.name == _HYDRA or layout in (None, rollouts.VERL)


def _take_worse(folder: Folder, better: set[str]) -> list[Path]:
    """Take the logs without a step from a folder that are called as none of the better ones is."""
    worse = [
        one
        for one in folder.anchors
        if not one.sure and _log_names(one).isdisjoint(better)
    ]
    folder.anchors = [one for one in folder.anchors if one not in worse]
    return [one.path for one in worse]


def _log_names(file: FoundFile) -> set[str]:
    return {log_name(file), passed_over.shape(file.path)}


def settings_file(path: Path) -> FoundFile:
    """Return a file of settings with the name of the experiment in it."""
    return FoundFile(path, None, title=title_in(path))


def extras_in(directory: Path, probe: Probe) -> list[FoundFile]:
    """Return the settings in a `.hydra` directory; any other one as a source for each format of
    dumps or tables that it holds.
    """
    if directory.name == _HYDRA:
        paths = (directory / name for name in ("overrides.yaml", "config.yaml"))
        return [settings_file(path) for path in filter(is_file, paths)]
    names = [entry.name for entry in entries_of(directory)]
    tables = [directory / one for one in names if parquet.table_step(one) is not None]
    some = ((rollouts, _dumps(directory, names)), (parquet, tables))
    return [FoundFile(directory, one) for one, files in some if probe.any(files, one)]


def _dumps(directory: Path, names: Sequence[str]) -> Iterator[Path]:
    """Yield what may be files of dumps in a directory with some entries."""
    layout = rollouts.layout_in(directory, names)
    for name in names if layout is not None else ():
        if layout is not None and layout.name.fullmatch(name):
            yield from rollouts.files_of(directory / name, layout)


def error_logs(here: Folder) -> list[FoundFile]:
    """Return Slurm's `job.err` for each `job.out`: alone its bars and tracebacks say little."""
    known = {file.path for file in here.anchors}
    outs = [file.path for file in here.anchors if file.path.suffix == ".out"]
    errs = [path.with_suffix(".err") for path in outs]
    return [
        FoundFile(path, console) for path in errs if path not in known and is_file(path)
    ]
