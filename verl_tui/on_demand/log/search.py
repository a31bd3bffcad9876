"""A search in a log for the next line of a kind, a stretch at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from verl_tui.on_demand.log import blocks
from verl_tui.on_demand.log.blocks import lines_of

if TYPE_CHECKING:
    from verl_tui.on_demand.log.blocks import LogFile


class LineMatcher(Protocol):
    """A condition for lines."""

    def worth(self, data: bytes) -> bool:
        """Return whether some bytes may hold such a line; they begin and end anywhere."""
        ...

    def found(self, line: str) -> bool:
        """Return whether a line is what is searched for."""
        ...


class SearchJob:
    """A search for the next line of a kind, from one place towards one end of the file."""

    def __init__(self, query: LineMatcher, origin: int, way: int, size: int) -> None:
        """Begin.

        Args:
            query: What to look for.
            origin: Lines that begin here or later are looked at, or before it.
            way: 1 for later lines, -1 for earlier ones.
            size: Bytes of the file.
        """
        self.query, self.origin, self.way = query, origin, way
        self.at = min(max(0, origin), size)
        """Position in the file, in bytes."""
        self.found: int | None = None
        """Where the line begins that was looked for."""
        self.done = False

    def share(self, size: int) -> float:
        """Return how much of what lies ahead has been searched."""
        whole = size - self.origin if self.way > 0 else self.origin
        return min(1.0, abs(self.at - self.origin) / whole) if whole > 0 else 1.0


def search_next(file: LogFile, search: SearchJob) -> None:
    """Search the next stretch of a file."""
    numbers = _next_blocks(file, search)
    begin = min(numbers, default=0) * blocks.BLOCK
    end = min(file.size, begin + len(numbers) * blocks.BLOCK)
    found = (
        _first_match(file, search, numbers) if _worth_reading(file, search, begin, end) else None
    )
    if found is not None:
        search.found, search.done = found, True
        return
    search.at = end if search.way > 0 else begin
    search.done = search.at >= file.size if search.way > 0 else search.at <= 0


def _next_blocks(file: LogFile, search: SearchJob) -> range:
    """Return the numbers of the blocks to search next, in the order of the search."""
    count = blocks.STRIDE // blocks.BLOCK
    if search.way > 0:
        first = search.at // blocks.BLOCK
        last = min(first + count - 1, max(0, file.size - 1) // blocks.BLOCK)
        return range(first, last + 1)
    last = (search.at - 1) // blocks.BLOCK
    return range(last, max(0, last - count + 1) - 1, -1)


def _worth_reading(file: LogFile, search: SearchJob, begin: int, end: int) -> bool:
    """Return whether a line that begins between two places may match."""
    data = file.read(begin, end - begin + blocks.WINDOW)
    if not data:
        return False
    # The end of a line that is longer than what was read may hold anything.
    cut = len(data) == end - begin + blocks.WINDOW and b"\n" not in data[end - begin :]
    return cut or search.query.worth(data)


def _first_match(file: LogFile, search: SearchJob, numbers: range) -> int | None:
    """Return where the first line that matches begins, None if none does."""
    for number in numbers:
        lines = list(lines_of(file, number, search.query.worth))
        for line in lines[:: search.way]:
            ahead = (line.start >= search.origin) == (search.way > 0)
            if ahead and search.query.found(line.text):
                return line.start
    return None
