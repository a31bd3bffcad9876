"""Widgets in columns and rows, as many as fit, which is asked while the screen is being laid out.

What a stylesheet's grid holds has to be changed after a layout, when the size is known: each new
size would be laid out and painted twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.containers import Container
from textual.geometry import NULL_OFFSET, NULL_SPACING, Region
from textual.layout import DockArrangeResult, WidgetPlacement

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.geometry import Size


class Tiles(Container):
    """Shows the first of its children in tiles of one size, a column apart; the others are out of
    sight.
    """

    BLANK = True
    """It has nothing of its own to draw: the ground is blank."""
    DEFAULT_CSS = "Tiles { height: 1fr; }"

    def __init__(self, fit: Callable[[Size], tuple[int, int, int]]) -> None:
        """Begin without children.

        Args:
            fit: Called at each layout with the size there is; returns how many columns and rows
                there are to be, and how many tiles of those are taken. What it changes in the
                children is painted after that layout.
        """
        super().__init__()
        self._fit = fit

    def arrange(self, size: Size, optimal: bool = False) -> DockArrangeResult:
        """Place the children; unlike Textual's layouts asked anew each time, whatever it was for
        the same size.
        """
        if not size:
            return DockArrangeResult([], set(), NULL_SPACING)
        columns, rows, count = self._fit(size)
        edges = [at * (size.width + 1) // columns for at in range(columns + 1)]
        levels = [at * size.height // rows for at in range(rows + 1)]
        children = self.children[:count]
        placed = []
        for number, child in enumerate(children):
            row, column = divmod(number, columns)
            region = Region.from_corners(
                edges[column], levels[row], edges[column + 1] - 1, levels[row + 1]
            )
            placed.append(WidgetPlacement(region, NULL_OFFSET, NULL_SPACING, child))
        return DockArrangeResult(placed, set(children), NULL_SPACING)
