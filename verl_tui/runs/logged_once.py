"""Which metrics have been logged at one step only."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from verl_tui.runs.table import Table


class LoggedOnce:
    """Remembers which metrics have been logged at several steps, so that these are passed over."""

    def __init__(self) -> None:
        self._several: set[str] = set()

    def keys(self, tables: Mapping[str, Sequence[tuple[Table, int]]]) -> Iterator[str]:
        """Yield the metrics with one point only.

        Args:
            tables: The tables of each metric, and the column in them.
        """
        for key, parts in tables.items():
            if key in self._several:
                continue
            steps = {step for table, _ in parts if len(table) for step in table.span}
            if len(steps) == 1:
                yield key
            elif steps:
                self._several.add(key)
