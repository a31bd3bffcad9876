"""The charts of a report: for each family of metrics the curves of all runs; and their pictures, as
the screen's are made: reduced, smoothed and scaled.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.distributions import OF_NONE
from verl_tui.health.finding import Verdict, weighty
from verl_tui.indicators import INDICATORS
from verl_tui.rendering.charts.axes import fill_window, fit_scale
from verl_tui.rendering.charts.chart_data import ALARM_ROLES, ChartData, ChartLine
from verl_tui.rendering.charts.downsample import (
    smoothed,
    smoothed_by_noise,
    values_shown,
)
from verl_tui.rendering.charts.picture import Picture, picture_of
from verl_tui.rendering.charts.plan import (
    ChartLook,
    PlannedChart,
    plan_charts,
    single_metric,
)
from verl_tui.rendering.charts.planned_data import chart_data, counterpart
from verl_tui.rendering.session.run_order import LETTERS
from verl_tui.rendering.session.snapshot import View
from verl_tui.rendering.text.hues import RUNS
from verl_tui.text import one_line
from verl_tui.toml_tables import toml_table
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from verl_tui.monitor import Monitor
    from verl_tui.rendering.session.notes import NoteBook
    from verl_tui.runs.run import Run

FAMILIES: Mapping[str, Sequence[str]] = toml_table(__file__, "report.toml")["families"]
"""The indicators of each family, in the order of showing."""
OF_FINDINGS, OTHERS = "named by findings", "metrics"
"""Families for findings about other metrics, and for runs without any of these."""
OTHER_RUN = "other-run"
"""Role of a run without a colour."""
COLOURED = len(LETTERS)
"""Runs that have a letter and a colour of their own."""
MOST_GREY = 54
"""Other runs that are drawn, in grey."""
_MOST_OF_FINDINGS = 6
_MOST_OTHERS = 8


class RunCurve(NamedTuple):
    """One run's part of a chart."""

    run: str
    place: int | None
    """Its place among those with a colour, None for the others."""
    data: ChartData


@dataclass(frozen=True)
class ReportChart:
    """The same metric of several runs."""

    family: str
    title: str
    unit: str
    indicator: str | None
    curves: tuple[RunCurve, ...]
    """The first one gives the healthy band."""
    notes: tuple[str, ...] = ()
    alone: bool = False
    """True in a report on a single run: the curve has the colour of its family, and all that the
    screen draws with it.
    """

    @property
    def overlaid(self) -> ChartData:
        """All curves as one chart of the screen: the first run's with the others' lines."""
        first = self.curves[0].data
        if self.alone:
            return first
        marks = [
            mark
            for one in self.curves
            for mark in one.data.marks
            if one.place is not None and mark.role in (*ALARM_ROLES, "note")
        ]
        return first._replace(
            lines=tuple(filter(None, map(_lettered, self.curves))),
            shades=(),
            beside="",
            marks=tuple(marks),
            best=0,
        )

    @cached_property
    def drawing(self) -> ChartDrawing | None:
        """What is drawn, None where there is no point or no number at all."""
        data = self.overlaid
        shown = data.shown
        if shown is None:
            return None
        data = smoothed_by_noise(data, shown, _CELLS)
        smoothing = data.smoothing
        if smoothing and len(self.curves) > 1:  # the averages stand alone
            averages = tuple(
                line._replace(points=smoothed(line.points, smoothing))
                for line in data.lines
            )
            data = data._replace(lines=averages, smoothing=0.0)
        reach = values_shown(data, shown)
        if reach is None:
            return None
        columns = _COARSE if any(one.place is None for one in self.curves) else COLUMNS
        window = fill_window(*shown, columns)
        picture = picture_of(data, (fit_scale(*reach), None), window)
        lines = sorted(picture.lines, key=lambda one: one.role != OTHER_RUN)
        return ChartDrawing(picture._replace(lines=lines), data, smoothing)


COLUMNS = 320
"""Columns that points are reduced to."""
_COARSE = 120
"""The same where runs without a colour of their own are drawn, which are many."""
_CELLS = 80
"""Points denser than in a chart of so many cells on the screen are smoothed as far as their noise
asks for.
"""


class ChartDrawing(NamedTuple):
    """A chart as it is drawn."""

    picture: Picture
    data: ChartData
    smoothing: float

    @property
    def odds(self) -> list[int]:
        """The dot columns with a value that is not a number."""
        found: set[int] = set()
        for line in self.picture.lines:
            found.update(x for x, odd in enumerate(line.columns.odds) if odd)
        return sorted(found)


def _lettered(curve: RunCurve) -> ChartLine | None:
    """Return a run's line with its colour and its letter."""
    main = curve.data.main
    if not curve.data.lines:
        return None
    label = one_line(curve.run, 40)
    if curve.place is None:
        return main._replace(role=OTHER_RUN, sign="·", label=label, alarms=())
    return main._replace(role=RUNS[curve.place], sign=LETTERS[curve.place], label=label)


class DrawnRuns(NamedTuple):
    """The runs that are drawn."""

    coloured: tuple[Run, ...]
    grey: tuple[Run, ...]

    @property
    def all(self) -> tuple[Run, ...]:
        """Those with a colour first."""
        return (*self.coloured, *self.grey)

    def place(self, run: Run) -> int | None:
        """Return the place of a run among those with a colour."""
        return self.coloured.index(run) if run in self.coloured else None


