"""Parts of a long log, read without all that lies before them.

A format's `parts` know where a record begins and how to read on from there
(`verl_tui.sources.formats.format.Parts`). To read a block of bytes somewhere in a log:

    log = LogParts(path, format)
    start = log.begin(offset, offset + size)  # the first record that begins there, None: none does
    part = log.part(start, offset + size)  # the records that lie whole between the two places

The steps of a part before `complete_from` may be incomplete, and so may the last one if the part
does not end with the file. The orders of rows and the numbers of lines count from its beginning,
unless a format orders them by time.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import cached_property, partial
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple, TypeGuard

from verl_tui.records import MetricRows, Progress, Restart, Settings
from verl_tui.sources.files.compressed import is_compressed
from verl_tui.sources.files.paths import file_and_part
from verl_tui.sources.files.tail import opened
from verl_tui.sources.formats import HEAD
from verl_tui.sources.formats.format import PartedFormat

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from verl_tui.records import Record
    from verl_tui.sources.formats.format import Format, PartReader, ReadAt

LONGEST_OPENING = 4 * 2**20
"""Bytes at the beginning of a log that are read at most to learn how to read on: the history of a
W&B run begins behind its settings and what was printed until then.
"""


class LogPart(NamedTuple):
    """The records that lie whole in a block of bytes."""

    start: int
    stop: int
    """The place behind the last byte that was read."""
    records: tuple[Record, ...]
    complete_from: int | None
    """The first step that is complete in the part, None if unknown."""
    needs_beginning: bool
    """True if its steps depend on records before the part: they are not to be shown."""


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
        self.cost = 0
        """Bytes read so far."""

    @property
    def cut(self) -> int:
        """Steps at the beginning of a part of which something may lie before it."""
        return self._format.parts.cut

    @property
    def by_time(self) -> bool:
        """True if the orders of rows are times, whatever the part begins with."""
        return self._format.parts.by_time

    def begin(self, at: int, stop: int) -> int | None:
        """Return where the first record begins at or behind a place, None where none does before
        another.

        Raises:
            OSError: The log cannot be read.
        """
        if at <= 0:
            return 0
        with self._open() as read:
            return self._format.parts.begin(read, at, stop)

    def reader(self, start: int) -> PartReader:
        """Return a reader of the bytes from a place on, at which a record begins.

        Raises:
            OSError: The beginning of the log cannot be read.
        """
        if not start:
            return self._format.reader(self.path)
        reader: PartReader = self._format.parts.reader(self._opening[0], start)
        return reader

    @property
    def beginning(self) -> Sequence[Record]:
        """The facts about the whole run at the beginning of the log: settings, and its length.

        Raises OSError where it cannot be read.
        """
        return self._opening[1]

    def part(self, start: int, stop: int) -> LogPart:
        """Return the records that lie completely between two positions.

        Args:
            start: Where a record begins: what `begin` returned.
            stop: The place behind the last byte to be read.

        Raises:
            OSError: The log cannot be read.
        """
        reader = self.reader(start)
        with self._open() as read:
            data = read(start, stop - start)
        records = tuple(reader.feed(data))
        steps = PartSteps(self.cut if start else 0)
        steps.note(records)
        unsure = steps.estimated or (start > 0 and reader.needs_beginning)
        return LogPart(start, start + len(data), records, steps.complete_from, unsure)

    @cached_property
    def _opening(self) -> tuple[PartReader, Sequence[Record]]:
        """The reader of the beginning, and its facts about the whole run."""
        parts = self._format.parts
        reader: PartReader = parts.opening(self.path)
        records: list[Record] = []
        at = 0
        with self._open() as read:
            while at < LONGEST_OPENING and (data := read(at, HEAD)):
                records.extend(_of_the_run(reader.feed(data)))
                at += len(data)
                if parts.suffices(reader):
                    break
        return reader, records

    @contextmanager
    def _open(self) -> Iterator[ReadAt]:
        with opened(self.path) as file:
            yield partial(self._read, file.fileno())

    def _read(self, descriptor: int, at: int, count: int) -> bytes:
        data = os.pread(descriptor, count, at)
        self.cost += len(data)
        return data


def _of_the_run(records: Iterable[Record]) -> Iterator[Record]:
    for record in records:
        if isinstance(record, Settings):
            yield record
        elif isinstance(record, Progress) and (record.total or record.per_epoch):
            yield record._replace(step=None, elapsed=None)


class PartSteps:
    """Which steps of a part are whole."""

    def __init__(self, cut: int) -> None:
        """Begin a part.

        Args:
            cut: Steps at its beginning of which something may lie before it.
        """
        self._cut = cut
        self._first: list[int] = []
        """Its first different steps, in the order of the file."""
        self._back: int | None = None
        """The lowest step to which the log went back within it."""
        self._torn = False
        """True if the log went back to an earlier step where the part begins."""
        self._anew = False
        """True from a restart to the first row behind it."""
        self.estimated = False
        """True if some steps were found from what stands around the rows."""

    @property
    def has_rows(self) -> bool:
        """True if it has rows."""
        return bool(self._first)

    @property
    def complete_from(self) -> int | None:
        """The first step that is complete in the part, None if unknown.

        A log that goes back to an earlier step within the part is complete from that step on.
        """
        if len(self._first) <= self._cut or self._torn:
            return None
        whole = max(self._first)
        if self._back is None:
            return whole
        return min(whole, self._back)

    def note(self, records: Sequence[Record]) -> None:
        """Note the steps of further records."""
        for is_row, alike in groupby(records, key=_shows_progress):
            if is_row:
                self._note_rows(
                    [rows for rows in alike if isinstance(rows, MetricRows)]
                )
            elif any(isinstance(one, Restart) and one.step is None for one in alike):
                self._torn = self._torn or len(self._first) <= self._cut
                self._anew = True

    def _note_rows(self, blocks: Sequence[MetricRows]) -> None:
        self.estimated = self.estimated or any(rows.estimated for rows in blocks)
        if self._anew:
            lowest = min(min(rows.steps) for rows in blocks)
            self._back = lowest if self._back is None else min(lowest, self._back)
            self._anew = False
        if len(self._first) > self._cut:
            return
        for step in _in_order(blocks):
            if step not in self._first:
                self._first.append(step)
            if len(self._first) > self._cut:
                return


def _shows_progress(record: Record) -> bool:
    return isinstance(record, MetricRows) and record.progress


def _in_order(blocks: Iterable[MetricRows]) -> list[int]:
    """Return the steps of rows in the order in which they were written."""
    rows = [row for one in blocks for row in zip(one.orders, one.steps, strict=True)]
    return [step for _, step in sorted(rows, key=itemgetter(0))]
