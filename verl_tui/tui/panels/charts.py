"""The charts of a run: indicators first, then every other metric the log has."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from textual import on

from verl_tui.rendering.charts.chart_data import ChartData
from verl_tui.rendering.charts.page import (
    MACHINE,
    ChartPage,
    empty_chart,
    list_charts,
    of_one_point,
    page_content,
    page_data,
)
from verl_tui.rendering.charts.plan import ChartLook, PlannedChart
from verl_tui.rendering.charts.tiles import PageOfTiles, lines_of
from verl_tui.rendering.charts.values import in_sight, reading
from verl_tui.rendering.log.target import has_log
from verl_tui.rendering.text.search import Matches
from verl_tui.tui.export import take_table
from verl_tui.tui.keys import LEARN, HelpSection, actions
from verl_tui.tui.messages import Once, toast
from verl_tui.tui.panels.panel import NOTHING, Panel, PanelSpec
from verl_tui.tui.terminal.buffered_screen import BufferedScreen
from verl_tui.tui.widgets.chart import (
    READING,
    Chart,
    ChartTiles,
    MoveCursor,
    look_after,
    step_at,
    why_unchanged,
)
from verl_tui.tui.widgets.rows import Rows

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.geometry import Size

    from verl_tui.rendering.log.window import LogWindow
    from verl_tui.rendering.session.snapshot import View


class StartLog(Rows):
    """Rows of a log, out of sight while there are charts."""

    DEFAULT_CSS = """
    StartLog {
        display: none;
        height: 1fr;
    }
    """

    class Read(Once):
        """More of the log has been read."""

    _tail: LogWindow | None = None
    _view = NOTHING
    _shown: object = None
    """The run, and whether it has ended."""

    def show(self, view: View) -> None:
        """Show the end of the log of the shown run."""
        self._view, run = view, view.run
        shown = run and (run, run.outcome is not None)
        if not self._tail or shown != self._shown:
            from verl_tui.rendering.log.last_lines import log_tail

            self.stop()
            self._shown = shown
            self._tail = log_tail(view, lambda: self.post_message(self.Read()))
        self.redraw()

    @on(Read)
    def redraw(self) -> None:
        """Write the rows of what was shown last."""
        width, height = self.size
        if not self._tail or not (width and height):
            return
        from verl_tui.rendering.log.last_lines import tail_rows

        rows = tail_rows(self._tail, self._view, width, height)
        if rows is not None:
            self.set(rows)

    def on_resize(self) -> None:
        """Show as many rows as fit now."""
        self.redraw()

    def stop(self) -> None:
        """Read nothing any more."""
        if self._tail:
            self._tail.reader.stop()
            self._tail = None

    on_unmount = stop


class ChartsPanel(Panel):
    """A page of charts, as many as fit; further pages hold the rest."""

    TITLE = "charts"
    PANEL = PanelSpec("charts", "f3", "Charts", rank=20, tab=10, share=1.0)
    FOOTER = """
        chart.read_left chart.read_right  Read
        chart.zoom                        Full screen
        look.in look.out                  Zoom
        chart.next chart.previous         Chart
        note                              Note
    """
    HELP_SECTION = HelpSection("charts, with the focus", LEARN, 10, charts=True)
    BINDINGS = actions(
        """
        j,down    step(1)   chart.next       Chart below, then the next column
        k,up      step(-1)  chart.previous   Chart above, then the column before
        pagedown,ctrl+f,ctrl+d,space  page(1)   chart.page_down  Next page of charts
        pageup,ctrl+b,ctrl+u          page(-1)  chart.page_up    Previous page of charts
        g         jump(-1)  chart.first      First page of charts
        G         jump(1)   chart.last       Last page of charts
        """,
        READING,
    )

    look = ChartLook()
    """How charts are drawn: axis, scale, smoothing."""
    filter = ""
    """Shows only the metrics that match; `narrow` sets it."""
    _lenient = False
    """True if the filter may be meant for something else."""
    _content: object = None
    """The content that was shown last."""
    _page = ChartPage()
    """The page that is shown."""
    _revealed: str | None = None
    """Metric whose page is shown, however many charts fit; None once the user has turned to
    another.
    """
    _focus: int | None = None
    """Slot to be given the focus when the page is drawn: 0 or -1."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._tiles = ChartTiles(self._places, self._data)
        self._start_log = StartLog()

    def compose(self) -> ComposeResult:
        """The tiles are filled when their size is known."""
        yield self._tiles
        yield self._start_log

    def needed(self, view: View, width: int, height: int) -> int:
        """Return the rows of metrics of one point, which leave most of the room to samples; charts
        take what they are left.
        """
        if not of_one_point(view):
            return 0
        return min(lines_of(len(list_charts(view)), width), height // 3)

    # -- what there is to show ---------------------------------------------------------------------

    def show(self, view: View, *, in_layout: bool = False) -> None:
        """Draw the page's charts, if any has changed: now, or in a layout that is due anyway; of a
        run without any the end of its log.
        """
        listed = self.filter, self._lenient, self._revealed
        content, run = page_content(view, self.look, *listed), view.run
        instead = bool(run and not self.filter and not run.keys and has_log(run))
        if instead is self._tiles.display:
            self._tiles.display = not instead
            self._start_log.display = instead
            self._start_log.stop()
        if instead:
            self._start_log.show(view)
            self.subtitle("")
        if content == self._content:
            return  # a reading of the GPUs, or the clock, changes no chart
        self._content, self.view = content, view
        self._page = self._page._replace(listed=self.listed(view))
        if in_layout:
            self._tiles.laid = None
        else:
            self._tiles.draw()

    def listed(self, view: View) -> tuple[PlannedChart, ...]:
        """Return the charts that the shown run gets, in their order."""
        return list_charts(view, self.filter, self._revealed, lenient=self._lenient)

    def narrow(self, text: str, *, lenient: bool = False) -> None:
        """Show only metrics whose key or label contains a text; all where none does and it may be
        meant for something else.
        """
        wanted = text.strip(), lenient
        if wanted != (self.filter, self._lenient):
            self.filter, self._lenient = wanted
            self._go_to_chart(0)

    def matches(self, view: View) -> Matches:
        """Return how many charts match the filter, of how many."""
        return Matches(len(list_charts(view, self.filter)), len(list_charts(view)))

    # -- drawing -----------------------------------------------------------------------------------

    def _places(self, size: Size) -> PageOfTiles:
        """Return where the charts of the page stand."""
        self._page = self._page.fitted(*size, self._revealed)
        return self._page.page

    def _data(self, size: Size) -> list[ChartData]:
        """Return what the charts of the page show, and say below them how they are drawn."""
        view = self.view
        if self._focus is not None:
            self._give_focus(self._focus)
        data = page_data(self._page, view, self.look)
        if self._tiles.display:
            self.subtitle(self._page.caption(self.look, view, self.filter, data))
        if not data:
            return [empty_chart(view, self.filter)]
        words = f"── {MACHINE} ".ljust(size.width, "─")
        heading = ChartData("", label=words, in_row=True)
        return [*data, *[heading] * len(self._page.page.headings)]

    def _give_focus(self, slot: int) -> None:
        """Give the focus to the chart that is to have it: the revealed one, else the first or last
        of the page.
        """
        charts = self.charts
        if charts:
            revealed = self._page.slot(self._revealed)
            slot = slot if revealed is None else min(revealed, len(charts) - 1)
            self._focus = None
            charts[slot].focus(scroll_visible=False)

    def on_show(self) -> None:
        """Draw what has changed while the panel was out of sight."""
        self._tiles.draw()

    @property
    def charts(self) -> list[Chart]:
        """The charts on the page, in order."""
        return self._tiles.charts[: max(1, len(self._page.charts))]

    # -- keys --------------------------------------------------------------------------------------

    def _go_to_chart(self, first: int) -> None:
        """Show the page of a chart, by its place in the list, at the next drawing."""
        self._page = self._page._replace(first=first)
        self._revealed = None

    def action_page(self, way: int) -> None:
        """Show the next or previous page."""
        page = self._page.next_page(way)
        if page is not self._page:
            self._go_to_chart(page.first)
            self._tiles.draw()

    def action_jump(self, way: int) -> None:
        """Show the first or last page."""
        self._go_to_chart(0 if way < 0 else len(self._page.listed))
        self._focus = 0
        self._tiles.draw()

    def action_step(self, way: int) -> None:
        """Focus the chart below or above, then one of the next column, then of the next page."""
        charts = self.charts
        wide = [
            one.region.y for one in charts if one.size.width == self._tiles.size.width
        ]

        def place(one: Chart) -> tuple[int, int, int]:
            """Return how many charts that fill a row begin above it, its column, its row."""
            x, y = one.region.offset
            return sum(top <= y for top in wide), x, y

        charts.sort(key=place)
        focused = [chart.has_focus for chart in charts]
        start = -1 if way > 0 else len(charts)
        at = focused.index(True) if any(focused) else start
        if 0 <= at + way < len(charts):
            charts[at + way].focus(scroll_visible=False)
        elif self._page.next_page(way) is not self._page:
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
        # what is a row becomes a chart
        self._page = self._page._replace(listed=self.listed(self.view))
        if any(chart.has_focus for chart in self.charts):
            self._focus = 0  # it follows, once the page is drawn
        if not soon:
            self._tiles.draw()
        return True

    def reset(self) -> None:
        """Draw the first page in the usual look."""
        self._go_to_chart(0)
        self.look = ChartLook()
        self._tiles.draw()

    def set_look(self, look: ChartLook) -> None:
        """Draw in another way; what covers the charts leaves time for it."""
        if look != self.look:
            self.look = look
            if self.screen.is_current:
                self._tiles.draw()

    def focused_plan(self) -> PlannedChart | None:
        """Return the focused chart; if none has the focus, that of the finding chosen last, or the
        first.
        """
        return next(iter(self._page.charts[self._slot :]), None)

    def reader(self, *, focus: bool) -> Chart | None:
        """Return the chart that the cursor's keys mean, with the focus if `focus`; None where none
        is drawn.
        """
        found = next(iter(self.charts[self._slot :]), None)
        if focus and found:
            found.focus(scroll_visible=False)
        return found

    @property
    def _slot(self) -> int:
        """Slot of the chart that keys mean."""
        focused = [chart.has_focus for chart in self.charts]
        if any(focused):
            return focused.index(True)
        return self._page.slot(self._revealed) or 0


class ChartActions(BufferedScreen):
    """A screen with charts that these keys change."""

    view: View
    """What is shown."""

    charts: ChartsPanel
    """Those of the dashboard: all others are drawn in the same way."""

    right: PlannedChart | None = None
    """The metric of a y axis at the right."""

    def set_look(self, look: ChartLook) -> None:
        """Draw the charts in this way, here and on the dashboard."""
        self.charts.set_look(look)
        self.redraw()

    @abstractmethod
    def reader(self) -> Chart | None:
        """Return the chart by whose points the cursor moves, None where none is drawn."""

    @abstractmethod
    def plan(self) -> PlannedChart | None:
        """Return what is drawn in that chart."""

    def clip(self) -> str:
        """Return what the chart says where the cursor is, else last."""
        plan, look = self.plan(), self.charts.look
        return reading(plan, self.right, self.view, look) if plan else ""

    def action_write_table(self) -> None:
        """Write the points in sight to a file."""
        plan, run = self.plan(), self.view.run
        if plan and run:
            columns = in_sight(plan, self.right, self.view, self.charts.look)
            take_table(self.app, columns, run.name, plan.key)

    def action_read(self, columns: int) -> None:
        """Move the cursor of all charts, though none may have the focus."""
        chart = self.reader()
        if chart:
            chart.read(columns)

    def action_read_end(self, way: int) -> None:
        """Move the cursor of all charts to the first or last point."""
        chart = self.reader()
        if chart:
            chart.read_end(way)

    def action_look(self, what: str) -> None:
        """Change how charts are drawn; say why where nothing of that can be seen."""
        view, look = self.view, self.charts.look
        toast(self.app, why_unchanged(look, what, view.run, view.keys))
        self.set_look(look_after(look, what, view.run, view.cursor))

    def on_chart_cursor_moved(self, event: Chart.CursorMoved) -> None:
        """Read everything at the same step."""
        step = event.step
        if step is not None:
            step = step_at(self.view.run, event.chart.data.key, self.charts.look, step)
            if step is None:
                return  # the times of its steps are unknown
        self.post_message(MoveCursor(step))
