"""A search in a log for the next line that matches, some blocks at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from verl_tui.on_demand.log import log_blocks
from verl_tui.on_demand.log.log_blocks import lines_of

if TYPE_CHECKING:
    from verl_tui.on_demand.log.log_blocks import LogFile


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
        if whole > 0:
            return min(1.0, abs(self.at - self.origin) / whole)
        return 1.0


def search_next(file: LogFile, search: SearchJob) -> None:
    """Search the next blocks of a file."""
    numbers = _next_blocks(file, search)
    begin = min(numbers, default=0) * log_blocks.BLOCK
    end = min(file.size, begin + len(numbers) * log_blocks.BLOCK)
    found = (
        _first_match(file, search, numbers)
        if _worth_reading(file, search, begin, end)
        else None
    )
    if found is not None:
        search.found = found
        search.done = True
        return
    search.at = end if search.way > 0 else begin
    search.done = search.at >= file.size if search.way > 0 else search.at <= 0


def _next_blocks(file: LogFile, search: SearchJob) -> range:
    """Return the numbers of the blocks to search next, in the order of the search."""
    count = log_blocks.STRIDE // log_blocks.BLOCK
    if search.way > 0:
        first = search.at // log_blocks.BLOCK
        last = min(first + count - 1, max(0, file.size - 1) // log_blocks.BLOCK)
        return range(first, last + 1)
    last = (search.at - 1) // log_blocks.BLOCK
    return range(last, max(0, last - count + 1) - 1, -1)


def _worth_reading(file: LogFile, search: SearchJob, begin: int, end: int) -> bool:
    """Return True if a line that begins between two positions may match."""
    data = file.read(begin, end - begin + log_blocks.WINDOW)
    if not data:
        return False
    # The unread end of a longer line may contain anything.
    cut = (
        len(data) == end - begin + log_blocks.WINDOW
        and b"\n" not in data[end - begin :]
    )
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
