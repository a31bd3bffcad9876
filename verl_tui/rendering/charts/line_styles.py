"""The straight lines of a chart: each looks unlike the others, so that colour is never needed to
distinguish them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from verl_tui.rendering.charts.braille import DotLayer

if TYPE_CHECKING:
    from collections.abc import Iterable


class LineStyle(NamedTuple):
    """How a line is broken up: of each `period` dots the first `dots` are drawn."""

    period: int
    dots: int
    sign: str
    """A character that looks like it."""
    upright: bool = False


LINE_STYLES = {
    "band": LineStyle(2, 1, "═"),
    "target": LineStyle(8, 6, "━"),
    "restart": LineStyle(2, 1, "┊", upright=True),
}
"""By role."""


def straight_lines(
    role: str, width: int, height: int, places: Iterable[int]
) -> DotLayer:
    """Return a layer of `width` x `height` cells with the lines of a role at these dot rows, or
    columns if upright.
    """
    stroke = LINE_STYLES[role]
    layer = DotLayer(width, height, role, backdrop=True)
    length = height * 4 if stroke.upright else width * 2
    for place in places:
        for at in range(length):
            if at % stroke.period < stroke.dots:
                if stroke.upright:
                    layer.dot(place, at)
                else:
                    layer.dot(at, place)
    return layer
