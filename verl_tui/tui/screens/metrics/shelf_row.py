"""A shelf of the metrics screen: a heading, and charts of one group side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.containers import Horizontal, Vertical
from textual.message import Message

from verl_tui.rendering.charts.chart_data import ChartData
from verl_tui.tui.terminal.net import ContainedWidget
from verl_tui.tui.widgets.chart import Chart
from verl_tui.tui.widgets.line import Line

if TYPE_CHECKING:
    from textual import events
    from textual.app import ComposeResult
    from textual.widget import Widget

    from verl_tui.rendering.charts.braille import Text


async def mount_later(parent: Widget, *children: Widget) -> None:
    """Put something in its place, unless the screen has been left meanwhile."""
    if parent.is_attached:
        await parent.mount(*children)


class Tile(Chart, can_focus=False, inherit_bindings=False):
    """A chart of the grid, or an empty place. Its keys are the grid's."""

    class Clicked(Message):
        """The mouse chose a chart."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    def __init__(self) -> None:
        super().__init__()
        self.drawn: tuple[object, str] | None = None
        """Run and key of the metric that is shown, None for an empty place."""
        self._chosen = False

    def choose(self, chosen: bool) -> None:
        """Look chosen, or no longer; a class or the focus would have the styles of all charts
        worked out anew.
        """
        if chosen != self._chosen:
            self._chosen = chosen
            self._redraw()

    def clear(self) -> None:
        """Be an empty place."""
        if self.drawn is not None or self._data.empty:
            self.drawn = None
            self._chosen = False
            self.show(ChartData("", empty=""))

    @property
    def _looks_focused(self) -> bool:
        return self._chosen

    def draw(self, width: int, height: int) -> list[Text]:
        """Return its rows; of the chosen chart the title is marked."""
        rows = super().draw(width, height)
        if self._chosen and rows:
            rows[0] = tuple(map(_marked, rows[0]))
        return rows

    def on_click(self, event: events.Click) -> None:
        """Be chosen, and read where the mouse points."""
        event.stop()
        if self.drawn is not None:
            self.post_message(self.Clicked(self.drawn[1]))
            super().on_click(event)


def _marked(piece: tuple[str, str]) -> tuple[str, str]:
    """Return a piece of the title of the chosen chart."""
    text, role = piece
    return text, "cursor" if role == "focused" else role


class ShelfRow(ContainedWidget, Vertical):
    """A heading, and charts side by side. Nothing in it is hidden while pages turn: that would cost
    a layout.
    """

    DEFAULT_CSS = """
    ShelfRow {
        height: 1fr;
        & > Horizontal { height: 1fr; }
        & Tile { margin: 0 1 0 0; }
        &.-lines > Horizontal { layout: grid; grid-rows: 1; }
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self.heading = Line()
        self.tiles: list[Tile] = []
        self._charts = Horizontal()

    def compose(self) -> ComposeResult:
        """The heading stands above its charts."""
        yield self.heading
        yield self._charts

    def have(self, columns: int, lines: int | None) -> list[Tile]:
        """Return so many charts side by side, or lines of them, each a row of text high; those to
        spare wait out of sight.
        """
        count = columns * (lines or 1)
        if len(self.tiles) < count:
            missing = count - len(self.tiles)
            fresh = [Tile() for _ in range(missing)]
            self.tiles += fresh
            self.call_later(mount_later, self._charts, *fresh)
        for number, tile in enumerate(self.tiles):
            tile.display = number < count
        if lines is not None:
            self._charts.styles.grid_size_columns = columns
        self.set_class(lines is not None, "-lines")
        return self.tiles[:count]
