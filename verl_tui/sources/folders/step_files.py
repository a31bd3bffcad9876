"""A directory with a file a step: which steps it holds, which files have come or changed."""

from __future__ import annotations

import os
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

NEWEST = 4
"""Files that may still be growing: these are looked at each time."""
_OTHERS = 8
"""Older files looked at each time, in turn: a resumed run writes them again."""


_SETTLED = 3.0
"""Seconds after a change in which a further one may leave the directory's times as they are: some
file systems count whole seconds, FAT two.
"""
_AGAIN = 30.0
"""Seconds after which a directory is listed all the same: some file systems keep no times of
theirs.
"""


class Stamp(NamedTuple):
    """Size, time and inode of a file: if one differs, so does the content."""

    size: int
    modified: int
    """Nanoseconds."""
    inode: int


class Listing:
    """The steps that have a file, read with few system calls: most files never change again, and a
    directory says when it has got another.
    """

    def __init__(
        self,
        directory: Path,
        step_of: Callable[[str], int | None],
        only: str | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """List nothing yet.

        Args:
            directory: Where the files lie.
            step_of: Returns the step in a file's name, None if it names none.
            only: The one file that counts, by its name.
            clock: Monotonic seconds.
        """
        self.directory = directory
        self.stamps: dict[int, Stamp] = {}
        """Step -> its file as it was when last looked at."""
        self.modified: float | None = None
        """When a file was last changed, in seconds since the epoch."""
        self._step_of = step_of
        self._only = only
        self._clock = clock
        self._names: dict[int, str] = {}
        self._steps: dict[str, int | None] = {}
        """The steps in the names that have been seen."""
        self._known: list[int] = []
        """Those of `stamps`, newest first."""
        self._turn = 0
        """Index of the older file to check next."""
        self._state: tuple[int, ...] = ()
        """Times and inode of the directory when last looked at."""
        self._changed = self._listed = -inf
        """When that was seen first, and when the directory was listed last."""

    def path(self, step: int) -> Path:
        """Return the path of a step's file."""
        return self.directory / self._names[step]

    def changes(self) -> dict[int, Stamp | None]:
        """Return the steps whose files are new, changed, or gone (None), newest first.

        Raises:
            OSError: The directory is gone, or may not be read.
        """
        names = self._list() if self._is_due() else None
        found: dict[int, Stamp | None] = {}
        new: list[int] = []
        if names is not None:
            found = {step: None for step in self.stamps if step not in names}
            new = [step for step in names if step not in self.stamps]
            self._names |= names
        for step in (*new, *self._turn_of_known()):
            stamp = _stamp(self.path(step))
            if stamp != self.stamps.get(step):
                found[step] = stamp
        self._note(found)
        return dict(sorted(found.items(), reverse=True))

    def _turn_of_known(self) -> list[int]:
        """Return which of the known files to check now: the newest, and some of the others."""
        others = len(self._known) - NEWEST
        self._turn = self._turn + _OTHERS if self._turn + _OTHERS < others else 0
        start = NEWEST + self._turn
        return [*self._known[:NEWEST], *self._known[start : start + _OTHERS]]

    def _note(self, found: Mapping[int, Stamp | None]) -> None:
        for step, stamp in found.items():
            if stamp is None:
                self.stamps.pop(step, None)
            else:
                self.stamps[step] = stamp
                self.modified = max(self.modified or 0.0, stamp.modified / 1e9)
        if len(self.stamps) != len(self._known) or any(
            step not in self.stamps for step in found
        ):
            self._known = sorted(self.stamps, reverse=True)

    def _is_due(self) -> bool:
        """Return whether the directory may hold other names than when it was listed.

        Raises:
            OSError: It is gone.
        """
        now = self._clock()
        stat = self.directory.stat()
        state = (stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)
        if state != self._state:
            self._state = state
            self._changed = now
        if now - self._changed > _SETTLED and now - self._listed < _AGAIN:
            return False
        self._listed = now
        return True

    def _list(self) -> dict[int, str]:
        only = self._only
        names = sorted(os.listdir(self.directory)) if only is None else [only]  # noqa: PTH208
        known = self._steps
        known.update((name, self._step_of(name)) for name in names if name not in known)
        return {step: name for name in names if (step := known[name]) is not None}


def _stamp(path: Path) -> Stamp | None:
    """Return what a file looks like, None if it is gone."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return Stamp(stat.st_size, stat.st_mtime_ns, stat.st_ino)
