"""All metrics as charts: a page of shelves, each with charts of one group."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from textual import on
from textual.containers import Container
from textual.message import Message

from verl_tui.means import clamp
from verl_tui.rendering.charts.alignment import lined_up
from verl_tui.rendering.charts.chart_data import ChartData
from verl_tui.rendering.charts.plan import single_metric
from verl_tui.rendering.charts.planned_data import chart_data
from verl_tui.rendering.metrics.groups import LEAST_HEIGHT, grid_shape, shelves
from verl_tui.rendering.metrics.header_lines import shelf_words
from verl_tui.rendering.metrics.shown import BUDGET
from verl_tui.tui.screens.metrics.shelf_row import ShelfRow, Tile, mount_later
from verl_tui.tui.terminal.net import ContainedWidget

if TYPE_CHECKING:
    from collections.abc import Iterator

    from textual.timer import Timer

    from verl_tui.rendering.charts.plan import PlannedChart
    from verl_tui.rendering.metrics.groups import MetricGroup, Shelf
    from verl_tui.rendering.metrics.shown import ListedMetrics
    from verl_tui.runs.run import Run


class MetricGrid(ContainedWidget, Container):
    """Charts in columns and rows, as many as the user wants; one of them is chosen.

    It never has the focus, its keys are the screen's: with the focus the styles of all charts would
    be worked out anew.
    """

    DEFAULT_CSS = "MetricGrid { height: 1fr; }"

    class Moved(Message):
        """Another chart was chosen, or another page is shown."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.chosen: str | None = None
        """Key of the chosen metric."""
        self._shown: ListedMetrics | None = None
        self._shelves: tuple[Shelf, ...] = ()
        self._shape = (1, 1)
        """Columns and rows."""
        self._rows: list[ShelfRow] = []
        self._places: dict[str, tuple[Tile, MetricGroup]] = {}
        """Where the metrics of the page are."""
        self._data: dict[str, ChartData] = {}
        """The data of the charts that are shown, by key."""
        self._waiting: Iterator[str] = iter(())
        self.later: Timer | None = None
        """Draws what there was no time to draw at once; None where nothing waits."""

    @property
    def shape(self) -> tuple[int, int]:
        """Columns and rows that are shown."""
        return self._shape

    @property
    def pages(self) -> tuple[int, int]:
        """The page that is shown, from 1, and how many there are."""
        rows = self._shape[1]
        return self._at() // rows + 1, max(1, -(-len(self._shelves) // rows))

    def show(self, shown: ListedMetrics) -> None:
        """Draw the page of the chosen metric."""
        self._shown = shown
        width, height = self.size if self.is_attached else (0, 0)
        if width < 1 or height < 1:
            return
        user = shown.user
        self._shape = grid_shape(width, height, user.metrics_columns, user.metrics_rows)
        columns, rows = self._shape
        shelf_height = height // rows - self._headed(shown)
        self._shelves = shelves(shown.groups, columns, shelf_height)
        keys = shown.keys
        if self.chosen not in keys:
            self.chosen = keys[0] if keys else None
        if self._rows:
            self._fill(shown)
        else:
            self.call_later(self._open)

    def _open(self) -> None:
        """Make the first charts: the screen is seen before."""
        if self._shown is not None and not self._rows:
            self._fill(self._shown)

    def _fill(self, shown: ListedMetrics) -> None:
        """Give each metric of the page its tile, and draw them."""
        rows = self._shape[1]
        while len(self._rows) < rows:
            self._rows.append(ShelfRow())
            self.call_later(mount_later, self, self._rows[-1])
        top = self._at() // rows * rows
        page = self._shelves[top : top + rows]
        headed = self._headed(shown)
        self._places = {}
        for number, row in enumerate(self._rows):
            row.display = number < rows
            row.heading.display = headed
            self._fill_row(row, page[number] if number < len(page) else None, shown)
        if not page:  # the first place says why
            first = self._rows[0].tiles[0]
            first.drawn = None
            first.show(ChartData("", label="metrics", empty=shown.otherwise))
        self._begin(shown)

    def _headed(self, shown: ListedMetrics) -> bool:
        """Return whether there is room for the names of groups, if they have any."""
        tall = self.size.height // self._shape[1] > LEAST_HEIGHT
        return tall and any(group.name for group in shown.groups)

    def _fill_row(
        self, row: ShelfRow, shelf: Shelf | None, shown: ListedMetrics
    ) -> None:
        """Give the metrics of a shelf their tiles; those to spare are empty."""
        row.heading.show(shelf_words(shelf, self.size.width))
        tiles = row.tiles
        if row.display:
            tiles = row.have(self._shape[0], shelf.text_rows if shelf else None)
        keys = shelf.keys if shelf is not None else ()
        for place, tile in enumerate(tiles):
            if shelf is not None and place < len(keys):
                self._places[keys[place]] = (tile, shelf.group)
            elif self._shelves or tile is not self._rows[0].tiles[0]:
                tile.clear()

    def _begin(self, shown: ListedMetrics) -> None:
        """Draw as many charts as there is time for, the chosen one first, and the others a moment
        later.
        """
        run = shown.view.run
        self._data = self._lined_up(shown) if run is not None else {}
        for key, (tile, group) in self._places.items():
            if tile.drawn != (run, key):
                tile.drawn = (run, key)
                tile.show(ChartData(key, label=group.short(key), empty=""))
            tile.choose(key == self.chosen)
        self._waiting = iter(sorted(self._places, key=lambda key: key != self.chosen))
        self._go_on()

    def _lined_up(self, shown: ListedMetrics) -> dict[str, ChartData]:
        """Return what the charts of the page show, with axes that line up."""
        run = shown.view.run
        assert run is not None
        plans = [
            self._plan(shown, run, key, group)
            for key, (_, group) in self._places.items()
        ]
        data = lined_up([chart_data(plan, shown.view, shown.look) for plan in plans])
        return {chart.key: chart for chart in data}

    def _plan(
        self, shown: ListedMetrics, run: Run, key: str, group: MetricGroup
    ) -> PlannedChart:
        """Return what the chart of a metric shows, with a mark where it is pinned."""
        mark = "★ " if key in shown.user.pins else ""
        label = mark + group.short(key)
        return single_metric(run, key, label)._replace(in_row=group.in_rows)

    def _go_on(self) -> None:
        if self.later is not None:
            self.later.stop()
            self.later = None
        shown = self._shown
        until = monotonic() + BUDGET
        if shown is None or shown.view.run is None:
            return
        for key in self._waiting:
            self._places[key][0].show(self._data[key])
            if monotonic() > until:
                self.later = self.set_timer(0.005, self._go_on)
                return

    def _at(self) -> int:
        """Return the shelf of the chosen metric."""
        for at, shelf in enumerate(self._shelves):
            if self.chosen in shelf.keys:
                return at
        return 0

    def on_resize(self) -> None:
        """Make as many charts as fit now."""
        if self._shown is not None:
            self.call_after_refresh(self.show, self._shown)

    @on(Tile.Clicked)
    def _clicked(self, message: Tile.Clicked) -> None:
        message.stop()
        self._choose(message.key)

    def read(self, columns: int) -> None:
        """Move the cursor by so many columns of the chosen chart."""
        if self.chosen in self._places:
            self._places[self.chosen][0].action_read(columns)

    def read_end(self, way: int) -> None:
        """Move the cursor to the first or last point of the chosen chart."""
        if self.chosen in self._places:
            self._places[self.chosen][0].action_read_end(way)

    # -- moving ------------------------------------------------------------------------------------

    def move(self, by: int) -> None:
        """Choose the chart before or behind."""
        keys = self._shown.keys if self._shown is not None else ()
        if self.chosen in keys:
            at = keys.index(self.chosen) + by
            self._choose(keys[clamp(at, 0, len(keys) - 1)])

    def shelf(self, by: int) -> None:
        """Choose the chart below or above."""
        if not self._shelves:
            return
        shelf = self._shelves[self._at()]
        near = shelf.beside(self.chosen, by) if self.chosen in shelf.keys else None
        if near is not None:
            self._choose(near)
        else:
            self._enter(by)

    def page(self, way: int) -> None:
        """Turn the page."""
        if self._shelves:
            self._enter(way * self._shape[1])

    def _enter(self, by: int) -> None:
        """Choose a metric of the shelf so many below, in the same column."""
        at = self._at()
        shelf = self._shelves[at]
        column = 0
        if self.chosen in shelf.keys:
            column = shelf.keys.index(self.chosen) % shelf.columns
        to = clamp(at + by, 0, len(self._shelves) - 1)
        if to != at:
            self._choose(self._shelves[to].entered(column, by))

    def end(self, way: int) -> None:
        """Choose the first or last chart."""
        keys = self._shown.keys if self._shown is not None else ()
        if keys:
            self._choose(keys[0 if way < 0 else -1])

    def _choose(self, key: str) -> None:
        if key == self.chosen or self._shown is None:
            return
        before = self.chosen
        self.chosen = key
        if key not in self._places:
            self._fill(self._shown)
        else:
            for other in (before, key):
                if other in self._places:
                    tile, _ = self._places[other]
                    tile.choose(other == key)
        self.post_message(self.Moved())
