"""A directory with a file a step: which steps it holds, which files have come or changed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.sources.files.paths import status_at, why
from verl_tui.sources.files.polled import PolledSource

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
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


class StepFolder(PolledSource):
    """The files of a directory, each of a step; the newest of those that wait is read first.

    Most files never change again: few are looked at each time.
    """

    def __init__(
        self,
        path: Path,
        ordinal: int,
        step_of: Callable[[str], int | None],
        only: str | None = None,
        inner: str = "",
    ) -> None:
        """List nothing yet.

        Args:
            path: Stands for all the files.
            ordinal: Which of the sources it is.
            step_of: Returns the step in a file's name, None if it names none.
            only: The one file that counts, by its name.
            inner: The file within the folder that a name is of; empty where names are of files.
        """
        super().__init__(path, ordinal)
        self.directory = path.parent
        self.stamps: dict[int, Stamp] = {}
        """Step -> its file as it was when last looked at."""
        self._step_of = step_of
        self._only = only
        self._inner = inner
        self._listed: list[str] = []
        self._names: dict[int, str] = {}
        self._turn = 0
        """Index of the older file to look at next."""
        self._waiting: list[int] = []
        """Steps whose files wait to be read; ascending, the last is read first."""
        self._note: str | None = None

    def step_path(self, step: int) -> Path:
        """Return the path of a step's file."""
        return self.directory / self._names[step] / self._inner

    def changes(self) -> dict[int, Stamp | None]:
        """Return the steps whose files are new, changed, or gone (None), newest first."""
        try:
            listed = os.listdir(self.directory)  # noqa: PTH208 - only names are needed
        except OSError as error:
            self._problem = why(error)
            return {}
        self._problem = None
        found: dict[int, Stamp | None] = {}
        new: list[int] = []
        if listed != self._listed:
            self._listed = listed
            names = self._names_by_step(sorted(listed))
            found = dict.fromkeys(self.stamps.keys() - names.keys())
            new = [step for step in names if step not in self.stamps]
            self._names |= names
        for step in (*new, *self._turn_of_known()):
            stamp = _stamp(self.step_path(step))
            if stamp != self.stamps.get(step):
                found[step] = stamp
        for step, stamp in found.items():
            self.stamps.pop(step, None)
            if stamp is not None:
                self.stamps[step] = stamp
                self._modified = max(self._modified or 0.0, stamp.modified / 1e9)
        return dict(sorted(found.items(), reverse=True))

    def _names_by_step(self, names: Iterable[str]) -> dict[int, str]:
        kept = (name for name in names if self._only in (None, name))
        steps = ((self._step_of(name), name) for name in kept)
        return {step: name for step, name in steps if step is not None}

    def _turn_of_known(self) -> list[int]:
        """Return which of the known files to look at now: the newest, and some of the others."""
        known = sorted(self.stamps, reverse=True)
        at = NEWEST + self._turn
        self._turn = self._turn + _OTHERS if at + _OTHERS < len(known) else 0
        return [*known[:NEWEST], *known[at : at + _OTHERS]]

    def _wait_for(self, steps: Iterable[int]) -> None:
        """Have files read, unless they are gone."""
        self._waiting = sorted({*self._waiting, *steps} & self.stamps.keys())


def spread(steps: Collection[int], most: int) -> list[int]:
    """Return the newest step and further ones, evenly spread, at most so many, newest first."""
    return sorted(steps, reverse=True)[:: max(1, -(-len(steps) // most))]


def _stamp(path: Path) -> Stamp | None:
    """Return what a file looks like, None if it is gone."""
    stat = status_at(path)
    return stat and Stamp(stat.st_size, stat.st_mtime_ns, stat.st_ino)
