"""A directory with a file a step: which steps it holds, which files have come or changed. TRL's
tables of completions are read here, those of dumps in `verl_tui.sources.folders.dumps`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf
from pathlib import Path
from typing import NamedTuple

from verl_tui.given_files import why
from verl_tui.records import Record, Records, Restart, Unreadable
from verl_tui.sources.fields.sample import RewardSum
from verl_tui.sources.files import Source, opened, status_at
from verl_tui.sources.formats import tables

NEWEST = 4
"""Files that may still be growing: these are looked at each time."""
_ALL = 16
"""One in so many looks is at all files: a resumed run writes older ones again."""
ALL_TABLES = "completions_*.parquet"
"""Stands for all tables of a directory in the name of its source."""
_AT_ONCE = 2**20
"""Bytes that are read in one go, each file with its `cost` and whole."""


class Stamp(NamedTuple):
    """Size, time and inode of a file: if one differs, so does the content."""

    size: int
    modified: int
    """Nanoseconds."""
    inode: int


class StepFolder(Source):
    """The files of a directory, each of a step; the newest of those that wait is read first.

    Most files never change again: few are looked at each time.
    """

    cost = 16 * 1024
    """Bytes that could be read in the time that opening a file takes."""

    def __init__(
        self,
        path: Path,
        step_of: Callable[[str], int | None],
        inner: str = "",
    ) -> None:
        """List nothing yet.

        Args:
            path: Stands for all the files.
            step_of: Returns the step in a file's name, None if it names none.
            inner: The file within the folder that a name is of; empty where names are of files.
        """
        super().__init__(path)
        self.directory = path.parent
        self.stamps: dict[int, Stamp] = {}
        """Step -> its file as it was when last looked at."""
        self._step_of = step_of
        self._inner = inner
        self._listed: list[str] = []
        self._names: dict[int, str] = {}
        self._looks = 0
        self._waiting: list[int] = []
        """Steps whose files wait to be read; ascending, the last is read first."""
        self._note: str | None = None

    @property
    def note(self) -> str | None:
        """Return how much is read for figures, how rewards were added, or what is missing."""
        return self._note

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
        if listed != self._listed:
            self._listed = listed
            steps = ((self._step_of(name), name) for name in sorted(listed))
            self._names = {step: name for step, name in steps if step is not None}
        self._looks += 1
        known = sorted(self.stamps)
        looked_at = {*(known[-NEWEST:] if self._looks % _ALL else known)}
        looked_at |= self._names.keys() ^ self.stamps.keys()  # come and gone
        found = {step: stamp for step in looked_at for stamp in self._changed(step)}
        return dict(sorted(found.items(), reverse=True))

    def _changed(self, step: int) -> Iterator[Stamp | None]:
        """Yield what a step's file has become, None if it is gone; nothing if it is as before."""
        there = step in self._names
        status = status_at(self.step_path(step)) if there else None
        stamp = status and Stamp(status.st_size, status.st_mtime_ns, status.st_ino)
        if stamp != self.stamps.pop(step, None):
            yield stamp
        if stamp:
            self.stamps[step] = stamp
            self._modified = max(self._modified or 0.0, stamp.modified / 1e9)

    def _wait_for(self, steps: Iterable[int]) -> None:
        """Have files read, unless they are gone."""
        self._waiting = sorted({*self._waiting, *steps} & self.stamps.keys())

    def _size(self, step: int) -> int:
        """Return how many bytes to read of a step's file."""
        stamp = self.stamps.get(step)
        return stamp.size if stamp else 0

    def _next(self) -> list[Record]:
        """Read some of the files that wait."""
        records: list[Record] = []
        left = _AT_ONCE
        while self._waiting and left > 0:
            step = self._waiting.pop()
            records += self._file(step)
            left -= self._size(step) + self.cost
        self._pending = sum(map(self._size, self._waiting))
        return records

    def _file(self, step: int) -> Iterable[Record]:
        """Return what a step's file says."""
        raise NotImplementedError


class TableFolder(StepFolder):
    """All tables of completions of a directory: each is read once, as soon as it is complete."""

    format = tables.parquet.name
    rank = tables.parquet.rank
    cost = _AT_ONCE // 4  # opening one takes 2 ms with pyarrow 26

    def __init__(self, directory: Path) -> None:
        super().__init__(directory / ALL_TABLES, tables.table_step)
        self._rewards = RewardSum(path=self.path)
        self._whole: set[int] = set()
        """Steps whose tables were whole."""
        self._broken: dict[int, Unreadable] = {}
        """Steps whose tables are incomplete at present, which has not been reported yet, and
        why.
        """

    def read(self) -> tuple[Records, bool]:
        """Return the samples of tables that have come or changed, and whether more wait."""
        if not self._waiting:
            self._wait_for(filter(self._size, self.changes()))
        records = self._next()
        # One process writes table after table: those before one that is whole are not being written
        # any more.
        records += self._flaws(before=max(self._whole, default=-1))
        return self.counted(records), bool(self._waiting)

    def finish(self) -> Records:
        """Report the tables that are not whole: this may be the last read."""
        return self.counted(self._flaws(before=inf))

    def _flaws(self, before: float) -> Sequence[Unreadable]:
        """Return what is wrong with the tables of steps before one."""
        return [self._broken.pop(one) for one in [*self._broken] if one < before]

    def _file(self, step: int) -> Iterator[Record]:
        path = self.step_path(step)
        self._bytes += self._size(step)
        self._broken.pop(step, None)
        reader = tables.ParquetReader(path, self._rewards)
        try:
            with opened(path) as file:
                found = reader.feed(file.read(tables.LARGEST + 1)) or reader.finish()
        except OSError as error:
            found = (Unreadable(1, why(error), ""),)
        self._note = reader.note
        for flaw in found:
            if isinstance(flaw, Unreadable):
                self._broken[step] = flaw._replace(reason=f"{path.name}: {flaw.reason}")
                return
        if step in self._whole:
            yield Restart("table written again", step)
        self._whole.add(step)
        yield from found
