"""Checkpoints on disk: directories and files named by their step (`global_step_N`), or as the best so far."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from verl_tui.records import Event, EventKind, Record, SourceStatus
from verl_tui.sources.paths import is_folder
from verl_tui.sources.tail import opened
from verl_tui.text import one_line

_NAME = re.compile(r"^(?:global_step_|policy-step-|checkpoint-|step_?)(\d{1,15})$")
_BEST = re.compile(r"^best(?:[_-].*?)??(?:[_=-](?:(\d{1,15})|-?\d+\.\d+))?$")
"""What trainers keep as the best they had: `best_model`, `best_step_120`, `best_2.920`. A whole number is the step."""
_SUFFIX = re.compile(r"\.(?:pt|pth|ckpt|bin|safetensors)$")
"""Of a checkpoint that is a file."""
TRACKER = "latest_checkpointed_iteration.txt"
"""verl writes the step of the newest complete checkpoint into it, one integer (`trainer_base.py`, not atomically)."""
HOMES = ("checkpoints", "ckpts", "ckpt", "checkpoint")
"""Folders below a run in which checkpoints lie; the run's own folder is looked at too."""
_DEEPEST = 3
_LONGEST_NUMBER = 32


def checkpoint_step(name: str) -> int | None:
    """Return the step of a checkpoint directory's name, None if it is none."""
    found = _NAME.match(name)
    return int(found.group(1)) if found else None


class _Found(NamedTuple):
    path: Path
    step: int | None
    best: bool
    """Whether its name says that the trainer thought it the best."""


class CheckpointSource:
    """The checkpoints below a run's directory: each is told once, and once more when it has been removed."""

    def __init__(self, directory: Path, ordinal: int = 0) -> None:
        self.path = directory
        self.ordinal = ordinal
        self._told: dict[Path, _Found] = {}
        self._saved: int | None = None

    def read(self) -> tuple[tuple[Record, ...], bool]:
        """Return what has appeared, gone or been completed."""
        found, trackers = _below(self.path, _DEEPEST)
        present = {one.path: one for one in found}
        gone = [one for path, one in self._told.items() if path not in present]
        fresh = sorted((one for one in found if one.path not in self._told), key=lambda one: one.step or 0)
        self._told = present
        records = [_event(EventKind.REMOVED, one) for one in gone]
        records += [_event(EventKind.BEST if one.best else EventKind.CHECKPOINT, one) for one in fresh]
        saved = max((step for tracker in trackers if (step := _number(tracker)) is not None), default=None)
        if saved is not None and saved != self._saved:
            self._saved = saved
            records.append(Event(EventKind.SAVED, "complete according to " + TRACKER, 0, saved))
        return tuple(records), False

    def finish(self) -> tuple[Record, ...]:
        """Nothing waits."""
        return ()

    def status(self) -> SourceStatus:
        """Return how the source is doing."""
        return SourceStatus(str(self.path), "checkpoints", 0, self.ordinal, len(self._told))


def _event(kind: EventKind, found: _Found) -> Event:
    return Event(kind, one_line(str(found.path), 1000), 0, found.step)


def _number(tracker: Path) -> int | None:
    """Return the step in a tracker file; None while it is being written, or if it holds something else."""
    try:
        with opened(tracker) as file:
            text = file.read(_LONGEST_NUMBER).strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None


def _checkpoint(path: Path, *, is_folder: bool) -> _Found | None:
    """Return a checkpoint by its name, None where it is none; of files only those whose name ends as theirs do."""
    name = path.name if is_folder else _SUFFIX.sub("", path.name)
    if not is_folder and name == path.name:
        return None
    if (step := checkpoint_step(name)) is not None:
        return _Found(path, step, best=False)
    best = _BEST.match(name)
    return None if best is None else _Found(path, int(best[1]) if best[1] else None, best=True)


def _below(directory: Path, depth: int) -> tuple[list[_Found], list[Path]]:
    """Return checkpoints and tracker files at most `depth` levels down; looks into no checkpoint, no other folder."""
    found: list[_Found] = []
    trackers: list[Path] = []
    try:
        with os.scandir(directory) as entries:
            known = [(entry, is_folder(entry)) for entry in entries]
    except OSError:
        return found, trackers
    for entry, folder in known:
        if entry.name == TRACKER and not folder:
            trackers.append(Path(entry.path))
        elif (one := _checkpoint(Path(entry.path), is_folder=folder)) is not None:
            found.append(one)
        elif folder and depth > 0 and (depth < _DEEPEST or entry.name in HOMES):
            deeper = _below(Path(entry.path), depth - 1)
            found += deeper[0]
            trackers += deeper[1]
    return found, trackers
