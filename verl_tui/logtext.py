"""A log as text, however large: read where somebody looks, in a thread of its own, from the newest line backwards.

A file is seen as blocks of equal size. A block holds the lines that begin in it, so each can be read by itself,
wherever one comes from: no index of lines is needed, and the last lines of gigabytes are there at once. Only the last
block changes as the file grows.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from verl_tui.sources.compressed import plain
from verl_tui.sources.tail import opened
from verl_tui.text import safe, strip_ansi
from verl_tui.worker import Worker

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator, Sequence

BLOCK = 64 * 1024
WINDOW = 16 * 1024
"""Bytes of a line that are shown; of a longer one the beginning, and its last state where it is written over."""
_FAR = 32 * 2**20
"""Bytes after which the end of a line, or its beginning, is no longer looked for."""
_STRIDE = 4 * BLOCK
"""Bytes searched, or lines counted, in one go."""
_KEPT = 64
"""Blocks kept in memory."""
_COUNTED = 256 * 2**20
"""Bytes of a file up to which its lines are numbered unasked."""
_PRINT = 256
"""Bytes compared at the head and before the known end: enough to tell a rewritten file from a grown one."""
_RETRY = 2.0
"""Seconds after which a file that could not be read is tried again."""
_BAR = b"%|"
"""What a tqdm progress bar has in it."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line, or one of several that were written over each other in it."""

    start: int
    """Where the line begins in the file."""
    end: int
    """Where the next one does."""
    text: str
    """Safe text without a line end."""
    bar: bool = False
    """Whether it is a progress bar."""
    first: bool = True
    """Whether it is the first to show of its line."""


@dataclass(frozen=True, slots=True)
class Block:
    """The lines that begin in one block of the file."""

    number: int
    lines: tuple[LogLine, ...]
    before: int
    """Block to look for earlier lines in, -1 if there is none: one long line may fill many blocks."""
    after: int
    """Block to look for later lines in."""
    open: bool
    """Whether it changes when the file grows."""
    starts: tuple[int, ...]
    """Where its lines begin."""


class Query(Protocol):
    """What lines are searched for."""

    def worth(self, data: bytes) -> bool:
        """Tell whether some bytes may hold such a line; they begin and end anywhere."""
        ...

    def found(self, line: str) -> bool:
        """Tell whether a line is what is searched for."""
        ...


class Hunt:
    """A search for the next line of a kind, from one place towards one end of the file."""

    def __init__(self, query: Query, origin: int, way: int, size: int) -> None:
        """Begin.

        Args:
            query: What to look for.
            origin: Lines that begin here or later are looked at, or before it.
            way: 1 for later lines, -1 for earlier ones.
            size: Bytes of the file.
        """
        self.query, self.origin, self.way = query, origin, way
        self.at = min(max(0, origin), size)
        """How far it has come."""
        self.found: int | None = None
        """Where the line begins that was looked for."""
        self.done = False

    def share(self, size: int) -> float:
        """Return how much of what lies ahead has been searched."""
        whole = size - self.origin if self.way > 0 else self.origin
        return min(1.0, abs(self.at - self.origin) / whole) if whole > 0 else 1.0


