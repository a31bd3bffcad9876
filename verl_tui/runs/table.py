"""Numbers as they arrived: one table for the keys that arrive together, with one step column for all of them."""

from __future__ import annotations

from array import array
from math import isfinite
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from verl_tui.records import Rows

_ROW_BITS = 40
_SEGMENT_BITS = 10
_ORDINAL_BITS = 9
_RANK_BITS = 4


def precedence(rank: int, ordinal: int, segment: int) -> int:
    """Return the base of a row's precedence: of two values for one step, the higher one holds.

    A better source beats a lossier one, a later file an earlier one, a later segment (the run was restarted) an
    earlier one. The rank comes first, since segments of different files cannot be told to be the same: verl's file
    logger begins its file anew at each start, a console goes on. It depends on what was written only, never on how
    it was read, so that every way of reading a log gives the same series.

    Args:
        rank: Quality of the source's format, 0..15.
        ordinal: Place of the source among the run's sources, 0..511.
        segment: How often the source started anew before this row, 0..1023.
    """
    source = (min(rank, 15) << _ORDINAL_BITS) | min(ordinal, 511)
    return ((source << _SEGMENT_BITS) | min(segment, 1023)) << _ROW_BITS


def source_of(order: int) -> tuple[int, int]:
    """Return the rank and the ordinal of the source whose row has this precedence."""
    source = order >> (_ROW_BITS + _SEGMENT_BITS)
    return source >> _ORDINAL_BITS, source & ((1 << _ORDINAL_BITS) - 1)


class Table:
    """Rows of one source and segment that share the same keys. Grows only."""

    def __init__(self, keys: tuple[str, ...], *, mean: bool) -> None:
        self.keys = keys
        self.mean = mean
        """Whether repeated steps are measurements to be averaged."""
        self.steps = array("q")
        self.orders = array("q")
        """Precedence of each row, see `precedence`."""
        self.times = array("d")
        """Wall-clock time of each row in seconds since the epoch, nan where unknown."""
        self.columns = tuple(array("d") for _ in keys)
        self.ascending = True
        """True while every step is greater than the one before."""
        self.odd: set[str] = set()
        """Keys that have had a value that is not finite: most never have, and need not be searched for one."""

    def __len__(self) -> int:
        return len(self.steps)

    def extend(self, rows: Rows, precedence: int, times: array[float]) -> None:
        """Append rows.

        Args:
            rows: Rows with exactly this table's keys.
            precedence: Of the rows' source and segment, see `precedence`; the place in the file decides within it.
            times: Wall-clock time of each row.
        """
        before = self.steps[-1] if self.steps else None
        for step in rows.steps:
            if before is not None and step <= before:
                self.ascending = False
                break
            before = step
        self.steps.extend(rows.steps)
        self.orders.extend(map(precedence.__add__, rows.orders))
        self.times.extend(times)
        for key, column, values in zip(self.keys, self.columns, rows.columns, strict=True):
            column.extend(values)
            if not isfinite(sum(values)):
                self.odd.add(key)
