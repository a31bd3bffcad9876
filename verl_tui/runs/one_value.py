"""Which metrics have had only one value since they were first logged."""

from __future__ import annotations

from math import isclose
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from verl_tui.runs.table import Table

_ENOUGH = 8
"""Rows from which on a value may be called constant: of fewer it is not known."""
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
            if key not in self._varied and self._is_constant(key, parts):
                yield key

    def _is_constant(self, key: str, parts: Sequence[tuple[Table, int]]) -> bool:
        known = self._known.get(key, ())
        lengths = tuple([len(table) for table, _ in parts])
        if lengths != known:
            seen = (*known, *(0 for _ in range(len(parts) - len(known))))
            columns = [table.columns[at] for table, at in parts]
            firsts = [column[0] for column in columns if column]
            alike = all(isclose(one, firsts[0], rel_tol=_SINGLE) for one in firsts)
            if not alike or not all(
                column[-1] == column[0] and column[start:].count(column[0]) == len(column) - start
                for column, start in zip(columns, seen, strict=False)
                if column
            ):
                self._varied.add(key)
                self._known.pop(key, None)
                return False
            self._known[key] = lengths
        return max(lengths, default=0) >= _ENOUGH
