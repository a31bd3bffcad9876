"""All metrics: charts by prefix, or a table."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from textual import on
from textual.widgets import Input

from verl_tui.rendering.charts.page import page_content
from verl_tui.rendering.charts.plan import ChartLook, PlannedChart, single_metric
from verl_tui.rendering.charts.values import listed
from verl_tui.rendering.metrics.listing import (
    HELP,
    ListedMetric,
    MetricList,
    MetricOrder,
    listed_words,
    metric_table,
    metric_words,
)
from verl_tui.rendering.text.piece import Pieces, fit, paragraph, printable
from verl_tui.tui.export import take_table
from verl_tui.tui.keys import LEARN, HelpSection, actions
from verl_tui.tui.messages import toast
from verl_tui.tui.panels.charts import ChartActions
from verl_tui.tui.screens.metric_grid import MetricGrid
from verl_tui.tui.screens.zoom import ZoomScreen
from verl_tui.tui.terminal.scrolling import LazyRows
from verl_tui.tui.widgets.chart import KEYS, READING, Chart, MoveCursor
from verl_tui.tui.widgets.filter_bar import FilterBar, Keys
from verl_tui.tui.widgets.rows import FewRows, Line, Rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.app import ComposeResult

    from verl_tui.rendering.session.preferences import UserState
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.tui.screens.dashboard import Dashboard

_WITH_HEAD = 10
"""Least height of a screen on which a table has the names of its columns."""
_OF_CHARTS = {"read", "read_end", "look", "shape"}
"""Actions that a table does not have."""


class MetricsScreen(ChartActions):
    """All metrics, with a line about the list and one about the chosen metric."""

    SCREEN = ("m", "metrics", "All metrics", "Metrics")
    AUTO_FOCUS = ""
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (60, "-half"), (80, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (10, "-low"), (18, "-tall")]  # noqa: RUF012
    FOOTER = """
        metrics.back                                Back
        chart.read_left chart.read_right            Read
        look.in look.out                            Zoom
        metrics.zoom                                Full screen
        metrics.more_columns metrics.fewer_columns  Columns
        metrics.view                                Table or charts
        metrics.filter                              Filter
        metrics.sort                                Sort
        metrics.pin                                 Pin
    """
    HELP_SECTION = HelpSection("all metrics", LEARN, 30, HELP, charts=True)
    BINDINGS = actions(
        """
        escape  back                  metrics.back           Back
        q,m     dismiss               metrics.close          Close
        v       flip                  metrics.view           Table or charts
        /       filter                metrics.filter         Filter
        s       sort(False)           metrics.sort           Sort
        S       sort(True)            metrics.reverse        Sort the other way round
        space   pin                   metrics.pin            Pin
        enter   zoom                  metrics.zoom           Full screen
        >       shape('columns', 1)   metrics.more_columns   More columns
        <       shape('columns', -1)  metrics.fewer_columns  Fewer columns
        )       shape('rows', 1)      metrics.more_rows      More rows
        (       shape('rows', -1)     metrics.fewer_rows     Fewer rows

        0  reset  metrics.reset  Reset: as many as fit, all steps, no filter
        """,
        (binding for binding in KEYS if binding.key not in ("s", "S")),
        """
        W  write_table  metrics.table  Write all listed metrics to a CSV file
        """,
        READING,
        """
        h         grid('move', -1)    metrics.left       Previous chart
        l         grid('move', 1)     metrics.right      Next chart
        j,down    grid('shelf', 1)    metrics.down       Row below
        k,up      grid('shelf', -1)   metrics.up         Row above
        ctrl+d    grid('page', 0.5)   metrics.half_down  Half a page down
        ctrl+u    grid('page', -0.5)  metrics.half_up    Half a page up
        pagedown,ctrl+f  grid('page', 1)   metrics.page_down  Next page
        pageup,ctrl+b    grid('page', -1)  metrics.page_up    Previous page
        g         grid('end', -1)     metrics.first      First
        G         grid('end', 1)      metrics.last       Last
        [         app.switch_run(-1)  run.previous       Previous run
        ]         app.switch_run(1)   run.next           Next run
        """,
    )
    DEFAULT_CSS = """
    MetricsScreen {
        & > #metrics-status { background: $panel; padding: 0 1; }
        & > #metrics-detail { padding: 0 1; }
        & > FewRows { padding: 0; }
        & > #metrics-rows { height: 1fr; scrollbar-gutter: stable; }
        &.-narrow > #metrics-status, &.-narrow > #metrics-detail { padding: 0; }
        &.-flat > #metrics-detail { display: none; }
        &.-flat > Keys, &.-low > Keys, &.-narrow > Keys, &.-half > Keys { display: none; }
    }
    """

    def __init__(self, dashboard: Dashboard) -> None:
        """Make the screen; its charts share their look with the dashboard's."""
        super().__init__()
        self.view = dashboard.view
        self.charts = dashboard.charts
        self._file = self.view.listing.file
        self._is_table = self._file.state.metrics_table
        """True for a table; a screen over another may show the other form."""
        self._metrics = MetricList(self.view)
        self._drawn: object = None
        """State that was drawn last: to plan a page of charts takes long."""
        self._status = Line(id="metrics-status")
        self._detail = Line(id="metrics-detail")
        self._grid = MetricGrid(self._metrics)
        self._head = FewRows(id="metrics-head")
        self._table = Rows(id="metrics-rows")
        self._bar = FilterBar("words a|b !not /regex/")

    def compose(self) -> ComposeResult:
        """Make the line about the list, the metrics, the line about the chosen one, the keys."""
        yield self._status
        yield self._grid
        yield self._head
        yield self._table
        yield self._detail
        yield self._bar
        yield Keys()

    def on_mount(self) -> None:
        """Begin with charts or table, whichever was shown last."""
        self._show_list()

    def show(self, view: View) -> None:
        """Draw the newest state."""
        self.view = view
        self._draw()

    @property
    def chosen(self) -> str:
        """Key of the chosen metric."""
        return self._grid.chosen

    # -- drawing -----------------------------------------------------------------------------------

    def redraw(self) -> None:
        """Draw, even if nothing has changed."""
        self._drawn = None
        self._draw()

    def _draw(self) -> None:
        """Draw if anything has changed."""
        if not self.is_mounted or not self.size.width:
            return
        metrics, view = self._metrics, self.view
        look, user = self.charts.look, self._file.state
        listed = metrics.filter, metrics.problem, metrics.order, user
        drawn = page_content(view, look, *listed)
        if drawn == self._drawn:
            return
        self._drawn = drawn
        metrics.update(view, look, user, table=self._is_table)
        if self._is_table:
            self._draw_table()
        else:
            self._grid.show()
        self._draw_lines()

    def _draw_table(self) -> None:
        """Draw the rows in sight, each made when it comes there; the chosen metric among them."""
        keys = self._metrics.keys
        width = self._table.width
        if width < 1:
            return
        if not keys:
            self._head.show([])
            self._table.set(paragraph(self._metrics.if_empty, "dim", width))
            self._table.choose(None)
            self._grid.chosen = ""
            return
        columns = metric_table(width, max(map(cell_len, keys)), self._metrics.order)
        self._head.show([columns.heading()] * (self.size.height >= _WITH_HEAD))
        run, pins = self.view.run, self._file.state.pins
        indicators = {of: name for name, of in run.indicators.items()} if run else {}

        def row(key: str) -> Pieces:
            series, end = (run.series(key), run.end) if run else (None, None)
            return columns.row(
                ListedMetric(key, series, key in pins, end, indicators.get(key))
            )

        self._table.set(LazyRows(keys, row), range(len(keys)))
        at = keys.index(self._grid.chosen) if self._grid.chosen in keys else 0
        self._grid.chosen = keys[at]
        self._table.choose(at)
        self._table.reveal(at)

    @on(MetricGrid.Moved)
    def _draw_lines(self) -> None:
        """Draw the lines above and below the metrics."""
        width, metrics = self.size.width, self._metrics
        if metrics.problem:
            self._status.show([(fit(printable(metrics.problem), width - 2), "warning")])
        else:
            page = None if self._is_table else self._grid.pages
            self._status.show(*listed_words(metrics, page, width))
        key = self.chosen
        self._detail.show(metric_words(key, width) if key else ())

    @on(Rows.Chosen)
    def _row_chosen(self, event: Rows.Chosen) -> None:
        self._grid.chosen = self._metrics.keys[event.entry]
        self._draw_lines()

    def _show_list(self) -> None:
        """Show table or charts, and give them the focus."""
        self._grid.display = not self._is_table
        self._table.display = self._is_table
        self._head.show([])
        self.set_focus(self._table if self._is_table else None, scroll_visible=False)
        self.refresh_bindings()

    def _change(self, change: Callable[[UserState], UserState]) -> None:
        """Change the user's choices that are kept, and draw."""
        toast(self.app, self._file.change(change))
        self._draw()

    # -- keys --------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable the keys of charts in the table."""
        return not (self._is_table and action in _OF_CHARTS)

    def action_back(self) -> None:
        """Remove the cursor, else the filter, else close."""
        typed = self._bar.display
        if self.view.cursor is not None and not self._is_table and not typed:
            self.post_message(MoveCursor(None))
        elif typed or self._bar.input.value:
            self._bar.input.value = ""
            self._close_filter()
        else:
            self.dismiss()

    def action_grid(self, way: str, by: float) -> None:
        """Choose another chart: `move`, `shelf`, `page` or `end`; the table has its own keys."""
        if not self._is_table:
            getattr(self._grid, way)(by)

    def action_flip(self) -> None:
        """Show the table, or the charts."""
        self._is_table = not self._is_table
        self._change(lambda user: replace(user, metrics_table=self._is_table))
        self._show_list()
        self.call_after_refresh(self.redraw)

    def action_sort(self, back: bool) -> None:
        """Sort by the next sort key, or the other way round."""
        order = self._metrics.order
        backwards = order._replace(reverse=not order.reverse)
        self._metrics.order = backwards if back else order.next()
        self._grid.chosen = ""  # the first one is chosen now
        self._draw()

    def action_pin(self) -> None:
        """Pin or unpin the chosen metric."""
        key = self.chosen
        if key:
            self._change(lambda user: user.with_pin(key))

    def action_zoom(self) -> None:
        """Draw the chosen metric over the full screen."""
        plan = self.plan()
        if not plan:
            return
        metrics = self._metrics
        zoomed = ZoomScreen(
            plan, self.charts, self.view, lambda view: metrics.charts(view.run)
        )

        def left(_: object) -> None:
            self._grid.chosen = zoomed.plan().key
            self.show(zoomed.view)

        self.app.push_screen(zoomed, left)

    def plan(self) -> PlannedChart | None:
        """Return the chart of the chosen metric alone."""
        run, key = self.view.run, self.chosen
        return single_metric(run, key) if run and key else None

    def action_write_table(self) -> None:
        """Write the listed metrics to a file: the steps in sight, in the table all steps."""
        run = self.view.run
        look = ChartLook() if self._is_table else self.charts.look
        if run:
            columns = listed(self._metrics.keys, self.view, look)
            take_table(self.app, columns, run.name, "metrics")

    def action_shape(self, what: str, by: int) -> None:
        """Show more or fewer columns or rows of charts."""
        count: Any = max(1, self._grid.shape[what == "rows"] + by)
        self._change(lambda user: replace(user, **{f"metrics_{what}": count}))

    def action_reset(self) -> None:
        """Reset number of charts, order, zoom, filter and cursor."""
        self._metrics.order = MetricOrder()
        self.charts.set_look(ChartLook())
        self.post_message(MoveCursor(None))
        self._bar.input.value = ""
        self._close_filter()
        self._change(lambda user: replace(user, metrics_columns=0, metrics_rows=0))

    def reader(self) -> Chart | None:
        """Return the chosen chart."""
        return self._grid.tile

    # -- filter ------------------------------------------------------------------------------------

    def action_filter(self) -> None:
        """Open the line to type a filter in."""
        self._bar.open("filter metrics: ", self._bar.input.value)
        self._say_matches()

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self._metrics.type_filter(event.value)
        self._draw()
        self._say_matches()

    def _say_matches(self) -> None:
        """Say beside the typed filter how much matches it."""
        counts = {"metrics": self._metrics.matches}
        self._bar.say(counts, escape=self.view.keys["metrics.back"])

    @on(Input.Submitted)
    def _close_filter(self) -> None:
        self._bar.close()
        self.call_after_refresh(self.redraw)
