"""All metrics as charts: a page of shelves, each with charts of one group."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from textual import on
from textual.containers import Container
from textual.message import Message

from verl_tui.means import clamp
from verl_tui.rendering.arrange import Room
from verl_tui.rendering.charts.chart_data import ChartData, lined_up
from verl_tui.rendering.charts.plan import single_metric
from verl_tui.rendering.charts.planned_data import chart_data
from verl_tui.rendering.metrics.groups import (
    LEAST_HEIGHT,
    grid_shape,
    page_rooms,
    shelves,
)
from verl_tui.rendering.metrics.listing import BUDGET, shelf_words
from verl_tui.tui.terminal.net import ContainedWidget
from verl_tui.tui.widgets.chart import Chart
from verl_tui.tui.widgets.line import Line
from verl_tui.tui.widgets.tiles import Placed

if TYPE_CHECKING:
    from textual import events

    from verl_tui.rendering.charts.symbols import Text
    from verl_tui.rendering.metrics.groups import Shelf
    from verl_tui.rendering.metrics.listing import ListedMetrics


class Tile(Chart, can_focus=False, inherit_bindings=False):
    """A chart of the grid. Its keys are the grid's."""

    drawn: tuple[object, str] | None = None
    """Run and key of the metric that is shown, None for none."""
    chosen = False

    class Clicked(Message):
        """The mouse chose a chart."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    def choose(self, *, chosen: bool) -> None:
        """Look chosen, or no longer; a class or the focus would have the styles of all charts
        worked out anew.
        """
        if chosen != self.chosen:
            self.chosen = chosen
            self._redraw()

    @property
    def _looks_focused(self) -> bool:
        return self.chosen

    def draw(self, width: int, height: int) -> list[Text]:
        """Return its rows; of the chosen chart the title is marked."""
        rows = super().draw(width, height)
        if self.chosen and rows:
            rows[0] = tuple(
                (text, "cursor" if role == "focused" else role)
                for text, role in rows[0]
            )
        return rows

    def on_click(self, event: events.Click) -> None:
        """Be chosen, and read where the mouse points."""
        event.stop()
        if self.drawn is not None:
            self.post_message(self.Clicked(self.drawn[1]))
            super().on_click(event)


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
        self.shape = (1, 1)
        """Columns and rows that are shown."""
        self._shown: ListedMetrics | None = None
        self._shelves: tuple[Shelf, ...] = ()
        self._rooms = Placed()
        self.styles.set_rule("layout", self._rooms)
        self._tiles: list[Tile] = []
        self._headings: list[Line] = []
        self._places: dict[str, Tile] = {}
        """Where the metrics of the page are."""
        self.waiting: list[tuple[Tile, ChartData]] = []
        """Charts that there was no time to draw at once, and what they show then."""

    @property
    def pages(self) -> tuple[int, int]:
        """The page that is shown, from 1, and how many there are."""
        rows = self.shape[1]
        return self._at() // rows + 1, max(1, -(-len(self._shelves) // rows))

    # -- drawing -----------------------------------------------------------------------------------

    def show(self, shown: ListedMetrics) -> None:
        """Draw the page of the chosen metric."""
        self._shown = shown
        width, height = self.size if self.is_attached else (0, 0)
        if width < 1 or height < 1:
            return
        user = shown.user
        self.shape = grid_shape(width, height, user.metrics_columns, user.metrics_rows)
        columns, rows = self.shape
        self._shelves = shelves(
            shown.groups, columns, height // rows - self._headed(shown)
        )
        keys = shown.keys
        if self.chosen not in keys:
            self.chosen = keys[0] if keys else None
        self._fill(shown)

    def _headed(self, shown: ListedMetrics) -> bool:
        """Return whether there is room for the names of groups, if they have any."""
        tall = self.size.height // self.shape[1] > LEAST_HEIGHT
        return tall and any(group.name for group in shown.groups)

    def _fill(self, shown: ListedMetrics) -> None:
        """Give each metric of the page its place, and draw them."""
        rows = self.shape[1]
        top = self._at() // rows * rows
        page = self._shelves[top : top + rows]
        rooms = page_rooms(page, self.shape, *self.size, headed=self._headed(shown))
        if not page:  # the place says why
            rooms = {"": Room(0, 0, *self.size)}
        self._have(len(rooms), len(page))
        self._places = dict(zip(rooms, self._tiles, strict=False))
        placed = {f"chart-{at}": room for at, room in enumerate(rooms.values())}
        for at, shelf in enumerate(page if self._headed(shown) else ()):
            y = rooms[shelf.keys[0]].y - 1
            placed[f"heading-{at}"] = Room(0, y, self.size.width, 1)
            self._headings[at].show(shelf_words(shelf, self.size.width))
        for part in (*self._tiles, *self._headings):
            part.display = part.id in placed
        if placed != self._rooms.rooms:
            self._rooms.rooms = placed
            self.refresh(layout=True)
        if page:
            self._begin(shown, {key: shelf for shelf in page for key in shelf.keys})
        else:
            self._tiles[0].drawn = None
            self._tiles[0].show(ChartData("", label="metrics", empty=shown.otherwise))

    def _have(self, charts: int, headings: int) -> None:
        """Have at least so many charts and headings."""
        fresh = [Tile(id=f"chart-{at}") for at in range(len(self._tiles), charts)]
        lines = [
            Line(id=f"heading-{at}") for at in range(len(self._headings), headings)
        ]
        self._tiles += fresh
        self._headings += lines
        if fresh or lines:
            self.mount(*fresh, *lines)

    def _begin(self, shown: ListedMetrics, shelf_of: dict[str, Shelf]) -> None:
        """Draw as many charts as there is time for, the chosen one first, and the others a moment
        later; their axes line up.
        """
        run = shown.view.run
        plans = []
        for key, tile in self._places.items():
            group = shelf_of[key].group
            if tile.drawn != (run, key):
                tile.drawn = (run, key)
                tile.show(ChartData(key, label=group.short(key), empty=""))
            tile.choose(chosen=key == self.chosen)
            if run is not None:
                mark = "★ " if key in shown.user.pins else ""
                plan = single_metric(run, key, mark + group.short(key))
                plans.append(plan._replace(in_row=group.in_rows))
        data = lined_up([chart_data(plan, shown.view, shown.look) for plan in plans])
        begun = bool(self.waiting)
        self.waiting = [(self._places[one.key], one) for one in data]
        self.waiting.sort(key=lambda one: one[1].key != self.chosen)
        if not begun:
            self._go_on()

    def _go_on(self) -> None:
        until = monotonic() + BUDGET
        while self.waiting:
            tile, data = self.waiting.pop(0)
            tile.show(data)
            if monotonic() > until:
                self.set_timer(0.005, self._go_on)
                return

    def on_resize(self) -> None:
        """Make as many charts as fit now."""
        if self._shown is not None:
            self.call_after_refresh(self.show, self._shown)

    # -- keys and mouse ----------------------------------------------------------------------------

    @on(Tile.Clicked)
    def _clicked(self, message: Tile.Clicked) -> None:
        message.stop()
        self._choose(message.key)

    @property
    def tile(self) -> Tile | None:
        """The chart of the chosen metric."""
        return self._places.get(self.chosen or "")

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

    def page(self, way: int) -> None:
        """Turn the page."""
        at = self._at()
        to = clamp(at + way * self.shape[1], 0, len(self._shelves) - 1)
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
        if key == self.chosen or self._shown is None:
            return
        before = self.tile
        self.chosen = key
        if self.tile is None:
            self._fill(self._shown)
        else:
            if before is not None:
                before.choose(chosen=False)
            self.tile.choose(chosen=True)
        self.post_message(self.Moved())
