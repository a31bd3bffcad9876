"""The logs that a screen shows, and the thread that reads them."""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from verl_tui.on_demand.log import log_blocks
from verl_tui.on_demand.log.log_blocks import (
    LogFile,
    SearchJob,
    read_block,
    search_next,
)
from verl_tui.on_demand.worker import Job, Worker
from verl_tui.sources.files.compressed import is_compressed
from verl_tui.sources.files.paths import why
from verl_tui.sources.files.tail import opened

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator

    from verl_tui.on_demand.log.log_blocks import LineMatcher, LogBlock
    from verl_tui.on_demand.log.replay_cutoff import ReplayCutoff

KEPT = 64
"""Blocks kept in memory."""
_COUNTED = 256 * 2**20
"""Largest file whose lines are numbered without request, in bytes."""
_PRINT = 256
"""Bytes compared at the head and before the known end, which differ in a rewritten file."""
RETRY = 2.0
"""Seconds after which an unreadable file is tried again."""


class Log(Job):
    """One file as lines of text; the thread adds to them."""

    def __init__(self, path: str, wake: threading.Condition) -> None:
        self.path = Path(path)
        self.size = 0
        """Known size of the file in bytes."""
        self.known = False
        """True once the file has been read."""
        self.generation = 0
        """Grows when the file is replaced or rewritten."""
        self.problem: str | None = None
        """Why the file cannot be read, None if it can."""
        self.search: SearchJob | None = None
        """The current or the last search."""
        self.cutoff: ReplayCutoff | None = None
        """End of the visible part, None for all of it."""
        self._wake = wake
        self._stamp: tuple[object, ...] = ()
        """What changes when the file or its visible part does."""
        self._head = self._tail = b""
        self._blocks: OrderedDict[int, LogBlock] = OrderedDict()
        self._stale: set[int] = set()
        """Blocks to read again, shown as they were meanwhile."""
        self._wanted: dict[int, None] = {}
        """Blocks to read, the newest request last."""
        self._look = True
        self._failed = 0.0
        self._before = [0]
        """Number of lines before each block, as far as counted."""
        self._count_to = 0
        """Line number up to which lines must be counted on request."""

    # -- for a screen, in its own thread -----------------------------------------------------------

    def look(self) -> None:
        """Have the thread check whether the file has grown."""
        with self._wake:
            if self.problem is None or time.monotonic() - self._failed > RETRY:
                self._look = True
                self._wake.notify()

    @property
    def last(self) -> int:
        """The number of the last block."""
        return max(0, self.size - 1) // log_blocks.BLOCK

    def block(self, number: int) -> LogBlock | None:
        """Return a block as last read; None if it is still being read, then ask again later."""
        with self._wake:
            known = self._blocks.get(number)
            if known is not None:
                self._blocks.move_to_end(number)
            if known is None or number in self._stale:
                self._wanted.pop(number, None)
                self._wanted[number] = None
                if len(self._wanted) > KEPT // 2:
                    del self._wanted[next(iter(self._wanted))]
                self._wake.notify()
            return known

    def find(self, query: LineMatcher, origin: int, way: int) -> SearchJob:
        """Begin a search in place of the current one."""
        with self._wake:
            self.search = SearchJob(query, origin, way, self.size)
            self._wake.notify()
            return self.search

    def number(self, start: int) -> int | None:
        """Return the number, from 1, of the line at a start; None if it is not counted yet."""
        at = start // log_blocks.BLOCK
        block = self._blocks.get(at)
        if block is None or at >= len(self._before):
            return None
        return self._before[at] + bisect_right(block.starts, start)

    def start_of(self, number: int) -> int | None:
        """Return the start of a line by number; None while counting, -1 if it is missing."""
        at = max(0, bisect_left(self._before, number) - 1)
        if at + 1 >= len(self._before) and not self._all_counted:
            with self._wake:
                self._count_to = max(self._count_to, number)
                self._wake.notify()
            return None
        block = self.block(at)
        if block is None:
            return None
        nth = number - self._before[at] - 1
        return block.starts[nth] if 0 <= nth < len(block.starts) else -1

    # -- the thread --------------------------------------------------------------------------------

    @property
    def _all_counted(self) -> bool:
        return self.known and len(self._before) > self.last

    def _counts(self) -> bool:
        """Return True if more lines must be counted."""
        requested = self._count_to > self._before[-1]
        return not self._all_counted and (requested or self.size <= _COUNTED)

    def _searches(self) -> bool:
        return self.search is not None and not self.search.done

    def waits(self) -> bool:
        """Return True if there is something to read."""
        more = self._wanted or self._searches() or self._counts()
        return self._look or (self.problem is None and bool(more))

    def is_urgent(self) -> bool:
        """Return True if a block on the screen must be read."""
        return self.problem is None and bool(self._wanted)

    def read_on(self) -> bool:
        """Read requested blocks, then search, then count lines."""
        try:
            with self._opened() as file:
                return file is not None and self._read_on(file)
        except OSError as error:
            with self._wake:
                self.problem = why(error)
                self._failed = time.monotonic()
                self._look = False
            return True

    @contextmanager
    def _opened(self) -> Iterator[LogFile | None]:
        """Open the file; yield None if it is unchanged and nothing must be read."""
        if is_compressed(self.path):
            raise OSError(
                "a compressed log can be read from its beginning only:"
                " unpack it to look at its text"
            )
        known = self.path.stat()
        cutoff = self.cutoff
        stamp = (known.st_ino, known.st_size, known.st_mtime_ns, cutoff)
        same = stamp == self._stamp and self.problem is None
        with self._wake:
            self._look = False
        if same and not self.waits():
            yield None
            return
        with opened(self.path) as raw:
            file = LogFile(raw.fileno())
            if not same:
                self._changed(file, stamp, cutoff.end(file) if cutoff else file.size)
            file.size = min(file.size, self.size)
            yield file

    def _changed(self, file: LogFile, stamp: tuple[object, ...], size: int) -> None:
        """Update the state of a file that has changed."""
        tail = file.read(self.size - len(self._tail), len(self._tail))
        other = (
            size < self.size
            or tail != self._tail
            or file.read(0, len(self._head)) != self._head
        )
        with self._wake:
            if other:
                self.generation += 1
                self._blocks.clear()
                self._before = [0]
                self._count_to = 0
                self.search = None
            self._stale = {
                number for number, block in self._blocks.items() if block.open
            }
            self._stamp = stamp
            self.size = size
            self.known = True
            self.problem = None
            # Lines are counted for full blocks only.
            del self._before[1 + size // log_blocks.BLOCK :]
        self._head = file.read(0, min(_PRINT, size))
        self._tail = file.read(max(0, size - _PRINT), min(_PRINT, size))

    def _read_on(self, file: LogFile) -> bool:
        with self._wake:
            wanted = next(reversed(self._wanted), None)
            if wanted is not None:
                del self._wanted[wanted]
        if wanted is not None:
            self._keep(read_block(file, wanted))
        elif self._searches():
            assert self.search is not None
            search_next(file, self.search)
        elif self._counts():
            self._count(file)
            return self._all_counted or not self._counts()
        return True

    def _keep(self, block: LogBlock) -> None:
        with self._wake:
            self._blocks[block.number] = block
            self._blocks.move_to_end(block.number)
            self._stale.discard(block.number)
            while len(self._blocks) > KEPT:
                self._blocks.popitem(last=False)

    def _count(self, file: LogFile) -> None:
        """Count the lines that begin in the next blocks, after a newline or at the beginning."""
        first = len(self._before) - 1
        data = file.read(
            max(0, first * log_blocks.BLOCK - 1), log_blocks.STRIDE + bool(first) - 1
        )
        at = 0
        for number in range(first, first + log_blocks.STRIDE // log_blocks.BLOCK):
            to = at + log_blocks.BLOCK - (number == 0)
            if to > len(data):
                break
            self._before.append(
                self._before[-1] + data.count(b"\n", at, to) + (number == 0)
            )
            at = to


class LogReader(Worker[Log]):
    """The logs that a screen shows, and the thread that reads them."""

    def __init__(self, notify: Callable[[], object]) -> None:
        super().__init__(notify, name="logs", kept=4)

    def log(self, path: str, cutoff: ReplayCutoff | None = None) -> Log:
        """Return a log without reading or waiting.

        Args:
            path: The file.
            cutoff: End of the visible part, None for all of it.
        """
        with self._wake:
            log = self._recall(path, lambda: Log(path, self._wake))
            if log.cutoff != cutoff:
                log.cutoff = cutoff
                log.look()
            self._wake.notify()
        return log
