"""A directory of TRL's tables of completions, one a step: one source, read newest first, each table
once, as soon as it is complete.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from verl_tui.records import Record, Restart, Unreadable
from verl_tui.sources.fields.rewards import RewardSum
from verl_tui.sources.fields.sample_figures import SampleFigures
from verl_tui.sources.files.paths import why
from verl_tui.sources.files.tail import opened
from verl_tui.sources.folders.step_files import StepFolder
from verl_tui.sources.formats import parquet

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ALL = "completions_*.parquet"
"""Stands for all tables of a directory in the name of its source."""
_AT_ONCE = 4
"""Tables that are read in one go: opening one takes 2 ms with pyarrow 26."""


class TableFolder(StepFolder):
    """All tables of a directory."""

    format = parquet.name
    rank = parquet.rank

    def __init__(self, directory: Path, ordinal: int = 0) -> None:
        super().__init__(directory / ALL, ordinal, parquet.table_step)
        self._rewards = RewardSum(path=self.path)
        self._figures = SampleFigures()
        self._whole: set[int] = set()
        """Steps whose tables were whole."""
        self._broken: dict[int, Unreadable] = {}
        """Steps whose tables are incomplete at present, which has not been reported yet, and
        why.
        """
        self._missing = not parquet.is_readable()

    def read(self) -> tuple[tuple[Record, ...], bool]:
        """Return the samples of tables that have come or changed, and whether more wait."""
        if not self._waiting:
            changed = self.changes()
            self._wait_for([] if self._missing else filter(self._size, changed))
        records: list[Record] = []
        for _ in range(min(_AT_ONCE, len(self._waiting))):
            step = self._waiting.pop()
            records += self._table(step)
            self._bytes += self._size(step)
        self._pending = sum(map(self._size, self._waiting))
        # One process writes table after table: those before one that is whole are not being written
        # any more.
        newest = max(self._whole, default=-1)
        return self._counted(records, before=newest), bool(self._waiting)

    def finish(self) -> tuple[Record, ...]:
        """Report the tables that are not whole: this may be the last read."""
        return self._counted([], before=inf)

    @property
    def note(self) -> str | None:
        """Return how rewards were added, or what is missing."""
        return parquet.MISSING if self._missing else self._rewards.note

    def _size(self, step: int) -> int:
        stamp = self.stamps.get(step)
        return stamp.size if stamp is not None else 0

    def _table(self, step: int) -> Iterator[Record]:
        path = self.step_path(step)
        self._broken.pop(step, None)
        reader = parquet.ParquetReader(path, self._rewards)
        try:
            with opened(path) as file:
                samples = [*reader.feed(file.read(parquet.LARGEST + 1))]
        except OSError as error:
            self._broken[step] = Unreadable(1, f"{path.name}: {why(error)}", "")
            return
        for flaw in (*samples, *reader.finish()):
            if isinstance(flaw, Unreadable):
                named = flaw._replace(reason=f"{path.name}: {flaw.reason}")
                self._broken[step] = named
                return
        if step in self._whole:
            yield Restart("table written again", step)
        self._whole.add(step)
        yield from samples

    def _counted(self, records: list[Record], before: float) -> tuple[Record, ...]:
        """Return records with their figures, and with what is wrong with tables of steps before
        one.
        """
        self._records += len(records)
        for step in [step for step in self._broken if step < before]:
            records.append(self._broken.pop(step))
            self._unreadable += 1
        return self._figures.complete(records)
