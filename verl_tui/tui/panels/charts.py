"""The charts of a run: indicators first, then every other metric the log has."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding
from textual.geometry import Size

from verl_tui.exporters.new_file import named
from verl_tui.rendering.charts.alignment import Gutters, on_one_axis, with_short_names
from verl_tui.rendering.charts.page import (
    ChartFilter,
    ChartPage,
    PageContent,
    empty_chart,
    list_charts,
    rows_of_evaluation,
)
from verl_tui.rendering.charts.plan import ChartLook
from verl_tui.rendering.charts.planned_data import chart_data
from verl_tui.rendering.charts.values import in_sight, reading
from verl_tui.rendering.filter_words import Matches
from verl_tui.rendering.log.target import has_log
from verl_tui.tui.export import take_table
from verl_tui.tui.keys.chart_keys import look_after, step_at, with_step_in_sight
from verl_tui.tui.keys.help_section import HelpSection
from verl_tui.tui.keys.tasks import LEARN
from verl_tui.tui.panels.panel import Panel
from verl_tui.tui.panels.spec import PanelSpec
from verl_tui.tui.widgets.chart import Chart
from verl_tui.tui.widgets.plot import Plot
from verl_tui.tui.widgets.start_log import StartLog
from verl_tui.tui.widgets.tiles import Tiles

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from verl_tui.rendering.charts.chart_data import ChartData
    from verl_tui.rendering.charts.plan import PlannedChart
    from verl_tui.rendering.session.snapshot import View

_AT_ONCE = 2
"""Charts that are drawn otherwise in the frame that answers a key; the others come in the next."""

_PLACE = """
    &.-tiny > #charts, &.-pair > #charts, &.-line > #charts { display: block; height: 1fr; }
    &.-line > #charts { display: none; }
