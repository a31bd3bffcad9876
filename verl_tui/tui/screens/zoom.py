"""One chart over the full screen."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from textual.app import ComposeResult, SystemCommand

from verl_tui.rendering.charts.plan import (
    ChartLook,
    PlannedChart,
    plan_charts,
    second_metric,
)
from verl_tui.rendering.charts.planned_data import chart_data, with_right
from verl_tui.rendering.charts.sparkline import histogram_rows
from verl_tui.rendering.charts.values import rows_of
from verl_tui.rendering.text.piece import Pieces, printable
from verl_tui.runs.cached import LastResult
from verl_tui.runs.views.provenance import provenance_words
from verl_tui.tui.keys import LEARN, HelpSection, actions
from verl_tui.tui.panels.charts import ChartActions, ChartsPanel
from verl_tui.tui.screens.palette import Palette
from verl_tui.tui.widgets.chart import KEYS, READING, TABLE, Chart, MoveCursor, step_at
from verl_tui.tui.widgets.filter_bar import Keys
from verl_tui.tui.widgets.rows import FewRows, Line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from verl_tui.rendering.charts.chart_data import ChartData
    from verl_tui.rendering.session.snapshot import View

    ChartLister = Callable[[View], Sequence[PlannedChart]]

_READ_FROM = 12
"""Rows of the terminal from which there is room for what the cursor reads, a third of it at most.
"""
_HISTOGRAM_ROWS = {36: 9, 24: 6, 18: 3, 14: 1, 0: 0}
"""Rows of the terminal from which a histogram has how many."""
_NEWEST = 2**62
"""Beyond all steps."""
_LEAST_NAME = 8
"""Cells that a run's name may take however narrow the screen."""


