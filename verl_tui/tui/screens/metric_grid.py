"""All metrics as charts: a page of shelves, each with charts of one group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

from verl_tui.means import clamp, page_rows
from verl_tui.rendering.charts.chart_data import ChartData, lined_up
from verl_tui.rendering.charts.plan import single_metric
from verl_tui.rendering.charts.planned_data import chart_data
from verl_tui.rendering.charts.tiles import PageOfTiles, Strip, tiled
from verl_tui.rendering.metrics.listing import (
    LEAST_HEIGHT,
    MetricList,
    Shelf,
    grid_shape,
    shelf_words,
    shelves,
)
from verl_tui.tui.widgets.chart import Chart, ChartTiles

if TYPE_CHECKING:
    from textual import events
    from textual.geometry import Size


class GridChart(Chart, can_focus=False):
    """A chart of the grid. Its keys are the grid's."""


class MetricGrid(ChartTiles):
    """Charts in columns and rows, as many as the user wants; one of them is chosen.

    It never has the focus, its keys are the screen's: with the focus the styles of all charts would
    be worked out again.
    """

    CHART = GridChart

    class Moved(Message):
        """Another chart was chosen, or another page is shown."""

    chosen = ""
    """Key of the chosen metric."""
    shape = (1, 1)
    """Columns and rows that are shown."""
    _headed = False
    """True if names of groups stand above the charts."""
    _shelves: tuple[Shelf, ...] = ()
    _page: tuple[Shelf, ...] = ()

    def __init__(self, shown: MetricList) -> None:
        super().__init__(self._page_tiles, self._page_data)
        self.keys: list[str] = []
        """The metrics of the page, those of the first charts."""
        self._shown = shown

    @property
    def pages(self) -> tuple[int, int]:
        """The page that is shown, from 1, and how many there are."""
        rows = self.shape[1]
        return self._at() // rows + 1, max(1, -(-len(self._shelves) // rows))

    # -- drawing -----------------------------------------------------------------------------------

    def show(self) -> None:
        """Draw the page of the chosen metric."""
        keys = self._shown.keys
        if self.chosen not in keys:
            self.chosen = next(iter(keys), "")
        self.draw()

    def _page_tiles(self, size: Size) -> PageOfTiles:
        """Return where the metrics of the page stand, and the names of groups above them."""
        shown = self._shown
        asked = shown.user.metrics_columns, shown.user.metrics_rows
        self.shape = columns, rows = grid_shape(*size, *asked)
        tall = size.height // rows
        named = any(group.name for group in shown.groups)
        self._headed = headed = tall > LEAST_HEIGHT and named
        self._shelves = shelves(shown.groups, columns, tall - headed)
        top = self._at() // rows * rows
        self._page = self._shelves[top : top + rows]
        strips: list[Strip] = []
        for shelf in self._page:
            strips += [Strip()] * headed
            for line in shelf.lines:
                strips.append(Strip(len(line), columns, int(not shelf.group.in_rows)))
        self.keys = [key for shelf in self._page for key in shelf.keys]
        return tiled(strips, *size)

    def _page_data(self, size: Size) -> list[ChartData]:
        """Return what the charts show, their axes lined up, and the names of groups."""
        shown, run = self._shown, self._shown.view.run
        if not run or not self.keys:
            return [ChartData("", label="metrics", empty=shown.if_empty)]
        self._mark()
        data: list[ChartData] = []
        headings: list[ChartData] = []
        for shelf in self._page:
            head = f"── {shelf_words(shelf, size.width - 3)}"
            headings.append(ChartData("", label=head, in_row=True))
            for key in shelf.keys:
                pin = "★ " * (key in shown.user.pins)
                plan = single_metric(run, key, pin + shelf.group.short(key))
                plan = plan._replace(in_row=shelf.group.in_rows)
                chart = chart_data(plan, shown.view, shown.look)
                data.append(chart._replace(headed=self._headed))
        return [*lined_up(data), *headings]

    @property
    def page_charts(self) -> list[Chart]:
        """The charts of the page, one for each of its metrics."""
        return self.charts[: len(self.keys)]

    def _mark(self) -> None:
        for at, chart in enumerate(self.charts):
            chart.mark(chosen=self.chosen in self.keys[at : at + 1])

    # -- keys and mouse ----------------------------------------------------------------------------

    def on_click(self, event: events.Click) -> None:
        """Choose the chart under the mouse."""
        if isinstance(event.widget, Chart) and event.widget.data.key:
            self._choose(event.widget.data.key)

    @property
    def tile(self) -> Chart | None:
        """The chart of the chosen metric."""
        return next((one for one in self.page_charts if one.chosen), None)

    def move(self, by: int) -> None:
        """Choose the chart before or behind."""
        keys = self._shown.keys
        if self.chosen in keys:
            self._choose(keys[clamp(keys.index(self.chosen) + by, 0, len(keys) - 1)])

    def shelf(self, by: int) -> None:
        """Choose the chart below or above."""
        lines = [line for shelf in self._shelves for line in shelf.lines]
        for at, line in enumerate(lines):
            if self.chosen in line:
                to = lines[clamp(at + by, 0, len(lines) - 1)]
                self._choose(to[min(line.index(self.chosen), len(to) - 1)])
                break

    def page(self, screens: float) -> None:
        """Turn so many pages."""
        at, by = self._at(), page_rows(screens, self.shape[1] + 1)
        to = clamp(at + by, 0, len(self._shelves) - 1)
        if self._shelves and to != at:
            column = self._shelves[at].keys.index(self.chosen) % self.shape[0]
            line = self._shelves[to].lines[0]
            self._choose(line[min(column, len(line) - 1)])

    def end(self, way: int) -> None:
        """Choose the first or last chart."""
        self.move(way * len(self._shown.keys))

    def _at(self) -> int:
        """Return the shelf of the chosen metric."""
        found = (at for at, one in enumerate(self._shelves) if self.chosen in one.keys)
        return next(found, 0)

    def _choose(self, key: str) -> None:
        if key != self.chosen:
            self.chosen = key
            if key in self.keys:
                self._mark()
            else:
                self.draw()
            self.post_message(self.Moved())
