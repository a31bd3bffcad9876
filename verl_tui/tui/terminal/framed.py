"""A frame around widgets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.containers import Container
from textual.geometry import Region

if TYPE_CHECKING:
    from textual.strip import Strip


class Framed(Container):
    """A container that shows nothing itself but its frame."""

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the frame: of its rows between the edges one stands for all, there is nothing else
        in them.
        """
        width, height = self.outer_size
        if height < 4 or crop != Region(0, 0, width, height):
            return super().render_lines(crop)
        top, side = super().render_lines(Region(0, 0, width, 2))
        return [
            top,
            *([side] * (height - 2)),
            *super().render_lines(Region(0, height - 1, width, 1)),
        ]
