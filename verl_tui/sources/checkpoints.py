"""Checkpoints on disk: directories named by their step (`global_step_N`, and what other trainers call them)."""

from __future__ import annotations

import os
import re
from pathlib import Path

from verl_tui.records import Event, EventKind, Record, SourceStatus
from verl_tui.text import one_line

_NAME = re.compile(r"^(?:global_step_|policy-step-|checkpoint-|step_?)(\d+)$")
HOMES = ("checkpoints", "ckpts", "ckpt", "checkpoint")
"""Folders below a run in which checkpoints lie; the run's own folder is looked at too."""
_DEEPEST = 3


def checkpoint_step(name: str) -> int | None:
    """Return the step of a checkpoint directory's name, None if it is none."""
    found = _NAME.match(name)
    return int(found.group(1)) if found else None


class CheckpointSource:
    """The checkpoints below a run's directory; each is told once."""

    def __init__(self, directory: Path, ordinal: int = 0) -> None:
        self.path = directory
        self.ordinal = ordinal
        self._told: set[Path] = set()

    def read(self) -> tuple[tuple[Record, ...], bool]:
        """Return the checkpoints that have appeared."""
        found = [path for path in _below(self.path, _DEEPEST) if path not in self._told]
        self._told.update(found)
        found.sort(key=lambda path: checkpoint_step(path.name) or 0)
        return tuple(
            Event(EventKind.CHECKPOINT, one_line(str(path), 1000), 0, checkpoint_step(path.name)) for path in found
        ), False

    def finish(self) -> tuple[Record, ...]:
        """Nothing waits."""
        return ()

    def status(self) -> SourceStatus:
        """Return how the source is doing."""
        return SourceStatus(str(self.path), "checkpoints", 0, self.ordinal, len(self._told))


def _below(directory: Path, depth: int) -> list[Path]:
    """Return the checkpoint directories at most `depth` levels down; looks into no checkpoint and no other folder."""
    found: list[Path] = []
    try:
        with os.scandir(directory) as entries:
            folders = [entry for entry in entries if entry.is_dir(follow_symlinks=True)]
    except OSError:
        return found
    for entry in folders:
        if checkpoint_step(entry.name) is not None:
            found.append(Path(entry.path))
        elif depth > 0 and (depth < _DEEPEST or entry.name in HOMES):
            found.extend(_below(Path(entry.path), depth - 1))
    return found
