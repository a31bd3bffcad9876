"""Read many sources, a little of each in turn; large ones that are read for the first time in
processes of our own, the workers.

- First of all comes the run that is shown: with two hundred, it is there at once.
- Several large sources are dealt out to workers. Each reads its own in turn and sends what it has
  read; a full pipe holds it up. At the present end of its file, a source comes back.
- A worker that fails costs time and nothing else: what it has read is read once more here.
- A worker is a program without a screen. It runs at a lower priority than other programs and
  outside the terminal's group, so that Ctrl+C does not reach it, and ends with its pipe, on Linux
  also with the thread that started it. multiprocessing would look for modules in the current
  directory first, which may hold anything, and leave a process behind that tracks others.
"""

from __future__ import annotations

import copyreg
import os
import pickle
import signal
import sys
from contextlib import suppress
from importlib import import_module
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import IO, TYPE_CHECKING, cast

from verl_tui import debug_log
from verl_tui.sources.ends import LONG
from verl_tui.sources.files.any_source import Source
from verl_tui.sources.files.compressed import is_compressed
from verl_tui.sources.files.paths import file_size
from verl_tui.sources.host.processes import usable_cores
from verl_tui.sources.source import FileSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from subprocess import Popen

    from verl_tui.records import Batch, Record, SourceStatus
    from verl_tui.sources.source_reader import SourceReader

LEAST = 32 * 2**20
"""Bytes of all sources together from which on workers read them."""
SHARE = 16 * 2**20
"""Bytes for which one more worker is started: it takes as long to start as some megabytes take to
read.
"""
_WORTH = 2**20
"""Bytes from which on a source is worth copying to a worker."""
_MOST = 8
"""Workers where the user has set no number: one thread has to take in what they read."""
_PIPE = 2**20
"""Bytes that a worker may be ahead."""
_ROUNDS = 8
"""One in so many rounds belongs to all sources: a log that grows faster than it is read must not
hold up all others.
"""
_NICE = 10
"""How much lower the priority of a worker is than that of other programs and of the app."""
_ON_PARENTS_DEATH = 1
"""PR_SET_PDEATHSIG of prctl(2)."""
_PROGRAM = (
    "import sys; sys.path[:] = sys.argv[1:]; "
    "from verl_tui.sources.ahead import work; work()"
)
"""Program of a worker. It looks for modules where we do, never in the current directory."""

# Formats are modules, and sources know theirs.
copyreg.pickle(ModuleType, lambda module: (import_module, (module.__name__,)))


def in_turn(
    readers: Iterable[SourceReader],
    workers: int | None,
    shown: Callable[[], str | None] = lambda: None,
) -> Iterator[tuple[SourceReader, Batch | None, bool]]:
    """Read sources to their present ends, a little of each in turn; yield each with its batch and
    whether more of it waits.

    Args:
        readers: The sources.
        workers: How many workers there may be, None for what suits the machine.
        shown: Returns the name of the run that is shown, None where there is none.
    """
    waiting = list(readers)
    processes = _read_ahead(waiting, workers, shown())
    try:
        for number in count(1):
            first = shown() if number % _ROUNDS else None
            for reader in [one for one in waiting if _is_here(one, first)] or [
                *waiting
            ]:
                batch, more = reader.read()
                if not more:
                    waiting.remove(reader)
                yield reader, batch, more
            if not waiting:
                return
    finally:
        for process in processes:
            with process:
                process.kill()


def _is_here(reader: SourceReader, run: str | None) -> bool:
    """Return whether a source is of a run and read here: what workers send meanwhile of others
    would have to be kept.
    """
    return reader.run == run and not isinstance(reader.source, _AheadSource)


