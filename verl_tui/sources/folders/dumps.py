"""A directory of dumps: which steps it holds, and figures of their samples. The samples themselves
stay on disk.

A run leaves a dump of tens of MB at each step. So the directory is listed and little is read: the
newest dumps whole, of older ones a part, one at a time, newest first, as much as `BUDGET` allows.
New dumps are read as they are written.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from verl_tui.evaluation import LOOKED_AT, READ_SHARE, Evaluation
from verl_tui.records import (
    Dump,
    Record,
    Restart,
    Sample,
    SampleFacts,
    Unreadable,
)
from verl_tui.sources.fields.sample import is_validation
from verl_tui.sources.fields.sample_figures import figure_records
from verl_tui.sources.files.paths import is_folder, why
from verl_tui.sources.folders.dump_file import BLOCK, dump_at
from verl_tui.sources.folders.step_files import NEWEST, StepFolder, spread
from verl_tui.sources.formats import rollouts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from verl_tui.sources.folders.dump_file import DumpFile
    from verl_tui.trainers import SampleFiles

WHOLE = 64 * 2**20
"""Most bytes of one dump that its figures are made of, the first ones."""
BUDGET = 2**30
"""Bytes read for figures of all the dumps that are found at once, at the start above all."""
LEAST = 2**20
"""Fewest bytes of a dump that make figures worth showing; if the budget allows fewer for each, some
have none.
"""
_BUSY_READS = 32
"""Reads after which the directory is listed again while there is still something to read."""
_COST = 16 * 1024
"""Bytes that could be read in the time that opening a file takes: many small ones are read in one
go.
"""
_REPORTED_UNREADABLE = 1000
"""Unreadable rows handed on one by one; further ones are only counted."""


class _DumpFigures:
    """The figures of one dump, made as it is read."""

    def __init__(self, file: DumpFile, limit: int) -> None:
        self.file = file
        self.limit = limit
        """Bytes to read at most."""
        self.size = 0
        """Bytes of the file, as far as is known."""
        self._begin()

    def _begin(self) -> None:
        self.evaluation = Evaluation()
        self.done = 0
        """Rows that have been evaluated."""
        self.reported = 0
        """Samples that the figures passed on so far are of."""
        self.unreadable = 0
        """Rows that cannot be read."""

    @property
    def pending(self) -> int:
        """Bytes that are still to be read."""
        return max(0, min(self.size, self.limit) - self.file.offset)

    @property
    def caught_up(self) -> bool:
        """True if everything has been read that is to be read."""
        read = self.file.complete or self.file.offset >= self.limit
        return read and self.done == self.file.count_so_far

    def read_on(self) -> Iterator[Unreadable]:
        """Read a little; yield the rows that cannot be read. Raises OSError."""
        generation = self.file.generation
        if self.file.offset < self.limit:
            self.file.index(min(BLOCK, self.limit - self.file.offset))
        if self.file.generation != generation:
            self._begin()
        stop = self.file.span(self.done, BLOCK)
        for fact in self.file.facts_or_flaws(self.done, stop):
            if isinstance(fact, SampleFacts):
                looked_at = self.evaluation.count < LOOKED_AT
                row = self.file.row(fact.index) if looked_at else None
                response = row.response if isinstance(row, Sample) else None
                self.evaluation.add_fact(fact, response)
            else:
                self.unreadable += 1
                yield fact
        self.done = stop
        self.size = self.file.size

    def records(self, order: int) -> Iterator[Record]:
        """Yield the figures of what has been read, once."""
        if self.evaluation.count == self.reported:
            return
        self.reported = self.evaluation.count
        file = self.file
        partial = self.limit <= file.offset < file.size  # by intention
        figures = {**self.evaluation.figures(whole=not partial)}
        if partial:
            figures[READ_SHARE] = file.offset / file.size
        scores = self.evaluation.scores()
        yield from figure_records(
            figures, scores, file.step, order, validation=file.validation
        )


class DumpSource(StepFolder):
    """All dumps of a directory, or a single one that was named. Its size is what is to be read for
    figures, not all that lies there.
    """

    format = rollouts.name
    rank = rollouts.rank

    def __init__(self, path: Path, ordinal: int = 0) -> None:
        place = None if is_folder(path) else rollouts.place_of(path)
        directory = path if place is None else place.directory
        layout = place.layout if place is not None else _layout_in(path)
        several = "*" in layout.inner
        super().__init__(
            # stands for all dumps of the directory in the name of the source
            directory / f"*{Path(layout.inner or 'all.jsonl').suffix}"
            if place is None
            else path,
            ordinal,
            partial(rollouts.step_in, layouts=(layout,)),
            None if place is None else place.name,
            "" if several else layout.inner,
        )
        self.directory = directory
        named = layout.validation == "named" and is_validation(self.directory.name)
        self.validation = named or layout.validation == "always"
        self._open: dict[int, _DumpFigures] = {}
        """Dumps that are being read, and those that may grow."""
        self._reads = self._order = 0

    @property
    def note(self) -> str | None:
        """Return how much is read for figures, if that is not everything."""
        return self._note

    def read(self) -> tuple[tuple[Record, ...], bool]:
        """Return which dumps have come, changed or gone, and the figures of what was read; and
        whether more waits.
        """
        records: list[Record] = []
        if not self._waiting or self._reads % _BUSY_READS == 0:
            records.extend(self._watch())
        self._reads += 1
        stop = self._bytes + BLOCK
        while self._waiting and self._bytes < stop:
            records.extend(self._read_on(self._waiting[-1]))
            stop -= _COST
        self._close_old()
        self._pending = sum(dump.pending for dump in self._open.values())
        return tuple(records), bool(self._waiting)

    def _watch(self) -> Iterator[Dump]:
        """Yield the dumps that have come, changed or gone, newest first; have them read for their
        figures.
        """
        changes = self.changes()
        sizes = {step: stamp.size for step, stamp in changes.items() if stamp}
        limits = plan(sizes)
        self._note = _reading_note(sizes, limits) or self._note
        for step, stamp in changes.items():
            path = self.step_path(step)
            if stamp is None:
                self._forget(step)
                yield Dump(step, str(path), self.validation, 0, removed=True)
                continue
            if step not in self._open and limits[step]:
                file = dump_at(path, step, validation=self.validation)
                self._open[step] = _DumpFigures(file, limits[step])
            if step in self._open:
                self._open[step].size = stamp.size
            seconds = stamp.modified / 1e9
            yield Dump(step, str(path), self.validation, stamp.size, modified=seconds)
        self._wait_for(sizes.keys() & self._open.keys())

    def _forget(self, step: int) -> None:
        """Read no more of a dump."""
        self._open.pop(step, None)
        if step in self._waiting:
            self._waiting.remove(step)

    def _read_on(self, step: int) -> Iterator[Record]:
        dump = self._open[step]
        file = dump.file
        before = file.generation, file.offset
        done, unreadable = dump.evaluation.count, dump.unreadable
        try:
            for row in dump.read_on():
                self._unreadable += 1
                if self._unreadable <= _REPORTED_UNREADABLE:
                    yield row._replace(reason=f"{file.path.name}: {row.reason}")
        except OSError as error:
            self._unreadable += 1
            yield Unreadable(1, f"{file.path.name}: {why(error)}", "")
            self._forget(step)
            return
        generation, offset = before
        if file.generation != generation:
            offset = 0
            self._unreadable -= unreadable
            yield Restart("dump written again", step, self.validation)
        self._bytes += file.offset - offset
        self._records += dump.evaluation.count - done
        if dump.caught_up:
            self._waiting.pop()
            self._order += 1
            yield from dump.records(self._order)

    def _close_old(self) -> None:
        """Keep the state of the newest dumps only: that suffices to follow them as they grow."""
        done = [step for step, dump in self._open.items() if dump.caught_up]
        for step in sorted(done, reverse=True)[NEWEST:]:
            del self._open[step]


def _layout_in(directory: Path) -> SampleFiles:
    """Return how the dumps lie in a directory, as verl's do where there is none yet."""
    try:
        names = os.listdir(directory)  # noqa: PTH208 - only names are needed
    except OSError:
        names = []
    return rollouts.layout_in(directory, names) or rollouts.VERL


def plan(sizes: Mapping[int, int]) -> dict[int, int]:
    """Return how many bytes are read for figures of each of the dumps that are found at once, given
    their bytes by step: the beginning of one is a sample of its rows.
    """
    if sum(min(size, WHOLE) for size in sizes.values()) <= BUDGET:
        return dict.fromkeys(sizes, WHOLE)
    kept = spread(sizes, BUDGET // LEAST)
    return dict.fromkeys(sizes, 0) | dict.fromkeys(
        kept, min(WHOLE, BUDGET // len(kept))
    )


def _reading_note(sizes: Mapping[int, int], limits: Mapping[int, int]) -> str | None:
    """Return a sentence on what is read for figures, None if that is everything."""
    whole = sum(sizes[step] <= limit for step, limit in limits.items())
    none = sum(not limit and sizes[step] > 0 for step, limit in limits.items())
    part = len(limits) - whole - none
    if part or none:
        return f"read for figures: {whole:,} whole, {part:,} in part, {none:,} not"
    return None