class Log:
    """One file as lines of text. The thread adds to what is known of it."""

    def __init__(self, path: str, wake: threading.Condition) -> None:
        self.path = Path(path)
        self.size = 0
        """Bytes of the file, as far as is known."""
        self.known = False
        """Whether it has been looked at yet."""
        self.generation = 0
        """Grows when the file turns out to be another one."""
        self.problem: str | None = None
        """Why nothing can be read, None while it can."""
        self.hunt: Hunt | None = None
        """The search that goes on, or the last one."""
        self._wake = wake
        self._stamp: tuple[int, ...] = ()
        self._head = self._tail = b""
        self._blocks: OrderedDict[int, Block] = OrderedDict()
        self._stale: set[int] = set()
        """Blocks that are to be read again; what is known of them is shown meanwhile."""
        self._wanted: dict[int, None] = {}
        """Blocks to be read, the one asked for last at the end."""
        self._look = True
        self._failed = 0.0
        self._before = [0]
        """How many lines begin before each block, as far as they have been counted."""
        self._count_to = 0
        """Line up to which they are counted, beyond what is counted unasked."""

    # -- what a screen asks, in its own thread ----------------------------------------------------------------------

    def look(self) -> None:
        """Have the file looked at: it may have grown."""
        with self._wake:
            if self.problem is None or time.monotonic() - self._failed > _RETRY:
                self._look = True
                self._wake.notify()

    @property
    def last(self) -> int:
        """The number of the last block."""
        return max(0, self.size - 1) // BLOCK

    def block(self, number: int) -> Block | None:
        """Return a block as it was last read; None while it is not read, asking again later gives it."""
        with self._wake:
            known = self._blocks.get(number)
            if known is not None:
                self._blocks.move_to_end(number)
            if known is None or number in self._stale:
                self._wanted.pop(number, None)
                self._wanted[number] = None
                if len(self._wanted) > _KEPT // 2:
                    del self._wanted[next(iter(self._wanted))]
                self._wake.notify()
            return known

    def find(self, query: Query, origin: int, way: int) -> Hunt:
        """Begin a search; one that goes on ends."""
        with self._wake:
            self.hunt = Hunt(query, origin, way, self.size)
            self._wake.notify()
            return self.hunt

    def stop_hunt(self) -> None:
        """Search no further."""
        self.hunt = None

    def number(self, start: int) -> int | None:
        """Return the number, from 1, of the line that begins somewhere; None where lines have not been counted."""
        at = start // BLOCK
        block = self._blocks.get(at)
        if block is None or at >= len(self._before):
            return None
        return self._before[at] + bisect_right(block.starts, start)

    def start_of(self, number: int) -> int | None:
        """Return where a line begins, by its number; None while it is being looked for, -1 if there is none."""
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

    # -- the thread -------------------------------------------------------------------------------------------------

    @property
    def _all_counted(self) -> bool:
        return self.known and len(self._before) > self.last

    def _counts(self) -> bool:
        """Tell whether lines are to be counted further."""
        asked = self._count_to > self._before[-1]
        return not self._all_counted and (asked or self.size <= _COUNTED)

    def _hunts(self) -> bool:
        return self.hunt is not None and not self.hunt.done

    def waits(self) -> bool:
        """Tell whether there is something to read."""
        if self._look:
            return True
        return self.problem is None and (bool(self._wanted) or self._hunts() or self._counts())

    def presses(self) -> bool:
        """Tell whether a block is to be seen."""
        return self.problem is None and bool(self._wanted)

    def read_on(self) -> bool:
        """Read a little of what is wanted most: what is seen, what is searched, how many lines there are."""
        try:
            with self._opened() as file:
                return file is not None and self._read_on(file)
        except OSError as error:
            with self._wake:
                self.problem = os.strerror(error.errno).lower() if error.errno else str(error)
                self._failed, self._look = time.monotonic(), False
            return True

    @contextmanager
    def _opened(self) -> Iterator[_File | None]:
        """Open the file; nothing comes where it is the same as before and was only to be looked at."""
        if plain(self.path) != self.path:
            raise OSError("a compressed log can be read from its beginning only: unpack it to look at its text")
        known = self.path.stat()
        stamp = (known.st_dev, known.st_ino, known.st_size, known.st_mtime_ns)
        same = stamp == self._stamp and self.problem is None
        with self._wake:
            self._look = False
        if same and not self.waits():
            yield None
            return
        with opened(self.path) as raw:
            file = _File(raw.fileno())
            if not same:
                self._changed(file, stamp)
            yield file

    def _changed(self, file: _File, stamp: tuple[int, ...]) -> None:
        """Take note of how the file is now."""
        size = file.size
        other = self.known and not self._continues(file, size)
        grown = size > self.size and stamp[:2] == self._stamp[:2]
        with self._wake:
            if other:
                self.generation += 1
                self._blocks.clear()
                self._before, self._count_to, self.hunt = [0], 0, None
            # A file that did not grow was written over somewhere.
            self._stale = {number for number, block in self._blocks.items() if block.open or not grown}
            if not grown:
                self._before = [0]
            self._stamp, self.size, self.known, self.problem = stamp, size, True, None
            # What is counted is counted for blocks that are full.
            del self._before[1 + size // BLOCK :]
        self._head = file.read(0, min(_PRINT, size))
        self._tail = file.read(max(0, size - _PRINT), min(_PRINT, size))

    def _continues(self, file: _File, size: int) -> bool:
        """Tell whether a file is the known one, possibly with more behind it."""
        if size < self.size:
            return False
        tail = file.read(self.size - len(self._tail), len(self._tail))
        return tail == self._tail and file.read(0, len(self._head)) == self._head

    def _read_on(self, file: _File) -> bool:
        with self._wake:
            wanted = next(reversed(self._wanted), None)
            if wanted is not None:
                del self._wanted[wanted]
        if wanted is not None:
            self._keep(read_block(file, wanted))
        elif self._hunts():
            assert self.hunt is not None
            _hunt_on(file, self.hunt)
        elif self._counts():
            self._count(file)
            return self._all_counted or not self._counts()
        return True

    def _keep(self, block: Block) -> None:
        with self._wake:
            self._blocks[block.number] = block
            self._blocks.move_to_end(block.number)
            self._stale.discard(block.number)
            while len(self._blocks) > _KEPT:
                self._blocks.popitem(last=False)

    def _count(self, file: _File) -> None:
        """Count the lines that begin in the next blocks: one does behind each line end, and one at the beginning."""
        first = len(self._before) - 1
        data = file.read(max(0, first * BLOCK - 1), _STRIDE + bool(first) - 1)
        at = 0
        for number in range(first, first + _STRIDE // BLOCK):
            to = at + BLOCK - (number == 0)
            if to > len(data):
                break
            self._before.append(self._before[-1] + data.count(b"\n", at, to) + (number == 0))
            at = to


class LogReader(Worker[Log]):
    """The logs that a screen looks at, and the thread that reads them."""

    def __init__(self, notify: Callable[[], object]) -> None:
        super().__init__(notify, name="logs", kept=4)

    def log(self, path: str) -> Log:
        """Return a log; never waits, never reads."""
        with self._wake:
            log = self._recall(path, lambda: Log(path, self._wake))
            self._start()
        return log


class _File:
    """A file that is open."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.size = os.fstat(descriptor).st_size

    def read(self, at: int, count: int) -> bytes:
        """Return so many bytes, fewer at the end of the file, nothing that was appended since it was opened."""
        count = min(count, self.size - at)
        data = os.pread(self._descriptor, count, at) if count > 0 else b""
        while data and len(data) < count and (more := os.pread(self._descriptor, count - len(data), at + len(data))):
            data += more
        return data

    def line_end(self, at: int) -> int:
        """Return where the line ends that goes on here, its line end included; -1 where that is too far."""
        for start in range(at, min(self.size, at + _FAR), _STRIDE):
            found = self.read(start, _STRIDE).find(b"\n")
            if found >= 0:
                return start + found + 1
        return self.size if at + _FAR >= self.size else -1

    def line_start(self, at: int) -> int:
        """Return where the line begins that goes on here; -1 where that is too far."""
        stop = max(0, at - _FAR)
        while at > stop:
            start = max(0, at - _STRIDE)
            found = self.read(start, at - start).rfind(b"\n")
            if found >= 0:
                return start + found + 1
            at = start
        return 0 if stop == 0 else -1


def read_block(file: _File, number: int) -> Block:
    """Return the lines that begin in a block."""
    begin, end = number * BLOCK, min((number + 1) * BLOCK, file.size)
    lines = tuple(_lines(file, number))
    before = number - 1
    if not lines and begin:
        start = file.line_start(begin)
        before = (start if start >= 0 else max(0, begin - _FAR)) // BLOCK
    stop = lines[-1].end if lines else begin
    unended = bool(lines) and (stop >= file.size or file.read(stop - 1, 1) != b"\n")
    starts = tuple(line.start for line in lines if line.first)
    return Block(number, lines, before, max(number + 1, stop // BLOCK), end >= file.size or unended, starts)


def _lines(file: _File, number: int, query: Query | None = None) -> Iterator[LogLine]:
    """Yield the lines that begin in a block; of those that a query is sure not to be after, nothing is made."""
    begin, end = number * BLOCK, min((number + 1) * BLOCK, file.size)
    base = max(0, begin - 1)
    data = file.read(base, end - base + WINDOW)
    start = 0
    if begin:
        found = data.find(b"\n", 0, end - base)
        start = found + 1 + base if found >= 0 else end
    while start < end:
        found = data.find(b"\n", start - base)
        stop = found + 1 + base if found >= 0 else file.line_end(base + len(data))
        stop = stop if stop > 0 else start + _FAR
        whole = data[start - base : stop - base]
        if query is None or len(whole) > WINDOW or stop - base > len(data) or query.worth(whole):
            yield from _decoded(file, start, stop, whole)
        start = stop


def _decoded(file: _File, start: int, end: int, data: bytes) -> Iterator[LogLine]:
    """Yield what is to be seen of a line: as a rule one text, of progress bars the last state."""
    rest = 0
    if end - start > max(WINDOW, len(data)) or len(data) > WINDOW:
        data = data[:WINDOW]
        rest = end - start - len(data)
        at = max(start + len(data), end - WINDOW)
        tail = file.read(at, end - at).rstrip(b"\r\n")
        if b"\r" in data and b"\r" in tail:
            data, rest = data[: data.rfind(b"\r") + 1] + tail[tail.find(b"\r") + 1 :], 0
    states = _states(data.rstrip(b"\r\n"))
    for at, (state, bar) in enumerate(states):
        text = safe(state.decode("utf-8", "replace")).replace("\n", " ").rstrip()
        if rest and at == len(states) - 1:
            text += f"… [{rest:,} more bytes]"
        yield LogLine(start, end, text, bar, at == 0)


def _states(data: bytes) -> Sequence[tuple[bytes, bool]]:
    """Return what a line shows one after the other; of progress bars that follow each other the last."""
    data = strip_ansi(data)
    if b"\r" not in data:
        return [(data, _BAR in data)]
    states = [(state, _BAR in state) for state in data.split(b"\r") if state.strip()] or [(b"", False)]
    # A bar that another one follows has been written over.
    return [one for one, after in zip_longest(states, states[1:]) if not (one[1] and after and after[1])]


def _hunt_on(file: _File, hunt: Hunt) -> None:
    """Search the next stretch of a file."""
    step = _STRIDE // BLOCK
    number = hunt.at // BLOCK if hunt.way > 0 else (hunt.at - 1) // BLOCK
    first = number if hunt.way > 0 else max(0, number - step + 1)
    last = number + step - 1 if hunt.way > 0 else number
    last = min(last, max(0, file.size - 1) // BLOCK)
    begin, end = first * BLOCK, min(file.size, (last + 1) * BLOCK)
    data = file.read(begin, end - begin + WINDOW)
    # What a line that is longer than what was read holds at its end, nobody knows.
    long = len(data) == end - begin + WINDOW and b"\n" not in data[end - begin :]
    if number >= 0 and (long or hunt.query.worth(data)):
        for at in range(first, last + 1)[:: hunt.way]:
            for line in [*_lines(file, at, hunt.query)][:: hunt.way]:
                if (line.start >= hunt.origin) == (hunt.way > 0) and hunt.query.found(line.text):
                    hunt.found, hunt.done = line.start, True
                    return
    hunt.at = end if hunt.way > 0 else begin
    hunt.done = hunt.at >= file.size if hunt.way > 0 else hunt.at <= 0
