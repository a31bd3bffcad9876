"""The charts of a run: indicators first, then every other metric the log has."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from verl_tui.rendering.arrange import Room
from verl_tui.rendering.charts.page import (
    ChartFilter,
    ChartPage,
    empty_chart,
    list_charts,
    page_content,
    page_data,
    rows_of_evaluation,
)
from verl_tui.rendering.charts.plan import ChartLook
from verl_tui.rendering.charts.values import reading
from verl_tui.rendering.filter_words import Matches
from verl_tui.rendering.log.target import has_log
from verl_tui.tui.export import take_chart
from verl_tui.tui.keys.act import LEARN, HelpSection, act
from verl_tui.tui.keys.chart_keys import look_after, step_at, with_step_in_sight
from verl_tui.tui.panels.panel import Panel, PanelSpec
from verl_tui.tui.widgets.chart import Chart
from verl_tui.tui.widgets.start_log import StartLog
from verl_tui.tui.widgets.tiles import ChartTiles

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType
    from textual.geometry import Size

    from verl_tui.rendering.charts.chart_data import ChartData
    from verl_tui.rendering.charts.plan import PlannedChart
    from verl_tui.rendering.session.snapshot import View

_Placed = tuple[tuple[int, int], list[Room], int]
"""What the last layout has placed: a room, where its charts are, and how many charts there were;
further ones may be on their way.
"""


class ChartsPanel(Panel):
    """A page of charts, as many as fit; further pages hold the rest."""

    TITLE = "charts"
    PANEL = PanelSpec("charts", "f3", "Charts", rank=20, tab=10, share=1.0)
    FOOTER = (
        ("chart.read_left chart.read_right", "Read"),
        ("chart.zoom", "Full screen"),
        ("look.in look.out", "Zoom"),
        ("chart.next chart.previous", "Chart"),
    )
    HELP_SECTION = HelpSection(
        "charts, with the focus", (Chart,), rank=10, charts=True, task=LEARN
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        act("j,down", "step(1)", "chart.next", "Next chart"),
        act("k,up", "step(-1)", "chart.previous", "Previous chart"),
        act("pagedown", "page(1)", "chart.page_down", "Next page of charts"),
        act("pageup", "page(-1)", "chart.page_up", "Previous page of charts"),
        act("g", "jump(-1)", "chart.first", "First page of charts"),
        act("G", "jump(1)", "chart.last", "Last page of charts"),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.look = ChartLook()
        """How charts are drawn: axis, scale, smoothing."""
        self.filter = ChartFilter()
        """Shows only the metrics that match; `narrow` sets it."""
        self._view: View | None = None
        self._content: object = None
        """The content that was drawn last."""
        self._page = ChartPage()
        """The page that is shown."""
        self._revealed: str | None = None
        """Metric whose page is shown, however many charts fit; None once the user has turned to
        another.
        """
        self._focus: int | None = None
        """Slot to be given the focus when the page is drawn: 0 or -1."""
        self._placed: _Placed = ((0, 0), [], 0)
        self._tiles = ChartTiles(self._lay_out)
        self._start_log = StartLog()

    def compose(self) -> ComposeResult:
        """The tiles are filled when their size is known."""
        yield self._tiles
        yield self._start_log

    def needed(self, view: View, width: int, height: int) -> int:
        """Return the rows of an evaluation; the charts of a training take what they are left."""
        return rows_of_evaluation(view, width)

    # -- what there is to show ---------------------------------------------------------------------

    def show(self, view: View) -> None:
        """Draw the page's charts, if any has changed."""
        before = self._view
        content = page_content(view, self.look, self.filter, self._revealed)
        self._show_log(view)
        if content == self._content:
            return  # a reading of the GPUs, or the clock, changes no chart
        if before is not None and self._is_covered():
            # shown again when it is visible again; until then the last view stays
            return
        self._view = view
        if before is None or view.cursor != before.cursor:
            self.look = with_step_in_sight(self.look, view.run, view.cursor)
        self._page = self._page._replace(listed=self.listed(view))
        self._draw()

    def _show_log(self, view: View) -> None:
        """Show the end of the log instead of the charts of a run that has none."""
        run = view.run
        instead = (
            run is not None and not self.filter.text and not run.keys and has_log(run)
        )
        if instead is self._tiles.display:
            self._tiles.display = not instead
            self._start_log.display = instead
        self._start_log.show(view if instead else None)
        if instead:
            self.subtitle("")

    @property
    def planned(self) -> tuple[PlannedChart, ...]:
        """The charts of all pages, in their order."""
        return self._page.listed

    def listed(self, view: View) -> tuple[PlannedChart, ...]:
        """Return the charts that the shown run gets, in their order."""
        return list_charts(view, self.filter, self._revealed)

    def narrow(self, text: str, *, lenient: bool = False) -> None:
        """Show only metrics whose key or label contains a text; all where none does and it may be
        meant for something else.
        """
        wanted = ChartFilter(text.strip(), lenient)
        if wanted != self.filter:
            self.filter = wanted
            self._turn_to(0)

    def matches(self, view: View) -> Matches:
        """Return how many charts match the filter, of how many."""
        found = list_charts(view, ChartFilter(self.filter.text))
        return Matches(len(found), len(list_charts(view, ChartFilter())))

    def _is_covered(self) -> bool:
        """Return whether another screen is in front that nothing shines through."""
        stack = self.app.screen_stack
        above = stack[stack.index(self.screen) + 1 :] if self.screen in stack else []
        return any(not screen.is_modal for screen in above)

    # -- drawing -----------------------------------------------------------------------------------

    def _draw(self) -> None:
        """Draw the page: now where its charts keep their places, else in the layout that it
        takes.
        """
        tiles = self._tiles
        view = self._view
        if view is None or not tiles.is_attached:
            return  # too early, or the app is ending
        self._page = self._page.fitted(*tiles.size, self._revealed)
        tiles.have(self._page.slots)
        if self._placing(self._placed[0]) != self._placed:
            tiles.refresh(layout=True)
        else:
            self._fill(view, in_layout=False)

    def _lay_out(self, size: Size) -> list[tuple[int, int, int, int]]:
        """Return the tiles for a size, and draw the page if it is placed anew; called in a
        layout.
        """
        self._page = self._page.fitted(*size, self._revealed)
        before = self._placed
        self._placed = self._placing(size)
        view = self._view
        slots = self._page.slots
        if view is not None and self._placed[2] < slots:
            self.call_later(self._tiles.have, slots)
        if view is not None and self._placed != before:
            self._fill(view, in_layout=True)
        return [tile[:4] for tile in self._placed[1]]

    def _placing(self, room: tuple[int, int]) -> _Placed:
        """Return what a layout places of the page in a room."""
        return room, self._page.tiles(*room), len(self._tiles.children)

    def _fill(self, view: View, *, in_layout: bool) -> None:
        """Show in each chart what it is of, and say below them how they are drawn."""
        self._tiles.fill(self._data(view), in_layout=in_layout)
        self._give_focus()
        self._content = page_content(view, self.look, self.filter, self._revealed)
        if self._tiles.display:
            self.subtitle(self._page.caption(self.look, view, self.filter.text))

    def _data(self, view: View) -> list[ChartData]:
        """Return what the charts of the page show."""
        page = self._page
        if not page.charts:
            return [empty_chart(view, self.filter.text)]
        return page_data(page, self._placed[0], view, self.look)

    def _give_focus(self) -> None:
        """Give the focus to the chart that is to have it: the revealed one, else the first or last
        of the page.
        """
        charts = self.charts
        if self._focus is not None and charts:
            revealed = self._page.slot(self._revealed)
            slot = self._focus if revealed is None else min(revealed, len(charts) - 1)
            self._focus = None
            charts[slot].focus(scroll_visible=False)

    def on_show(self) -> None:
        """Draw what has changed while the panel was out of sight."""
        self._draw()

    @property
    def charts(self) -> list[Chart]:
        """The charts on the page, in order."""
        return self._tiles.charts[: max(1, len(self._page.charts))]

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
            self._draw()

    def action_jump(self, way: int) -> None:
        """Show the first or last page."""
        self._turn_to(0 if way < 0 else len(self._page.listed))
        self._focus = 0
        self._draw()

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
        if not any(chart.shows(key) for chart in self._page.listed):
            return False
        self._revealed = key
        if self._view is not None:  # what is a row becomes a chart
            self._page = self._page._replace(listed=self.listed(self._view))
        if self._focused_slot is not None:
            self._focus = 0  # it follows, once the page is drawn
        if not soon:
            self._draw()
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
        self._draw()

    def take_look(self, look: ChartLook | None) -> None:
        """Draw as charts of another screen are drawn; while that is in front there is time for
        it.
        """
        if look is not None and look != self.look:
            self.look = look
            if not self._is_covered():
                self._draw()

    def step_at(self, plot: Chart, position: int) -> int | None:
        """Return the step of a position on the x axis of a chart, None where it is not known."""
        run = self._view.run if self._view is not None else None
        return step_at(run, plot.data.key, self.look, position)

    def clip(self) -> str:
        """Return what the focused chart says where the cursor is, else last."""
        chart = self.focused_plan()
        view = self._view
        if chart is not None and view:
            return reading(chart, None, view, self.look)
        return ""

    def write_table(self) -> None:
        """Write the points of the focused chart to a file."""
        chart = self.focused_plan()
        view = self._view
        if chart is not None and view is not None:
            take_chart(self.app, chart, None, view, self.look)

    def focused_plan(self) -> PlannedChart | None:
        """Return the focused chart; if none has the focus, that of the finding chosen last, or the
        first.
        """
        planned = self._page.charts
        slot = self._slot
        if slot < len(planned):
            return planned[slot]
        return None

    def reader(self, *, focus: bool) -> list[Chart]:
        """Return the chart that the cursor's keys mean, given the focus if that is to be; none
        where none is drawn.
        """
        found = self.charts[self._slot :][:1]
        for chart in found if focus else ():
            chart.focus(scroll_visible=False)
        return found

    @property
    def _focused_slot(self) -> int | None:
        """Slot of the chart that has the focus, None if none has."""
        return next((i for i, chart in enumerate(self.charts) if chart.has_focus), None)

    @property
    def _slot(self) -> int:
        """Slot of the chart that keys mean."""
        focused = self._focused_slot
        if focused is not None:
            return focused
        return self._page.slot(self._revealed) or 0
