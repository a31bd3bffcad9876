"""The charts of a run: indicators first, then every other metric the log has."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding

from verl_tui.exporters.new_file import named
from verl_tui.rendering.charts.plan import ChartLook, PlannedChart, chart_data, plan_charts
from verl_tui.rendering.charts.values import in_sight, reading
from verl_tui.rendering.session.source_status import nothing_yet
from verl_tui.tui.export import take_table
from verl_tui.tui.keys.chart_keys import look_after, step_at, with_step_in_sight
from verl_tui.tui.keys.help_section import HelpSection
from verl_tui.tui.panels.panel import Panel
from verl_tui.tui.panels.spec import PanelSpec
from verl_tui.tui.widgets.chart import Chart
from verl_tui.tui.widgets.plot import Plot
from verl_tui.tui.widgets.tiles import Tiles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult
    from textual.binding import BindingType
    from textual.geometry import Size

    from verl_tui.rendering.session.snapshot import View

_LEAST_WIDTH, _LEAST_HEIGHT = 26, 6
"""Cells below which a chart says less than a line of text with a sparkline."""
_AT_ONCE = 2
"""Charts that are drawn otherwise in the frame that answers a key; the others come in the next."""
_GOOD_WIDTH, _GOOD_HEIGHT = 38, 7
"""Cells from which on more room goes into more charts rather than larger ones."""
_ENOUGH = 8
"""Charts that tell of a run's health; only for fewer are they made smaller than is good."""


