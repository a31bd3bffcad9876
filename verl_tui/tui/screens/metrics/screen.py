"""Every metric of the shown run as charts or a table: filtered, sorted, pinned to the dashboard."""

from __future__ import annotations

from dataclasses import replace

from textual import on
from textual.message import Message
from textual.widgets import Input

from verl_tui.exporters.new_file import named
from verl_tui.rendering.charts.plan import ChartLook, PlannedChart, single_metric
from verl_tui.rendering.charts.values import listed, reading
from verl_tui.rendering.filter_words import filter_label
from verl_tui.rendering.metrics.filter import HELP
from verl_tui.rendering.metrics.listing import MetricOrder
from verl_tui.tui.export import take_table
from verl_tui.tui.keys.chart_keys import look_after, step_at, why_unchanged
from verl_tui.tui.keys.help_section import HelpSection
from verl_tui.tui.keys.tasks import LEARN
from verl_tui.tui.messages import MoveCursor
from verl_tui.tui.panels.runs import RunsPanel
from verl_tui.tui.screens.metrics.keys import METRICS_KEYS
from verl_tui.tui.screens.metrics.layout import MetricsLayout
from verl_tui.tui.screens.zoom import ZoomScreen
from verl_tui.tui.toast import toast
from verl_tui.tui.widgets.chart import Chart

_OF_CHARTS = {"read", "read_end", "look", "shape"}
"""Actions that a table does not have."""


class MetricsScreen(MetricsLayout):
    """All metrics of the shown run."""

    FOOTER = (
        ("metrics.back", "Back"),
        ("chart.read_left chart.read_right", "Read"),
        ("look.in look.out", "Zoom"),
        ("metrics.zoom", "Full screen"),
        ("metrics.more_columns metrics.fewer_columns", "Columns"),
    )
    """Keys that the last row begins with, in fewer words."""
    HELP_SECTION = HelpSection(
        "all metrics", rank=30, notes=HELP, charts=True, task=LEARN
    )
    BINDINGS = METRICS_KEYS

    class Pinned(Message):
        """A metric was pinned or unpinned: the dashboard begins with other charts."""

    # -- keys --------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable the keys of charts in the table."""
        return not (self._is_table and action in _OF_CHARTS)

    def action_back(self) -> None:
        """Remove the cursor, else the filter, else close."""
        if (
            self._view.cursor is not None
            and not self._is_table
            and not self._bar.display
        ):
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
        self._is_table = not self._is_table
        self._change(lambda user: replace(user, metrics_table=self._is_table))
        await self._mount_once(self._list, self._detail)
        self._show_list()
        self.call_after_refresh(self.redraw)

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
            plan,
            self._charts.look,
            self._view,
            lambda view: self._metrics.charts(view.run),
        )

        def left(look: ChartLook | None) -> None:
            self._grid.chosen = zoomed.metric
            self._charts.take_look(look)
            self.show(zoomed.view)

        self.app.push_screen(zoomed, left)

    def _plan(self) -> PlannedChart | None:
        """Return the chart of the chosen metric alone."""
        key = self.chosen
        run = self._view.run
        if key is not None and run is not None:
            return single_metric(run, key)
        return None

    def clip(self) -> str:
        """Return the value of the chosen metric at the cursor, else the newest."""
        plan = self._plan()
        if plan is None:
            return ""
        return reading(plan, None, self._view, self._charts.look)

    def action_write_table(self) -> None:
        """Write the listed metrics to a file: the steps in sight, in the table all steps."""
        run = self._view.run
        look = ChartLook() if self._is_table else self._charts.look
        if run is not None:
            columns = listed(self._metrics.keys, self._view, look)
            take_table(self.app, named(run.name, "metrics"), columns)

    def action_shape(self, what: str, by: int) -> None:
        """Show more or fewer columns or rows of charts."""
        columns, rows = self._grid.shape
        if self._is_table:
            return
        if what == "columns":
            self._change(
                lambda user: replace(user, metrics_columns=max(1, columns + by))
            )
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
        look = self._charts.look
        run = self._view.run
        words = why_unchanged(look, what, run, self._view.keys)
        if words:
            toast(self.app, words)
        self._take_look(look_after(look, what, run, self._view.cursor))

    def _take_look(self, look: ChartLook | None) -> None:
        self._charts.take_look(look)
        self._draw()

    def action_read(self, columns: int) -> None:
        """Move the cursor of all charts, by so many columns of the chosen one."""
        if self._grid.tile is not None:
            self._grid.tile.action_read(columns)

    def action_read_end(self, way: int) -> None:
        """Move the cursor of all charts to the first or last point of the chosen one."""
        if self._grid.tile is not None:
            self._grid.tile.action_read_end(way)

    @on(Chart.CursorMoved)
    def _read(self, event: Chart.CursorMoved) -> None:
        """Move the cursor of all charts to the same step."""
        position = event.step
        if position is None:
            step = None
        else:
            step = step_at(
                self._view.run, event.chart.data.key, self._charts.look, position
            )
        if step is not None or position is None:
            self.post_message(MoveCursor(step))

    def action_other(self, way: int) -> None:
        """Show the next or previous run."""
        other = self._view.beside(way)
        if other is not None:
            self.post_message(RunsPanel.Picked(other.name))

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
        self._bar.say(counts, escape=view.keys["metrics.back"])

    @on(Input.Submitted, "#metrics-filter")
    def _close_filter(self) -> None:
        self._bar.display = False
        self.fit(self.size)
        self._show_list()
        self.call_after_refresh(self.redraw)