def _read_ahead(
    readers: Sequence[SourceReader], most: int | None, shown: str | None
) -> list[Popen[bytes]]:
    """Have workers read what is to be read for the first time, where that pays; return them.

    Args:
        readers: The sources.
        most: How many workers there may be, None for what suits the machine.
        shown: The run whose short logs are needed before all others; a long one is seen as a
            preview meanwhile.
    """
    sizes = {one: size for one in readers if (size := _size(one, shown)) >= _WORTH}
    total = sum(sizes.values())
    if total < LEAST or len(sizes) < 2:  # a single one is here as soon without
        return []
    most = _usual() if most is None else most
    workers = min(most, total // SHARE, len(sizes))
    debug_log.note("workers", started=workers, sources=len(sizes))
    dealt = sorted(sizes, key=sizes.__getitem__, reverse=True)
    processes = []
    try:
        for at in range(workers):
            own = {*dealt[at::workers]}
            processes.append(_started([one for one in readers if one in own]))
    except Exception as error:  # noqa: BLE001 - what no worker reads is read here
        debug_log.note_error("starting a worker", error)
    return processes


def _usual() -> int:
    """Return how many workers suit the machine."""
    cores = usable_cores()
    return min(cores, _MOST) if cores > 1 else 0


def _size(reader: SourceReader, shown: str | None) -> int:
    """Return how many bytes of a source a worker may read: none where it was read before, or cannot
    be copied, as what is being decompressed cannot.
    """
    source = reader.source
    if reader.delivered is not None or type(source) is not FileSource:
        return 0
    size = 0 if is_compressed(source.path) else file_size(source.path)
    return 0 if reader.run == shown and size < LONG else size


def _started(readers: Sequence[SourceReader]) -> Popen[bytes]:
    """Start a worker that reads some sources; raise any error where that cannot be done."""
    import subprocess  # 10 ms, for large logs only

    written = ["-B"] if sys.dont_write_bytecode else []
    python = [sys.executable, "-I", "-S", "-X", f"utf8={sys.flags.utf8_mode}", *written]
    sources = pickle.dumps([reader.source for reader in readers])
    search_path = [*filter(None, sys.path), str(Path(__file__).parents[2])]
    process = subprocess.Popen(  # noqa: S603 - this Python, and words of ours
        [*python, "-c", _PROGRAM, *search_path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        pipesize=_PIPE,
    )
    with suppress(BrokenPipeError), cast("IO[bytes]", process.stdin) as pipe:
        pipe.write(sources)
    for reader in readers:
        reader.source = _AheadSource(reader, process)
    return process


class _AheadSource(Source):
    """Stands in a reader for a source that a worker reads."""

    def __init__(self, reader: SourceReader, process: Popen[bytes]) -> None:
        super().__init__(reader.source.path)
        self._reader = reader
        self._process = process
        self._source = reader.source
        """The source, which has read nothing."""
        self._status = reader.source.status()
        self._turns = 0

    def read(self) -> tuple[tuple[Record, ...], bool]:
        """Return the next records, and whether more wait."""
        try:
            # From a process of our own, over a pipe that nobody else has.
            answer = pickle.load(cast("IO[bytes]", self._process.stdout))  # noqa: S301
            records, self._status, ended = answer
        except Exception as error:  # noqa: BLE001 - whatever it is, here it is read as well
            debug_log.note_error(f"reading {self.path} in a worker", error)
            self._process.kill()
            self._reader.source = self._source
            for _ in range(self._turns):
                self._source.read()
            return self._source.read()
        self._turns += 1
        self._reader.source = ended or self
        return records, ended is None

    def status(self) -> SourceStatus:
        """Return how the source was doing when it gave what was taken last."""
        return self._status


def work() -> None:
    """Be a worker: read the sources that come over standard input, and send what they give."""
    os.nice(_NICE)
    if sys.platform == "linux":
        # A closed pipe ends it, too, but not while a file system does not answer.
        import ctypes  # 5 ms, in workers only

        ctypes.CDLL(None).prctl(_ON_PARENTS_DEATH, signal.SIGKILL)
    # From the app that has started this process, over a pipe that nobody else has.
    sources = pickle.load(sys.stdin.buffer)  # noqa: S301
    with suppress(BrokenPipeError):  # the app has ended, or needs no more
        while sources:
            for source in [*sources]:
                records, more = source.read()
                if not more:
                    sources.remove(source)
                answer = records, source.status(), None if more else source
                sys.stdout.buffer.write(pickle.dumps(answer))
                sys.stdout.buffer.flush()
    os._exit(0)  # without another attempt to write
