"""The end of a long log, read without what lies before it: for answers, and to be shown until all
has been read.

Only logs whose lines state their steps can be read in this way; for others, `needs_beginning` is
true after reading.

The exact reading uses nothing of what was shown before: such a run ends up like any other.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from verl_tui import debug_log
from verl_tui.records import (
    Batch,
    MetricRows,
    Preview,
    Progress,
    Record,
    Records,
    Settings,
)
from verl_tui.sources.fields.sample_figures import SampleFigures
from verl_tui.sources.files import Chunk, Source, Tail, file_size, opened
from verl_tui.sources.formats import HEAD
from verl_tui.sources.source import FIRST, FileSource
from verl_tui.sources.source_reader import source_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from verl_tui.sources.discovery.found import FoundFile
    from verl_tui.sources.formats.format import Format

LONG = 8 * 2**20
"""Bytes from which a log is previewed: a shorter one is read in a fraction of a second."""
_END = 2**19
"""Bytes shown of the end of a long log: some hundred steps, a dozen of a wordy one."""
_CUT = 2
"""Steps at the beginning of a part that may be incomplete."""
_WINDOW = 16 * 1024
"""Bytes in which the next line is looked for at once."""


class EndSource(FileSource):
    """The beginning of a log, for facts about the whole run, and its end: its newest steps."""

    def __init__(self, path: Path, format: Format, wanted: int) -> None:
        """Read nothing yet.

        Args:
            path: A log.
            format: Its format.
            wanted: Bytes to read at its end.
        """
        self._end = Tail(path)
        super().__init__(path, format, tail=self._end)
        self._wanted = wanted
        self._read_before = 0
        """Bytes read before its end."""
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
        return max(steps[: _CUT + 1]) if len(steps) > _CUT else None

    @property
    def needs_beginning(self) -> bool:
        """True if its steps depend on records before the part that is read."""
        return self._is_estimated or self._reader.needs_beginning

    def counted(self, records: Iterable[Record]) -> Records:
        """Count records of the end, and note their steps; return them behind the facts about the
        whole run.
        """
        kept = super().counted(records)
        for record in kept:
            if isinstance(record, MetricRows) and record.progress:
                self._is_estimated |= record.estimated
                self._rows.update(zip(record.orders, record.steps, strict=True))
        facts, self._facts = self._facts, []
        return (*facts, *kept)

    def _next(self) -> Chunk:
        """Find where its end begins: with a line."""
        if not self._end.size:
            size = self.path.stat().st_size
            self.start = self._end.offset = self._line_at(size - self._wanted, size)
            if self.start:
                opening = self._at(0, HEAD)
                self.first = opening[:FIRST]
                self._facts += _of_the_run(self._reader.feed(opening))
                self._reader = self._format.reader(self.path)
                self._reader.skip()
        return super()._next()

    def _line_at(self, at: int, stop: int) -> int:
        """Return where the first line begins at a place or behind it, `stop` where none does."""
        at -= 1
        while 0 <= at < stop and (data := self._at(at, _WINDOW)):
            found = data.find(b"\n") + 1
            if found:
                return min(at + found, stop)
            at += len(data)
        return max(0, min(at, stop))

    def _at(self, at: int, count: int) -> bytes:
        with opened(self.path) as file:
            data = os.pread(file.fileno(), count, at)
        self._read_before += len(data)
        return data


def end_source(file: FoundFile, wanted: int) -> EndSource | None:
    """Return a source of so many bytes at the end of a log, None where its lines do not state their
    steps.
    """
    if file.format is None or not file.format.reader(file.path).skip():
        return None
    return EndSource(file.path, file.format, wanted)


def _of_the_run(records: Iterable[Record]) -> Iterator[Record]:
    for record in records:
        if isinstance(record, Settings):
            yield record
        elif isinstance(record, Progress) and (record.total or record.per_epoch):
            yield record._replace(step=None, elapsed=None)


# -- previews --------------------------------------------------------------------------------------


def previews(
    fresh: Mapping[str, Sequence[FoundFile]], shown: str | None = None
) -> Iterator[Preview]:
    """Yield a preview of each run with a long log, the one that is shown first. A log that cannot
    be previewed is read as any other.

    Args:
        fresh: The files that are about to be read, by run.
        shown: The run that is shown.
    """
    long = [
        run
        for run, files in fresh.items()
        if any(file_size(one.path) > LONG and end_source(one, _END) for one in files)
    ]
    for run in sorted(long, key=lambda run: run != shown):
        try:
            yield from _preview(run, fresh[run])
        except Exception as error:  # noqa: BLE001, PERF203 - a net at the border
            debug_log.note_error(f"preview of {run}", error)


def _preview(run: str, files: Sequence[FoundFile]) -> Iterator[Preview]:
    """Yield a preview of the ends of a run's logs, none if these do not show its steps.

    The status of each source says how much of it has been read.
    """
    ends: list[Batch] = []
    for file in files:
        source = end_source(file, _END)
        if not source:
            if file_size(file.path) <= _END:
                ends.append(_read(run, file, source_of(file)))
            continue
        end = _read(run, file, source)
        if source.start:
            if source.needs_beginning or source.complete_from is None:
                return  # its steps are known only with what lies before them
            read = min(source.cost, source.start)
            end = end._replace(status=end.status._replace(bytes_read=read))
        ends.append(end)
    yield Preview(run, tuple(ends))


def _read(run: str, file: FoundFile, source: Source) -> Batch:
    """Return all records of a file's source, or of the part of it that this reads."""
    source.ordinal = file.ordinal
    records: list[Record] = []
    more = True
    while more:
        read, more = source.read()
        records += read
    records += source.finish()
    return Batch(run, source.status(), SampleFigures().complete(records))
