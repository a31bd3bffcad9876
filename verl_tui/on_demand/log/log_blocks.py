"""A file as blocks of equal size, each with the lines that begin in it.

Each block can be read by itself: no index of lines is needed, and the last lines of gigabytes are
there at once. Only the last block changes as the file grows.
"""

from __future__ import annotations

import os
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple, Protocol

from verl_tui.sources.formats.console.bars import has_bar
from verl_tui.sources.formats.console.kept import printed_line
from verl_tui.text import safe, strip_ansi

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

BLOCK = 64 * 1024
WINDOW = 16 * 1024
"""Bytes of a line that are shown; of a longer one its beginning, or the last state of a bar."""
STRIDE = 4 * BLOCK
"""Bytes searched, or lines counted, in one go."""
_FAR = 32 * 2**20
"""Longest distance in bytes at which the end or the beginning of a line is searched."""


class LogLine(NamedTuple):
    """A line, or one of the states that overwrote each other in it."""

    start: int
    """Start of the line in the file, in bytes."""
    end: int
    """Start of the next line."""
    text: str
    """Safe text without a line end."""
    bar: bool = False
    """True for a progress bar."""
    first: bool = True
    """True for the first state of its line."""


class LogBlock(NamedTuple):
    """The lines that begin in one block of the file."""

    number: int
    lines: tuple[LogLine, ...]
    before: int
    """Nearest earlier block with lines, -1 for none: a long line may fill many blocks."""
    after: int
    """Nearest later block with lines."""
    open: bool
    """True if it changes when the file grows."""
    starts: tuple[int, ...]
    """Starts of its lines."""


