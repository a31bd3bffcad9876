"""Read many sources, a little of each in turn; large ones that are read for the first time in
workers.

- First of all comes the run that is shown: with two hundred, it is there at once.
- Of several large sources each is copied to a worker, reads some turns there, and comes back with
  what it has read, until it has come to the present end of its file.
- A worker that dies, or a source that cannot be copied, costs time and nothing else: what is
  missing is read here.
"""

from __future__ import annotations

from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING

from verl_tui import debug_log
from verl_tui.sources.ends import LONG
from verl_tui.sources.files.compressed import is_compressed
from verl_tui.sources.files.paths import file_size
from verl_tui.sources.host.processes import usable_cores
from verl_tui.sources.pool import Pool
from verl_tui.sources.source import FileSource

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

    from verl_tui.records import Batch, Record, SourceStatus
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
_TURNS = 8
"""Turns that a source reads in a worker at once."""
_ROUNDS = 8
"""One in so many rounds belongs to all sources: a log that grows faster than it is read must not
hold up all others.
"""

Turn = tuple["SourceReader", "Batch | None", bool]
"""A source, its batch from this turn, and whether more of it waits."""
_Read = tuple["tuple[Record, ...]", "SourceStatus"]
"""Records, and how the source was doing then."""


def in_turn(
    readers: Iterable[SourceReader],
    read: Callable[[SourceReader], tuple[Batch | None, bool]],
    workers: int | None,
    shown: Callable[[], str | None] = lambda: None,
) -> Iterator[Turn]:
    """Read sources to their present ends, a little of each in turn; those that are read for the
    first time and are large in workers.

    Args:
        readers: The sources.
        read: Reads a little of one.
        workers: How many workers there may be, None for what suits the machine.
        shown: Returns the name of the run that is shown, None where there is none.
    """
    waiting = list(readers)
    with _ahead([one for one in waiting if not _stays(one, shown())], workers):
        for number in count(1):
            ended = set()
            for reader in _round(waiting, shown() if number % _ROUNDS else None):
                batch, more = read(reader)
                if not more:
                    ended.add(reader)
                yield reader, batch, more
            waiting = [one for one in waiting if one not in ended]
            if not waiting:
                return


def _stays(reader: SourceReader, shown: str | None) -> bool:
    """Return whether a source is to be read before all others, which needs it here: a long log is
    seen as a preview meanwhile.
    """
    short = reader.file is None or file_size(reader.file) < LONG
    return reader.run == shown and short


def _round(
    waiting: Sequence[SourceReader], shown: str | None
) -> Sequence[SourceReader]:
    """Return the sources of the next round: those of the shown run as long as there are some.

    Batches that workers send meanwhile from other sources would have to be kept, so sources in
    workers wait for their turn.
    """
    own = [
        one
        for one in waiting
        if one.run == shown and not isinstance(one.source, _AheadSource)
    ]
    return own or waiting


@contextmanager
def _ahead(readers: Sequence[SourceReader], most: int | None) -> Iterator[None]:
    """Have workers read meanwhile what is to be read for the first time, where that pays.

    Args:
        readers: The sources.
        most: How many workers there may be, None for what suits the machine.
    """
    sizes = {reader: size for reader in readers if (size := _size(reader)) >= _WORTH}
    total = sum(sizes.values())
    if most is None:
        cores = usable_cores()
        most = min(cores, _MOST) if cores > 1 else 0
    workers = min(most, total // _SHARE, len(sizes)) if total >= LEAST else 0
    if not workers or len(sizes) < 2:  # a single one is here as soon without
        yield
        return
    pool = Pool(workers)
    debug_log.note("workers", started=workers, sources=len(sizes))
    try:
        for reader in sizes:
            assert isinstance(reader.source, FileSource)
            turns = _turns(reader.source, pool)
            reader.source = _AheadSource(reader, reader.source, turns)
        yield
    finally:
        pool.end()


def _size(reader: SourceReader) -> int:
    """Return how many bytes a source has that is to be read for the first time; 0 where it cannot
    be copied: what is being decompressed cannot.
    """
    source = reader.source
    if reader.delivered is not None or type(source) is not FileSource:
        return 0
    return 0 if is_compressed(source.path) else file_size(source.path)


class _AheadSource:
    """Stands in a reader for a source that workers read."""

    def __init__(
        self,
        reader: SourceReader,
        source: FileSource,
        turns: Generator[_Read, None, FileSource],
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


def _turns(source: FileSource, pool: Pool) -> Generator[_Read, None, FileSource]:
    """Yield what a copy of a source, which has read nothing yet, reads in a worker, some turns at a
    time.
    """
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


def _some_turns(source: FileSource) -> tuple[list[_Read], bool, FileSource]:
    """Return what a source reads in some turns, whether more waits, and the source behind it."""
    turns: list[_Read] = []
    more = True
    while more and len(turns) < _TURNS:
        records, more = source.read()
        turns.append((records, source.status()))
    return turns, more, source
