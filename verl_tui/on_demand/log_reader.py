"""The logs that a screen shows, and the thread that reads them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.means import clamp
from verl_tui.on_demand import log_blocks
from verl_tui.on_demand.log_blocks import (
    LineMatcher,
    LogBlock,
    LogFile,
    SearchJob,
    read_block,
    search_next,
)
from verl_tui.on_demand.worker import FileJob, Worker
from verl_tui.patterns import pattern
from verl_tui.sources.files import CHUNK, opened

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable


KEPT = 64
"""Blocks kept in memory."""
_COUNTED = 256 * 2**20
"""Largest file whose lines are numbered without request, in bytes."""
_PRINT = 256
"""Bytes compared at the head and before the known end, which differ in a rewritten file."""
_AT_ONCE = 4
"""Blocks that are searched, or whose lines are counted, in one go."""
_STEP = pattern(rb'(?<![\w:])step:(\d{1,15}) - |"(?:global_)?step": ?(\d{1,15})\b')
"""Steps in consoles and in records of JSONL files."""


class ReplayCutoff(NamedTuple):
    """The end of a log at an earlier moment: a replay shows nothing that was written later."""

    size: int
    """Approximate size in bytes, known to the number of records in what is read at once."""
    step: int | None
    """Step reached at that moment."""

    def end(self, file: LogFile) -> int:
        """Return the end of the file: after the line of the step reached, before the next's. Where
        a file goes on after a crash, the same steps come once more: the nearest are meant.
        """
        if self.size >= file.size:
            return file.size
        begin = max(0, self.size - CHUNK)
        data = file.read(begin, self.size - begin + CHUNK)
        lines: list[tuple[int, int | None]] = [(-1, None)]
        for found in _STEP.finditer(data):
            start = data.rfind(b"\n", 0, found.start()) + 1 + begin
            if start > lines[-1][0]:
                lines.append((start, int(found[1] or found[2])))
        lines.append((begin + len(data), None))
        gaps = [
            (file.line_end(max(0, start)), stop)
            for (start, step), (stop, after) in pairwise(lines)
            if step == self.step != after
        ]
        near = min(
            gaps,
            key=lambda gap: max(gap[0] - self.size, self.size - gap[1]),
            default=(0, self.size),
        )
        return file.line_start(clamp(self.size, *near))


class Log(FileJob):
    """One file as lines of text; the thread adds to them."""

    def __init__(self, path: str, wake: threading.Condition) -> None:
        super().__init__(wake, KEPT // 2)
        self.path = Path(path)
        self.size = 0
        """Known size of the file in bytes."""
        self.known = False
        """True once the file has been read."""
        self.generation = 0
        """Grows when the file is replaced or rewritten."""
        self.search: SearchJob | None = None
        """The search under way, or over with what it found; who has taken that forgets it."""
        self.cutoff: ReplayCutoff | None = None
        """End of the visible part, None for all of it."""
        self._stamp: tuple[object, ...] = ()
        """What changes when the file or its visible part does."""
        self._head = self._tail = b""
        self._blocks: dict[int, LogBlock] = {}
        self._checks = True
        self._before = [0]
        """Number of lines before each block, as far as counted."""
        self._count_to = 0
        """Line number up to which lines must be counted on request."""

    # -- for a screen, in its own thread -----------------------------------------------------------

    def check(self) -> None:
        """Have the thread check whether the file has grown."""
        with self._wake:
            if self._may_try():
                self._checks = True
                self._wake.notify()

    @property
    def last(self) -> int:
        """The number of the last block."""
        return max(0, self.size - 1) // log_blocks.BLOCK

    def block(self, number: int) -> LogBlock | None:
        """Return a block as last read; None if it is still being read, then ask again later."""
        with self._wake:
            known = self._blocks.get(number)
            if not known or known.size < self.size:
                self._want(number)
            return known

    def find(self, query: LineMatcher, origin: int, way: int) -> SearchJob:
        """Begin a search in place of the current one."""
        with self._wake:
            self.search = SearchJob(query, origin, way, origin)
            self._wake.notify()
            return self.search

    def number(self, start: int) -> int | None:
        """Return the number, from 1, of the line at a start; None if it is not counted yet."""
        at = start // log_blocks.BLOCK
        block = self._blocks.get(at)
        if not block or at >= len(self._before):
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
        if not block:
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

    def _searching(self) -> SearchJob | None:
        """Return the search to go on with."""
        search = self.search
        return search if search and not search.done else None

    def waits(self) -> bool:
        """Return True if there is something to read."""
        more = self._wanted or self._searching() or self._counts()
        return self._checks or (self.problem is None and bool(more))

    def _read_on(self) -> bool:
        """Look at the file, then read requested blocks, then search, then count lines."""
        with self._wake:
            self._checks = False
        known = self.path.stat()
        stamp = known.st_ino, known.st_size, known.st_mtime_ns, self.cutoff
        same = stamp == self._stamp and self.problem is None
        if same and not self.waits():
            return False
        with opened(self.path) as raw:
            file = LogFile(raw.fileno())
            if not same:
                self._changed(file, stamp)
            file.size = min(file.size, self.size)
            return self._read_from(file)

    def _changed(self, file: LogFile, stamp: tuple[object, ...]) -> None:
        """Update the state of a file that has changed."""
        size = self.cutoff.end(file) if self.cutoff else file.size
        tail = file.read(self.size - len(self._tail), len(self._tail))
        same = tail == self._tail and file.read(0, len(self._head)) == self._head
        with self._wake:
            if size < self.size or not same:
                self.generation += 1
                self._blocks.clear()
                self._before = [0]
                self._count_to = 0
                self.search = None
            self._stamp = stamp
            self.size = size
            self.known = True
            self.problem = None
            # Lines are counted for full blocks only.
            del self._before[1 + size // log_blocks.BLOCK :]
        self._head = file.read(0, min(_PRINT, size))
        self._tail = file.read(max(0, size - _PRINT), min(_PRINT, size))

    def _read_from(self, file: LogFile) -> bool:
        with self._wake:
            wanted = self._wanted.popitem()[0] if self._wanted else None
        if wanted is not None:
            block = read_block(file, wanted)
            with self._wake:
                self._blocks.pop(wanted, None)
                self._blocks[wanted] = block
                if len(self._blocks) > KEPT:
                    del self._blocks[next(iter(self._blocks))]
        else:
            for _ in range(_AT_ONCE):
                if search := self._searching():
                    search_next(file, search)
                elif self._counts():
                    self._count(file)
        return wanted is not None or bool(self._searching()) or not self._counts()

    def _count(self, file: LogFile) -> None:
        """Count the lines that begin in the next block, after a newline or at the beginning."""
        size = log_blocks.BLOCK
        begin = (len(self._before) - 1) * size
        data = file.read(begin - 1, size) if begin else b"\n" + file.read(0, size - 1)
        self._before.append(self._before[-1] + data.count(b"\n"))


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
                log.check()
            self._wake.notify()
        return log
