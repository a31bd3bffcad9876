"""A search in a log for the next line of a kind, a stretch at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from verl_tui.on_demand.log import blocks
from verl_tui.on_demand.log.blocks import lines_of

if TYPE_CHECKING:
    from verl_tui.on_demand.log.blocks import LogFile


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


def hunt_on(file: LogFile, hunt: Hunt) -> None:
    """Search the next stretch of a file."""
    step = blocks.STRIDE // blocks.BLOCK
    number = hunt.at // blocks.BLOCK if hunt.way > 0 else (hunt.at - 1) // blocks.BLOCK
    first = number if hunt.way > 0 else max(0, number - step + 1)
    last = number + step - 1 if hunt.way > 0 else number
    last = min(last, max(0, file.size - 1) // blocks.BLOCK)
    begin, end = first * blocks.BLOCK, min(file.size, (last + 1) * blocks.BLOCK)
    data = file.read(begin, end - begin + blocks.WINDOW)
    # What a line that is longer than what was read holds at its end, nobody knows.
    long = len(data) == end - begin + blocks.WINDOW and b"\n" not in data[end - begin :]
    if number >= 0 and (long or hunt.query.worth(data)):
        for at in range(first, last + 1)[:: hunt.way]:
            for line in [*lines_of(file, at, hunt.query.worth)][:: hunt.way]:
                if (line.start >= hunt.origin) == (hunt.way > 0) and hunt.query.found(line.text):
                    hunt.found, hunt.done = line.start, True
                    return
    hunt.at = end if hunt.way > 0 else begin
    hunt.done = hunt.at >= file.size if hunt.way > 0 else hunt.at <= 0
