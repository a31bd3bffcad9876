"""All metrics as charts: a page of shelves, each with charts of one group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

from verl_tui.means import clamp, page_rows
from verl_tui.rendering.charts.chart_data import ChartData, lined_up
from verl_tui.rendering.charts.plan import single_metric
from verl_tui.rendering.charts.planned_data import chart_data
from verl_tui.rendering.charts.tiles import Strip, tiled
from verl_tui.rendering.metrics.listing import (
    LEAST_HEIGHT,
    ListedMetrics,
    Shelf,
    grid_shape,
    shelf_words,
    shelves,
)
from verl_tui.tui.widgets.chart import Chart, ChartTiles, Tile

if TYPE_CHECKING:
    from textual import events
    from textual.geometry import Size


class GridChart(Chart, can_focus=False, inherit_bindings=False):
    """A chart of the grid. Its keys are the grid's."""


class MetricGrid(ChartTiles):
    """Charts in columns and rows, as many as the user wants; one of them is chosen.

    It never has the focus, its keys are the screen's: with the focus the styles of all charts would
    be worked out anew.
    """

    CHART = GridChart

    class Moved(Message):
        """Another chart was chosen, or another page is shown."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(self._page_tiles, self._page_data, id=id)
        self.chosen: str | None = None
        """Key of the chosen metric."""
        self.shape = (1, 1)
        """Columns and rows that are shown."""
        self.keys: list[str] = []
        """The metrics of the page, those of the first charts."""
        self._shown: ListedMetrics | None = None
        self._shelves: tuple[Shelf, ...] = ()
        self._page: tuple[Shelf, ...] = ()

    @property
    def pages(self) -> tuple[int, int]:
        """The page that is shown, from 1, and how many there are."""
        rows = self.shape[1]
        return self._at() // rows + 1, max(1, -(-len(self._shelves) // rows))

    # -- drawing -----------------------------------------------------------------------------------

    def show(self, shown: ListedMetrics) -> None:
        """Draw the page of the chosen metric."""
        self._shown = shown
        if self.chosen not in shown.keys:
            self.chosen = next(iter(shown.keys), None)
        self.draw()

    def _page_tiles(self, size: Size) -> list[Tile]:
        """Return where the metrics of the page stand, and the names of groups above them."""
        shown = self._shown
        if shown is None:
            return []
        user = shown.user
        self.shape = columns, rows = grid_shape(
            *size, user.metrics_columns, user.metrics_rows
        )
        tall = size.height // rows
        headed = tall > LEAST_HEIGHT and any(group.name for group in shown.groups)
        self._shelves = shelves(shown.groups, columns, tall - headed)
        top = self._at() // rows * rows
        self._page = self._shelves[top : top + rows]
        strips: list[Strip] = []
        for shelf in self._page:
            kind = int(not shelf.group.in_rows)
            strips += [Strip()] * headed
            strips += [Strip(len(line), columns, kind) for line in shelf.lines]
        self.keys = [key for shelf in self._page for key in shelf.keys]
        tiles, headings = tiled(strips, *size)
        return [tile[:4] for tile in (*tiles, *headings)] or [(0, 0, *size)]

    def _page_data(self, size: Size) -> list[ChartData]:
        """Return what the charts show, their axes lined up, and the names of groups."""
        shown = self._shown
        if shown is None:
            return []
        run = shown.view.run
        if run is None or not self.keys:
            return [ChartData("", label="metrics", empty=shown.otherwise)]
        groups = {key: shelf.group for shelf in self._page for key in shelf.keys}
        pins = dict.fromkeys(shown.user.pins, "★ ")
        plans = (
            single_metric(run, key, pins.get(key, "") + group.short(key))._replace(
                in_row=group.in_rows
            )
            for key, group in groups.items()
        )
        self._mark()
        data = lined_up([chart_data(plan, shown.view, shown.look) for plan in plans])
        heads = (shelf_words(shelf, size.width - 3) for shelf in self._page)
        return [
            *data,
            *(ChartData("", label=f"── {head}", in_row=True) for head in heads),
        ]

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
        keys = self._shown.keys if self._shown is not None else ()
        if self.chosen in keys:
            self._choose(keys[clamp(keys.index(self.chosen) + by, 0, len(keys) - 1)])

    def shelf(self, by: int) -> None:
        """Choose the chart below or above."""
        lines = [line for shelf in self._shelves for line in shelf.lines]
        for at, line in enumerate(lines):
            if self.chosen in line:
                to = lines[clamp(at + by, 0, len(lines) - 1)]
                self._choose(to[min(line.index(self.chosen), len(to) - 1)])
                return

    def page(self, screens: float) -> None:
        """Turn so many pages."""
        at = self._at()
        to = at + page_rows(screens, self.shape[1] + 1)
        to = clamp(to, 0, len(self._shelves) - 1)
        if self._shelves and to != at:
            column = self._shelves[at].keys.index(self.chosen or "") % self.shape[0]
            line = self._shelves[to].lines[0]
            self._choose(line[min(column, len(line) - 1)])

    def end(self, way: int) -> None:
        """Choose the first or last chart."""
        keys = self._shown.keys if self._shown is not None else ()
        if keys:
            self._choose(keys[0 if way < 0 else -1])

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
