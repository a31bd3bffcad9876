"""A directory with a file a step: which steps it holds, which files have come or changed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

NEWEST = 4
"""Files that may still be growing: these are looked at each time."""
_OTHERS = 8
"""Older files looked at each time, in turn: a resumed run writes them again."""


class Stamp(NamedTuple):
    """Size, time and inode of a file: if one differs, so does the content."""

    size: int
    modified: int
    """Nanoseconds."""
    inode: int


class Listing:
    """The steps that have a file, read with few system calls: most files never change again."""

    def __init__(
        self, directory: Path, step_of: Callable[[str], int | None], only: str | None = None
    ) -> None:
        """List nothing yet.

        Args:
            directory: Where the files lie.
            step_of: Returns the step in a file's name, None if it names none.
            only: The one file that counts, by its name.
        """
        self.directory = directory
        self.stamps: dict[int, Stamp] = {}
        """Step -> its file as it was when last looked at."""
        self._step_of = step_of
        self._only = only
        self._names: dict[int, str] = {}
        self._turn = 0
        """Index of the older file to check next."""

    def path(self, step: int) -> Path:
        """Return where the file of a step lies."""
        return self.directory / self._names[step]

    def changes(self) -> dict[int, Stamp | None]:
        """Return the steps whose files are new, changed, or gone (None), newest first.

        Raises:
            OSError: The directory is gone, or may not be read.
        """
        names = self._list()
        stamps = self.stamps
        found: dict[int, Stamp | None] = {step: None for step in stamps if step not in names}
        self._names |= names
        for step in self._due(names):
            stamp = _stamp(self.path(step))
            if stamp != stamps.get(step):
                found[step] = stamp
        for step, stamp in found.items():
            if stamp is None:
                stamps.pop(step, None)
            else:
                stamps[step] = stamp
        return dict(sorted(found.items(), reverse=True))

    def _due(self, names: Iterable[int]) -> list[int]:
        """Return the steps whose files to check now: new ones, the newest, some of the others."""
        known = sorted((step for step in names if step in self.stamps), reverse=True)
        new = [step for step in names if step not in self.stamps]
        others = known[NEWEST:]
        self._turn = self._turn + _OTHERS if self._turn + _OTHERS < len(others) else 0
        return [*new, *known[:NEWEST], *others[self._turn : self._turn + _OTHERS]]

    def _list(self) -> dict[int, str]:
        names = [self._only] if self._only is not None else sorted(os.listdir(self.directory))  # noqa: PTH208 - names are enough
        return {step: name for name in names if (step := self._step_of(name)) is not None}


def _stamp(path: Path) -> Stamp | None:
    """Return what a file looks like, None if it is gone."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return Stamp(stat.st_size, stat.st_mtime_ns, stat.st_ino)
