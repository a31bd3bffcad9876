"""Every metric of the shown run: charts by group, or a table; filtered, sorted, pinned to the
dashboard.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import Binding
from textual.message import Message
from textual.widgets import Input

from verl_tui.exporters.new_file import named
from verl_tui.rendering.charts.plan import ChartLook, PlannedChart, single_metric
from verl_tui.rendering.charts.values import listed, reading
from verl_tui.rendering.metrics.filter import HELP, MetricFilter, parse
from verl_tui.rendering.metrics.header_lines import listed_words, metric_words
from verl_tui.rendering.metrics.listing import MetricOrder, listing
from verl_tui.rendering.metrics.shown import ListedMetrics
from verl_tui.rendering.session.source_status import nothing_yet
from verl_tui.rendering.text.printable import printable
from verl_tui.rendering.text.wrap import fit
from verl_tui.tui.export import take_table
from verl_tui.tui.keys.chart_keys import (
    KEYS,
    look_after,
    step_at,
    why_unchanged,
    with_step_in_sight,
)
from verl_tui.tui.keys.help_section import HelpSection
from verl_tui.tui.messages import MoveCursor
from verl_tui.tui.panels.runs import RunsPanel
from verl_tui.tui.screens.metrics.grid import MetricGrid
from verl_tui.tui.screens.metrics.table import MetricTable
from verl_tui.tui.screens.zoom import ZoomScreen
from verl_tui.tui.terminal.buffered_screen import BufferedScreen
from verl_tui.tui.widgets.chart import Chart
from verl_tui.tui.widgets.footer import Keys
from verl_tui.tui.widgets.input_line import Box
from verl_tui.tui.widgets.line import Line
from verl_tui.tui.widgets.plot import READING
from verl_tui.tui.widgets.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.app import ComposeResult
    from textual.binding import BindingType
    from textual.geometry import Size
    from textual.widget import Widget

    from verl_tui.rendering.metrics.groups import MetricGroup
    from verl_tui.rendering.session.preferences import StateFile, UserState
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.tui.panels.charts import ChartsPanel

_WITH_DETAIL = 10
"""Rows of the screen from which on one says what the chosen metric is."""
_OF_CHARTS = {"read", "read_end", "look", "shape"}
"""Actions that mean nothing in a table."""
_WITH_FOOTER = (80, 18)
"""Columns and rows from which on the keys are named."""


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
    """Keys in the last row, in fewer words; those that are shown anyway come behind."""
    HELP_SECTION = HelpSection("all metrics", rank=30, notes=HELP, charts=True)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Back", id="metrics.back"),
        Binding("q,m", "dismiss", "Close", show=False, id="metrics.close"),
        Binding("v", "turn", "Table or charts", id="metrics.view"),
        Binding("slash", "filter", "Filter", key_display="/", id="metrics.filter"),
        Binding("s", "sort", "Sort", id="metrics.sort"),
        Binding("S", "reverse", "Sort the other way round", show=False, id="metrics.reverse"),
        Binding("space", "pin", "Pin", id="metrics.pin"),
        Binding("enter", "zoom", "Full screen", id="metrics.zoom"),
        Binding(
            "greater_than_sign",
            "shape('columns', 1)",
            "More columns",
            show=False,
            id="metrics.more_columns",
        ),
        Binding(
            "less_than_sign",
            "shape('columns', -1)",
            "Fewer columns",
            show=False,
            id="metrics.fewer_columns",
        ),
        Binding(
            "right_parenthesis", "shape('rows', 1)", "More rows", show=False, id="metrics.more_rows"
        ),
        Binding(
            "left_parenthesis",
            "shape('rows', -1)",
            "Fewer rows",
            show=False,
            id="metrics.fewer_rows",
        ),
        Binding(
            "0", "reset", "As many as fit, all steps, no filter", show=False, id="metrics.reset"
        ),
        *(one for one in KEYS if one.key not in ("s", "S")),
        Binding(
            "W",
            "write_table",
            "Write all that are listed to a CSV file",
            show=False,
            id="metrics.table",
        ),
        *READING,
        Binding("h", "grid('move', -1)", "Chart before", show=False, id="metrics.left"),
        Binding("l", "grid('move', 1)", "Next chart", show=False, id="metrics.right"),
        Binding("j,down", "grid('shelf', 1)", "Row below", show=False, id="metrics.down"),
        Binding("k,up", "grid('shelf', -1)", "Row above", show=False, id="metrics.up"),
        Binding("pagedown", "grid('page', 1)", "Next page", show=False, id="metrics.page_down"),
        Binding("pageup", "grid('page', -1)", "Page before", show=False, id="metrics.page_up"),
        Binding("g", "grid('end', -1)", "First", show=False, id="metrics.first"),
        Binding("G", "grid('end', 1)", "Last", show=False, id="metrics.last"),
        Binding("left_square_bracket", "other(-1)", "Previous run", show=False, id="run.previous"),
        Binding("right_square_bracket", "other(1)", "Next run", show=False, id="run.next"),
    ]
    DEFAULT_CSS = """
    MetricsScreen {
        overflow: hidden hidden;
        & > #metrics-status { background: $panel; padding: 0 1; }
        & > #metrics-detail { padding: 0 1; }
        & > #metrics-filter { height: 1; border: none; padding: 0 1; }
        &.-narrow > #metrics-status, &.-narrow > #metrics-detail { padding: 0; }
    }
    """

    class Pinned(Message):
        """What is pinned has changed: the dashboard begins with other charts."""

    def __init__(self, view: View, charts: ChartsPanel, state_file: StateFile) -> None:
        """Make the screen.

        Args:
            view: The state of everything.
            charts: The dashboard's charts; all charts are drawn alike.
            state_file: What is remembered of the user.
        """
        super().__init__()
        self._view = view
        self._charts = charts
        self._file = state_file
        self._filter, self._problem = MetricFilter(), ""
        self._order = MetricOrder()
        self._groups: tuple[MetricGroup, ...] = ()
        self._listed: object = None
        """What the groups were made of."""
        self._drawn: object = None
        """What the screen was drawn from."""
        self._status, self._detail = Line(id="metrics-status"), Line(id="metrics-detail")
        self._grid, self._table = MetricGrid(id="metrics-grid"), MetricTable(id="metrics-table")
        self._keys = Keys()
        self._box = Box("words a|b !not /regex/ · enter keeps, esc clears", id="metrics-filter")
        self._box.display = False

    def compose(self) -> ComposeResult:
        """What is listed, the metrics, what the chosen one is."""
        yield self._status
        yield self._list
        yield self._detail
        yield self._keys

    def on_mount(self) -> None:
        """Begin with the view that was left last."""
        self._show_list()

    def fit(self, size: Size) -> None:
        """Give up lines where there are few. No classes: they would have the styles of all charts
        worked out anew.
        """
        width, height = size
        self._detail.display = height >= _WITH_DETAIL
        self._keys.display = (
            width >= _WITH_FOOTER[0] and height >= _WITH_FOOTER[1] and not self._box.display
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
        """What shows the metrics."""
        return self._table if self._is_table else self._grid

    @property
    def chosen(self) -> str | None:
        """Key of the chosen metric."""
        return self._table.chosen if self._is_table else self._grid.chosen

    # -- drawing -----------------------------------------------------------------------------------

    def redraw(self) -> None:
        """Draw, whether anything is new or not."""
        self._drawn = None
        self._draw()

    def _draw(self) -> None:
        """Draw, unless nothing is new."""
        view, run = self._view, self._view.run
        if not self.is_mounted or not self.size.width:
            return
        state = (
            run,
            run.revision if run is not None else 0,
            view.cursor,
            view.verdict,
            view.loading,
        )
        drawn = (*state, self._filter, self._problem, self._order, self._charts.look, self._user)
        if drawn == self._drawn:
            return
        self._drawn = drawn
        self._group()
        if self._is_table:
            self._table.show(self._shown(), self._grid.chosen)
        else:
            self._grid.show(self._shown())
        self._tell()

    def _shown(self) -> ListedMetrics:
        return ListedMetrics(
            self._view, self._groups, self._order, self._charts.look, self._user, self._otherwise()
        )

    def _group(self) -> None:
        """List the metrics anew where others are there or wanted; numbers that change change no
        order.
        """
        run = self._view.run
        made_of = (run, len(run.keys) if run is not None else 0, self._filter, self._order)
        if made_of != self._listed:
            self._listed = made_of
            self._groups = (
                listing(run.metrics, self._filter, self._order, run.tail) if run is not None else ()
            )

    def _otherwise(self) -> str:
        """Return what to say where nothing is listed."""
        run = self._view.run
        return (
            f"no metric matches “{self._filter.text}”"
            if run is not None and run.keys
            else nothing_yet(self._view)
        )

    def _tell(self) -> None:
        """Write the lines above and below."""
        width, ascii_only = self.size.width, self._view.ascii
        if self._problem:
            self._status.show(
                [(fit(printable(self._problem, ascii_only=ascii_only), width - 2), "warning")]
            )
        else:
            filter_ = self._filter.text if self._filter.clauses else ""
            page = None if self._is_table else self._grid.pages
            self._status.show(*listed_words(self._shown(), filter_, page, width))
        self._detail.show(
            metric_words(self.chosen, width, ascii_only=ascii_only)
            if self.chosen is not None
            else ()
        )

    @on(MetricGrid.Moved)
    def _moved(self) -> None:
        self._tell()

    @on(Rows.Chosen)
    def _row_chosen(self) -> None:
        self._grid.chosen = self._table.chosen
        self._tell()

    # -- keys --------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave keys of charts to others while there are none."""
        return not (self._is_table and action in _OF_CHARTS)

    def action_back(self) -> None:
        """Take the cursor away; without one drop the filter; without one, close."""
        if self._view.cursor is not None and not self._is_table and not self._box.display:
            self.post_message(MoveCursor(None))
        elif self._box.display or self._box.value:
            self._box.value = ""
            self._close_filter()
        else:
            self.dismiss()

    def action_grid(self, way: str, by: int) -> None:
        """Choose another chart; in a table the list itself has these keys."""
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
        await self._have(self._list, self._detail)
        self._show_list()
        self.call_after_refresh(self.redraw)

    async def _have(self, widget: Widget, before: Widget) -> None:
        """Put in its place what is first wanted now: without it the screen has opened sooner."""
        if not widget.is_attached:
            await self.mount(widget, before=before)

    def _show_list(self) -> None:
        """Show table or charts, and let them have the keys."""
        self._grid.display, self._table.display = not self._is_table, self._is_table
        self.set_focus(self._table.rows if self._is_table else None, scroll_visible=False)
        self.refresh_bindings()

    def action_sort(self) -> None:
        """Sort by the next thing."""
        self._sort(self._order.next())

    def action_reverse(self) -> None:
        """Sort the other way round."""
        self._sort(self._order._replace(reverse=not self._order.reverse))

    def _sort(self, order: MetricOrder) -> None:
        self._order = order
        self._grid.chosen = None  # whoever sorts wants to see what comes first now
        self._draw()

    def action_pin(self) -> None:
        """Pin the chosen metric, or let go of it."""
        key = self.chosen
        if key is not None:
            self._change(lambda user: user.with_pin(key))
            self.post_message(self.Pinned())

    def action_zoom(self) -> None:
        """Draw the chosen metric over the full screen."""
        plan = self._plan()
        if plan is None:
            return
        zoomed = ZoomScreen(plan, self._charts.look, self._view, self._plans)

        def left(look: ChartLook | None) -> None:
            self._grid.chosen = zoomed.metric
            self._charts.take_look(look)
            self.show(zoomed.view)

        self.app.push_screen(zoomed, left)

    def _plans(self, view: View) -> list[PlannedChart]:
        """Return the charts of the metrics that are listed, as far as the shown run has them."""
        known = set(view.run.keys) if view.run is not None else set()
        return [
            single_metric(view.run, key)
            for group in self._groups
            for key in group.keys
            if key in known and view.run
        ]

    def _plan(self) -> PlannedChart | None:
        """Return the chart of the chosen metric alone."""
        key, run = self.chosen, self._view.run
        return single_metric(run, key) if key is not None and run is not None else None

    def clip(self) -> str:
        """Return what the chosen metric is where the cursor is, else last."""
        plan = self._plan()
        return reading(plan, None, self._view, self._charts.look) if plan is not None else ""

    def action_write_table(self) -> None:
        """Write all metrics that are listed to a file: the steps in sight, all where there are no
        charts.
        """
        run, look = self._view.run, ChartLook() if self._is_table else self._charts.look
        if run is not None:
            keys = [key for group in self._groups for key in group.keys]
            take_table(self.app, named(run.name, "metrics"), listed(keys, self._view, look))

    def action_shape(self, what: str, by: int) -> None:
        """Have more or fewer columns or rows."""
        columns, rows = self._grid.shape
        if self._is_table:
            return
        if what == "columns":
            self._change(lambda user: replace(user, metrics_columns=max(1, columns + by)))
        else:
            self._change(lambda user: replace(user, metrics_rows=max(1, rows + by)))

    def action_reset(self) -> None:
        """Go back to as many charts as fit well, in the order of keys, with all steps, without a
        filter or a cursor.
        """
        self._order = MetricOrder()
        self._charts.take_look(ChartLook())
        self.post_message(MoveCursor(None))
        self._box.value = ""
        self._close_filter()
        self._change(lambda user: replace(user, metrics_columns=0, metrics_rows=0))

    def action_look(self, what: str) -> None:
        """Change how charts are drawn, here and on the dashboard."""
        look, run = self._charts.look, self._view.run
        if words := why_unchanged(look, what, run):
            self._say(words)
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
        """Read all charts at the same step."""
        position = event.step
        step = (
            None
            if position is None
            else step_at(self._view.run, event.plot.data.key, self._charts.look, position)
        )
        if step is not None or position is None:
            self.post_message(MoveCursor(step))

    def action_other(self, way: int) -> None:
        """Look at the next or previous run."""
        run, names = self._view.run, list(self._view.monitor.runs)
        if run is not None:
            self.post_message(RunsPanel.Picked(names[(names.index(run.name) + way) % len(names)]))

    def _change(self, change: Callable[[UserState], UserState]) -> None:
        """Change what is remembered, and draw what comes of it."""
        problem = self._file.change(change)
        if problem:
            self._say(problem)
        self._draw()

    def _say(self, sentence: str) -> None:
        """Say something in one line, in place of what was said before."""
        self.app.clear_notifications()
        self.notify(fit(printable(sentence), max(12, self.size.width - 8)), timeout=4, markup=False)

    # -- filter ------------------------------------------------------------------------------------

    async def action_filter(self) -> None:
        """Ask for a filter."""
        await self._have(self._box, self._keys)
        self._box.display = True
        self.fit(self.size)
        self.set_focus(self._box, scroll_visible=False)

    @on(Input.Changed, "#metrics-filter")
    def _typed(self, event: Input.Changed) -> None:
        try:
            self._filter, self._problem = parse(event.value), ""
        except ValueError as error:
            self._problem = str(error)
        self._draw()

    @on(Input.Submitted, "#metrics-filter")
    def _close_filter(self) -> None:
        self._box.display = False
        self.fit(self.size)
        self._show_list()
        self.call_after_refresh(self.redraw)
