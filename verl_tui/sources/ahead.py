"""Reads large logs on all cores: what is to be read for the first time is decoded ahead.

- A file whose lines mean the same by themselves is decoded in parts, by all workers. Here its
  source takes what they found, part by part, as if it had decoded it: so rows are counted, and
  restarts found, in the order of the file.
- Any other source is copied to a worker, reads some turns there, and comes back with what it has
  read, until it has come to the present end of its file.
- A worker that dies, or a source that cannot be copied, costs time and nothing else: what is
  missing is read here.
"""

from __future__ import annotations

import os
from collections import deque
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from verl_tui import debug_log
from verl_tui.sources.fields.row_batcher import joined
from verl_tui.sources.files.compressed import is_compressed
from verl_tui.sources.files.tail import CHUNK, opened
from verl_tui.sources.formats.lines import (
    DecodedPart,
    items_of,
    line_begin,
    standing_of,
)
from verl_tui.sources.host.processes import usable_cores
from verl_tui.sources.pool import Pool
from verl_tui.sources.source import SMALL, FileSource

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from concurrent.futures import Future
    from pathlib import Path

    from verl_tui.records import Record, SourceStatus
    from verl_tui.sources.formats.format import Decoder
    from verl_tui.sources.source_reader import SourceReader

LEAST = 32 * 2**20
"""Bytes of all sources together from which on workers read them."""
_SHARE = 16 * 2**20
"""Bytes for which one more worker is started: it takes as long to start as some megabytes take to
read.
"""
_WORTH = 2**20
"""Bytes from which on a source is worth copying to a worker."""
_MOST = 8
"""Workers where the user has set no number: one thread has to take in what they read."""
_FIRST = 64 * 1024
"""Bytes at the beginning of a file that are read here, to learn whether lines stand by
themselves.
"""
_AHEAD = 4
"""Parts for each worker that are decoded before they are asked for."""
_TURNS = 8
"""Turns that a source reads in a worker at once."""
_PART = 2**20
"""Bytes that a worker decodes at once."""
_LAST = 256
"""Bytes by which the end of a part is known again."""
_LONGEST = 4 * 2**20
"""Bytes of the last line of a part, at most."""

_Turn = tuple["tuple[Record, ...]", "SourceStatus"]
"""Records, and how the source was doing then."""


