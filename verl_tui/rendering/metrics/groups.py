"""Metrics grouped by the prefix of their keys, and the rows of a grid of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

from verl_tui.means import clamp
from verl_tui.metrics import family_rank
from verl_tui.rendering.text.piece import natural

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

OTHER = "other"
"""Group of the keys that share their prefix with no other."""
IN_ROWS = "constants and counters"
"""Group of the metrics that have had only one value, or only count."""
_GOOD_WIDTH, _GOOD_HEIGHT = 38, 8
"""Cells of a chart, and of a shelf with its heading, that are aimed at."""
_LEAST_WIDTH, LEAST_HEIGHT = 12, 3
"""Cells below which there is nothing to see."""
_MOST = 12
"""Columns and rows that can be asked for."""


@dataclass(frozen=True, slots=True)
class MetricGroup:
    """Metrics whose keys begin alike."""

    name: str
    """The prefix without its slash, `other` without one; empty for a list without groups."""
    keys: tuple[str, ...]
    in_rows: bool = False
    """True if a row of text is enough for each of them."""

    def short(self, key: str) -> str:
        """Return a key without the group's prefix."""
        return key.removeprefix(f"{self.name}/")


@dataclass(frozen=True, slots=True)
class Shelf:
    """One row of a grid: neighbours of one group, side by side; of rows of text several below each
    other.
    """

    group: MetricGroup
    first: int
    """Position of the first key within the group."""
    keys: tuple[str, ...]
    columns: int

    @property
    def lines(self) -> list[tuple[str, ...]]:
        """The keys of each line."""
        starts = range(0, len(self.keys), self.columns)
        return [self.keys[at : at + self.columns] for at in starts]


def grouped_keys(keys: Iterable[str]) -> tuple[MetricGroup, ...]:
    """Group keys by prefix, in natural order; the groups family by family, as on the dashboard."""
    known = sorted(keys, key=natural)
    counts = Counter(key.partition("/")[0] for key in known if "/" in key)
    groups: dict[str, list[str]] = {}
    for key in known:
        prefix = key.partition("/")[0] if "/" in key else ""
        groups.setdefault(prefix if counts[prefix] > 1 else OTHER, []).append(key)
    found = (MetricGroup(name, tuple(members)) for name, members in groups.items())
    return tuple(sorted(found, key=lambda group: min(map(family_rank, group.keys))))


def rows_apart(
    groups: Sequence[MetricGroup], in_rows: Container[str]
) -> tuple[MetricGroup, ...]:
    """Return groups with the metrics that are rows of text in a last one of their own; as they are
    where all of them would be.
    """
    keys = chain.from_iterable(group.keys for group in groups)
    rows = tuple(key for key in keys if key in in_rows)
    kept = [_without(group, in_rows) for group in groups]
    found = tuple(group for group in kept if group.keys)
    if not rows or not found:
        return tuple(groups)
    return (*found, MetricGroup(IN_ROWS, rows, in_rows=True))


def _without(group: MetricGroup, in_rows: Container[str]) -> MetricGroup:
    return replace(group, keys=tuple(key for key in group.keys if key not in in_rows))


def shelves(
    groups: Sequence[MetricGroup], columns: int, lines: int = 1
) -> tuple[Shelf, ...]:
    """Return the rows of a grid; each group begins a new row.

    Args:
        groups: The groups.
        columns: Charts side by side.
        lines: Rows of text that there is room for in place of a chart.
    """
    columns = max(1, columns)
    found: list[Shelf] = []
    for group in groups:
        size = columns * max(1, lines) if group.in_rows else columns
        starts = range(0, len(group.keys), size)
        found += [
            Shelf(group, at, group.keys[at : at + size], columns) for at in starts
        ]
    return tuple(found)


def grid_shape(width: int, height: int, columns: int, rows: int) -> tuple[int, int]:
    """Return columns and rows: those that are wanted as far as there is room, else as many as fit
    well.
    """
    tall = _GOOD_HEIGHT if height > 2 * _GOOD_HEIGHT else 5
    columns = columns or max(1, width // _GOOD_WIDTH)
    rows = rows or max(1, height // tall)
    most_columns = clamp(width // _LEAST_WIDTH, 1, _MOST)
    most_rows = clamp(height // LEAST_HEIGHT, 1, _MOST)
    return min(most_columns, columns), min(most_rows, rows)
