"""One chart over the full screen."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from textual import on

from verl_tui.rendering.charts.plan import (
    ChartLook,
    PlannedChart,
    plan_charts,
    second_metric,
)
from verl_tui.rendering.charts.planned_data import chart_data, with_right
from verl_tui.rendering.charts.sparkline import histogram_rows
from verl_tui.rendering.charts.values import reading, rows_of
from verl_tui.rendering.charts.x_axes import on_axis
from verl_tui.rendering.text.numbers import exact_step
from verl_tui.rendering.text.short_names import short_names
from verl_tui.runs.views.provenance import provenance_words
from verl_tui.tui.export import take_chart
from verl_tui.tui.keys.act import LEARN, HelpSection, act
from verl_tui.tui.keys.chart_keys import (
    KEYS,
    TABLE,
    look_after,
    step_at,
    with_step_in_sight,
)
from verl_tui.tui.terminal.buffered_screen import BufferedScreen
from verl_tui.tui.widgets.chart import Chart, MoveCursor
from verl_tui.tui.widgets.footer import Keys
from verl_tui.tui.widgets.line import FewRows, Line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from textual.app import ComposeResult
    from textual.binding import BindingType

    from verl_tui.rendering.charts.chart_data import ChartData
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.runs.run import Run

ChartLister = Callable[["View"], "Sequence[PlannedChart]"]
_READ_FROM = 12
"""Rows of the terminal from which on there is room for what the cursor reads, a third of it at
most.
"""


_HISTOGRAM_ROWS = ((36, 9), (24, 6), (18, 3), (14, 1), (0, 0))
"""Rows of the terminal from which on a histogram has how many."""
_NEWEST = 2**62
"""Beyond all steps."""
_LEAST_NAME = 8
"""Cells that a run's name may take however narrow the screen."""


