"""Every metric of the shown run as charts or a table: filtered, sorted, pinned to the dashboard."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from textual import on
from textual.message import Message
from textual.widgets import Input

from verl_tui.exporters.new_file import named
from verl_tui.rendering.charts.plan import ChartLook, PlannedChart, single_metric
from verl_tui.rendering.charts.values import listed, reading
from verl_tui.rendering.filter_words import filter_label
from verl_tui.rendering.log.tail import has_log
from verl_tui.rendering.metrics.filter import HELP
from verl_tui.rendering.metrics.header_lines import listed_words, metric_words
from verl_tui.rendering.metrics.listing import MetricOrder
from verl_tui.rendering.metrics.metric_list import MetricList
from verl_tui.rendering.metrics.shown import ListedMetrics
from verl_tui.rendering.text.printable import printable
from verl_tui.rendering.text.wrap import fit
from verl_tui.tui.export import take_table
from verl_tui.tui.keys.chart_keys import (
    look_after,
    step_at,
    why_unchanged,
    with_step_in_sight,
)
from verl_tui.tui.keys.help_section import HelpSection
from verl_tui.tui.keys.tasks import LEARN
from verl_tui.tui.messages import MoveCursor
from verl_tui.tui.panels.runs import RunsPanel
from verl_tui.tui.screens.metrics.grid import MetricGrid
from verl_tui.tui.screens.metrics.keys import METRICS_KEYS
from verl_tui.tui.screens.metrics.table import MetricTable
from verl_tui.tui.screens.zoom import ZoomScreen
from verl_tui.tui.terminal.buffered_screen import BufferedScreen
from verl_tui.tui.toast import toast
from verl_tui.tui.widgets.chart import Chart
from verl_tui.tui.widgets.filter_bar import FilterBar
from verl_tui.tui.widgets.footer import Keys
from verl_tui.tui.widgets.line import Line
from verl_tui.tui.widgets.rows import Rows
from verl_tui.tui.widgets.start_log import StartLog

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.app import ComposeResult
    from textual.geometry import Size
    from textual.widget import Widget

    from verl_tui.rendering.session.preferences import StateFile, UserState
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.tui.panels.charts import ChartsPanel

_WITH_DETAIL = 10
"""Least height of a screen with a line about the chosen metric."""
_OF_CHARTS = {"read", "read_end", "look", "shape"}
"""Actions that a table does not have."""
_WITH_FOOTER = (80, 18)
"""Least width and height of a screen with the keys in its last row."""


class MetricsScreen(BufferedScreen[None]):
    """All metrics of the shown run."""

    AUTO_FOCUS = ""
    FOOTER = (
        ("metrics.back", "Back"),
        ("chart.read_left chart.read_right", "Read"),
        ("look.in look.out", "Zoom"),
        ("metrics.zoom", "Full screen"),
        ("metrics.more_columns metrics.fewer_columns", "Columns"),
    )
    """Keys that the last row begins with, in fewer words."""
    HELP_SECTION = HelpSection("all metrics", rank=30, notes=HELP, charts=True, task=LEARN)
    BINDINGS = METRICS_KEYS
    DEFAULT_CSS = """
    MetricsScreen {
        overflow: hidden hidden;
        & > #metrics-status { background: $panel; padding: 0 1; }
        & > #metrics-detail { padding: 0 1; }
        & > #metrics-bar { padding: 0 1; }
        &.-narrow > #metrics-status, &.-narrow > #metrics-detail { padding: 0; }
    }
    """

    class Pinned(Message):
        """A metric was pinned or unpinned: the dashboard begins with other charts."""

    def __init__(self, view: View, charts: ChartsPanel, state_file: StateFile) -> None:
        """Make the screen.

        Args:
            view: The state to begin with.
            charts: The dashboard's charts, which share their look with these.
            state_file: The user's choices that are kept.
        """
        super().__init__()
        self._view = view
        self._charts = charts
        self._file = state_file
        self._metrics = MetricList()
        self._drawn: object = None
        """State that was drawn last."""
        self._status, self._detail = Line(id="metrics-status"), Line(id="metrics-detail")
        self._grid, self._table = MetricGrid(id="metrics-grid"), MetricTable(id="metrics-table")
        self._log = StartLog()
        self._keys = Keys()
        self._bar = FilterBar(
            id="metrics-bar", input_id="metrics-filter", hint="words a|b !not /regex/"
        )
        self._bar.display = False

    def compose(self) -> ComposeResult:
        """Make the line about the list, the metrics, the line about the chosen one, the keys."""
        yield self._status
        yield self._list
        yield self._detail
        yield self._keys

    def on_mount(self) -> None:
        """Begin with charts or table, whichever was shown last."""
        self._show_list()

    def fit(self, size: Size) -> None:
        """Hide the lines that there is no room for.

        A class would make Textual compute the styles of all charts again.
        """
        width, height = size
        self._detail.display = height >= _WITH_DETAIL
        self._keys.display = (
            width >= _WITH_FOOTER[0] and height >= _WITH_FOOTER[1] and not self._bar.display
        )

    def show(self, view: View) -> None:
        """Draw the newest state."""
        if view.cursor != self._view.cursor:
            self._charts.take_look(with_step_in_sight(self._charts.look, view.run, view.cursor))
        self._view = view
        self._draw()

    @property
    def _user(self) -> UserState:
        return self._file.state

    @property
    def _is_table(self) -> bool:
        return self._user.metrics_table

    @property
    def _list(self) -> MetricGrid | MetricTable:
        """The widget that shows the metrics."""
        return self._table if self._is_table else self._grid

    @property
    def chosen(self) -> str | None:
        """Key of the chosen metric."""
        return self._table.chosen if self._is_table else self._grid.chosen

    # -- drawing -----------------------------------------------------------------------------------

    def redraw(self) -> None:
        """Draw, even if nothing has changed."""
        self._drawn = None
        self._draw()

    def _draw(self) -> None:
        """Draw if anything has changed."""
        view, run = self._view, self._view.run
        if not self.is_mounted or not self.size.width:
            return
        revision = run.revision if run is not None else 0
        state = (run, revision, view.cursor, view.verdict, view.loading)
        drawn = (*state, *self._metrics.state, self._charts.look, self._user)
        if drawn == self._drawn:
            return
        self._drawn = drawn
        self._show_log()
        self._metrics.update(run)
        if self._is_table:
            self._table.show(self._shown(), self._grid.chosen)
        else:
            self._grid.show(self._shown())
        self._draw_lines()

    def _show_log(self) -> None:
        """Show the end of the log instead of the metrics of a run that has none."""
        run = self._view.run
        instead = run is not None and not run.keys and has_log(run)
        if instead and not self._log.is_attached:
            self.mount(self._log, before=self._detail)
        if self._log.display is not instead:
            self._list.display, self._log.display = not instead, instead
        self._log.show(self._view if instead else None)

    def _shown(self) -> ListedMetrics:
        metrics, view = self._metrics, self._view
        return ListedMetrics(
            view,
            metrics.groups,
            metrics.order,
            self._charts.look,
            self._user,
            metrics.if_empty(view),
        )

    def _draw_lines(self) -> None:
        """Draw the lines above and below the metrics."""
        width, ascii_only, metrics = self.size.width, self._view.ascii_only, self._metrics
        if metrics.problem:
            words = fit(printable(metrics.problem, ascii_only=ascii_only), width - 2)
            self._status.show([(words, "warning")])
        else:
            filter_ = metrics.filter.text if metrics.filter.clauses else ""
            page = None if self._is_table else self._grid.pages
            self._status.show(*listed_words(self._shown(), filter_, page, width))
        key = self.chosen
        self._detail.show(() if key is None else metric_words(key, width, ascii_only=ascii_only))

    @on(MetricGrid.Moved)
    def _moved(self) -> None:
        self._draw_lines()

    @on(Rows.Chosen)
    def _row_chosen(self) -> None:
        self._grid.chosen = self._table.chosen
        self._draw_lines()

    # -- keys --------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable the keys of charts in the table."""
        return not (self._is_table and action in _OF_CHARTS)

    def action_back(self) -> None:
        """Remove the cursor, else the filter, else close."""
        if self._view.cursor is not None and not self._is_table and not self._bar.display:
            self.post_message(MoveCursor(None))
        elif self._bar.display or self._bar.input.value:
            self._bar.input.value = ""
            self._close_filter()
        else:
            self.dismiss()

    def action_grid(self, way: str, by: int) -> None:
        """Choose another chart; the table has keys of its own."""
        if not self._is_table:
            moves = {
                "move": self._grid.move,
                "shelf": self._grid.shelf,
                "page": self._grid.page,
                "end": self._grid.end,
            }
            moves[way](by)

    async def action_turn(self) -> None:
        """Show the table, or the charts."""
        self._change(lambda user: replace(user, metrics_table=not user.metrics_table))
        await self._mount_once(self._list, self._detail)
        self._show_list()
        self.call_after_refresh(self.redraw)

    async def _mount_once(self, widget: Widget, before: Widget) -> None:
        """Mount a widget when it is first shown: without it the screen opens sooner."""
        if not widget.is_attached:
            await self.mount(widget, before=before)

    def _show_list(self) -> None:
        """Show table or charts, and give them the focus."""
        self._grid.display, self._table.display = not self._is_table, self._is_table
        self._show_log()
        self.set_focus(self._table.rows if self._is_table else None, scroll_visible=False)
        self.refresh_bindings()

    def action_sort(self) -> None:
        """Sort by the next sort key."""
        self._sort(self._metrics.order.next())

    def action_reverse(self) -> None:
        """Sort the other way round."""
        order = self._metrics.order
        self._sort(order._replace(reverse=not order.reverse))

    def _sort(self, order: MetricOrder) -> None:
        self._metrics.order = order
        self._grid.chosen = None  # the first one is chosen now
        self._draw()

    def action_pin(self) -> None:
        """Pin or unpin the chosen metric."""
        key = self.chosen
        if key is not None:
            self._change(lambda user: user.with_pin(key))
            self.post_message(self.Pinned())

    def action_zoom(self) -> None:
        """Draw the chosen metric over the full screen."""
        plan = self._plan()
        if plan is None:
            return
        zoomed = ZoomScreen(
            plan, self._charts.look, self._view, lambda view: self._metrics.charts(view.run)
        )

        def left(look: ChartLook | None) -> None:
            self._grid.chosen = zoomed.metric
            self._charts.take_look(look)
            self.show(zoomed.view)

        self.app.push_screen(zoomed, left)

    def _listed_charts(self, view: View) -> list[PlannedChart]:
        return self._metrics.charts(view.run)

    def _plan(self) -> PlannedChart | None:
        """Return the chart of the chosen metric alone."""
        key, run = self.chosen, self._view.run
        return single_metric(run, key) if key is not None and run is not None else None

    def clip(self) -> str:
        """Return the value of the chosen metric at the cursor, else the newest."""
        plan = self._plan()
        return reading(plan, None, self._view, self._charts.look) if plan is not None else ""

    def action_write_table(self) -> None:
        """Write the listed metrics to a file: the steps in sight, in the table all steps."""
        run, look = self._view.run, ChartLook() if self._is_table else self._charts.look
        if run is not None:
            columns = listed(self._metrics.keys, self._view, look)
            take_table(self.app, named(run.name, "metrics"), columns)

    def action_shape(self, what: str, by: int) -> None:
        """Show more or fewer columns or rows of charts."""
        columns, rows = self._grid.shape
        if self._is_table:
            return
        if what == "columns":
            self._change(lambda user: replace(user, metrics_columns=max(1, columns + by)))
        else:
            self._change(lambda user: replace(user, metrics_rows=max(1, rows + by)))

    def action_reset(self) -> None:
        """Reset number of charts, order, zoom, filter and cursor."""
        self._metrics.order = MetricOrder()
        self._charts.take_look(ChartLook())
        self.post_message(MoveCursor(None))
        self._bar.input.value = ""
        self._close_filter()
        self._change(lambda user: replace(user, metrics_columns=0, metrics_rows=0))

    def action_look(self, what: str) -> None:
        """Change how charts are drawn, here and on the dashboard."""
        look, run = self._charts.look, self._view.run
        if words := why_unchanged(look, what, run):
            toast(self.app, words)
        self._take_look(look_after(look, what, run, self._view.cursor))

    def _take_look(self, look: ChartLook | None) -> None:
        self._charts.take_look(look)
        self._draw()

    def action_read(self, columns: int) -> None:
        """Move the cursor of all charts, by so many columns of the chosen one."""
        self._grid.read(columns)

    def action_read_end(self, way: int) -> None:
        """Move the cursor of all charts to the first or last point of the chosen one."""
        self._grid.read_end(way)

    @on(Chart.CursorMoved)
    def _read(self, event: Chart.CursorMoved) -> None:
        """Move the cursor of all charts to the same step."""
        position = event.step
        step = (
            None
            if position is None
            else step_at(self._view.run, event.plot.data.key, self._charts.look, position)
        )
        if step is not None or position is None:
            self.post_message(MoveCursor(step))

    def action_other(self, way: int) -> None:
        """Show the next or previous run."""
        other = self._view.beside(way)
        if other is not None:
            self.post_message(RunsPanel.Picked(other.name))

    def _change(self, change: Callable[[UserState], UserState]) -> None:
        """Change the user's choices that are kept, and draw."""
        problem = self._file.change(change)
        if problem:
            toast(self.app, problem)
        self._draw()

    # -- filter ------------------------------------------------------------------------------------

    async def action_filter(self) -> None:
        """Open the line to type a filter in."""
        await self._mount_once(self._bar, self._keys)
        self._bar.open(filter_label(["metrics"]), self._bar.input.value)
        self._say_matches()
        self.fit(self.size)

    @on(Input.Changed, "#metrics-filter")
    def _typed(self, event: Input.Changed) -> None:
        self._metrics.type_filter(event.value)
        self._draw()
        self._say_matches()

    def _say_matches(self) -> None:
        """Say beside the typed filter how much matches it."""
        view = self._view
        counts = {"metrics": self._metrics.matches(view.run)}
        self._bar.say(counts, ascii_only=view.ascii_only, escape=view.keys["metrics.back"])

    @on(Input.Submitted, "#metrics-filter")
    def _close_filter(self) -> None:
        self._bar.display = False
        self.fit(self.size)
        self._show_list()
        self.call_after_refresh(self.redraw)
