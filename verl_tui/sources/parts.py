"""Parts of a long log, read without all that lies before them: its end, and blocks anywhere.

A format's `parts` know where a record begins and how to read on from there
(`verl_tui.sources.formats.format.Parts`). Only logs whose records state their steps can be read in
this way; for others, `needs_beginning` is true after reading.
"""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING, TypeGuard

from verl_tui.records import MetricRows, Progress, Restart, Settings
from verl_tui.sources.files.compressed import is_compressed
from verl_tui.sources.files.paths import file_and_part
from verl_tui.sources.files.tail import Chunk, Tail, opened
from verl_tui.sources.formats import HEAD
from verl_tui.sources.formats.format import PartedFormat
from verl_tui.sources.source import FileSource

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from verl_tui.records import Record
    from verl_tui.sources.formats.format import Format, Reader

LONGEST_OPENING = 4 * 2**20
"""Bytes at the beginning of a log that are read at most to learn how to read on: the history of a
W&B run begins behind its settings and what was printed until then.
"""


def has_parts(format: Format | None, path: Path) -> TypeGuard[PartedFormat]:
    """Return whether parts of a file can be read: its format supports it, and it is neither
    compressed nor one of several runs in a file.
    """
    return (
        isinstance(format, PartedFormat)
        and not is_compressed(path)
        and file_and_part(path)[1] is None
    )


class LogParts:
    """A log of which parts are read. It is opened anew for each."""

    def __init__(self, path: Path, format: PartedFormat) -> None:
        """Read nothing yet."""
        self.path = path
        self._format = format
        self.parts = format.parts
        self.cost = 0
        """Bytes read so far."""

    def begin(self, at: int, stop: int) -> int | None:
        """Return where the first record begins at or behind a place, None where none does before
        another.

        Raises:
            OSError: The log cannot be read.
        """
        return self.parts.begin(self._read, at, stop) if at > 0 else 0

    def reader(self, start: int) -> Reader:
        """Return a reader of the bytes from a place on, at which a record begins.

        Raises:
            OSError: The beginning of the log cannot be read.
        """
        if not start:
            return self._format.reader(self.path)
        return self.parts.later(self._opening[0], start)

    @property
    def beginning(self) -> Sequence[Record]:
        """The facts about the whole run at the beginning of the log: settings, and its length.

        Raises OSError where it cannot be read.
        """
        return self._opening[1]

    def block(self, at: int, stop: int) -> Sequence[Record]:
        """Return the records that lie whole between two places; none where they depend on those
        before.

        Raises:
            OSError: The log cannot be read.
        """
        start = self.begin(at, stop)
        if start is None:
            return ()
        reader = self.reader(start)
        records = reader.feed(self._read(start, stop - start))
        return () if start and reader.needs_beginning else self.placed(records, start)

    def placed(self, records: Sequence[Record], start: int) -> Sequence[Record]:
        """Return the records of a part with its rows' orders counted from its first byte on: no row
        is shorter than one. Orders that are times stay.
        """
        if self.parts.by_time:
            return records
        return [
            record._replace(orders=[order + start for order in record.orders])
            if isinstance(record, MetricRows)
            else record
            for record in records
        ]

    @cached_property
    def _opening(self) -> tuple[Reader, Sequence[Record]]:
        """The reader of the beginning, and its facts about the whole run."""
        reader = self._format.reader(self.path)
        records: list[Record] = []
        at = 0
        while at < LONGEST_OPENING and (data := self._read(at, HEAD)):
            records.extend(_of_the_run(reader.feed(data)))
            at += len(data)
            if getattr(reader, "knows_steps", True):
                break
        return reader, records

    def _read(self, at: int, count: int) -> bytes:
        with opened(self.path) as file:
            data = os.pread(file.fileno(), count, at)
        self.cost += len(data)
        return data


def _of_the_run(records: Iterable[Record]) -> Iterator[Record]:
    for record in records:
        if isinstance(record, Settings):
            yield record
        elif isinstance(record, Progress) and (record.total or record.per_epoch):
            yield record._replace(step=None, elapsed=None)


class EndSource(FileSource):
    """The beginning of a log, for facts about the whole run, and its end: its newest steps."""

    def __init__(
        self, path: Path, format: PartedFormat, ordinal: int, wanted: int
    ) -> None:
        """Read nothing yet.

        Args:
            path: A log that is not compressed.
            format: Its format.
            ordinal: Its place among the run's sources.
            wanted: Bytes to read at its end.
        """
        self._end = Tail(path)
        super().__init__(path, format, ordinal, tail=self._end)
        self._wanted = wanted
        self.log = LogParts(path, format)
        """The log, for parts before its end."""
        self._part: Reader | None = None
        """Reads its end; None before that was found."""
        self._beginning: tuple[Record, ...] = ()
        self.start = 0
        """The byte at which its end begins; 0 if the whole file is read."""
        self._segments: list[list[tuple[int, int]]] = [[]]
        """The order and the step of each row, from restart to restart."""
        self._is_estimated = False
        """True if some steps were found from what stands around the rows."""

    @property
    def cost(self) -> int:
        """Bytes read so far."""
        return self.log.cost + max(0, self._end.offset - self.start)

    @property
    def has_rows(self) -> bool:
        """True if there were numbers in the part that is read."""
        return any(self._segments)

    @property
    def complete_from(self) -> int | None:
        """The first step that is complete in the part that is read, None if unknown.

        A log that goes back to an earlier step within the part is complete from that step on.
        """
        first, *later = self._segments
        steps = list(dict.fromkeys(step for _, step in sorted(first)))
        cut = self.log.parts.cut
        if len(steps) <= cut:
            return None
        back = [min(step for _, step in segment) for segment in later if segment]
        return min([max(steps[: cut + 1]), *back])

    @property
    def needs_beginning(self) -> bool:
        """True if its steps depend on records before the part that is read."""
        part = self._part
        return self._is_estimated or (part is not None and part.needs_beginning)

    def read(self) -> tuple[tuple[Record, ...], bool]:
        """Return the records of the next bytes, and whether more wait."""
        records, more = super().read()
        self._note(records)
        records = (*self._beginning, *records)
        self._beginning = ()
        return records, more

    def finish(self) -> tuple[Record, ...]:
        """Return what only waits for its end."""
        records = super().finish()
        self._note(records)
        return records

    def _next(self) -> Chunk:
        if self._part is None and not self._begin():
            return Chunk(b"")
        return super()._next()

    def _begin(self) -> bool:
        """Find where the end begins; false where no record begins among the bytes wanted, as far as
        the file goes now.
        """
        size = self.path.stat().st_size
        found = self.log.begin(size - self._wanted, size)
        self.start = self._end.offset = size if found is None else found
        if found is None:
            self._end.size = size
            return False
        self._reader = self._part = self.log.reader(self.start)
        if self.start:
            self._beginning = tuple(self.log.beginning)
        return True

    def _note(self, records: Iterable[Record]) -> None:
        """Note the steps of further records."""
        for record in records:
            if isinstance(record, MetricRows) and record.progress:
                self._is_estimated = self._is_estimated or record.estimated
                self._segments[-1] += zip(record.orders, record.steps, strict=True)
            elif isinstance(record, Restart) and record.step is None:
                self._segments.append([])
