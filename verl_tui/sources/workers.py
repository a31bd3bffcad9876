"""Reads large logs on all cores: sources are sent to worker processes and come back.

A source (its place in a file, its decoder, and what both remember) that has much to read is sent to
a worker before it begins, and read there to the present end of its file. It yields the same records
in the same turns as if it were read here, and finally comes back itself, so that the file is
followed as if the source had never been away.

- A file that is more than a worker's share, and can be cut, is read by several of them, in
  stretches (`verl_tui.sources.stretches`).
- A worker that dies, or a source that cannot travel, costs time and nothing else: the source as it
  was before it left skips the turns that have been taken, and goes on here.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from verl_tui import debug_log
from verl_tui.sources.files.compressed import is_compressed
from verl_tui.sources.host.cores import usable_cores
from verl_tui.sources.packing import packed
from verl_tui.sources.source import FileSource
from verl_tui.sources.stretches import StretchedSource, StretchReader, cuts_of
from verl_tui.sources.worker_process import WorkerFailure, WorkerProcess

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from verl_tui.records import Record, SourceStatus
    from verl_tui.sources.source_reader import SourceReader
    from verl_tui.sources.stretches import Cuts

LEAST = 32 * 2**20
"""Bytes of all sources together from which on workers read them."""
_SHARE = 16 * 2**20
"""Bytes for which one more worker is started: it takes as long to start as some megabytes take to
read.
"""
_TRAVELS = 2**20
"""Bytes from which on a source is worth sending to a worker."""
_PACKED = 8
"""Bytes of a log in one byte of a compressed one: heuristic."""
_MOST = 8
"""Workers where the user has set no number: one thread has to take in what they read."""


@contextmanager
def away(readers: Sequence[SourceReader], most: int | None) -> Iterator[None]:
    """Have sources that have much to read in workers meanwhile, where that pays.

    Args:
        readers: The sources, in the order in which they are asked for.
        most: How many workers there may be, None for what suits the machine.
    """
    workers: list[WorkerProcess] = []
    try:
        _send(readers, most, workers)
    except OSError as error:
        debug_log.note_error("starting a worker", error)
    try:
        yield
    finally:
        for worker in workers:
            worker.end()


def most_workers(most: int | None) -> int:
    """Return how many workers there may be at a time.

    Args:
        most: The number that the user has set, None for what suits the machine.
    """
    if most is not None:
        return most
    cores = usable_cores()
    return min(cores, _MOST) if cores > 1 else 0


def is_away(reader: SourceReader) -> bool:
    """Return whether a source is in a worker now."""
    return isinstance(reader.source, _AwaySource | StretchedSource)


def _send(
    readers: Sequence[SourceReader], most: int | None, workers: list[WorkerProcess]
) -> None:
    """Send sources to workers, and add these to a list.

    Raises:
        OSError: A worker cannot be started.
    """
    all_sizes = {reader: _size(reader) for reader in readers}
    sizes = {reader: size for reader, size in all_sizes.items() if size >= _TRAVELS}
    total = sum(sizes.values())
    if total < LEAST or most == 0:
        return
    plan = _plan(sizes, min(most_workers(most), total // _SHARE))
    _send_stretches(plan.cut, plan.cutting, workers)
    # A worker reads its sources in the order in which they are asked for.
    for share in _shares(plan.whole, plan.others):
        _send_whole(sorted(share, key=readers.index), workers)
    debug_log.note("workers", started=len(workers), stretched=len(plan.cut))


class _Plan(NamedTuple):
    """The distribution of sources over workers."""

    cut: Mapping[SourceReader, Cuts]
    """Files that are read in stretches, by as many workers."""
    cutting: int
    whole: Mapping[SourceReader, int]
    """Sources that travel as a whole, with their sizes, to as many workers."""
    others: int


def _plan(sizes: Mapping[SourceReader, int], workers: int) -> _Plan:
    """Return which sources are read in stretches, and which travel.

    The few sources beside the former are read here.
    """
    total = sum(sizes.values())
    cut = {}
    whole = {}
    for reader, size in sizes.items():
        is_large = size * workers > total
        cuts = cuts_of(reader.source, size) if is_large else None
        if cuts:
            cut[reader] = cuts
        else:
            whole[reader] = size
    rest = sum(whole.values())
    others = min(len(whole), max(workers * rest // total, int(rest >= _SHARE)))
    if cut and workers - others > 1:
        return _Plan(cut, workers - others, whole, others)
    return _Plan({}, 0, sizes, min(workers, len(sizes)))


def _shares(
    sizes: Mapping[SourceReader, int], count: int
) -> Sequence[Sequence[SourceReader]]:
    """Return as many shares of sources, each of about as many bytes."""
    shares: list[list[SourceReader]] = [[] for _ in range(count)]
    if not count:
        return shares
    loads = [0] * count
    for reader in sorted(sizes, key=sizes.__getitem__, reverse=True):
        at = loads.index(min(loads))
        loads[at] += sizes[reader]
        shares[at].append(reader)
    return shares


def _size(reader: SourceReader) -> int:
    """Return about how many bytes a source has that is to be read for the first time; 0 where it
    cannot travel.
    """
    if reader.delivered is not None or type(reader.source) is not FileSource:
        return 0
    path = reader.source.path
    try:
        size = path.stat().st_size
    except OSError:
        return 0
    if not is_compressed(path):
        return size
    return size * _PACKED


def _send_stretches(
    cut: Mapping[SourceReader, Cuts], count: int, workers: list[WorkerProcess]
) -> None:
    """Have files read in stretches, each of them by as many workers.

    Raises:
        OSError: A worker cannot be started.
    """
    for first in range(count):
        parts = [
            StretchReader(cuts, range(first, cuts.stretches, count))
            for cuts in cut.values()
        ]
        worker = WorkerProcess()
        workers.append(worker)
        worker.send(list(map(packed, parts)))
    started = tuple(workers)
    for at, (reader, cuts) in enumerate(cut.items()):
        source = reader.source
        assert isinstance(source, FileSource)
        ask = partial(_asked, started, at)
        reader.source = StretchedSource(reader, source, cuts, ask)


def _asked(workers: Sequence[WorkerProcess], file: int, number: int) -> object:
    """Return a stretch of a file; None where its worker does not have it."""
    answer = workers[number % len(workers)].answer(file)
    if isinstance(answer, WorkerFailure):
        debug_log.note("stretch read without a worker", why=answer.why)
        return None
    return answer.found[0]


def _send_whole(readers: Sequence[SourceReader], workers: list[WorkerProcess]) -> None:
    """Have a worker read sources, as far as they can travel.

    Raises:
        OSError: It cannot be started.
    """
    travelling: dict[SourceReader, bytes] = {}
    for reader in readers:
        try:
            travelling[reader] = packed(reader.source)
        except Exception as error:  # noqa: BLE001, PERF203 - it is read here, unpacked
            debug_log.note_error(f"sending {reader.source.path} to a worker", error)
    worker = WorkerProcess()
    workers.append(worker)
    worker.send(list(travelling.values()))
    for number, reader in enumerate(travelling):
        reader.source = _AwaySource(reader, worker, number)


class _AwaySource:
    """Stands in a reader for a source that a worker reads, until it comes home."""

    def __init__(
        self, reader: SourceReader, worker: WorkerProcess, number: int
    ) -> None:
        self.path = reader.source.path
        self._reader = reader
        self._source = reader.source
        """The source as it was before it left."""
        self._worker = worker
        self._number = number
        self._taken = 0
        """Turns that have been taken."""
        self._status = self._source.status()

    def read(self) -> tuple[tuple[Record, ...], bool]:
        """Return the next records, and whether more wait; where the worker has none, read here."""
        answer = self._worker.answer(self._number)
        if isinstance(answer, WorkerFailure):
            return self._read_here(answer.why)
        self._taken += 1
        self._status = answer.status
        if answer.home is not None:
            self._reader.source = answer.home
        return answer.found, answer.home is None

    def finish(self) -> tuple[Record, ...]:
        """Return nothing: more is to come."""
        return ()

    def status(self) -> SourceStatus:
        """Return how the source was doing when it gave what was taken last."""
        return self._status

    def _read_here(self, why: str) -> tuple[tuple[Record, ...], bool]:
        """Go on without the worker."""
        debug_log.note("read without a worker", path=self.path, why=why)
        self._reader.source = self._source
        for _ in range(self._taken):
            self._source.read()
        return self._source.read()
