"""A table of as many columns as fit: each says its width, how far it may grow, how long it stays.

Widths are terminal cells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from rich.cells import cell_len

from verl_tui.rendering.text.piece import Pieces, TextRows, cells_of, cut

T = TypeVar("T")
GAP = 2
"""Cells between two columns."""
WIDEST = 1 << 20
"""As a width: that of the widest value, or of the title."""


@dataclass(frozen=True)
class TextColumn(Generic[T]):
    """One column of a table."""

    title: str
    cell: Callable[[T, int], Pieces]
    """Writes a row's value in so many cells; what is longer is cut."""
    width: int
    """Cells, or `WIDEST`."""
    stays: float
    """The column with the lowest goes first; that with the highest is never left out."""
    most: int = 0
    """Cells that it may grow to where there is room to spare, that which stays longest first."""
    right: bool = False
    """True if aligned to the right, as numbers are."""
    gap: int = GAP
    """Cells before it."""


class FittedTable(Generic[T]):
    """The columns that fit a width."""

    def __init__(
        self,
        columns: Sequence[TextColumn[T]],
        width: int,
        items: Sequence[T] = (),
        is_filled: Callable[[TextColumn[T]], bool] = lambda _: True,
    ) -> None:
        """Choose them.

        Args:
            columns: All there are, in their order.
            width: Cells of a row.
            items: What columns as wide as their widest value are measured by.
            is_filled: Whether a column has anything to show; asked while there is room for it.
        """
        widths = [_widths(one, items) for one in columns]
        sizes: dict[int, int] = {}
        room = width + GAP
        for at in sorted(range(len(columns)), key=lambda at: -columns[at].stays):
            needed = widths[at][0] + columns[at].gap
            if (needed <= room or not sizes) and is_filled(columns[at]):
                sizes[at] = min(widths[at][0], max(0, width))
                room -= needed
        for at in sizes:
            least, most = widths[at]
            grown = max(0, min(most - least, room))
            sizes[at] += grown
            room -= grown
        self.columns = [(columns[at], sizes[at]) for at in sorted(sizes)]
        """The columns that are shown, each with its cells."""

    def heading(self, role: str = "heading") -> Pieces:
        """Return the titles, those without room left out."""
        return self.cells(
            lambda column, size: [
                (column.title * (cell_len(column.title) <= size), role)
            ]
        )

    def row(self, item: T) -> Pieces:
        """Return the row of one thing."""
        return self.cells(lambda column, size: column.cell(item, size))

    def cells(self, write: Callable[[TextColumn[T], int], Pieces]) -> Pieces:
        """Return a row of what is written for each column, in so many cells."""
        row: Pieces = []
        for column, size in self.columns:
            row += [(" " * column.gap, "")] if row else []
            row += sized(write(column, size), size, right=column.right)
        return [piece for piece in row if piece[0]]


def _widths(column: TextColumn[T], items: Sequence[T]) -> tuple[int, int]:
    """Return the least and the most cells of a column."""
    asked = (column.width, column.most)
    if WIDEST not in asked:
        return asked
    cells = [cells_of(column.cell(one, WIDEST)) for one in items]
    widest = max(cell_len(column.title), *cells, 0)
    return min(column.width, widest), min(column.most, widest)


def table_rows(
    items: Sequence[T], width: int, columns: Sequence[TextColumn[T]]
) -> TextRows:
    """Return a row for each of these things, in as many of the columns as fit."""
    return [*map(FittedTable(columns, width, items).row, items)]


def stacked(
    blocks: Iterable[Iterable[Pieces]], *, apart: bool = False
) -> tuple[TextRows, list[int]]:
    """Return blocks of rows below each other, and the row that each begins at; on request with an
    empty row between those that have any.
    """
    rows: TextRows = []
    starts: list[int] = []
    for block in map(list, blocks):
        rows += [[]] * bool(apart and rows and block)
        starts.append(len(rows))
        rows += block
    return rows, starts


def sized(pieces: Pieces, size: int, *, right: bool = False) -> Pieces:
    """Return a value padded or cut to exactly so many cells."""
    pieces = cut(pieces, size)
    spare = size - cells_of(pieces)
    space = [(" " * spare, "")] * (spare > 0)
    return [*space, *pieces] if right else [*pieces, *space]
