"""Stretches of a large file, which several workers read at once.

A file of which each line, or other record, means the same by itself is cut into stretches of some
megabytes. Workers take them by turns and read each apart: with what the beginning of the file says,
and knowing nothing of what lies between. Here the file's source goes through them in their order.
It reads the bytes between two stretches itself, then checks whether the next stretch means the same
after all that has been read: whether no step is repeated or has other keys, and whether the file is
unchanged. If so, it goes on behind the stretch as if it had read it itself; if not, it reads it
itself. So the result depends neither on how a file was cut nor on workers.

A stretch begins with a record that has another step than the one before: one step is often written
in several records, which belong together.
"""

from __future__ import annotations

import os
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from verl_tui import debug_log
from verl_tui.records import SourceStatus, Unreadable
from verl_tui.sources.files.tail import CHUNK, opened
from verl_tui.sources.formats.format import SeparableReader
from verl_tui.sources.packing import packed, unpacked
from verl_tui.sources.parts import LONGEST_OPENING, has_parts
from verl_tui.sources.source import FileSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from verl_tui.records import Record
    from verl_tui.sources.formats.format import PartedFormat, ReadAt
    from verl_tui.sources.formats.placed import Placed
    from verl_tui.sources.source import Source
    from verl_tui.sources.source_reader import SourceReader

_MOST_UNREADABLE = 1000
"""Unreadable lines of a stretch from which on it is not worth sending."""
_LAST = 256
"""Bytes by which the end of a stretch is known again."""