class LogFile:
    """An open file."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.size = os.fstat(descriptor).st_size

    def read(self, at: int, count: int) -> bytes:
        """Return bytes, fewer at the end, without those appended since the file was opened."""
        count = min(count, self.size - at)
        return os.pread(self._descriptor, count, at) if count > 0 else b""

    def line_end(self, at: int) -> int:
        """Return the end of the line at a position, with its newline, or how far is looked."""
        stop = min(self.size, at + _FAR)
        for start in range(at, stop, STRIDE):
            found = self.read(start, STRIDE).find(b"\n")
            if found >= 0:
                return start + found + 1
        return stop

    def line_start(self, at: int) -> int:
        """Return the start of the line at a position; -1 if it is too far."""
        stop = max(0, at - _FAR)
        for end in range(at, stop, -STRIDE):
            start = max(0, end - STRIDE)
            found = self.read(start, end - start).rfind(b"\n")
            if found >= 0:
                return start + found + 1
        return 0 if stop == 0 else -1


def read_block(file: LogFile, number: int) -> LogBlock:
    """Return the lines that begin in a block."""
    begin = number * BLOCK
    end = min((number + 1) * BLOCK, file.size)
    lines = tuple(lines_of(file, number))
    before = number - 1
    if not lines and begin:
        start = file.line_start(begin)
        before = (start if start >= 0 else max(0, begin - _FAR)) // BLOCK
    stop = lines[-1].end if lines else begin
    unended = bool(lines) and (stop >= file.size or file.read(stop - 1, 1) != b"\n")
    starts = tuple(line.start for line in lines if line.first)
    return LogBlock(
        number,
        lines,
        before,
        max(number + 1, stop // BLOCK),
        end >= file.size or unended,
        starts,
    )


def lines_of(
    file: LogFile, number: int, worth: Callable[[bytes], bool] | None = None
) -> Iterator[LogLine]:
    """Yield the lines that begin in a block, if `worth` is given only those it accepts."""
    begin = number * BLOCK
    end = min((number + 1) * BLOCK, file.size)
    base = max(0, begin - 1)
    data = file.read(base, end - base + WINDOW)
    # the first line belongs to the block before
    start = (data.find(b"\n", 0, end - base) + 1 or end - base) + base if begin else 0
    while start < end:
        found = data.find(b"\n", start - base)
        stop = found + 1 + base if found >= 0 else file.line_end(base + len(data))
        whole = data[start - base : stop - base]
        cut = len(whole) > WINDOW or stop - base > len(data)
        whole = whole if cut else printed_line(whole)
        if cut or worth is None or worth(whole):
            yield from _decoded(file, start, stop, whole)
        start = stop


def _decoded(file: LogFile, start: int, end: int, data: bytes) -> Iterator[LogLine]:
    """Yield the visible states of a line: mostly one text, of progress bars the last state."""
    rest = 0
    if end - start > max(WINDOW, len(data)) or len(data) > WINDOW:
        data = data[:WINDOW]
        rest = end - start - len(data)
        at = max(start + len(data), end - WINDOW)
        tail = file.read(at, end - at).rstrip(b"\r\n")
        if b"\r" in data and b"\r" in tail:
            data = data[: data.rfind(b"\r") + 1] + tail[tail.find(b"\r") + 1 :]
            rest = 0
    states = _states(data.rstrip(b"\r\n"))
    for at, (state, bar) in enumerate(states):
        text = safe(state.decode("utf-8", "replace")).replace("\n", " ").rstrip()
        if rest and at == len(states) - 1:
            text += f"… [{rest:,} more bytes]"
        yield LogLine(start, end, text, bar, at == 0)


def _states(data: bytes) -> Sequence[tuple[bytes, bool]]:
    """Return the states that a line showed in turn, of consecutive progress bars the last."""
    data = strip_ansi(data)
    if b"\r" not in data:
        return [(data, has_bar(data))]
    states = [
        (state, has_bar(state)) for state in data.split(b"\r") if state.strip()
    ] or [(b"", False)]
    # A bar followed by another one was overwritten.
    return [
        one
        for one, after in zip_longest(states, states[1:])
        if not (one[1] and after and after[1])
    ]


class LineMatcher(Protocol):
    """A condition for lines."""

    def worth(self, data: bytes) -> bool:
        """Return True if bytes that begin and end anywhere may contain a matching line."""
        ...

    def found(self, line: str) -> bool:
        """Return True if a line matches."""
        ...


class SearchJob:
    """A search for the next line that matches, from a position towards one end of the file."""

    def __init__(self, query: LineMatcher, origin: int, way: int, size: int) -> None:
        """Begin a search.

        Args:
            query: The condition.
            origin: Position in bytes to search from.
            way: 1 for lines that begin there or later, -1 for earlier ones.
            size: Bytes of the file.
        """
        self.query = query
        self.origin = origin
        self.way = way
        self.at = min(max(0, origin), size)
        """Position in the file, in bytes."""
        self.found: int | None = None
        """Start of the line found."""
        self.done = False

    def share(self, size: int) -> float:
        """Return the share of the way that has been searched, 0..1."""
        whole = size - self.origin if self.way > 0 else self.origin
        return min(1.0, abs(self.at - self.origin) / whole) if whole > 0 else 1.0


def search_next(file: LogFile, search: SearchJob) -> None:
    """Search the next blocks of a file."""
    numbers = _next_blocks(file, search)
    begin = min(numbers, default=0) * BLOCK
    end = min(file.size, begin + len(numbers) * BLOCK)
    if _worth_reading(file, search, begin, end):
        search.found = _first_match(file, search, numbers)
    search.at = end if search.way > 0 else begin
    at_end = search.at >= file.size if search.way > 0 else search.at <= 0
    search.done = at_end or search.found is not None


def _next_blocks(file: LogFile, search: SearchJob) -> range:
    """Return the numbers of the blocks to search next, in the order of the search."""
    count = STRIDE // BLOCK
    if search.way > 0:
        first = search.at // BLOCK
        last = min(first + count - 1, max(0, file.size - 1) // BLOCK)
        return range(first, last + 1)
    last = (search.at - 1) // BLOCK
    return range(last, max(0, last - count + 1) - 1, -1)


def _worth_reading(file: LogFile, search: SearchJob, begin: int, end: int) -> bool:
    """Return True if a line that begins between two positions may match."""
    data = file.read(begin, end - begin + WINDOW)
    if not data:
        return False
    # The unread end of a longer line may contain anything.
    cut = len(data) == end - begin + WINDOW and b"\n" not in data[end - begin :]
    return cut or search.query.worth(data)


def _first_match(file: LogFile, search: SearchJob, numbers: range) -> int | None:
    """Return the start of the first line that matches, None if none does."""
    for number in numbers:
        lines = list(lines_of(file, number, search.query.worth))
        for line in lines[:: search.way]:
            ahead = (line.start >= search.origin) == (search.way > 0)
            if ahead and search.query.found(line.text):
                return line.start
    return None
