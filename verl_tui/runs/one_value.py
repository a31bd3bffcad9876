"""Which metrics have had only one value since they were first logged."""

from __future__ import annotations

from itertools import chain, repeat
from math import isclose
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from verl_tui.runs.table import Table

_ENOUGH = 8
"""Rows from which on a value may be called constant: with fewer it is unknown."""
_SINGLE = 2.0**-23
"""Logs of one run may differ by so much of a value: event files round to 24 bits."""


class OneValue:
    """Remembers which metrics have varied, so that each value is looked at once.

    Values count that a restart or a better log has replaced, too: a metric that had another value
    then is not called constant.
    """

    def __init__(self) -> None:
        self._varied: set[str] = set()
        self._known: dict[str, tuple[int, ...]] = {}
        """The rows of each table in which a metric has been constant so far."""

    def keys(self, tables: Mapping[str, Sequence[tuple[Table, int]]]) -> Iterator[str]:
        """Yield the metrics that have had one value only.

        Args:
            tables: The tables of each metric, and the column in them.
        """
        for key, parts in tables.items():
            if self.is_constant(key, parts):
                yield key

    def is_constant(self, key: str, parts: Sequence[tuple[Table, int]]) -> bool:
        """Return whether a metric has had one value only.

        Args:
            key: The metric.
            parts: Its tables, and the column in them.
        """
        if key in self._varied:
            return False
        seen = self._known.get(key, ())
        lengths = tuple([len(table) for table, _ in parts])
        if lengths != seen:
            if not _is_one([table.columns[at] for table, at in parts], seen):
                self._varied.add(key)
                self._known.pop(key, None)
                return False
            self._known[key] = lengths
        return max(lengths, default=0) >= _ENOUGH


def _is_one(columns: Sequence[Sequence[float]], seen: Sequence[int]) -> bool:
    """Return whether columns have one value in all rows; so many rows of each have been checked
    before.
    """
    checked = chain(seen, repeat(0))
    starts = [pair for pair in zip(columns, checked, strict=False) if pair[0]]
    values = [column[max(0, start - 1)] for column, start in starts]
    if not all(isclose(value, values[0], rel_tol=_SINGLE) for value in values):
        return False
    parts = zip(starts, values, strict=True)
    return all(_goes_on(column, start, value) for (column, start), value in parts)


def _goes_on(column: Sequence[float], start: int, value: float) -> bool:
    """Return whether a column holds only this value from a row on."""
    if column[-1] != value:
        return False
    return column[start:].count(value) == len(column) - start