class Cuts(NamedTuple):
    """How a file is cut."""

    path: Path
    format: PartedFormat
    head: SeparableReader
    """The reader of the file's first bytes."""
    end: int
    """Bytes that are cut: those of the file when it was looked at."""
    first: int = CHUNK
    """Bytes at its beginning that are no part of a stretch."""
    size: int = 4 * 2**20
    """Bytes of a stretch, without the rest of its last record."""
    piece: int = CHUNK
    """Bytes whose records are handed on at once."""

    @property
    def stretches(self) -> int:
        """How many stretches there are."""
        return max(0, -((self.first - self.end) // self.size))

    def begin(self, number: int) -> int:
        """Return the place from which on a stretch may begin, which is the end of the one before
        it.
        """
        return min(self.first + number * self.size, self.end)


def cuts_of(source: Source, size: int) -> Cuts | None:
    """Return how a source's file can be cut, None where its lines depend on those before.

    Args:
        source: Has read nothing yet.
        size: Bytes of its file.
    """
    if not isinstance(source, FileSource) or not has_parts(source.format, source.path):
        return None
    head = source.format.reader(source.path)
    if not source.is_single or not isinstance(head, SeparableReader):
        return None
    at = 0
    try:
        with opened(source.path) as file:
            while at < LONGEST_OPENING:
                data = _read(file.fileno(), at, CHUNK)
                if not data:
                    break
                head.feed(data)
                at += len(data)
                if source.format.parts.suffices(head):
                    break
    except OSError:
        return None
    if head.apart(at) is None:
        return None
    return Cuts(source.path, source.format, head, size, first=at, piece=source.chunk)


class LogStretch(NamedTuple):
    """The records of a stretch, and their reader."""

    start: int
    stop: int
    """The place behind it."""
    last: bytes
    """Its last bytes."""
    reader: SeparableReader
    pieces: tuple[tuple[int, bytes], ...]
    """Its records, some at a time and packed, each with the place up to which they go."""


class StretchReader:
    """Reads some of the stretches of a file, in a worker."""

    def __init__(self, cuts: Cuts, numbers: Iterable[int]) -> None:
        self._cuts = cuts
        self._numbers = deque(numbers)

    def read(self) -> tuple[tuple[LogStretch | None], bool]:
        """Return the next stretch, None where it has to be read by who knows all that lies before,
        and whether there are more.
        """
        number = self._numbers.popleft()
        with opened(self._cuts.path) as file:
            found = self._stretch(partial(_read, file.fileno()), number)
        return (found,), bool(self._numbers)

    def status(self) -> SourceStatus:
        """Return nothing but whose stretches they are."""
        return SourceStatus(str(self._cuts.path), self._cuts.format.name)

    def _stretch(self, read: ReadAt, number: int) -> LogStretch | None:
        start, data = self._records(read, number)
        trial = self._cuts.head.apart(start)
        at = trial.stretch_start(data) if trial is not None else None
        if at is None:
            return None
        reader = self._cuts.head.apart(start + at)
        if reader is None:
            return None
        if number + 1 == self._cuts.stretches:
            data = data[: at + reader.whole(data[at:])]
        pieces = []
        for begin in range(at, len(data), self._cuts.piece):
            piece = data[begin : begin + self._cuts.piece]
            records = reader.feed(piece)
            pieces.append((start + begin + len(piece), packed(records)))
            if not reader.stands_alone or _unreadable(records) > _MOST_UNREADABLE:
                return None
        last = data[max(at, len(data) - _LAST) :]
        return LogStretch(start + at, start + len(data), last, reader, tuple(pieces))

    def _records(self, read: ReadAt, number: int) -> tuple[int, bytes]:
        """Return the bytes of the records that begin in a stretch, and where they begin; none where
        a record is too long.
        """
        cuts = self._cuts
        begin = self._cuts.begin(number)
        end = self._cuts.begin(number + 1)
        start = cuts.format.parts.begin(read, begin, end)
        stop = cuts.format.parts.begin(read, end, min(end + cuts.size, cuts.end))
        if start is None or (stop is None and end < cuts.end):
            return end, b""
        return start, read(start, (stop or end) - start)


def _read(descriptor: int, at: int, count: int) -> bytes:
    return os.pread(descriptor, count, at)


def _unreadable(records: Iterable[Record]) -> int:
    return sum(isinstance(one, Unreadable) for one in records)


class StretchedSource:
    """Stands in a reader for a source whose stretches workers read, until their last one."""

    def __init__(
        self,
        reader: SourceReader,
        source: FileSource,
        cuts: Cuts,
        ask: Callable[[int], object],
    ) -> None:
        """Begin with a source that has read nothing yet.

        Args:
            reader: Has the source.
            source: The source itself.
            cuts: How its file is cut.
            ask: Returns a stretch by its number, None where there is none; each once, in their
                order.
        """
        self.path = source.path
        self._reader = reader
        self._source = source
        self._cuts = cuts
        self._ask = ask
        self._asked = 0
        """Stretches that have been asked for."""
        self._here = cuts.first
        """The place up to which the source reads itself."""
        self._stretch: LogStretch | None = None
        """The stretch that comes next."""
        self._pieces: deque[tuple[int, bytes]] = deque()
        """Records that the source has skipped and that are still to be handed on."""
        self._placed: Placed | None = None
        """Puts these in their place."""
        self._handed_on = 0
        """The position up to which they have been handed on."""

    def read(self) -> tuple[tuple[Record, ...], bool]:
        """Return the next records, and whether more wait."""
        while not self._pieces:
            if self._source.offset < self._here:
                return self._read_here()
            if self._stretch is not None:
                self._pass_over(self._stretch)
            elif self._asked < self._cuts.stretches:
                self._next()
            else:
                self._reader.source = self._source
                return self._source.read()
        self._handed_on, data = self._pieces.popleft()
        assert self._placed is not None
        return self._source.counted(map(self._placed.of, unpacked(data))), True

    def finish(self) -> tuple[Record, ...]:
        """Return nothing: more is to come."""
        return ()

    def status(self) -> SourceStatus:
        """Return how the source was doing when it gave what was taken last."""
        status = self._source.status()
        if self._pieces:
            status = status._replace(bytes_read=self._handed_on)
        return status

    def _read_here(self) -> tuple[tuple[Record, ...], bool]:
        """Return the next records that the source reads itself; where it gets no further, or has to
        begin anew, it goes on alone.
        """
        before = self._source.offset
        records, more = self._source.read_until(self._here)
        if not more or self._source.offset <= before:
            self._reader.source = self._source
        return records, more

    def _next(self) -> None:
        """Ask for the next stretch; where there is none, it is read here."""
        found = self._ask(self._asked)
        self._asked += 1
        if isinstance(found, LogStretch):
            self._stretch = found
            self._here = found.start
        else:
            self._stretch = None
            self._here = self._cuts.begin(self._asked)

    def _pass_over(self, stretch: LogStretch) -> None:
        """Go on behind a stretch as if it had been read here, or else have it read here."""
        self._stretch = None
        if self._source.offset == stretch.start:
            self._placed = self._source.pass_over(
                stretch.stop, stretch.last, stretch.reader
            )
            if self._placed is not None:
                self._pieces.extend(stretch.pieces)
                return
        debug_log.note("stretch read here", path=self.path, start=stretch.start)
        self._here = stretch.stop
