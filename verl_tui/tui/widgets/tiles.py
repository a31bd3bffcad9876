"""Widgets where they are told to stand; and charts in tiles, drawn now or, where all would take too
long for one frame, in the next.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from textual.containers import Container
from textual.geometry import NULL_OFFSET, NULL_SPACING, Region
from textual.layout import DockArrangeResult, Layout, WidgetPlacement

from verl_tui.tui.terminal.net import ContainedWidget
from verl_tui.tui.widgets.chart import Chart

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from textual.geometry import Size
    from textual.strip import Strip
    from textual.widget import Widget

    from verl_tui.rendering.arrange import Room
    from verl_tui.rendering.charts.chart_data import ChartData

_FRAME = 0.05
"""Seconds of drawing after which the charts that are left wait for the next frame: a key may have
been pressed. The first charts of a run of 100,000 steps take longer.
"""
Tile = tuple[int, int, int, int]
"""Left, top, width and height."""


def _placed(widget: Widget, *room: int) -> WidgetPlacement:
    return WidgetPlacement(Region(*room[:4]), NULL_OFFSET, NULL_SPACING, widget)


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
        rooms = self.rooms
        return [
            _placed(child, *rooms[child.id or ""])
            for child in children
            if child.id in rooms
        ]


class ChartTiles(ContainedWidget, Container):
    """As many charts as are asked for; those that are not needed any more wait out of sight.

    How many fit is asked while the screen is being laid out: the contents of a stylesheet's grid
    can only be changed after a layout, when the size is known, and each new size would be laid out
    and painted twice.
    """

    BLANK = True
    """It has nothing of its own to draw: the ground is blank."""
    DEFAULT_CSS = "ChartTiles { height: 1fr; }"
    CHART: type[Chart] = Chart
    """What the charts are."""

    def __init__(
        self,
        tiles: Callable[[Size], Sequence[Tile]],
        data: Callable[[Size], Sequence[ChartData]],
        *,
        id: str | None = None,
    ) -> None:
        """Begin without charts.

        Args:
            tiles: Called at each layout with the size there is; returns where charts stand.
            data: Returns what the charts show at a size; called where they are drawn.
            id: As of every widget.
        """
        super().__init__(id=id)
        self._tiles = tiles
        self._data = data
        self._laid: object = None
        """What the last layout has placed; further charts may be on their way."""
        self.waiting: list[tuple[Chart, ChartData]] = []
        """Charts that the next frame draws, and what they show then."""

    def draw(self) -> None:
        """Draw the charts: now where they keep their places, else in the layout that it takes."""
        if not self.is_attached or not self.size:
            return
        tiles = self._tiles(self.size)
        self._have(len(tiles))
        if (self.size, tiles, len(self.children)) != self._laid:
            self.refresh(layout=True)
        else:
            self._fill(self.size, in_layout=False)

    def arrange(self, size: Size, optimal: bool = False) -> DockArrangeResult:
        """Place the charts; unlike Textual's layouts asked anew each time, whatever it was for the
        same size.
        """
        tiles = self._tiles(size) if size else ()
        if len(self.children) < len(tiles):
            self.call_later(self._have, len(tiles))
        if (size, tiles, len(self.children)) != self._laid:
            self._laid = size, tiles, len(self.children)
            self._fill(size, in_layout=True)
        children = self.children[: len(tiles)]
        placed = [
            _placed(child, *tile) for child, tile in zip(children, tiles, strict=False)
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

    def _have(self, count: int) -> None:
        """Make the charts that there are too few of."""
        missing = count - len(self.children)
        if self.is_attached and missing > 0:
            self.mount(*(self.CHART() for _ in range(missing)))

    @property
    def charts(self) -> list[Chart]:
        """All charts there are, without a search by the stylesheet's rules."""
        return [one for one in self.children if isinstance(one, Chart)]

    def _fill(self, size: Size, *, in_layout: bool) -> None:
        """Show in each chart what it is of: as many as a frame has time for, then the others.

        In a layout, which gives charts other sizes, those that are drawn later are blank until
        then.
        """
        data = self._data(size) if size else ()
        self.waiting = [*zip(self.charts, data, strict=False)]
        for chart, _ in self.waiting if in_layout else ():
            chart.expect_layout()
        self._draw_waiting()
        if in_layout or self.waiting:
            self.call_after_refresh(self._fill_waiting)

    def _fill_waiting(self) -> None:
        """Draw the charts that were left to this frame, and those that a layout left where they had
        been.
        """
        for chart in self.charts:
            chart.catch_up()
        self._draw_waiting()
        if self.waiting:
            self.call_after_refresh(self._fill_waiting)

    def _draw_waiting(self) -> None:
        """Draw the waiting charts, no more after a frame's time."""
        until = monotonic() + _FRAME
        while self.waiting:
            chart, data = self.waiting.pop(0)
            chart.show(data)
            if monotonic() > until:
                break
