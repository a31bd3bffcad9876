"""A file as blocks of equal size, each with the lines that begin in it.

Each block can be read by itself: no index of lines is needed, and the last lines of gigabytes are
there at once. Only the last block changes as the file grows.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from verl_tui.sources.formats.console.kept import printed_line
from verl_tui.sources.formats.console.line_parts import has_bar
from verl_tui.text import decoded, safe, strip_ansi

BLOCK = 64 * 1024
WINDOW = 16 * 1024
"""Bytes of a line that are shown; of a longer one its beginning, or the last state of a bar."""
STRIDE = 4 * BLOCK
"""Bytes in which the end of a line is looked for at once."""


class LogLine(NamedTuple):
    """A line, or one of the states that overwrote each other in it."""

    start: int
    """Start of the line in the file, in bytes."""
    end: int
    """Start of the next line."""
    text: str
    """Safe text without a line end."""
    bar: bool
    """True for a progress bar."""
    first: bool = True
    """True for the first state of its line."""


class LogBlock(NamedTuple):
    """The lines that begin in one block of the file."""

    lines: tuple[LogLine, ...]
    before: int
    """Nearest earlier block with lines, -1 for none: a long line may fill many blocks."""
    after: int
    """Nearest later block with lines."""
    size: float
    """Bytes beyond which the file changes it, none in the middle of the file."""
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
        """Return the end of the line at a position, with its newline."""
        for start in range(at, self.size, STRIDE):
            found = self.read(start, STRIDE).find(b"\n")
            if found >= 0:
                return start + found + 1
        return self.size

    def line_start(self, at: int) -> int:
        """Return the start of the line at a position."""
        for end in range(at, 0, -STRIDE):
            start = max(0, end - STRIDE)
            found = self.read(start, end - start).rfind(b"\n")
            if found >= 0:
                return start + found + 1
        return 0

    def span(self, number: int) -> tuple[int, int]:
        """Return the first byte of a block, and the one after its last."""
        return number * BLOCK, min((number + 1) * BLOCK, self.size)


def read_block(file: LogFile, number: int) -> LogBlock:
    """Return the lines that begin in a block."""
    begin, end = file.span(number)
    lines = tuple(lines_of(file, number))
    before = number - 1
    if not lines and begin:
        before = file.line_start(begin) // BLOCK
    stop = lines[-1].end if lines else begin
    unended = bool(lines) and (stop >= file.size or file.read(stop - 1, 1) != b"\n")
    return LogBlock(
        lines,
        before,
        max(number + 1, stop // BLOCK),
        file.size if end >= file.size or unended else math.inf,
        tuple(line.start for line in lines if line.first),
    )


def lines_of(
    file: LogFile, number: int, worth: Callable[[bytes], bool] = lambda _: True
) -> Iterator[LogLine]:
    """Yield the lines that begin in a block, only those whose bytes `worth` accepts."""
    begin, end = file.span(number)
    base = max(0, begin - 1)
    data = file.read(base, end - base + WINDOW)
    # the first line belongs to the block before
    start = (data.find(b"\n", 0, end - base) + 1 or end - base) + base if begin else 0
    while start < end:
        found = data.find(b"\n", start - base)
        stop = found + 1 + base if found >= 0 else file.line_end(base + len(data))
        whole = data[start - base : stop - base]
        if len(whole) > WINDOW or stop - base > len(data):
            shown, rest = _cut(file, whole[:WINDOW], start, stop)
            yield from _states(shown, start, stop, rest)
        elif worth(whole := printed_line(whole)):
            yield from _states(whole, start, stop)
        start = stop


def _cut(file: LogFile, begin: bytes, start: int, end: int) -> tuple[bytes, int]:
    """Return what is shown of a long line, given its beginning, and how many bytes are not: of
    progress bars its last state.
    """
    at = max(start + len(begin), end - WINDOW)
    tail = file.read(at, end - at).rstrip(b"\r\n")
    if b"\r" in begin and b"\r" in tail:
        return begin[: begin.rfind(b"\r") + 1] + tail[tail.find(b"\r") + 1 :], 0
    return begin, end - start - len(begin)


def _states(data: bytes, start: int, end: int, rest: int = 0) -> Iterator[LogLine]:
    """Yield the states that a line showed in turn, mostly one; of progress bars that follow one
    another the last, the others were overwritten.
    """
    states = strip_ansi(data.rstrip(b"\r\n")).split(b"\r")
    shown = [one for one in states if one.strip()] if len(states) > 1 else states
    bars = [*map(has_bar, shown), False]
    first = True
    for at, state in enumerate(shown or [b""]):
        if not (bars[at] and bars[at + 1]):
            text = safe(decoded(state)).replace("\n", " ").rstrip()
            if rest and at == len(shown) - 1:
                text += f"… [{rest:,} more bytes]"
            yield LogLine(start, end, text, bars[at], first)
            first = False


class LineMatcher(Protocol):
    """A condition for lines."""

    words: str
    """What is looked for."""

    def worth(self, data: bytes) -> bool:
        """Return True if bytes that begin and end anywhere may contain a matching line."""
        ...

    def found(self, line: str) -> bool:
        """Return True if a line matches."""
        ...


@dataclass(eq=False)
class SearchJob:
    """A search for the next line that matches, from a position towards one end of the file."""

    query: LineMatcher
    origin: int
    """Position in bytes to search from."""
    way: int
    """1 for lines that begin there or later, -1 for earlier ones."""
    at: int
    """Position reached, at first the origin."""
    found: int | None = None
    """Start of the line found."""
    done: bool = False

    def share(self, size: int) -> float:
        """Return the share of the way that has been searched, 0..1."""
        whole = size - self.origin if self.way > 0 else self.origin
        return min(1.0, abs(self.at - self.origin) / whole) if whole > 0 else 1.0


def search_next(file: LogFile, search: SearchJob) -> None:
    """Search the next block of a file."""
    way = search.way
    number = (search.at if way > 0 else max(0, search.at - 1)) // BLOCK
    begin, end = file.span(number)
    if _may_match(file, search, begin, end):
        for line in [*lines_of(file, number, search.query.worth)][::way]:
            ahead = (line.start >= search.origin) == (way > 0)
            if ahead and search.query.found(line.text):
                search.found = line.start
                break
    search.at = end if way > 0 else begin
    search.done = search.found is not None or not 0 < search.at < file.size


def _may_match(file: LogFile, search: SearchJob, begin: int, end: int) -> bool:
    """Return whether a line that begins between two positions may match."""
    data = file.read(begin, end - begin + WINDOW)
    # The unread end of a longer line may contain anything.
    cut = len(data) == end - begin + WINDOW and b"\n" not in data[end - begin :]
    return cut or search.query.worth(data)