_PLACE = """
    &.-wide > #charts, &.-huge > #charts { row-span: 2; }
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
    HELP_SECTION = HelpSection("charts, while they have the focus", (Plot,), rank=10, charts=True)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "step(1)", "Next chart", show=False, id="chart.next"),
        Binding("k,up", "step(-1)", "Previous chart", show=False, id="chart.previous"),
        Binding("pagedown", "page(1)", "More charts", show=False, id="chart.page_down"),
        Binding("pageup", "page(-1)", "Charts before", show=False, id="chart.page_up"),
        Binding("g", "jump(-1)", "First charts", show=False, id="chart.first"),
        Binding("G", "jump(1)", "Last charts", show=False, id="chart.last"),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.look = ChartLook()
        """How charts are drawn: axis, scale, smoothing."""
        self.filter = ""
        """Shows only metrics whose key or label contains this."""
        self.lenient = False
        """Whether a filter that no metric matches is meant for something else, and leaves all."""
        self._first = 0
        self._revealed: str | None = None
        """Metric whose page is shown, however many charts fit; None once the user has turned to
        another.
        """
        self._focus: int | None = None
        """Slot to be given the focus once the page has been filled."""
        self._plans: tuple[PlannedChart, ...] = ()
        self._planned: tuple[object, ...] = ()
        self._filtered = ("", False)
        """Filter of the plans: another one is shown from its first match on."""
        self._shape = (1, 1)
        """Columns, and charts on a full page."""
        self._tiled = (0, 0)
        """Charts that were shown at the last layout, and those there were."""
        self._drawn: tuple[object, ...] | None = None
        """What the charts were drawn from last."""
        self._view: View | None = None
        self._cursor: int | None = None

    def compose(self) -> ComposeResult:
        """The tiles are filled when their size is known."""
        yield Tiles(self._tile)

    def show(self, view: View) -> None:
        """Draw the page's charts."""
        run = view.run
        others = (
            view.selection.revision,
            *((other.name, other.revision) for other in view.selected),
        )
        told = (
            view.cursor,
            view.verdict,
            view.loading,
            self.filter,
            self.lenient,
            view.pins,
            others,
        )
        drawn = (run, run.revision, told) if run else None
        if self._view is not None and drawn == self._drawn and drawn is not None:
            return  # a reading of the GPUs, or the clock, changes no chart
        if self._view is not None and self._covered():
            return  # shown again when it is visible again; until then the last view stays
        self._view = view
        self._drawn = drawn
        if view.cursor != self._cursor:
            self._cursor = view.cursor
            self.look = with_step_in_sight(self.look, run, view.cursor)
        filter_ = (self.filter, self.lenient)
        planned = (run, len(run.keys) if run else 0, filter_, view.monitor.config.charts, view.pins)
        if planned != self._planned:
            if filter_ != self._filtered:
                self._filtered = filter_
                self._first = 0
                self._revealed = None
            self._plans = self.plans(view)
            self._planned = planned
        self._fill()

    def plans(self, view: View) -> tuple[PlannedChart, ...]:
        """Return the charts that the shown run gets, in their order."""
        if view.run is None:
            return ()
        wanted = view.monitor.config.charts
        found = plan_charts(view.run, wanted, self.filter, view.pins)
        return found if found or not self.lenient else plan_charts(view.run, wanted, "", view.pins)

    def _covered(self) -> bool:
        """Tell whether another screen is in front that nothing shines through."""
        stack = self.app.screen_stack
        above = stack[stack.index(self.screen) + 1 :] if self.screen in stack else []
        return any(not screen.is_modal for screen in above)

    def on_show(self) -> None:
        """Draw what has changed while the panel was out of sight."""
        self._fill()

    @property
    def charts(self) -> list[Chart]:
        """The charts on the page, in order."""
        return list(self.query(Chart))[: max(1, len(self._shown))]

    def _fill(self, part: slice = slice(None)) -> None:
        """Show what belongs on the page, in all charts of it or in some."""
        tiles = next(iter(self.query(Tiles)), None)
        if self._view is None or tiles is None or not tiles.is_attached:
            return  # too early, or the app is ending
        shape = _fitting(tiles.size, len(self._plans))
        if not tiles.children:  # nothing asks for the tiles of none
            self._mount(shape[1])
        self._turn(shape[1])
        if shape == self._shape:
            self._draw(self._view, part)
        if shape != self._shape or self._tiled != (len(self._shown), len(tiles.children)):
            tiles.refresh(layout=True)

    def _tile(self, size: Size) -> tuple[int, int, int]:
        """Return columns, rows and charts for a size, and have them drawn; called while they are
        being laid out.
        """
        columns, slots = shape = _fitting(size, len(self._plans))
        there = len(self.query(Chart))
        if there < slots:
            self.call_later(self._mount, slots)
        if self._view is not None and (shape != self._shape or there != self._tiled[1]):
            self._shape = shape
            self._turn(slots)
            for number, chart in enumerate(self.charts):
                chart.expect_layout(late=number >= _AT_ONCE)
            self._draw(self._view, slice(_AT_ONCE))
            self.call_after_refresh(self._draw_late)
        self._tiled = len(self._shown), there
        return columns, -(-slots // columns), max(1, len(self._shown))

    def _mount(self, slots: int) -> None:
        """Have a chart for each place; those that are not needed any more wait out of sight."""
        tiles, view = self.query_one(Tiles), self._view
        missing = slots - len(tiles.children)
        if tiles.is_attached and view is not None and missing > 0:
            tiles.mount(*(Chart(ascii_only=view.ascii) for _ in range(missing)))

    def _draw_late(self) -> None:
        """Draw what would have been too much for one frame."""
        for chart in self.query(Chart):
            chart.catch_up()
        if self._view is not None and len(self.charts) > _AT_ONCE:
            self._draw(self._view, slice(_AT_ONCE, None))

    def _turn(self, slots: int) -> None:
        """Turn to the page that is wanted, of pages of so many charts."""
        at = next(
            (
                i
                for i, found in enumerate(self._plans)
                if self._revealed and found.shows(self._revealed)
            ),
            None,
        )
        if at is not None:
            self._first = at // slots * slots
            self._focus = at % slots if self._focus is not None else None
        self._first = max(0, min(self._first, (len(self._plans) - 1) // slots * slots))

    def _draw(self, view: View, part: slice = slice(None)) -> None:
        """Draw the charts of the page, or some."""
        shown = self._shown
        for slot, chart in list(enumerate(self.charts))[part]:
            chart.show(
                chart_data(shown[slot], view, self.look)
                if slot < len(shown)
                else _empty(view, self.filter)
            )
        if self._focus is not None and self.charts:
            self.charts[min(self._focus, len(self.charts) - 1)].focus(scroll_visible=False)
            self._focus = None
        self._caption(len(shown))

    def _caption(self, shown: int) -> None:
        words = [*self.look.words(self._view.run if self._view is not None else None)]
        if self.filter:
            left = any(found.matches(self.filter) for found in self._plans)
            words.append(f"filter: {self.filter}" if left else f"no metric matches “{self.filter}”")
        if len(self._plans) > shown:
            words.append(
                f"{self._first + 1}–{self._first + shown} of {len(self._plans)} · pgdn pgup"
            )
        self.subtitle(" · ".join(words))

    # -- keys --------------------------------------------------------------------------------------

    def action_page(self, way: int) -> None:
        """Show the next or previous page."""
        slots = self._shape[1]
        if 0 <= self._first + way * slots < len(self._plans):
            self._first += way * slots
            self._revealed = None
            self._fill()

    def action_jump(self, way: int) -> None:
        """Show the first or last page."""
        self._first = 0 if way < 0 else len(self._plans)
        self._revealed = None
        self._focus = 0
        self._fill()

    def action_step(self, way: int) -> None:
        """Focus the next or previous chart, across pages."""
        charts = self.charts
        at = next(
            (i for i, chart in enumerate(charts) if chart.has_focus), -1 if way > 0 else len(charts)
        )
        to = at + way
        if 0 <= to < len(charts):
            charts[to].focus(scroll_visible=False)
            return
        before = self._first
        self.action_page(way)
        if self._first != before:
            self.charts[0 if way > 0 else -1].focus(scroll_visible=False)

    def reveal(self, key: str, *, soon: bool = False) -> bool:
        """Turn to the page that shows a metric, at the next drawing if that comes soon; tell
        whether any does.

        A filter may have taken it out.
        """
        if not any(found.shows(key) for found in self._plans):
            return False
        self._revealed = key
        if any(chart.has_focus for chart in self.charts):
            self._focus = 0  # it follows, once the page is known
        if not soon:
            self._fill()
        return True

    def change_look(self, what: str) -> None:
        """Change how charts are drawn: `reset`, or one of those in `looking.KEYS`."""
        if what == "reset":
            self.look = ChartLook()
            self._first = 0
            self._revealed = None
        else:
            view = self._view
            self.look = look_after(
                self.look, what, view.run if view else None, view.cursor if view else None
            )
        # All at once would take longer than a key may.
        self._fill(slice(_AT_ONCE))
        if len(self.charts) > _AT_ONCE:
            self.call_after_refresh(self._fill, slice(_AT_ONCE, None))

    def take_look(self, look: ChartLook | None) -> None:
        """Draw as charts of another screen are drawn; while that is in front there is time for
        it.
        """
        if look is not None and look != self.look:
            self.look, self._drawn = look, None
            if not self._covered():
                self._fill()

    def step_at(self, plot: Plot, position: int) -> int | None:
        """Return the step of a position on the x axis of a chart, None where it is not known."""
        run = self._view.run if self._view is not None else None
        return step_at(run, plot.data.key, self.look, position)

    def clip(self) -> str:
        """Return what the focused chart says where the cursor is, else last."""
        found = self.focused_plan()
        return (
            reading(found, None, self._view, self.look)
            if found is not None and self._view is not None
            else ""
        )

    def write_table(self) -> None:
        """Write the points of the focused chart to a file."""
        found, view = self.focused_plan(), self._view
        if found is not None and view is not None and view.run is not None:
            take_table(
                self.app, named(view.run.name, found.key), in_sight(found, None, view, self.look)
            )

    def focused_plan(self) -> PlannedChart | None:
        """Return what the focused chart shows; if none has the focus, that of the finding chosen
        last, or the first.
        """
        shown, slot = self._shown, self._slot
        return shown[slot] if slot < len(shown) else None

    def reader(self, *, focus: bool) -> Chart | None:
        """Return the chart that the cursor's keys mean, given the focus if that is to be; None
        where none is drawn.
        """
        chart = next(iter(self.charts[self._slot :]), None)
        if focus and chart is not None:
            chart.focus(scroll_visible=False)
        return chart

    @property
    def _shown(self) -> Sequence[PlannedChart]:
        """What the page shows."""
        return self._plans[self._first : self._first + self._shape[1]]

    @property
    def _slot(self) -> int:
        """Where on the page the chart stands that keys mean."""
        focused = next((i for i, chart in enumerate(self.charts) if chart.has_focus), None)
        if focused is not None:
            return focused
        return next(
            (
                i
                for i, found in enumerate(self._shown)
                if self._revealed and found.shows(self._revealed)
            ),
            0,
        )


def _fitting(size: Size, count: int) -> tuple[int, int]:
    """Return how many columns of charts fit, and how many of so many charts a page holds."""
    width, height = size
    if width < 2 * _LEAST_WIDTH - 4 or height < _LEAST_HEIGHT:
        columns, rows = (
            max(1, (width + 1) // (_GOOD_WIDTH + 1)),
            max(1, height),
        )  # columns of single lines
    else:
        columns = max(width // _GOOD_WIDTH, min(2, (width + 1) // (_LEAST_WIDTH + 1)), 1)
        rows = height // _GOOD_HEIGHT
        if columns * rows < _ENOUGH:
            rows = height // _LEAST_HEIGHT
    slots = max(1, min(columns * max(1, rows), count or 1))
    return min(columns, slots), slots


def _empty(view: View, filter_: str) -> ChartData:
    from verl_tui.rendering.charts.chart_data import ChartData

    if filter_:
        return ChartData("", label=f"no metric matches “{filter_}”", empty="")
    return ChartData(
        "", label="charts" if view.run is None else view.run.name, empty=nothing_yet(view)
    )


if TYPE_CHECKING:
    from verl_tui.rendering.charts.chart_data import ChartData
