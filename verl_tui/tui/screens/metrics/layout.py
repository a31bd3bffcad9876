"""How the metrics screen is drawn: charts or a table, with the lines above and below them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on

from verl_tui.rendering.charts.page import keys_in_rows
from verl_tui.rendering.log.target import has_log
from verl_tui.rendering.metrics.groups import rows_apart
from verl_tui.rendering.metrics.listing import (
    ListedMetrics,
    MetricList,
    listed_words,
    metric_words,
)
from verl_tui.rendering.text.printable import printable
from verl_tui.rendering.text.wrap import fit
from verl_tui.tui.keys.chart_keys import with_step_in_sight
from verl_tui.tui.screens.metrics.grid import MetricGrid
from verl_tui.tui.screens.metrics.metric_table import MetricTable
from verl_tui.tui.terminal.buffered_screen import BufferedScreen
from verl_tui.tui.toast import toast
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
_WITH_FOOTER = (80, 18)
"""Least width and height of a screen with the keys in its last row."""


class MetricsLayout(BufferedScreen[None]):
    """Draws the metrics as charts or a table, with a line about the list and one about the chosen
    metric.
    """

    AUTO_FOCUS = ""
    DEFAULT_CSS = """
    MetricsLayout {
        overflow: hidden hidden;
        & > #metrics-status { background: $panel; padding: 0 1; }
        & > #metrics-detail { padding: 0 1; }
        & > #metrics-bar { padding: 0 1; }
        &.-narrow > #metrics-status, &.-narrow > #metrics-detail { padding: 0; }
    }
    """

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
        self._is_table = state_file.state.metrics_table
        """True for a table; such a screen over another may have been turned to something else."""
        self._metrics = MetricList()
        self._drawn: object = None
        """State that was drawn last."""
        self._status = Line(id="metrics-status")
        self._detail = Line(id="metrics-detail")
        self._grid = MetricGrid(id="metrics-grid")
        self._table = MetricTable(id="metrics-table")
        self._start_log = StartLog()
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
            width >= _WITH_FOOTER[0]
            and height >= _WITH_FOOTER[1]
            and not self._bar.display
        )

    def show(self, view: View) -> None:
        """Draw the newest state."""
        if view.cursor != self._view.cursor:
            self._charts.take_look(
                with_step_in_sight(self._charts.look, view.run, view.cursor)
            )
        self._view = view
        self._draw()

    @property
    def _user(self) -> UserState:
        return self._file.state

    @property
    def _list(self) -> MetricGrid | MetricTable:
        """The widget that shows the metrics."""
        return self._table if self._is_table else self._grid

    @property
    def chosen(self) -> str | None:
        """Key of the chosen metric."""
        if self._is_table:
            return self._table.chosen
        return self._grid.chosen

    # -- drawing -----------------------------------------------------------------------------------

    def redraw(self) -> None:
        """Draw, even if nothing has changed."""
        self._drawn = None
        self._draw()

    def _draw(self) -> None:
        """Draw if anything has changed."""
        view = self._view
        run = self._view.run
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
        if instead and not self._start_log.is_attached:
            self.mount(self._start_log, before=self._detail)
        if self._start_log.display is not instead:
            self._list.display = not instead
            self._start_log.display = instead
        self._start_log.show(self._view if instead else None)

    def _shown(self) -> ListedMetrics:
        metrics = self._metrics
        view = self._view
        groups = metrics.groups
        if not self._is_table:
            groups = rows_apart(groups, keys_in_rows(view).difference(self._user.pins))
        return ListedMetrics(
            view,
            groups,
            metrics.order,
            self._charts.look,
            self._user,
            metrics.if_empty(view),
        )

    def _draw_lines(self) -> None:
        """Draw the lines above and below the metrics."""
        width = self.size.width
        metrics = self._metrics
        if metrics.problem:
            words = fit(printable(metrics.problem), width - 2)
            self._status.show([(words, "warning")])
        else:
            filter_ = metrics.filter.text if metrics.filter.clauses else ""
            page = None if self._is_table else self._grid.pages
            self._status.show(*listed_words(self._shown(), filter_, page, width))
        key = self.chosen
        self._detail.show(() if key is None else metric_words(key, width))

    @on(MetricGrid.Moved)
    def _moved(self) -> None:
        self._draw_lines()

    @on(Rows.Chosen)
    def _row_chosen(self) -> None:
        self._grid.chosen = self._table.chosen
        self._draw_lines()

    async def _mount_once(self, widget: Widget, before: Widget) -> None:
        """Mount a widget when it is first shown: without it the screen opens sooner."""
        if not widget.is_attached:
            await self.mount(widget, before=before)

    def _show_list(self) -> None:
        """Show table or charts, and give them the focus."""
        self._grid.display = not self._is_table
        self._table.display = self._is_table
        self._show_log()
        self.set_focus(
            self._table.rows if self._is_table else None, scroll_visible=False
        )
        self.refresh_bindings()

    def _change(self, change: Callable[[UserState], UserState]) -> None:
        """Change the user's choices that are kept, and draw."""
        problem = self._file.change(change)
        if problem:
            toast(self.app, problem)
        self._draw()