class ZoomScreen(BufferedScreen[ChartLook]):
    """A chart as large as the terminal; gives back how it was looked at."""

    FOOTER = (
        ("zoom.back", "Back"),
        ("run.previous run.next", "Run"),
        ("chart.next chart.previous", "Metric"),
        ("chart.read_left chart.read_right", "Read"),
        ("look.in look.out", "Zoom"),
        ("look.axis", "X axis"),
        ("look.log", "Log"),
    )
    """Keys in the last row, in fewer words; those that are shown anyway come behind."""
    HELP_SECTION = HelpSection(
        "a chart in full screen", (Chart,), rank=10, charts=True, task=LEARN
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        act("escape,enter,z,q", "back", "zoom.back", "Back", show=True),
        act(
            "left_square_bracket",
            "app.switch_run(-1)",
            "run.previous",
            "Same metric, previous run",
        ),
        act(
            "right_square_bracket",
            "app.switch_run(1)",
            "run.next",
            "Same metric, next run",
        ),
        act("j,down", "step(1)", "chart.next", "Next metric"),
        act("k,up", "step(-1)", "chart.previous", "Previous metric"),
        *KEYS,
        act("0", "reset", "look.reset", "Reset the view"),
        act("2", "pair", "zoom.pair", "Second axis", show=True),
        act("a", "add", "zoom.add", "Add", show=True),
        TABLE,
    ]

    DEFAULT_CSS = """
    ZoomScreen {
        overflow: hidden hidden;
        & > #origin { padding: 0 1; }
        & > #reading { color: $text-accent; }
        & > #histogram { color: $text-primary; }
        &.-line { & > #origin, & > Keys { display: none; } }
    }
    """

    def __init__(
        self, found: PlannedChart, look: ChartLook, view: View, listing: ChartLister
    ) -> None:
        """Make the screen.

        Args:
            found: What to draw first.
            look: How.
            view: What to draw it of.
            listing: Returns the metrics of a run in the order of `j` and `k`.
        """
        super().__init__()
        self._plan = found
        self._listing = listing
        self._origin_of: tuple[object, ...] = ()
        """Run, revision and look that the line below the chart was written for."""
        self._right: PlannedChart | None = None
        """The metric of the y axis at the right."""
        self._look = look
        self._view = view
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

    def redraw(self) -> None:
        """Read in as many rows as that takes now, and name the run in the room there is."""
        self.show(self._view)

    def _data(self) -> ChartData:
        data = chart_data(self._plan, self._view, self._look)
        run = self._view.run
        if run is not None and run.series(self._plan.key) is None:
            data = data._replace(empty=f"{run.name} has no {self._plan.key}")
        data = data._replace(run=self._whose())
        if self._right is None:
            return data
        return with_right(data, chart_data(self._right, self._view, self._look))

    def _whose(self) -> str:
        """Return the name of the run, short in what it shares with the others."""
        view = self._view
        if view.run is None:
            return ""
        # it may be gone
        names = tuple(dict.fromkeys((*view.monitor.runs, view.run.name)))
        room = max(_LEAST_NAME, self.size.width // 3)
        return short_names(names, room)[view.run.name]

    def _write_below(self) -> None:
        if not self._reading.is_attached:
            # numbers and sizes may come before the rows are there, and when they are gone
            return
        self._write_origin()
        height = self.size.height
        position = self._chart.cursor
        if position is not None:
            at = step_at(self._view.run, self._plan.key, self._look, position)
        else:
            at = None
        readings = self._chart.cursor_values(at)
        most = height // 3 if height >= _READ_FROM else 0
        room = self._reading.room
        self._reading.show(rows_of(readings, room, most) if most else [])
        self._show_histogram(at)

    def _show_histogram(self, step: int | None) -> None:
        """Show how the values are distributed at a step, at the newest where there is no cursor."""
        run = self._view.run
        spread = self._plan.spread
        found = None
        if run is not None and spread is not None:
            newest = run.end if run.end is not None else _NEWEST
            found = run.histograms.at(spread.stem, newest if step is None else step)
        height = next(
            rows for least, rows in _HISTOGRAM_ROWS if self.size.height >= least
        )
        rows: list[str] = []
        if found is not None:
            asked = (found.bins, self._plan.unit, self._histogram.room, height)
            rows = histogram_rows(f"step {exact_step(found.step)} · ", *asked)
        self._histogram.show(rows)

    def _write_origin(self) -> None:
        """Write how the chart is drawn and where its numbers come from, if either has changed."""
        run = self._view.run
        subject = (run, run.revision if run is not None else 0, self._look)
        if subject == self._origin_of:
            return  # it takes as long as the chart
        self._origin_of = subject
        pieces: list[tuple[str, str]] = []
        for text, role in self._origin_pieces(run):
            pieces.append((f" · {text}" if pieces else text, role))
        self._origin.show(pieces)

    def _origin_pieces(self, run: Run | None) -> Iterator[tuple[str, str]]:
        """Yield the look, where the metric was logged, and the origin of its times."""
        for text in self._look.words(run):
            yield text, "accent"
        if run is None:
            return
        for number, text in enumerate(provenance_words(run, self._plan.key)):
            yield text if number else f"from {text}", "dim"
        series = run.series(self._plan.key)
        if series is not None and (
            times := on_axis(run, self._look.axis).origin(series)
        ):
            yield f"x by {times}", "dim"

    def show(self, view: View) -> None:
        """Draw the newest state of the shown run; while there is none, the previous chart."""
        if view.run is not None:
            before = self._view
            self._view = view
            if before.run is None or view.run.name != before.run.name:
                self._plan = self._alike(self._plan)
                self._right = (
                    self._alike(self._right) if self._right is not None else None
                )
            if view.cursor != before.cursor:
                self._look = with_step_in_sight(self._look, view.run, view.cursor)
        self._chart.show(self._data())
        self._write_below()

    @on(Chart.CursorMoved)
    def _read(self, event: Chart.CursorMoved) -> None:
        """Read all charts at the same step."""
        self._write_below()
        position = event.step
        if position is None:
            step = None
        else:
            step = step_at(self._view.run, self._plan.key, self._look, position)
        if step is not None or position is None:
            self.post_message(MoveCursor(step))

    @property
    def view(self) -> View:
        """The view that was drawn last."""
        return self._view

    @property
    def metric(self) -> str:
        """Key of the metric that is drawn."""
        return self._plan.key

    def _alike(self, wanted: PlannedChart) -> PlannedChart:
        """Return the shown run's chart of the same metric; the previous chart if the run lacks
        it.
        """
        plans = self._planned()
        named = (
            plan
            for plan in plans
            if plan.indicator is not None and plan.indicator == wanted.indicator
        )
        same = (
            plan
            for plan in (*self._listing(self._view), *plans)
            if plan.shows(wanted.key)
        )
        return next(named, None) or next(same, wanted)

    def action_step(self, way: int) -> None:
        """Draw the next or previous metric."""
        plans = self._listing(self._view)
        at = next(
            (at for at, one in enumerate(plans) if one.shows(self._plan.key)),
            -1 if way > 0 else len(plans),
        )
        if 0 <= at + way < len(plans):
            self._plan = plans[at + way]
            self._right = None
            self._origin_of = ()
            self.show(self._view)

    def action_back(self) -> None:
        """Close, and draw the other charts in the same way."""
        self.dismiss(self._look)

    def action_look(self, what: str) -> None:
        """Change how the chart is drawn."""
        self._look = look_after(self._look, what, self._view.run, self._view.cursor)
        self.show(self._view)

    def action_reset(self) -> None:
        """Go back to the usual look: one metric, all steps."""
        self._look = ChartLook()
        self._right = None
        self.show(self._view)

    def action_pair(self) -> None:
        """Draw what belongs to the metric over a y axis at the right, or take that away."""
        self._right = (
            second_metric(self._plan, self._planned()) if self._right is None else None
        )
        self.show(self._view)

    def action_add(self) -> None:
        """Ask for a metric to be drawn over a y axis at the right."""

        def take(found: PlannedChart) -> None:
            self._right = found
            self.show(self._view)

        from verl_tui.tui.screens.palette import Palette, metric_search

        best = second_metric(self._plan, plans := self._planned())
        plans = [plan for plan in plans if plan.key != self._plan.key]
        plans.sort(key=lambda one: one != best)
        search = metric_search(plans, take)
        self.app.push_screen(Palette("a few letters of a metric", [search]))

    def action_write_table(self) -> None:
        """Write the points in sight to a file."""
        take_chart(self.app, self._plan, self._right, self._view, self._look)

    def clip(self) -> str:
        """Return the chart's values at the cursor, else the last ones."""
        return reading(self._plan, self._right, self._view, self._look)

    def _planned(self) -> list[PlannedChart]:
        view = self._view
        if view.run is None:
            return []
        return list(plan_charts(view.run, view.monitor.config.charts))
