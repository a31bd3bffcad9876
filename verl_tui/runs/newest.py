"""The last values of a metric, without making a series of all its values: for sorting hundreds of
metrics.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from operator import itemgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.runs.table import Table


def newest(
    tables: Sequence[tuple[Table, int]], count: int, end: int | None = None
) -> list[float] | None:
    """Return the values of the last `count` steps, the oldest first; None if that takes the whole
    series.

    Args:
        tables: Each table with the index of the metric's column.
        count: Steps at most.
        end: The last step that counts, None where all do.
    """
    if count < 1 or not _plain(tables):
        return [] if count < 1 else None
    # Each table holds a step once: before its last `count` rows none of its steps is among the last
    # `count`.
    merged = _Merged()
    for table, column in tables:
        stop = len(table) if end is None else bisect_right(table.steps, end)
        merged.add(table, column, slice(max(0, stop - count), stop))
    return list(merged.by_step().values())[-count:]


def since(tables: Sequence[tuple[Table, int]], first: int) -> dict[int, float] | None:
    """Return the values from a step on, by step, ascending; None if that takes the whole series.

    Args:
        tables: Each table with the index of the metric's column.
        first: The first step that counts.
    """
    if not _plain(tables):
        return None
    merged = _Merged()
    for table, column in tables:
        merged.add(table, column, slice(bisect_left(table.steps, first), None))
    return merged.by_step()


class _Merged:
    """Values of several tables: for each step, the one that was logged last."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[int, float]] = {}

    def add(self, table: Table, column: int, part: slice) -> None:
        """Take in some rows of a table."""
        values = table.columns[column][part]
        rows = zip(table.steps[part], table.orders[part], values, strict=True)
        for step, order, value in rows:
            if step not in self._found or order >= self._found[step][0]:
                self._found[step] = (order, value)

    def by_step(self) -> dict[int, float]:
        """Return the values by step, ascending."""
        return {step: self._found[step][1] for step in sorted(self._found)}


def _plain(tables: Sequence[tuple[Table, int]]) -> bool:
    """Return whether the newest rows hold the newest values: none is averaged or estimated."""
    mixed = len({table.estimated for table, _ in tables}) > 1
    return not mixed and all(table.ascending and not table.mean for table, _ in tables)


def measured(tables: Sequence[tuple[Table, int]], count: int) -> list[float]:
    """Return the last `count` values as they were measured, oldest first, none of them averaged or
    replaced.
    """
    if count < 1:
        return []
    stated = [part for part in tables if not part[0].estimated]
    rows: list[tuple[int, float]] = []
    for table, column in stated or tables:
        values = table.columns[column][-count:]
        rows += zip(table.orders[-count:], values, strict=True)
    rows.sort(key=itemgetter(0))
    return [value for _, value in rows[-count:]]
