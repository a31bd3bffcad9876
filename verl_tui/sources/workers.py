"""Reads large logs on all cores: in worker processes, which sources travel to and come home from.

A source (its place in a file, its decoder, and what both remember) that has much to read is sent to
a worker before it begins, and read there to the present end of its file. It gives the same records
in the same turns as if it were read here, and in the end comes back itself: the file is followed
from there as if the source had never been away.

- A worker is as far ahead as its pipe holds: a screen that is slow to take records in slows the
  reading down, and memory stays small.
- A worker that dies, or a source that cannot travel, costs time and nothing else: the source as it
  was before it left passes over the turns that have been taken, and goes on here.
- A worker is a program of its own that knows nothing of a screen. It stands behind other programs,
  outside the terminal's group, so that Ctrl+C does not reach it, and ends with its pipe, whatever
  ended the app.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections import deque
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple, cast

from verl_tui import debug_log
from verl_tui.sources.files.compressed import plain
from verl_tui.sources.host.cores import usable_cores
from verl_tui.sources.packing import packed, unpacked
from verl_tui.sources.source import FileSource
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from verl_tui.records import Record, SourceStatus
    from verl_tui.sources.source import Source
    from verl_tui.sources.source_reader import SourceReader

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
_PIPE = 2**20
"""Bytes that a worker may be ahead, where the system allows it: the most that Linux does unasked
(pipe(7)).
"""
_NICE = 10
"""How far behind other programs, and behind the app, a worker stands."""
_PATIENCE = 1.0
"""Seconds that the end of a worker is waited for."""
_PROGRAM = (
    "import sys; sys.path[:] = sys.argv[1:]; from verl_tui.sources.workers import work; work()"
)
"""Program of a worker. It looks for modules where we do, never in the current directory, which may
hold anything.
"""


@contextmanager
def away(readers: Sequence[SourceReader], most: int | None) -> Iterator[None]:
    """Have sources that have much to read in workers meanwhile, where that pays.

    Args:
        readers: The sources, in the order in which they are asked for.
        most: How many workers there may be, None for what suits the machine.
    """
    workers = _workers(readers, most)
    try:
        yield
    finally:
        for worker in workers:
            worker.end()


def is_away(reader: SourceReader) -> bool:
    """Return whether a source is in a worker now."""
    return isinstance(reader.source, _AwaySource)


def _workers(readers: Sequence[SourceReader], most: int | None) -> Sequence[_Worker]:
    """Send sources to workers, and return these."""
    sizes = {reader: size for reader in readers if (size := _size(reader)) >= _TRAVELS}
    total = sum(sizes.values())
    if total < LEAST or most == 0:
        return ()
    cores = usable_cores()
    limit = most if most is not None else min(cores, _MOST) if cores > 1 else 0
    workers: list[_Worker] = []
    try:
        # A worker reads its sources in the order in which they are asked for.
        shares = _shares(sizes, min(limit, len(sizes), total // _SHARE))
        workers.extend(_Worker(sorted(share, key=readers.index)) for share in shares)
    except OSError as error:
        debug_log.note_error("starting a worker", error)
    debug_log.note("workers", started=len(workers))
    return workers


def _shares(sizes: Mapping[SourceReader, int], count: int) -> Sequence[Sequence[SourceReader]]:
    """Return as many shares of sources, each of about as many bytes."""
    shares: list[list[SourceReader]] = [[] for _ in range(count)]
    loads = [0] * count
    for reader in sorted(sizes, key=sizes.__getitem__, reverse=True) if count else ():
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
    return size if plain(path) == path else size * _PACKED


class _Answer(NamedTuple):
    """What a source gave in its turn."""

    records: tuple[Record, ...]
    status: SourceStatus
    home: Source | None
    """The source itself, once everything that lies there has been read."""


class _Failure(NamedTuple):
    """Why a source cannot be read in a worker."""

    why: str


class _Worker:
    """A worker process, and the sources that are there."""

    def __init__(self, readers: Iterable[SourceReader]) -> None:
        """Start it, and send it sources.

        Raises:
            OSError: It cannot be started.
        """
        import subprocess  # 10 ms, for large logs only

        self._process = subprocess.Popen(  # noqa: S603 - this Python, and words of ours
            [*_python(), "-c", _PROGRAM, *_search_path()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            pipesize=_PIPE,
        )
        self._answers: list[deque[_Answer | _Failure]] = []
        """By source, what has come and has not been taken."""
        self._lost: _Failure | None = None
        """Why nothing more is to come."""
        self._send(list(readers))

    def answer(self, number: int) -> _Answer | _Failure:
        """Return what a source gives in its next turn."""
        waiting = self._answers[number]
        while not waiting:
            if self._lost is not None:
                return self._lost
            try:
                # From a process of our own, over a pipe that nobody else has.
                answers = cast("IO[bytes]", self._process.stdout)
                other, answer = pickle.load(answers)  # noqa: S301
            except Exception as error:  # noqa: BLE001 - it ended at any place, or sent nonsense
                self._lost = _Failure(f"its worker has ended: {type(error).__name__}")
            else:
                self._answers[other].append(answer)
        return waiting.popleft()

    def end(self) -> None:
        """End it: it has nothing that is not here as well."""
        import subprocess

        self._process.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_PATIENCE)
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                pipe.close()  # type: ignore[union-attr]

    def _send(self, readers: Sequence[SourceReader]) -> None:
        """Have sources travel, as far as they can."""
        travelling = []
        for reader in readers:
            try:
                travelling.append(packed(reader.source))
            except Exception as error:  # noqa: BLE001 - it is read here, unpacked
                debug_log.note_error(f"sending {reader.source.path} to a worker", error)
                continue
            reader.source = _AwaySource(reader, self, len(self._answers))
            self._answers.append(deque())
        with suppress(OSError), self._process.stdin as pipe:  # type: ignore[union-attr]
            pickle.dump(travelling, pipe)


class _AwaySource:
    """Stands in a reader for a source that a worker reads, until it comes home."""

    def __init__(self, reader: SourceReader, worker: _Worker, number: int) -> None:
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
        if isinstance(answer, _Failure):
            return self._read_here(answer.why)
        self._taken += 1
        self._status = answer.status
        if answer.home is not None:
            self._reader.source = answer.home
        return answer.records, answer.home is None

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


def work() -> None:
    """Be a worker: read the sources that come over standard input in turn, and answer."""
    os.nice(_NICE)
    # From the app that has started this process, over a pipe that nobody else has.
    named = pickle.load(sys.stdin.buffer)  # noqa: S301
    sources: dict[int, bytes | Source] = dict(enumerate(named))
    with suppress(BrokenPipeError):  # the app has ended, or needs no more
        while sources:
            for number in tuple(sources):
                sys.stdout.buffer.write(_answer(sources, number))
                sys.stdout.buffer.flush()
    os._exit(0)  # without another attempt to write


def _answer(sources: dict[int, bytes | Source], number: int) -> bytes:
    """Return what a source gives in its turn, packed; a failure where it gives nothing that can be
    sent.
    """
    source = sources.pop(number)
    try:
        if isinstance(source, bytes):
            source = unpacked(source)
        records, more = source.read()
        answer = packed((number, _Answer(records, source.status(), None if more else source)))
    except Exception as error:  # noqa: BLE001 - the app reads it itself, and says what is wrong
        return packed((number, _Failure(one_line(f"{type(error).__name__}: {error}", 200))))
    if more:
        sources[number] = source
    return answer


def _python() -> list[str]:
    """Return how to run a program as we are run, and with as little before it as possible."""
    written = ["-B"] if sys.dont_write_bytecode else []
    return [sys.executable, "-I", "-S", "-X", f"utf8={sys.flags.utf8_mode}", *written]


def _search_path() -> list[str]:
    """Return where a worker looks for modules: where we do, and where we are."""
    return [*filter(None, sys.path), str(Path(__file__).parents[2])]
