"""Checkpoints on disk: directories and files named by their step (`global_step_N`), or as the best
so far.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from itertools import chain
from pathlib import Path

from verl_tui.patterns import pattern
from verl_tui.records import Event, EventKind, Records
from verl_tui.sources.files import (
    Source,
    checkpoint_step,
    is_checkpoint,
    is_file,
    is_folder,
    opened,
)
from verl_tui.text import one_line

_BEST = pattern(r"^best(?:[_-].*?)??(?:[_=-](?:(\d{1,15})|-?\d+\.\d+))?$")
"""Names of the best checkpoint so far: `best_model`, `best_step_120`, `best_2.920`. A whole
number is the step.
"""
_SUFFIX = pattern(r"\.(?:pt|pth|ckpt|bin|safetensors)$")
"""Suffixes of checkpoints that are files."""
TRACKER = "latest_checkpointed_iteration.txt"
"""verl writes the step of the newest complete checkpoint into it, one integer (`trainer_base.py`,
not atomically).
"""
_BEGINNINGS = ("global_step_", "policy-step-", "checkpoint-", "step", "best", TRACKER)
_WRITTEN_LAST = "trainer_state.json"
"""Of what `transformers/trainer.py` (`_save_checkpoint`) writes into a checkpoint; trainers of its
kind do alike.
"""
_DEEPEST = 3
_MOST = 200
"""Folders looked into at each level where checkpoints are looked for."""
_LONGEST_NUMBER = 32


def is_home(entries: Iterable[os.DirEntry[str]]) -> bool:
    """Tell from what lies in a directory whether it is one in which checkpoints are kept."""
    named = (entry for entry in entries if entry.name.startswith(_BEGINNINGS))
    return any(entry.name == TRACKER or _checkpoint(entry) for entry in named)


def homes(directory: Path, depth: int = _DEEPEST) -> list[Path]:
    """Return the directories at or below one, at most `depth` levels down, in which checkpoints are
    kept.

    Args:
        directory: One that is called as those are in which checkpoints lie: no other is looked
            through.
        depth: Levels to go down.
    """
    entries = _entries(directory)
    if is_home(entries):
        return [directory]
    below = []
    if depth > 0:
        below = sorted(entry.name for entry in entries if is_folder(entry))[:_MOST]
    return [home for name in below for home in homes(directory / name, depth - 1)]


class CheckpointSource(Source):
    """The checkpoints of a run: each is reported once, and again when it has been removed."""

    format = "checkpoints"

    def __init__(self, directory: Path, homes: Iterable[Path]) -> None:
        """Make the source.

        Args:
            directory: The run's.
            homes: The directories right in which its checkpoints lie.
        """
        super().__init__(directory)
        self.homes = tuple(homes)
        self._reported: dict[str, Event] = {}
        """By their paths."""
        self._saved: int | None = None

    def read(self) -> tuple[Records, bool]:
        """Return the checkpoints that appeared, vanished or were completed."""
        found = chain.from_iterable(map(_checkpoints, self.homes))
        before, self._reported = self._reported, {one.text: one for one in found}
        self._records = len(self._reported)
        gone = [before[path] for path in before.keys() - self._reported.keys()]
        fresh = [self._reported[path] for path in self._reported.keys() - before.keys()]
        return (
            *(one._replace(kind=EventKind.REMOVED) for one in gone),
            *sorted(fresh, key=lambda one: (one.step or 0, one.text)),
            *self._completed(),
        ), False

    def _completed(self) -> list[Event]:
        """Return an event if the tracker files name another step than before; one that is being
        written, or holds something else, names none.
        """
        saved = None
        for home in self.homes:
            with suppress(OSError), opened(home / TRACKER) as file:
                text = file.read(_LONGEST_NUMBER).strip()
                saved = max(saved or 0, int(text)) if text.isdigit() else saved
        if saved is None or saved == self._saved:
            return []
        self._saved = saved
        return [Event(EventKind.SAVED, "complete according to " + TRACKER, 0, saved)]


def _checkpoint(entry: os.DirEntry[str]) -> Event | None:
    """Return a checkpoint by its name, None if it is none; files only count with the suffix of a
    checkpoint.
    """
    folder = is_folder(entry)
    name = entry.name if folder else _SUFFIX.sub("", entry.name)
    step = checkpoint_step(name)
    best = None if step is not None else _BEST.match(name)
    if (step is None and not best) or (name == entry.name and not folder):
        return None
    path = one_line(entry.path, 1000)
    if not best:
        return Event(EventKind.CHECKPOINT, path, 0, step)
    return Event(EventKind.BEST, path, 0, int(best[1]) if best[1] else None)


def _entries(directory: Path) -> list[os.DirEntry[str]]:
    """Return what lies in a directory, nothing where it cannot be read."""
    try:
        with os.scandir(directory) as found:
            return list(found)
    except OSError:
        return []


def _checkpoints(home: Path) -> list[Event]:
    """Return the checkpoints that lie right in a directory, without the newest one while the file
    written last is missing in it alone: it is still being saved.
    """
    entries = {entry.name: entry for entry in _entries(home)}
    saved = sorted(filter(is_checkpoint, entries), key=lambda name: (len(name), name))
    if [is_file(home / name / _WRITTEN_LAST) for name in saved[-2:]] == [True, False]:
        del entries[saved[-1]]
    return list(filter(None, map(_checkpoint, entries.values())))
