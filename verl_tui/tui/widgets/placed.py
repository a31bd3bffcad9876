"""A layout that puts each widget where it is told to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.geometry import NULL_OFFSET, NULL_SPACING, Region
from textual.layout import Layout, WidgetPlacement

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from textual.geometry import Size
    from textual.widget import Widget

    from verl_tui.rendering.arrange import Room


class Placed(Layout):
    """Places widgets by their names."""

    name = "placed"

    def __init__(self) -> None:
        self.rooms: Mapping[str, Room] = {}
        """Name of a widget -> its place."""

    def arrange(
        self,
        parent: Widget,
        children: Sequence[Widget],
        size: Size,
        greedy: bool = True,
    ) -> list[WidgetPlacement]:
        """Return the place of each widget that has one."""
        places = ((self.rooms.get(child.id or ""), child) for child in children)
        return [
            WidgetPlacement(Region(*room[:4]), NULL_OFFSET, NULL_SPACING, child)
            for room, child in places
            if room is not None
        ]
