"""The end of a long log, read without what lies before it: for answers, and to be shown until all
has been read.

A format's `parts` know where a record begins and how to read on from there. Only logs whose records
state their steps can be read in this way; for others, `needs_beginning` is true after reading.

The exact reading uses nothing of what was shown before: such a run ends up like any other.
"""

from __future__ import annotations

import os
from collections import defaultdict
from itertools import chain, islice
from typing import TYPE_CHECKING, TypeGuard

from verl_tui import debug_log
from verl_tui.records import Batch, MetricRows, Preview, Progress, Settings
from verl_tui.sources.files.compressed import is_compressed
from verl_tui.sources.files.paths import file_and_part, file_size, modified_at
from verl_tui.sources.files.tail import Chunk, Tail, opened
from verl_tui.sources.formats import HEAD
from verl_tui.sources.formats.format import PartedFormat
from verl_tui.sources.source import FileSource
from verl_tui.sources.source_reader import source_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from verl_tui.records import Record
    from verl_tui.sources.discovery.found import FoundFile
    from verl_tui.sources.formats.format import Format, Reader
    from verl_tui.sources.source import Source

LONG = 8 * 2**20
"""Bytes from which on a log is previewed: a shorter one is read in a fraction of a second."""
LONGEST_OPENING = 4 * 2**20
"""Bytes at the beginning of a log that are read at most to learn how to read on: the history of a
W&B run begins behind its settings and what was printed until then.
"""
_END = 2**19
"""Bytes shown of the end of a long log: some hundred steps, a dozen of a wordy one."""
_SHAPED = 4
"""Number of runs whose blocks at strides are read: the exact reading of all runs waits for them."""
_BLOCKS = 200
"""Most blocks read at strides: about the columns of dots in a chart of the dashboard."""
_BLOCK_BYTES = 3 * 2**20
"""Most bytes read in all blocks of a log."""
_STEPS_A_BLOCK = 2.5
"""Steps' worth of bytes in a block: one that is cut at its beginning, and one that is whole."""


def has_parts(format: Format | None, path: Path) -> TypeGuard[PartedFormat]:
    """Return whether parts of a file can be read: its format supports it, and it is neither
    compressed nor one of several runs in a file.
    """
    return (
        isinstance(format, PartedFormat)
        and not is_compressed(path)
        and file_and_part(path)[1] is None
    )


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
        self.parts = format.parts
        self._wanted = wanted
        self._read_before = 0
        """Bytes read before its end."""
        self._first: Reader | None = None
        """Has read the beginning; None where the whole file is read, or not begun."""
        self._facts: list[Record] = []
        """Of the whole run, from the beginning."""
        self.start = 0
        """The byte at which its end begins; 0 if the whole file is read."""
        self._rows: set[tuple[int, int]] = set()
        """The order and the step of each row."""
        self._is_estimated = False
        """True if some steps were found from what stands around the rows."""

    @property
    def cost(self) -> int:
        """Bytes read so far."""
        return self._read_before + max(0, self._end.offset - self.start)

    @property
    def steps(self) -> set[int]:
        """The steps of its end."""
        return {step for _, step in self._rows}

    @property
    def complete_from(self) -> int | None:
        """The first step that is complete in the part that is read, None if unknown."""
        steps = list(dict.fromkeys(step for _, step in sorted(self._rows)))
        cut = self.parts.cut
        return max(steps[: cut + 1]) if len(steps) > cut else None

    @property
    def needs_beginning(self) -> bool:
        """True if its steps depend on records before the part that is read."""
        return self._is_estimated or self._reader.needs_beginning

    def read(self) -> tuple[tuple[Record, ...], bool]:
        """Return the records of the next bytes, and whether more wait."""
        records, more = super().read()
        self._note(records)
        facts, self._facts = self._facts, []
        return (*facts, *records), more

    def finish(self) -> tuple[Record, ...]:
        """Return what only waits for its end."""
        records = super().finish()
        self._note(records)
        return records

    def block(self, at: int, stop: int) -> list[MetricRows]:
        """Return the rows between two places that state their steps; none where they depend on
        those before.

        Raises:
            OSError: The log cannot be read.
        """
        start = self.parts.begin(self._bytes, at, stop) if at else 0
        if start is None:
            return []
        reader = self._reader_at(start)
        records = reader.feed(self._bytes(start, stop - start))
        if start and reader.needs_beginning:
            return []
        return [*filter(_is_telling, self.placed(records, start))]

    def placed(self, records: Iterable[Record], start: int) -> Iterator[Record]:
        """Yield the records of a part with its rows' orders counted from its first byte on: no row
        is shorter than one. Orders that are times stay.
        """
        for record in records:
            if isinstance(record, MetricRows) and not self.parts.by_time:
                yield record._replace(orders=[at + start for at in record.orders])
            else:
                yield record

    def _next(self) -> Chunk:
        """Find where its end begins; nothing is read where no record begins among the bytes wanted,
        as far as the file goes now.
        """
        if not self._end.size:
            size = self.path.stat().st_size
            at = size - self._wanted
            start = self.parts.begin(self._bytes, at, size) if at > 0 else 0
            self.start = self._end.offset = size if start is None else start
            if self.start:
                self._open()
            self._reader = self._reader_at(self.start)
        return super()._next()

    def _open(self) -> None:
        """Read the beginning, until it tells how to read on."""
        self._first = self.format.reader(self.path)
        at = 0
        while at < LONGEST_OPENING and (data := self._bytes(at, HEAD)):
            self._facts.extend(_of_the_run(self._first.feed(data)))
            at += len(data)
            if getattr(self._first, "knows_steps", True):
                return

    def _reader_at(self, start: int) -> Reader:
        """Return a reader of the bytes from a place on, at which a record begins."""
        if not start or self._first is None:
            return self.format.reader(self.path)
        return self.parts.later(self._first, start)

    def _bytes(self, at: int, count: int) -> bytes:
        with opened(self.path) as file:
            data = os.pread(file.fileno(), count, at)
        self._read_before += len(data)
        return data

    def _note(self, records: Iterable[Record]) -> None:
        """Note the steps of further records."""
        for record in records:
            if isinstance(record, MetricRows) and record.progress:
                self._is_estimated = self._is_estimated or record.estimated
                self._rows.update(zip(record.orders, record.steps, strict=True))


