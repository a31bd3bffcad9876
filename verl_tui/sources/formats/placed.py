"""Puts records that were read apart in their place in a file."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING

from verl_tui.records import MetricRows, Unreadable

if TYPE_CHECKING:
    from verl_tui.records import Record


@dataclass(frozen=True, slots=True)
class Placed:
    """Puts records that were read apart in their place in the file."""

    rows: int
    """Rows before them, 0 where the orders of rows are times."""
    lines: int
    """Lines before them, or what the numbers of lines stand for."""

    def of(self, record: Record) -> Record:
        """Return a record with the place that it has in the file."""
        if isinstance(record, MetricRows) and self.rows:
            return record._replace(
                orders=array("q", map(self.rows.__add__, record.orders))
            )
        if isinstance(record, Unreadable):
            return record._replace(line=record.line + self.lines)
        return record
