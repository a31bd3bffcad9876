"""The end of a long log: its newest steps without reading those before.

Read are its beginning, for settings and the length of the run, and a number of bytes at its end.
Only logs whose records state their steps can be read so; the others say so once they were read.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from verl_tui.records import MetricRows, Progress, Restart, Settings
from verl_tui.sources.files.tail import CHUNK, Chunk, Tail, opened
from verl_tui.sources.formats import HEAD, filelogger, tutorial
from verl_tui.sources.formats.console import decoder as console
from verl_tui.sources.formats.lines import LineReader
from verl_tui.sources.source import FileSource

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from verl_tui.records import Record
    from verl_tui.sources.formats.format import Format

FORMATS = (filelogger.name, tutorial.name, console.name)
"""Formats that can be read from a line in their middle on."""
_BEGUN = 2
"""Steps before the first that is taken as whole: the one that is cut, and one before it that
records without a step of their own may have been given.
"""


class EndTail(Tail):
    """Reads a file from the first line that begins within a number of bytes before its end."""

    def __init__(self, path: Path, wanted: int) -> None:
        super().__init__(path)
        self.start = 0
        """The byte that is read first."""
        self._wanted = wanted
        self._placed = False

    def read(self, limit: int = CHUNK) -> Chunk:
        """Read at most `limit` new bytes.

        Raises:
            OSError: The file is gone or may not be read.
        """
        if not self._placed:
            self.start = self.offset = self._line_start()
            self._placed = True
        return super().read(limit)

    def _line_start(self) -> int:
        """Return where to begin; the end where no line begins among the bytes wanted."""
        with opened(self.path) as file:
            size = os.fstat(file.fileno()).st_size
            at = max(0, size - self._wanted - 1)
            if not at:
                return 0
            while at < size:
                data = os.pread(file.fileno(), CHUNK, at)
                found = data.find(b"\n")
                if found >= 0:
                    return at + found + 1
                at += len(data) or size
        return size


class EndSource(FileSource):
    """The beginning of a log, for what holds for the whole run, and its end."""

    def __init__(self, path: Path, format: Format, ordinal: int, wanted: int) -> None:
        """Read nothing yet.

        Args:
            path: A log of one of `FORMATS`.
            format: Its format.
            ordinal: Its place among the run's sources.
            wanted: Bytes to read at its end.
        """
        self._end = EndTail(path, wanted)
        super().__init__(path, format, ordinal, tail=self._end)
        self._headed = False
        self._head_size = 0
        self._steps: list[int] = []
        """The first different steps of its rows, in the order of the file."""
        self._estimated = False
        self._torn = False
        """True if the log went back to an earlier step where the end begins."""

    @property
    def start(self) -> int:
        """The byte at which its end begins; 0 if the whole file is read."""
        return self._end.start

    @property
    def cost(self) -> int:
        """Bytes read so far."""
        return self._head_size + max(0, self._end.offset - self._end.start)

    @property
    def complete_from(self) -> int | None:
        """The first step of which nothing lies before the part that is read, None where that is
        not known.
        """
        known = len(self._steps) > _BEGUN and not self._torn
        return self._steps[_BEGUN] if known else None

    @property
    def has_rows(self) -> bool:
        """True if there were numbers in the part that is read."""
        return bool(self._steps)

    @property
    def needs_beginning(self) -> bool:
        """True if its steps depend on lines before the part that is read."""
        reader = self._reader
        return self._estimated or (isinstance(reader, LineReader) and reader.counts_steps)

    def read(self) -> tuple[tuple[Record, ...], bool]:
        """Return the records of the next bytes, and whether more wait."""
        records, more = super().read()
        self._note_steps(records)
        if not self._headed:
            self._headed = True
            records = (*self._beginning(), *records)
        return records, more

    def finish(self) -> tuple[Record, ...]:
        """Return what only waits for its end."""
        records = super().finish()
        self._note_steps(records)
        return records

    def _note_steps(self, records: Sequence[Record]) -> None:
        for record in records:
            if isinstance(record, MetricRows) and record.progress:
                self._estimated = self._estimated or record.estimated
                self._note_rows(record)
            elif isinstance(record, Restart) and record.step is None:
                self._torn = self._torn or len(self._steps) <= _BEGUN

    def _note_rows(self, rows: MetricRows) -> None:
        if len(self._steps) > _BEGUN:
            return
        for step in dict.fromkeys(rows.steps):
            if step not in self._steps:
                self._steps.append(step)

    def _beginning(self) -> Iterator[Record]:
        """Yield the settings in the file's beginning, and the length of the run."""
        with opened(self.path) as file:
            data = file.read(min(HEAD, self.start))
        self._head_size = len(data)
        for record in self.format.reader(self.path).feed(data[: data.rfind(b"\n") + 1]):
            if isinstance(record, Settings):
                yield record
            elif isinstance(record, Progress) and (record.total or record.per_epoch):
                yield replace(record, step=None, elapsed=None)