class ZoomScreen(ChartActions):
    """A chart as large as the terminal."""

    FOOTER = """
        zoom.back                         Back
        run.previous run.next             Run
        chart.next chart.previous         Metric
        chart.read_left chart.read_right  Read
        look.in look.out                  Zoom
        look.axis                         X axis
        look.log                          Log
        zoom.pair                         Second axis
        zoom.add                          Add
    """
    HELP_SECTION = HelpSection("a chart in full screen", LEARN, 10, charts=True)
    BINDINGS = actions(
        """
        escape            back                zoom.back       Back
        enter,z,q         dismiss             zoom.close      Close
        [                 app.switch_run(-1)  run.previous    Same metric, previous run
        ]                 app.switch_run(1)   run.next        Same metric, next run
        j,down            step(1)             chart.next      Next metric
        k,up              step(-1)            chart.previous  Previous metric
        """,
        KEYS,
        """
        0  reset  look.reset  Reset the view
        2  pair   zoom.pair   Second axis
        a  add    zoom.add    Add
        """,
        TABLE,
        READING,
    )

    DEFAULT_CSS = """
    ZoomScreen {
        & > #origin { padding: 0 1; }
        & > #reading { color: $text-accent; }
        & > #histogram { color: $text-primary; }
        &.-line { & > #origin, & > Keys { display: none; } }
    }
    """

    def __init__(
        self, found: PlannedChart, charts: ChartsPanel, view: View, listing: ChartLister
    ) -> None:
        """Make the screen.

        Args:
            found: What to draw first.
            charts: Those of the dashboard, drawn in the same way.
            view: What to draw it of.
            listing: Returns the metrics of a run in the order of `j` and `k`.
        """
        super().__init__()
        self._plan = found
        self._listing = listing
        self._origins = LastResult()
        """The line below the chart."""
        self.charts = charts
        self.view: View = view
        """What was drawn last."""
        self._chart = Chart(self._data(), grid=True)
        self._reading = FewRows(id="reading")
        self._origin = Line(id="origin")
        self._histogram = FewRows(id="histogram")

    def compose(self) -> ComposeResult:
        """A chart and the keys."""
        yield self._chart
        yield self._reading
        yield self._histogram
        yield self._origin
        yield Keys()

    # -- drawing -----------------------------------------------------------------------------------

    def show(self, view: View) -> None:
        """Draw the newest state of the shown run; while there is none, the previous chart."""
        if view.run:
            before, self.view = self.view.run, view
            if before is None or view.run.name != before.name:
                self._plan = self._alike(self._plan)
                self.right = self.right and self._alike(self.right)
        self.redraw()

    def redraw(self) -> None:
        """Draw the chart, and what it says below it."""
        self._chart.show(self._data())
        if not self._reading.is_attached:
            # numbers and sizes may come before the rows are there, and when they are gone
            return
        run, key, look = self.view.run, self._plan.key, self.charts.look
        # it takes as long as the chart
        of = run, run and run.revision, key, look
        self._origin.show(self._origins.of(of, self._origin_pieces))
        at = self._chart.cursor
        if at is not None:
            at = step_at(run, key, look, at)
        height = self.size.height
        most = height // 3 if height >= _READ_FROM else 0
        read = self._chart.cursor_values(at)
        rows = rows_of(read, self._reading.room, most) if most else []
        self._reading.show([[(row, "")] for row in rows])
        self._histogram.show([[(row, "")] for row in self._histogram_rows(at)])

    def _data(self) -> ChartData:
        view, look = self.view, self.charts.look
        name = view.name_in(max(_LEAST_NAME, self.size.width // 3))
        data = chart_data(self._plan, view, look)._replace(run=name)
        if view.run and view.run.series(self._plan.key) is None:
            data = data._replace(empty=f"{view.run.name} has no {self._plan.key}")
        if not self.right:
            return data
        return with_right(data, chart_data(self.right, view, look))

    def _histogram_rows(self, step: int | None) -> list[str]:
        """Return how the values are distributed at a step, at the newest where there is no cursor;
        nothing where that is not logged.
        """
        run, spread = self.view.run, self._plan.spread
        if not run:
            return []
        newest = run.end if run.end is not None else _NEWEST
        found = run.histograms.at(spread.stem, newest if step is None else step)
        if not found:
            return []
        tall = self.size.height
        height = next(_HISTOGRAM_ROWS[at] for at in _HISTOGRAM_ROWS if at <= tall)
        asked = (found.bins, self._plan.unit, self._histogram.room, height)
        return histogram_rows(f"step {found.step} · ", *asked)

    def _origin_pieces(self) -> Pieces:
        """Return how the chart is drawn, where its metric was logged."""
        run = self.view.run
        pieces = [(text, "accent") for text in self.charts.look.words(run)]
        if run:
            for at, text in enumerate(provenance_words(run, self._plan.key)):
                pieces.append((text if at else f"from {text}", "dim"))
        return [
            (" · " * bool(at) + text, role) for at, (text, role) in enumerate(pieces)
        ]

    # -- keys --------------------------------------------------------------------------------------

    def reader(self) -> Chart | None:
        """Return the chart."""
        return self._chart

    def _alike(self, wanted: PlannedChart) -> PlannedChart:
        """Return the shown run's chart of the same metric; the previous chart if the run lacks
        it.
        """
        plans = self._planned()
        for plan in plans:
            if plan.indicator is not None and plan.indicator == wanted.indicator:
                return plan
        every = (*self._listing(self.view), *plans)
        return next((plan for plan in every if plan.shows(wanted.key)), wanted)

    def _draw_other(self, plan: PlannedChart, right: PlannedChart | None) -> None:
        self._plan, self.right = plan, right
        self.redraw()

    def action_step(self, way: int) -> None:
        """Draw the next or previous metric."""
        plans = self._listing(self.view)
        shown = [one.shows(self._plan.key) for one in plans]
        at = shown.index(True) if any(shown) else -1 if way > 0 else len(plans)
        if 0 <= at + way < len(plans):
            self._draw_other(plans[at + way], None)

    def action_reset(self) -> None:
        """Go back to the usual look: one metric, all steps."""
        self.charts.set_look(ChartLook())
        self._draw_other(self._plan, None)

    def action_back(self) -> None:
        """Remove the cursor, else the second axis, else close."""
        if self._chart.cursor is not None:
            self.post_message(MoveCursor(None))
        elif self.right:
            self._draw_other(self._plan, None)
        else:
            self.dismiss()

    def action_pair(self) -> None:
        """Draw what belongs to the metric over a y axis at the right, or take that away."""
        second = second_metric(self._plan, self._planned())
        self._draw_other(self._plan, second if not self.right else None)

    def action_add(self) -> None:
        """Ask for a metric to be drawn over a y axis at the right."""
        best = second_metric(self._plan, plans := self._planned())
        offers: list[SystemCommand] = []
        for one in sorted(plans, key=lambda one: one != best):
            label = f"{one.label}  " * (one.label != one.key)
            if one.key != self._plan.key:
                take = partial(self._draw_other, self._plan, one)
                offers.append(SystemCommand(printable(f"{label}{one.key}"), "", take))
        dashboard: Any = self.app.screen_stack[0]  # the lowest of all screens
        self.app.push_screen(Palette(dashboard, "a metric", offers))

    def plan(self) -> PlannedChart:
        """Return what is drawn."""
        return self._plan

    def _planned(self) -> list[PlannedChart]:
        run, charts = self.view.run, self.view.monitor.config.charts
        return [] if not run else [*plan_charts(run, charts)]