@contextmanager
def ahead(readers: Sequence[SourceReader], most: int | None) -> Iterator[None]:
    """Have workers read meanwhile what is to be read for the first time, where that pays.

    Args:
        readers: The sources.
        most: How many workers there may be, None for what suits the machine.
    """
    sizes = {reader: _size(reader) for reader in readers}
    large = [reader for reader, size in sizes.items() if size >= _WORTH]
    total = sum(map(sizes.__getitem__, large))
    workers = min(most_workers(most), total // _SHARE) if total >= LEAST else 0
    if not workers:
        yield
        return
    pool = Pool(workers)
    debug_log.note("workers", started=workers, sources=len(large))
    parts = max(1, _AHEAD * workers // len(large))
    try:
        for reader in large:
            assert isinstance(reader.source, FileSource)
            turns = _turns(reader.source, sizes[reader], pool, parts)
            reader.source = _AheadSource(reader, reader.source, turns)
        yield
    finally:
        pool.end()


def most_workers(most: int | None) -> int:
    """Return how many workers there may be at a time.

    Args:
        most: The number that the user has set, None for what suits the machine.
    """
    if most is not None:
        return most
    cores = usable_cores()
    return min(cores, _MOST) if cores > 1 else 0


def is_ahead(reader: SourceReader) -> bool:
    """Return whether workers read a source now."""
    return isinstance(reader.source, _AheadSource)


def _size(reader: SourceReader) -> int:
    """Return how many bytes a source has that is to be read for the first time; 0 where it cannot
    be copied: what is being decompressed cannot.
    """
    source = reader.source
    if reader.delivered is not None or type(source) is not FileSource:
        return 0
    try:
        return 0 if is_compressed(source.path) else source.path.stat().st_size
    except OSError:
        return 0


class _AheadSource:
    """Stands in a reader for a source that workers read."""

    def __init__(
        self,
        reader: SourceReader,
        source: FileSource,
        turns: Generator[_Turn, None, FileSource],
    ) -> None:
        """Read nothing yet.

        Args:
            reader: Has the source.
            source: The source.
            turns: What it reads up to the present end of its file, turn by turn; returns the source
                as it is then.
        """
        self.path = source.path
        self._reader = reader
        self._turns = turns
        self._status = source.status()

    def read(self) -> tuple[tuple[Record, ...], bool]:
        """Return the next records, and whether more wait."""
        try:
            records, self._status = next(self._turns)
        except StopIteration as end:
            self._reader.source = end.value
            return self._reader.source.read()
        return records, True

    def finish(self) -> tuple[Record, ...]:
        """Return nothing: more is to come."""
        return ()

    def status(self) -> SourceStatus:
        """Return how the source was doing when it gave what was taken last."""
        return self._status


def _turns(
    source: FileSource, size: int, pool: Pool, parts: int
) -> Generator[_Turn, None, FileSource]:
    """Yield what a source reads, decoded ahead.

    Args:
        source: Has read nothing yet.
        size: Bytes of its file.
        pool: The workers.
        parts: Parts that are asked for before they are needed.
    """
    if source.is_alone:
        records, _ = source.read_until(_FIRST)
        yield records, source.status()
        if source.standing_decoder is not None:
            return (yield from _by_parts(source, size, pool, parts))
    return (yield from _by_turns(source, pool))


def _by_turns(source: FileSource, pool: Pool) -> Generator[_Turn, None, FileSource]:
    """Yield what a copy of a source reads in a worker, some turns at a time."""
    more = True
    further = pool.submit(_some_turns, source)
    while more:
        try:
            turns, more, source = further.result()
        except Exception as error:  # noqa: BLE001 - the source itself has read as far
            debug_log.note_error(f"reading {source.path} in a worker", error)
            break
        if more:
            further = pool.submit(_some_turns, source)
        yield from turns
    return source


def _some_turns(source: FileSource) -> tuple[list[_Turn], bool, FileSource]:
    """Return what a source reads in some turns, whether more waits, and the source behind it."""
    turns: list[_Turn] = []
    more = True
    while more and len(turns) < _TURNS:
        records, more = source.read()
        turns.append((records, source.status()))
    return turns, more, source


def _by_parts(
    source: FileSource, size: int, pool: Pool, parts: int
) -> Generator[_Turn, None, FileSource]:
    """Yield what a source takes of the parts of its file; what cannot be taken it reads itself."""
    for stop, part in _parts(source, size, pool, parts):
        if not (yield from _read_here(source, stop if part is None else part.start)):
            return source
        records = None if part is None else source.take(part)
        if records is not None:
            yield records, source.status()
    if source.standing_decoder is None:
        return (yield from _by_turns(source, pool))
    return source


def _parts(
    source: FileSource, size: int, pool: Pool, count: int
) -> Iterator[tuple[int, DecodedPart | None]]:
    """Yield the parts of a file, as long as a source's further lines may be decoded apart: about
    where each ends, and None where no worker has decoded it.
    """
    waiting: deque[tuple[int, Future[DecodedPart | None]]] = deque()
    at = source.offset
    while True:
        decoder = source.standing_decoder
        while decoder is not None and len(waiting) < count and at + CHUNK <= size:
            # As with what is read here: at first all files as much at a time.
            stop = at + (CHUNK if at < SMALL else min(_PART, size - at))
            future = pool.submit(decoded_part, source.path, at, stop, decoder)
            at = stop
            waiting.append((at, future))
        if not waiting:
            return
        stop, future = waiting.popleft()
        try:
            part = future.result()
        except Exception as error:  # noqa: BLE001 - it is read here
            debug_log.note_error(f"decoding {source.path} in a worker", error)
            part = None
        yield stop, part


def _read_here(source: FileSource, place: int) -> Generator[_Turn, None, bool]:
    """Yield what a source reads itself; return whether it has come to a place, without having had
    to begin anew.
    """
    while (before := source.offset) < place:
        records, more = source.read_until(place)
        yield records, source.status()
        if not more or source.offset <= before:
            return False
    return True


def decoded_part(
    path: Path, begin: int, end: int, decoder: Decoder
) -> DecodedPart | None:
    """Return the lines that begin between two places of a file, None where there are none, or where
    they depend on more than the decoder knows.

    Raises:
        OSError: The file cannot be read.
    """
    with opened(path) as file:
        read = partial(_read, file.fileno())
        start = line_begin(read, begin, end)
        stop = line_begin(read, end, end + _LONGEST)
        if start is None or stop is None:
            return None
        data = read(start, stop - start)
    standing = standing_of(decoder)
    items = [*joined(items_of(decoder, data, 1))]
    if standing is None or standing_of(decoder) is None:
        return None
    stop, count = start + len(data), data.count(b"\n")
    return DecodedPart(start, stop, data[-_LAST:], items, count, standing, decoder)


def _read(descriptor: int, at: int, count: int) -> bytes:
    return os.pread(descriptor, count, at)