def drawn_runs(runs: Sequence[Run], finals: Mapping[str, float]) -> DrawnRuns:
    """Return which runs are drawn: the first one and those that reached most have colours.

    Args:
        runs: All runs, the baseline first.
        finals: What each reached, higher is better; runs without are taken last.
    """
    ranked = sorted(runs[1:], key=lambda run: -finals.get(run.name, float("-inf")))
    chosen = (runs[0], *ranked[: COLOURED - 1])
    grey = [run for run in runs if run not in chosen]
    coloured = tuple(run for run in runs if run in chosen)
    return DrawnRuns(coloured, tuple(grey[:MOST_GREY]))


@dataclass
class ChartMaker:
    """Makes the charts: the families', then those of metrics that findings are about."""

    monitor: Monitor
    """Has read and judged."""
    runs: DrawnRuns
    now: float
    """Seconds since the epoch."""
    notebook: NoteBook
    """The user's notes, which are marks."""

    def __post_init__(self) -> None:
        self._drawn: set[str] = set()
        """Keys that have a chart."""
        self._alone = len(self.runs.all) == 1
        wanted = [*chain.from_iterable(FAMILIES.values())]
        self._plans = plan_charts(self.runs.all[0], wanted) if self._alone else ()
        """The charts of a single run as the screen has them, with their bands and points."""

    def charts(self) -> Iterator[ReportChart]:
        """Yield them."""
        runs = self.runs.all
        for family, names in FAMILIES.items():
            for name in names:
                known = [(run, run.indicators.get(name)) for run in runs]
                yield from self._chart(family, name, known)
            if family == "loss":
                losses = filter(None, (run.loss_alone for run in runs))
                yield from self._of_keys(family, losses, 1)
        yield from self._of_keys(OF_FINDINGS, self._named(), _MOST_OF_FINDINGS)
        if not self._drawn:
            own = [plan.key for plan in self._plans]
            own += chain.from_iterable(run.keys for run in self.runs.coloured)
            yield from self._of_keys(OTHERS, own, _MOST_OTHERS)

    def _named(self) -> Iterator[str]:
        """Yield the metrics that warnings and worse are about."""
        for run in self.runs.coloured:
            verdict = self.monitor.verdicts.get(run.name, Verdict())
            for finding in weighty(verdict.primary):
                if finding.key is not None:
                    yield finding.key

    def _of_keys(
        self, family: str, keys: Iterable[str], most: int
    ) -> Iterator[ReportChart]:
        """Yield the charts of metrics by the log's own keys, so many of those without one."""
        wanted: dict[str, None] = {}
        for key in keys:
            shown = (plan.key for plan in self._plans if plan.shows(key))
            wanted[next(shown, key)] = None
        for key in [key for key in wanted if key not in self._drawn][:most]:
            known = [(run, key if run.series(key) else None) for run in self.runs.all]
            yield from self._chart(family, None, known)

    def _chart(
        self,
        family: str,
        indicator: str | None,
        known: Sequence[tuple[Run, str | None]],
    ) -> Iterator[ReportChart]:
        """Yield a chart, none if no run has the metric.

        Args:
            family: What it belongs to.
            indicator: What it means, None where only its key is known.
            known: The runs, each with its key, None where it has none.
        """
        having = [(run, key) for run, key in known if key is not None]
        if not having:
            return
        first, own = having[0]
        planned = self._planned(first, own, indicator)
        curves: list[RunCurve] = []
        otherwise: list[str] = []
        by_key: dict[str, list[str]] = {}
        for run, key in having:
            if counterpart(first, own, indicator, run) is None:
                otherwise.append(run.name)
                continue
            view = View(self.monitor, run, self.now, notebook=self.notebook)
            data = chart_data(self._planned(run, key, indicator), view, ChartLook())
            curves.append(RunCurve(run.name, self.runs.place(run), data))
            by_key.setdefault(data.key, []).append(run.name)
        self._drawn.update(by_key)
        notes = [_keys_in_words(by_key)]
        notes += [f"joined points: {one_line(planned.score)}"] * bool(planned.score)
        if without := [run.name for run, key in known if key is None]:
            notes.append(f"not logged by {_named(without)}")
        if otherwise:
            notes.append(f"counted in another way, so not drawn: {_named(otherwise)}")
        words = (planned.label, planned.unit, planned.indicator)
        yield ReportChart(family, *words, tuple(curves), tuple(notes), self._alone)

    def _planned(self, run: Run, key: str, indicator: str | None) -> PlannedChart:
        """Return what is drawn of a metric: of several runs the curve alone."""
        for plan in self._plans:
            if plan.key == key and indicator in (None, plan.indicator):
                return plan
        label = INDICATORS[indicator].label if indicator is not None else ""
        single = single_metric(run, key, label)
        return single if self._alone else single._replace(spread=OF_NONE)


def _keys_in_words(by_key: Mapping[str, Sequence[str]]) -> str:
    """Return the log's own key, or those that runs call the metric by."""
    if len(by_key) == 1:
        return one_line(next(iter(by_key)))
    return "; ".join(
        f"{one_line(key)} ({_named(runs)})" for key, runs in by_key.items()
    )


def _named(runs: Sequence[str]) -> str:
    if len(runs) > 3:
        return counted(len(runs), "run")
    return ", ".join(one_line(run, 60) for run in runs)