"""
"""Its place in each layout of the dashboard."""


class ChartsPanel(Panel):
    """A page of charts, as many as fit; further pages hold the rest."""

    TITLE = "charts"
    PANEL = PanelSpec("charts", "f3", "Charts", rank=20, tab=10, css=_PLACE)
    FOOTER = (
        ("chart.read_left chart.read_right", "Read"),
        ("chart.zoom", "Full screen"),
        ("look.in look.out", "Zoom"),
        ("chart.next chart.previous", "Chart"),
    )
    HELP_SECTION = HelpSection("charts, with the focus", (Plot,), rank=10, charts=True, task=LEARN)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "step(1)", "Next chart", show=False, id="chart.next"),
        Binding("k,up", "step(-1)", "Previous chart", show=False, id="chart.previous"),
        Binding("pagedown", "page(1)", "Next page of charts", show=False, id="chart.page_down"),
        Binding("pageup", "page(-1)", "Previous page of charts", show=False, id="chart.page_up"),
        Binding("g", "jump(-1)", "First page of charts", show=False, id="chart.first"),
        Binding("G", "jump(1)", "Last page of charts", show=False, id="chart.last"),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.look = ChartLook()
        """How charts are drawn: axis, scale, smoothing."""
        self.filter = ""
        """Shows only metrics whose key or label contains this."""
        self.lenient = False
        """True if a filter that no metric matches is meant for something else, and leaves all."""
        self._view: View | None = None
        self._content = PageContent()
        """The content that was drawn last."""
        self._page = ChartPage()
        """The page that is shown."""
        self._revealed: str | None = None
        """Metric whose page is shown, however many charts fit; None once the user has turned to
        another.
        """
        self._focus: int | None = None
        """Slot to be given the focus when the page is drawn: 0 or -1."""
        self._laid_out: tuple[tuple[int, ...], int, int] = ((), 0, 0)
        """Shape of the last layout, tiles that it shows, and tiles that there were."""
        self._room = Size(0, 0)
        """The size of the last layout."""
        self._gutters = Gutters()
        self._tiles = Tiles(self._lay_out)
        self._start_log = StartLog()

    def compose(self) -> ComposeResult:
        """The tiles are filled when their size is known."""
        yield self._tiles
        yield self._start_log

    def needed(self, view: View, width: int, height: int) -> int:
        """Return the rows of an evaluation; the charts of a training take what they are left."""
        return rows_of_evaluation(view, width)

    # -- from a view to the charts -----------------------------------------------------------------

    def show(self, view: View) -> None:
        """Draw the page's charts, if any has changed."""
        before = self._content
        content = PageContent.of(view, self.look, self._filter, self._revealed)
        self._show_log(view)
        if content == before and view.run is not None:
            return  # a reading of the GPUs, or the clock, changes no chart
        if self._view is not None and self._covered():
            return  # shown again when it is visible again; until then the last view stays
        self._view, self._content = view, content
        if content.cursor != before.cursor:
            self.look = with_step_in_sight(self.look, view.run, view.cursor)
        if content.listing.filter != before.listing.filter:
            self._turn_to(0)
        if content.listing != before.listing:
            self._page = self._page._replace(listed=self.listed(view))
        self._show_page()

    def _show_log(self, view: View) -> None:
        """Show the end of the log instead of the charts of a run that has none."""
        run = view.run
        instead = run is not None and not self._filter.text and not run.keys and has_log(run)
        if instead is self._tiles.display:
            self._tiles.display, self._start_log.display = not instead, instead
        self._start_log.show(view if instead else None)
        if instead:
            self.subtitle("")

    @property
    def planned(self) -> tuple[PlannedChart, ...]:
        """The charts of all pages, in their order."""
        return self._page.listed

    def listed(self, view: View) -> tuple[PlannedChart, ...]:
        """Return the charts that the shown run gets, in their order."""
        return list_charts(view, self._filter, self._revealed)

    def matches(self, view: View) -> Matches:
        """Return how many charts match the filter, of how many."""
        found = list_charts(view, ChartFilter(self.filter))
        return Matches(len(found), len(list_charts(view, ChartFilter())))

    @property
    def _filter(self) -> ChartFilter:
        return ChartFilter(self.filter, self.lenient)

    def _show_page(self, *, at_once: int | None = None) -> None:
        """Plan the page for the room there is and draw it; with other tiles, while it is laid out.

        `at_once` is the number of charts that are drawn in this frame, all by default.
        """
        tiles, view = self._tiles, self._view
        if view is None or not tiles.is_attached:
            return  # too early, or the app is ending
        self._page = page = self._page.fitted(*tiles.size, self._revealed)
        if not tiles.children:  # then no layout asks for any
            self._mount(page.slots)
        shape = page.shape
        if shape == self._laid_out[0]:
            self._draw(view, slice(at_once))
            if at_once is not None and len(self.charts) > at_once:
                self.call_after_refresh(self._draw_late)
        if (shape, len(page.charts), len(tiles.children)) != self._laid_out:
            tiles.refresh(layout=True)

    def _lay_out(self, size: Size) -> list[tuple[int, int, int, int]]:
        """Return the tiles for a size, and draw what is new; called in a layout."""
        self._page = page = self._page.fitted(*size, self._revealed)
        before, there = self._laid_out, len(self._tiles.children)
        resized, self._room = size != self._room, size
        shape = page.shape
        self._laid_out = shape, len(page.charts), there
        if there < page.slots:
            self.call_later(self._mount, page.slots)
        others = (shape, there) != (before[0], before[2])
        if self._view is not None and (others or resized):
            for number, chart in enumerate(self.charts):
                chart.expect_layout(late=others and number >= _AT_ONCE)
            self._draw(self._view, slice(_AT_ONCE if others else None))
            self.call_after_refresh(self._draw_late if others else self._catch_up)
        return [tile[1:] for tile in page.tiles(*size)]

    def _mount(self, slots: int) -> None:
        """Have a chart for each slot; those that are not needed any more wait out of sight."""
        tiles, view = self._tiles, self._view
        missing = slots - len(tiles.children)
        if tiles.is_attached and view is not None and missing > 0:
            tiles.mount(*(Chart(ascii_only=view.ascii_only) for _ in range(missing)))

    def _draw_late(self) -> None:
        """Draw the charts that would have been too much for one frame."""
        self._catch_up()
        if self._view is not None and len(self.charts) > _AT_ONCE:
            self._draw(self._view, slice(_AT_ONCE, None))

    def _catch_up(self) -> None:
        """Paint the charts that a layout left where they had been."""
        for chart in self._tiles.query_children(Chart):
            chart.catch_up()

    def _draw(self, view: View, part: slice) -> None:
        """Draw the charts of the page, or some, and its caption."""
        charts, data = self.charts, self._data(view)
        for chart, shown in [*zip(charts, data, strict=False)][part]:
            chart.show(shown)
        if self._focus is not None and charts:
            revealed = self._page.slot(self._revealed)
            slot = self._focus if revealed is None else min(revealed, len(charts) - 1)
            self._focus = None
            charts[slot].focus(scroll_visible=False)
        self._content = self._content._replace(look=self.look)
        if self._tiles.display:
            self.subtitle(self._page.caption(self.look, view, self.filter))

    def _data(self, view: View) -> list[ChartData]:
        """Return what the charts of the page show, with axes that line up."""
        page, look = self._page, self.look
        if not page.charts:
            return [empty_chart(view, self.filter)]
        data = on_one_axis([chart_data(plan, view, look) for plan in page.charts])
        tiles = page.tiles(*self._room)
        if all(tile.height == 1 for tile in tiles):
            widths = [tile.width for tile in tiles]
            return with_short_names(data, widths, ascii_only=view.ascii_only)
        needed = [
            (tile.column, chart.label_cells(one, tile.width, tile.height))
            for chart, one, tile in zip(self.charts, data, tiles, strict=False)
        ]
        subject = (view.run, page.charts, self._room, look.log_y, look.usual_y)
        cells = self._gutters.of(subject, needed)
        return [
            replace(one, gutter=cells.get(tile.column, 0))
            for one, tile in zip(data, tiles, strict=True)
        ]

    def _covered(self) -> bool:
        """Return whether another screen is in front that nothing shines through."""
        stack = self.app.screen_stack
        above = stack[stack.index(self.screen) + 1 :] if self.screen in stack else []
        return any(not screen.is_modal for screen in above)

    def on_show(self) -> None:
        """Draw what has changed while the panel was out of sight."""
        self._show_page()

    @property
    def charts(self) -> list[Chart]:
        """The charts on the page, in order."""
        return [*self._tiles.query_children(Chart)][: max(1, len(self._page.charts))]

    # -- keys --------------------------------------------------------------------------------------

    def _turn_to(self, first: int) -> None:
        """Show the page of a chart, by its place in the list, at the next drawing."""
        self._page = self._page._replace(first=first)
        self._revealed = None

    def action_page(self, way: int) -> None:
        """Show the next or previous page."""
        page = self._page.turned(way)
        if page is not self._page:
            self._turn_to(page.first)
            self._show_page()

    def action_jump(self, way: int) -> None:
        """Show the first or last page."""
        self._turn_to(0 if way < 0 else len(self._page.listed))
        self._focus = 0
        self._show_page()

    def action_step(self, way: int) -> None:
        """Focus the next or previous chart, across pages."""
        charts = self.charts
        focused = self._focused_slot
        if focused is None:
            focused = -1 if way > 0 else len(charts)
        if 0 <= focused + way < len(charts):
            charts[focused + way].focus(scroll_visible=False)
        elif self._page.turned(way) is not self._page:
            self._focus = 0 if way > 0 else -1
            self.action_page(way)

    def reveal(self, key: str, *, soon: bool = False) -> bool:
        """Turn to the page that shows a metric, at the next drawing if that comes soon; return
        whether any does.

        A filter may have taken it out.
        """
        if not any(one.shows(key) for one in self._page.listed):
            return False
        self._revealed = key
        if self._view is not None:  # what is a row becomes a chart
            self._page = self._page._replace(listed=self.listed(self._view))
        if self._focused_slot is not None:
            self._focus = 0  # it follows, once the page is drawn
        if not soon:
            self._show_page()
        return True

    def change_look(self, key: str) -> None:
        """Change how charts are drawn: `reset`, or one of those in `chart_keys.KEYS`."""
        view = self._view
        if key == "reset":
            self.look = ChartLook()
            self._turn_to(0)
        else:
            run, cursor = (view.run, view.cursor) if view is not None else (None, None)
            self.look = look_after(self.look, key, run, cursor)
        self._show_page(at_once=_AT_ONCE)  # all would take longer than a key may

    def take_look(self, look: ChartLook | None) -> None:
        """Draw as charts of another screen are drawn; while that is in front there is time for
        it.
        """
        if look is not None and look != self.look:
            self.look = look
            if not self._covered():
                self._show_page()

    def step_at(self, plot: Plot, position: int) -> int | None:
        """Return the step of a position on the x axis of a chart, None where it is not known."""
        run = self._view.run if self._view is not None else None
        return step_at(run, plot.data.key, self.look, position)

    def clip(self) -> str:
        """Return what the focused chart says where the cursor is, else last."""
        chart, view = self.focused_plan(), self._view
        return reading(chart, None, view, self.look) if chart is not None and view else ""

    def write_table(self) -> None:
        """Write the points of the focused chart to a file."""
        chart, view = self.focused_plan(), self._view
        if chart is not None and view is not None and view.run is not None:
            columns = in_sight(chart, None, view, self.look)
            take_table(self.app, named(view.run.name, chart.key), columns)

    def focused_plan(self) -> PlannedChart | None:
        """Return the focused chart; if none has the focus, that of the finding chosen last, or the
        first.
        """
        planned, slot = self._page.charts, self._slot
        return planned[slot] if slot < len(planned) else None

    def reader(self, *, focus: bool) -> Chart | None:
        """Return the chart that the cursor's keys mean, given the focus if that is to be; None
        where none is drawn.
        """
        chart = next(iter(self.charts[self._slot :]), None)
        if focus and chart is not None:
            chart.focus(scroll_visible=False)
        return chart

    @property
    def _focused_slot(self) -> int | None:
        """Slot of the chart that has the focus, None if none has."""
        return next((i for i, chart in enumerate(self.charts) if chart.has_focus), None)

    @property
    def _slot(self) -> int:
        """Slot of the chart that keys mean."""
        focused = self._focused_slot
        return focused if focused is not None else self._page.slot(self._revealed) or 0