def _of_the_run(records: Iterable[Record]) -> Iterator[Record]:
    for record in records:
        if isinstance(record, Settings):
            yield record
        elif isinstance(record, Progress) and (record.total or record.per_epoch):
            yield record._replace(step=None, elapsed=None)


def _is_telling(record: Record) -> TypeGuard[MetricRows]:
    """Return whether rows state their steps and are complete in themselves."""
    if not isinstance(record, MetricRows):
        return False
    return record.progress and not record.mean and not record.estimated


# -- previews --------------------------------------------------------------------------------------


def previews(
    fresh: Mapping[str, Sequence[tuple[FoundFile, int]]], shown: str | None = None
) -> Iterator[Preview]:
    """Yield a preview of each run with a long log, the one that is shown first, then those written
    last. A log that cannot be previewed is read as any other.

    Args:
        fresh: The files that are about to be read, by run, each with its place among the run's
            sources.
        shown: The run that is shown.
    """
    long = []
    for run, files in fresh.items():
        if any(
            file_size(one.path) > LONG and has_parts(one.format, one.path)
            for one, _ in files
        ):
            newest = max(modified_at(one.path) for one, _ in files)
            long.append((run == shown, newest, run))
    for at, (*_, run) in enumerate(sorted(long, reverse=True)):
        try:
            yield from islice(_previews(run, fresh[run]), 1 + (at < _SHAPED))
        except Exception as error:  # noqa: BLE001, PERF203 - a net at the border
            debug_log.note_error(f"preview of {run}", error)


def _previews(run: str, files: Sequence[tuple[FoundFile, int]]) -> Iterator[Preview]:
    """Yield a preview of the ends of a run's logs, and one with what lies between; none if the ends
    do not show its steps, or if it takes all rows between to decide which of several event files
    holds at a step.

    The status of each source says how much of it has been read.
    """
    ends: list[Batch] = []
    later: list[tuple[EndSource, Batch]] = []
    """Those with something between."""
    for file, ordinal in files:
        if not has_parts(file.format, file.path):
            if file_size(file.path) <= _END:
                ends.append(_read(run, source_of(file, ordinal)))
            continue
        source = EndSource(file.path, file.format, ordinal, _END)
        end = _read(run, source)
        if source.start:
            if source.needs_beginning or source.complete_from is None:
                return  # its steps are known only with what lies before them
            read = min(source.cost, source.start)
            status = end.status._replace(bytes_read=read)
            end = Batch(run, status, tuple(source.placed(end.records, source.start)))
            later.append((source, end))
        ends.append(end)
    if sum(source.parts.by_time for source, _ in later) > 1:
        return
    yield Preview(run, tuple(ends))
    between = [end._replace(records=_between(source)) for source, end in later]
    yield Preview(run, tuple(ends), tuple(between))


def _read(run: str, source: Source) -> Batch:
    """Return all records of a source, or of the part of a file that it reads."""
    records: list[Record] = []
    more = True
    while more:
        read, more = source.read()
        records += read
    return Batch(run, source.status(), (*records, *source.finish()))


def _between(source: EndSource) -> tuple[MetricRows, ...]:
    """Return rows at strides over what lies before the end of a log, without those of steps that
    were made once more after a restart.

    The blocks do not show at which step exactly a restart began: as many steps below are left out
    as lie between two blocks at most.
    """
    start, first = source.start, source.complete_from or 0
    size = int(_STEPS_A_BLOCK * (source.status().size - start) / len(source.steps))
    count = min(_BLOCKS, _BLOCK_BYTES // size)
    stride = max(size, start // (count + 1))
    alike: dict[tuple[str, ...], list[MetricRows]] = defaultdict(list)
    widest, went_back = 0, False
    for at in reversed(range(0, min(count * stride, start), stride)):
        rows = source.block(at, min(at + size, start))
        last = max((max(one.steps) for one in rows), default=first)
        if last < first:
            widest, went_back = max(widest, first - last), False
            first = min(min(one.steps) for one in rows)
            for one in rows:
                alike[one.keys].append(one)
        elif rows and not went_back:
            first, went_back = first - widest, True
    return tuple(map(_joined, alike.values()))


def _joined(parts: Sequence[MetricRows]) -> MetricRows:
    """Return rows with the same keys as one record: event files have one for each tag in each
    block.
    """
    chained = chain.from_iterable
    steps, orders, times = (
        [*chained(getattr(one, name) for one in parts)]
        for name in ("steps", "orders", "times")
    )
    columns = [
        [*chained(each)] for each in zip(*(one.columns for one in parts), strict=True)
    ]
    return MetricRows(parts[0].keys, steps, columns, orders, times)
