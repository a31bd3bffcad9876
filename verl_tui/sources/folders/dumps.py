"""A directory of dumps: which steps it holds, and figures of their samples. The samples themselves
stay on disk.

A run leaves a dump of tens of MB at each step. So the directory is listed and little is read: the
newest dumps whole, of older ones a part, one at a time, newest first, as much as `BUDGET` allows.
New dumps are read as they are written.
"""

from __future__ import annotations

from bisect import bisect_left
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
from verl_tui.sources.files.polled import PolledSource
from verl_tui.sources.folders.dump_file import BLOCK, DumpFile
from verl_tui.sources.folders.step_files import NEWEST, Listing
from verl_tui.sources.formats import rollouts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

ALL = "*.jsonl"
"""Stands for all dumps of a directory in the name of its source."""
WHOLE = 64 * 2**20
"""Most bytes of one dump that its figures are made of, the first ones."""
BUDGET = 2**30
"""Bytes read for figures of all the dumps that are found at once, at the start above all."""
LEAST = 2**20
"""Fewest bytes of an older dump that make figures worth showing; if the budget allows fewer for
each, some have none.
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

    def __init__(self, path: Path, step: int, limit: int, *, validation: bool) -> None:
        self.file = DumpFile(path, step, validation=validation)
        self.limit = limit
        """Bytes to read at most."""
        self.evaluation = Evaluation()
        self.done = 0
        """Rows that have been evaluated."""
        self.reported = 0
        """Samples that the figures passed on so far are of."""
        self.unreadable = 0
        """Rows that cannot be read."""
        self.pending = 0
        """Bytes that are still to be read, as far as is known."""

    def expect(self, size: int) -> int:
        """Take note of how large the file is; return how many bytes more than before are to be
        read.
        """
        before = self.pending
        self.pending = max(0, min(size, self.limit) - self.file.offset)
        return self.pending - before

    @property
    def partial(self) -> bool:
        """True if the figures are of a part of the dump, by intention."""
        return self.file.offset < self.file.size and self.file.offset >= self.limit

    def read_on(self) -> Iterator[Unreadable]:
        """Read a little; yield the rows that cannot be read. Raises OSError."""
        generation = self.file.generation
        if self.file.offset < self.limit:
            self.file.index(min(BLOCK, self.limit - self.file.offset))
        if self.file.generation != generation:
            self.evaluation = Evaluation()
            self.done = 0
            self.reported = 0
            self.unreadable = 0
        stop = self.file.span(self.done, BLOCK)
        for fact in self.file.facts_or_flaws(self.done, stop):
            if isinstance(fact, SampleFacts):
                self.evaluation.add_fact(fact, self._response(fact))
            else:
                self.unreadable += 1
                yield fact
        self.done = stop
        self.expect(self.file.size)

    @property
    def caught_up(self) -> bool:
        """True if everything has been read that is to be read."""
        return self.done == self.file.count_so_far and (
            self.file.complete or self.file.offset >= self.limit
        )

    def _response(self, fact: SampleFacts) -> str | None:
        if self.evaluation.count >= LOOKED_AT:
            return None
        row = self.file.row(fact.index)
        if isinstance(row, Sample):
            return row.response
        return None

    def figures(self) -> Mapping[str, float]:
        """Return the figures of what has been read."""
        found = self.evaluation.figures(whole=not self.partial)
        if not self.partial:
            return found
        return {**found, READ_SHARE: self.file.offset / self.file.size}


class DumpSource(PolledSource):
    """All dumps of a directory, or a single one that was named. Its size is what is to be read for
    figures, not all that lies there.
    """

    format = rollouts.name
    rank = rollouts.rank

    def __init__(self, path: Path, ordinal: int = 0) -> None:
        single = rollouts.is_dump(path) and not is_folder(path)
        super().__init__(path if single else path / ALL, ordinal)
        self._listing = Listing(
            self.path.parent, rollouts.dump_step, path.name if single else None
        )
        self.validation = is_validation(self._listing.directory.name)
        self._waiting: list[int] = []
        """Steps whose dumps wait to be read, or to be read on; ascending, the last is read
        first.
        """
        self._open: dict[int, _DumpFigures] = {}
        """Dumps that are being read, and those that may grow."""
        self._done: set[int] = set()
        """Steps of those that have been read so far as they go."""
        self._note: str | None = None
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
            try:
                records.extend(self._watch())
                self._problem = None
            except OSError as error:
                self._problem = why(error)
        self._reads += 1
        stop = self._bytes + BLOCK
        while self._waiting and self._bytes < stop:
            records.extend(self._read_on(self._waiting[-1]))
            stop -= _COST
        return tuple(records), bool(self._waiting)

    def _watch(self) -> Iterator[Dump]:
        """Yield the dumps that have come, changed or gone, newest first; have them read for their
        figures.
        """
        changes = self._listing.changes()
        self._modified = self._listing.modified
        sizes = {
            step: stamp.size for step, stamp in changes.items() if stamp is not None
        }
        limits = plan(sizes)
        self._note = _reading_note(sizes, limits) or self._note
        for step, stamp in changes.items():
            path = str(self._listing.path(step))
            if stamp is None:
                self._forget(step)
                yield Dump(step, path, self.validation, 0, removed=True)
                continue
            self._wait(step, stamp.size, limits[step])
            yield Dump(
                step, path, self.validation, stamp.size, modified=stamp.modified / 1e9
            )

    # -- figures -----------------------------------------------------------------------------------

    def _wait(self, step: int, size: int, limit: int) -> None:
        """Have a dump read, or read on."""
        dump = self._open.get(step)
        if dump is None and limit:
            dump = self._open[step] = _DumpFigures(
                self._listing.path(step), step, limit, validation=self.validation
            )
        if dump is None:
            return
        self._pending += dump.expect(size)
        self._done.discard(step)
        at = bisect_left(self._waiting, step)
        if step not in self._waiting[at : at + 1]:
            self._waiting.insert(at, step)

    def _forget(self, step: int) -> None:
        """Read no more of a dump."""
        dump = self._open.pop(step, None)
        self._pending -= dump.pending if dump is not None else 0
        self._done.discard(step)
        self._wait_no_more(step)

    def _wait_no_more(self, step: int) -> None:
        at = bisect_left(self._waiting, step)
        if step in self._waiting[at : at + 1]:
            del self._waiting[at]

    def _read_on(self, step: int) -> Iterator[Record]:
        dump = self._open[step]
        file = dump.file
        name = dump.file.path.name
        offset = file.offset
        pending = dump.pending
        generation = file.generation
        done = dump.evaluation.count
        unreadable = dump.unreadable
        try:
            for row in dump.read_on():
                self._unreadable += 1
                if self._unreadable <= _REPORTED_UNREADABLE:
                    yield row._replace(reason=f"{name}: {row.reason}")
        except OSError as error:
            self._unreadable += 1
            yield Unreadable(1, f"{name}: {why(error)}", "")
            self._forget(step)
            return
        if file.generation != generation:
            offset = 0
            self._unreadable -= unreadable
            yield Restart("dump written again", step, self.validation)
        self._bytes += file.offset - offset
        self._pending += dump.pending - pending
        self._records += dump.evaluation.count - done
        if dump.caught_up:
            self._wait_no_more(step)
            self._done.add(step)
            yield from self._figures(step, dump)
            self._close_old()

    def _figures(self, step: int, dump: _DumpFigures) -> Iterator[Record]:
        if dump.evaluation.count == dump.reported:
            return
        dump.reported = dump.evaluation.count
        self._order += 1
        scores = dump.evaluation.scores()
        yield from figure_records(
            dump.figures(), scores, step, self._order, validation=self.validation
        )

    def _close_old(self) -> None:
        """Keep the state of the newest dumps only: that suffices to follow them as they grow."""
        for step in sorted(self._done, reverse=True)[NEWEST:]:
            self._forget(step)


def plan(sizes: Mapping[int, int]) -> dict[int, int]:
    """Return how many bytes are read for figures of each of the dumps that are found at once.

    All of them whole if the budget allows. Else half of it is for the newest, read whole, and the
    other half is shared out among the older ones: the beginning of each is a sample of its rows.
    Where a share is too little for figures, every other one (every third, …) has its share and
    those between have none.

    Args:
        sizes: Step -> bytes of its dump.
    """
    limits = dict.fromkeys(sizes, WHOLE)
    costs = {step: min(size, WHOLE) for step, size in sizes.items()}
    if sum(costs.values()) <= BUDGET:
        return limits
    left = BUDGET // 2
    older = []
    for step in sorted(sizes, reverse=True):
        left -= costs[step]
        if left < 0:
            older.append(step)
    share = BUDGET // 2 // len(older)
    every = -(-LEAST // share)
    for place, step in enumerate(older):
        limits[step] = share * every if place % every == every - 1 else 0
    return limits


def _reading_note(sizes: Mapping[int, int], limits: Mapping[int, int]) -> str | None:
    """Return a sentence on what is read for figures, None if that is everything."""
    whole = sum(sizes[step] <= limit for step, limit in limits.items())
    none = sum(not limit and sizes[step] > 0 for step, limit in limits.items())
    part = len(limits) - whole - none
    if part or none:
        return f"read for figures: {whole:,} whole, {part:,} in part, {none:,} not"
    return None
