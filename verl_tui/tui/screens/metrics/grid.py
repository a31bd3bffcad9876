"""All metrics as charts: a page of shelves, each with charts of one group."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from textual import on
from textual.containers import Container, Horizontal, Vertical
from textual.message import Message

from verl_tui.rendering.charts.alignment import Gutters, on_one_axis
from verl_tui.rendering.charts.plan import single_metric
from verl_tui.rendering.charts.planned_data import chart_data
from verl_tui.rendering.metrics.groups import LEAST_HEIGHT, grid_shape, shelves
from verl_tui.rendering.metrics.header_lines import shelf_words
from verl_tui.rendering.metrics.shown import BUDGET
from verl_tui.tui.terminal.net import ContainedWidget
from verl_tui.tui.widgets.chart import Chart, ChartData
from verl_tui.tui.widgets.line import Line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from textual import events
    from textual.app import ComposeResult
    from textual.timer import Timer
    from textual.widget import Widget

    from verl_tui.rendering.charts.braille import Text
    from verl_tui.rendering.metrics.groups import MetricGroup, Shelf
    from verl_tui.rendering.metrics.shown import ListedMetrics


async def _mount(parent: Widget, *children: Widget) -> None:
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

    def __init__(self, *, ascii_only: bool) -> None:
        super().__init__(ascii_only=ascii_only or None)
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
            self.drawn, self._chosen = None, False
            self.show(ChartData("", empty=""))

    def draw(self, width: int, height: int) -> list[Text]:
        """Return its rows; of the chosen chart the title is marked."""
        rows = self._drawing.rows(
            self._data, width, height, cursor=self._cursor, focus=self._chosen
        )
        if self._chosen and rows:
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


class _TileSize(NamedTuple):
    """The number of a chart's column, and its size in cells."""

    column: int
    width: int
    height: int


class _ShelfRow(ContainedWidget, Vertical):
    """A heading, and charts side by side. Nothing in it is hidden while pages turn: that would cost
    a layout.
    """

    DEFAULT_CSS = """
    _ShelfRow {
        height: 1fr;
        & > Horizontal { height: 1fr; }
        & Tile { margin: 0 1 0 0; }
        &.-lines > Horizontal { layout: grid; grid-rows: 1; }
    }
    """

    def __init__(self, *, ascii_only: bool) -> None:
        super().__init__()
        self.heading = Line()
        self.tiles: list[Tile] = []
        self._charts = Horizontal()
        self._ascii = ascii_only

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
            fresh = [
                Tile(ascii_only=self._ascii) for _ in range(count - len(self.tiles))
            ]
            self.tiles += fresh
            self.call_later(_mount, self._charts, *fresh)
        for number, tile in enumerate(self.tiles):
            tile.display = number < count
        if lines is not None:
            self._charts.styles.grid_size_columns = columns
        self.set_class(lines is not None, "-lines")
        return self.tiles[:count]


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
        self._rows: list[_ShelfRow] = []
        self._places: dict[str, tuple[Tile, MetricGroup]] = {}
        """Where the metrics of the page are."""
        self._data: dict[str, ChartData] = {}
        """The data of the charts that are shown, by key."""
        self._gutters = Gutters()
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
        self._shape = grid_shape(
            width, height, shown.user.metrics_columns, shown.user.metrics_rows
        )
        columns, rows = self._shape
        self._shelves = shelves(
            shown.groups, columns, height // rows - self._headed(shown)
        )
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
            self._rows.append(_ShelfRow(ascii_only=shown.view.ascii_only))
            self.call_later(_mount, self, self._rows[-1])
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
        return tall and any(one.name for one in shown.groups)

    def _fill_row(
        self, row: _ShelfRow, shelf: Shelf | None, shown: ListedMetrics
    ) -> None:
        """Give the metrics of a shelf their tiles; those to spare are empty."""
        row.heading.show(
            shelf_words(shelf, self.size.width, ascii_only=shown.view.ascii_only)
        )
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
        run, places, look = shown.view.run, self._places, shown.look
        assert run is not None
        mark = "* " if shown.view.ascii_only else "★ "
        labels = {
            key: mark * (key in shown.user.pins) + group.short(key)
            for key, (_, group) in places.items()
        }
        plans = [
            single_metric(run, key, label)._replace(in_row=places[key][1].in_rows)
            for key, label in labels.items()
        ]
        data = on_one_axis([chart_data(plan, shown.view, look) for plan in plans])
        sizes = self._tile_sizes()
        tiles = [tile for tile, _ in places.values()]
        needed = [
            (
                sizes[tile].column,
                tile.label_cells(one, sizes[tile].width, sizes[tile].height),
            )
            for tile, one in zip(tiles, data, strict=True)
            if sizes[tile].height > 1
        ]
        subject = (run, (*places,), self.size, self._shape, look.log_y, look.usual_y)
        cells = self._gutters.of(subject, needed)
        return {
            one.key: replace(one, gutter=cells.get(sizes[tile].column, 0))
            for tile, one in zip(tiles, data, strict=True)
        }

    def _tile_sizes(self) -> dict[Tile, _TileSize]:
        """Return the sizes that the layout gives to the charts, which it may not have done yet."""
        columns, rows = self._shape
        widths = [size - 1 for size in _even_parts(self.size.width, columns)]
        heights = _even_parts(self.size.height, rows)
        sizes: dict[Tile, _TileSize] = {}
        for row, tall in zip(self._rows, heights, strict=False):
            height = 1 if row.has_class("-lines") else tall - row.heading.display
            for at, tile in enumerate(row.tiles):
                column = at % columns
                sizes[tile] = _TileSize(column, widths[column], height)
        return sizes

    def _go_on(self) -> None:
        if self.later is not None:
            self.later.stop()
            self.later = None
        shown, until = self._shown, monotonic() + BUDGET
        if shown is None or shown.view.run is None:
            return
        for key in self._waiting:
            self._places[key][0].show(self._data[key])
            if monotonic() > until:
                self.later = self.set_timer(0.005, self._go_on)
                return

    def _at(self) -> int:
        """Return the shelf of the chosen metric."""
        return next(
            (at for at, shelf in enumerate(self._shelves) if self.chosen in shelf.keys),
            0,
        )

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
            self._choose(keys[min(max(0, keys.index(self.chosen) + by), len(keys) - 1)])

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
        at, chosen = self._at(), self.chosen
        shelf = self._shelves[at]
        column = shelf.keys.index(chosen) % shelf.columns if chosen in shelf.keys else 0
        to = min(max(0, at + by), len(self._shelves) - 1)
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
        before, self.chosen = self.chosen, key
        if key not in self._places:
            self._fill(self._shown)
        else:
            for one in (before, key):
                if one in self._places:
                    self._places[one][0].choose(one == key)
        self.post_message(self.Moved())


def _even_parts(cells: int, count: int) -> list[int]:
    """Return the sizes of so many parts of a length, as even as whole cells allow."""
    edges = [at * cells // count for at in range(count + 1)]
    return [end - start for start, end in pairwise(edges)]
