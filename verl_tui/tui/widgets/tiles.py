"""Widgets in columns and rows, as many as fit, which is asked while the screen is being laid out.

The contents of a stylesheet's grid can only be changed after a layout, when the size is known: each
new size would be laid out and painted twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.containers import Container
from textual.geometry import NULL_OFFSET, NULL_SPACING, Region
from textual.layout import DockArrangeResult, WidgetPlacement

from verl_tui.tui.terminal.net import ContainedWidget

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from textual.geometry import Size
    from textual.strip import Strip


class Tiles(ContainedWidget, Container):
    """Shows the first of its children in tiles; the others are out of sight."""

    BLANK = True
    """It has nothing of its own to draw: the ground is blank."""
    DEFAULT_CSS = "Tiles { height: 1fr; }"

    def __init__(
        self, fit: Callable[[Size], Sequence[tuple[int, int, int, int]]]
    ) -> None:
        """Begin without children.

        Args:
            fit: Called at each layout with the size there is; returns the tiles: left, top,
                width and height. What it changes in the children is painted after that layout.
        """
        super().__init__()
        self._fit = fit

    def arrange(self, size: Size, optimal: bool = False) -> DockArrangeResult:
        """Place the children; unlike Textual's layouts asked anew each time, whatever it was for
        the same size.
        """
        if not size:
            return DockArrangeResult([], set(), NULL_SPACING)
        tiles = self._fit(size)
        children = self.children[: len(tiles)]
        placed = [
            WidgetPlacement(Region(*tile), NULL_OFFSET, NULL_SPACING, child)
            for tile, child in zip(tiles, children, strict=False)
        ]
        return DockArrangeResult(placed, set(children), NULL_SPACING)

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the ground through the filters, which Textual leaves out where all is blank: with
        NO_COLOR it has no colour either.
        """
        if not crop.height:
            return []
        (row,) = super().render_lines(Region(crop.x, crop.y, crop.width, 1))
        ground = self.background_colors[1]
        for one in self.get_line_filters():
            row = row.apply_filter(one, ground)
        return [row] * crop.height
