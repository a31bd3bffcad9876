"""The charts of a report: for each family of metrics the curves of all runs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.comparison.outcomes import weighty
from verl_tui.health.finding import Verdict
from verl_tui.indicators import INDICATORS
from verl_tui.metrics import describe
from verl_tui.rendering.charts.overlaid_runs import counterpart
from verl_tui.rendering.charts.plan import ChartLook, plan_charts, single_metric
from verl_tui.rendering.charts.planned_data import chart_data
from verl_tui.rendering.session.selection import LETTERS
from verl_tui.rendering.session.snapshot import View
from verl_tui.rendering.text.run_colours import RUNS
from verl_tui.text import one_line
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from verl_tui.monitor import Monitor
    from verl_tui.rendering.charts.chart_data import ChartData, ChartLine
    from verl_tui.rendering.charts.plan import PlannedChart
    from verl_tui.runs.run import Run

FAMILIES: Mapping[str, tuple[str, ...]] = {
    "reward": ("reward",),
    "validation": ("validation",),
    "KL": ("policy_kl", "reference_kl"),
    "loss": ("policy_loss", "value_loss"),
    "entropy": ("entropy",),
    "length": ("response_length",),
    "time": ("step_time", "generation_time", "throughput"),
}
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


@dataclass(frozen=True, slots=True)
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
        coloured = [one.data for one in self.curves if one.place is not None]
        marks = (mark for data in coloured for mark in data.marks)
        return first._replace(
            lines=tuple(filter(None, map(_lettered, self.curves))),
            envelope=None,
            spread=(),
            beside=(),
            marks=tuple(mark for mark in marks if mark.role == "breach"),
            best="",
        )


def _lettered(curve: RunCurve) -> ChartLine | None:
    """Return a run's line with its colour and its letter."""
    main = curve.data.main
    if main is None:
        return None
    label = one_line(curve.run, 40)
    if curve.place is None:
        return main._replace(role=OTHER_RUN, sign="·", label=label, alarms=())
    role = RUNS[curve.place]
    return main._replace(role=role, sign=LETTERS[curve.place], label=label)


@dataclass(frozen=True, slots=True)
class DrawnRuns:
    """The runs that are drawn."""

    coloured: tuple[Run, ...]
    grey: tuple[Run, ...]
    left_out: int
    """Number of runs that are not drawn."""

    @property
    def all(self) -> tuple[Run, ...]:
        """Those with a colour first."""
        return (*self.coloured, *self.grey)

    def place(self, run: str) -> int | None:
        """Return the place of a run among those with a colour."""
        for place, one in enumerate(self.coloured):
            if one.name == run:
                return place
        return None


def drawn_runs(runs: Sequence[Run], finals: Mapping[str, float]) -> DrawnRuns:
    """Return which runs are drawn: the first one and those that reached most have colours.

    Args:
        runs: All runs, the baseline first.
        finals: What each reached, higher is better; runs without are taken last.
    """
    if len(runs) <= COLOURED:
        return DrawnRuns(tuple(runs), (), 0)
    ranked = sorted(runs[1:], key=lambda run: -finals.get(run.name, float("-inf")))
    chosen = {run.name for run in (runs[0], *ranked[: COLOURED - 1])}
    grey = [run for run in runs if run.name not in chosen]
    return DrawnRuns(
        tuple(run for run in runs if run.name in chosen),
        tuple(grey[:MOST_GREY]),
        max(0, len(grey) - MOST_GREY),
    )


def charts_of(
    monitor: Monitor, drawn: DrawnRuns, now: float
) -> tuple[ReportChart, ...]:
    """Return the charts: the families', then those of metrics that findings are about.

    Args:
        monitor: Has read and judged.
        drawn: The runs.
        now: Seconds since the epoch.
    """
    if len(drawn.all) == 1:
        return tuple(_of_one_run(monitor, drawn.all[0], now))
    return tuple(_of_many(monitor, drawn, now))


# -- one run ---------------------------------------------------------------------------------------


def _of_one_run(monitor: Monitor, run: Run, now: float) -> Iterator[ReportChart]:
    """Yield the charts of a single run as the screen has them, with their bands and points."""
    planned = plan_charts(run, tuple(chain.from_iterable(FAMILIES.values())))
    found = list(_of_families(run, planned))
    drawn = {chart.key for _, chart in found}
    found += _of_findings(planned, drawn, _keys_of_findings(monitor, [run]))
    if not found:
        found = [(OTHERS, chart) for chart in planned[:_MOST_OTHERS]]
    view = View(monitor, run, now)
    for family, chart in found:
        curve = RunCurve(run.name, 0, chart_data(chart, view, ChartLook()))
        yield ReportChart(
            family,
            chart.label,
            chart.unit,
            chart.indicator,
            (curve,),
            _of_key(chart),
            alone=True,
        )


def _of_families(
    run: Run, planned: Sequence[PlannedChart]
) -> Iterator[tuple[str, PlannedChart]]:
    """Yield the charts of the families; validation, which the screen draws into the reward's, has
    one of its own, too.
    """
    known = {chart.indicator: chart for chart in planned}
    validation = run.indicators.get("validation")
    if validation is not None:
        known.setdefault("validation", single_metric(run, validation, "validation"))
    loss = run.loss_alone
    drawn = {chart.key for chart in known.values()}
    if loss is not None and loss not in drawn:
        known["loss"] = single_metric(run, loss)
    for family, names in FAMILIES.items():
        for name in (*names, family):
            chart = known.pop(name, None)
            if chart is not None:
                yield family, chart


def _of_findings(
    planned: Sequence[PlannedChart], drawn: Container[str], named: Sequence[str]
) -> list[tuple[str, PlannedChart]]:
    """Return the charts of metrics that findings are about, if they are not drawn yet."""
    others = [chart for chart in planned if chart.key not in drawn]
    more = [chart for chart in others if any(map(chart.shows, named))]
    return [(OF_FINDINGS, chart) for chart in more[:_MOST_OF_FINDINGS]]


def _of_key(planned: PlannedChart) -> tuple[str, ...]:
    beside = (f"joined points: {one_line(key)}" for key in planned.points)
    return (one_line(planned.key), *beside)


def _keys_of_findings(monitor: Monitor, runs: Iterable[Run]) -> list[str]:
    """Return the metrics that warnings and worse are about."""
    found: dict[str, None] = {}
    for run in runs:
        for finding in weighty(monitor.verdicts.get(run.name, Verdict()).primary):
            if finding.key is not None:
                found[finding.key] = None
    return list(found)


# -- several runs ----------------------------------------------------------------------------------


def _of_many(monitor: Monitor, drawn: DrawnRuns, now: float) -> Iterator[ReportChart]:
    overlays = _Overlays(monitor, drawn, now)
    for family, names in FAMILIES.items():
        for name in names:
            yield from overlays.of_indicator(family, name)
        if family == "loss":
            losses = filter(None, (run.loss_alone for run in drawn.all))
            yield from overlays.of_keys(family, losses, 1)
    named = _keys_of_findings(monitor, drawn.coloured)
    yield from overlays.of_keys(OF_FINDINGS, named, _MOST_OF_FINDINGS)
    if not overlays.drawn:
        own = (key for run in drawn.coloured for key in run.keys)
        yield from overlays.of_keys(OTHERS, own, _MOST_OTHERS)


class _Overlays:
    """The charts of several runs, while they are being made."""

    def __init__(self, monitor: Monitor, runs: DrawnRuns, now: float) -> None:
        self.drawn: set[str] = set()
        """Keys that have a chart."""
        self._monitor = monitor
        self._runs = runs
        self._now = now

    def of_indicator(self, family: str, indicator: str) -> Iterator[ReportChart]:
        """Yield the chart of an indicator, if a run has it."""
        named = {run.name: run.indicators.get(indicator) for run in self._runs.all}
        yield from self._chart(family, INDICATORS[indicator].label, indicator, named)

    def of_keys(
        self, family: str, keys: Iterable[str], most: int
    ) -> Iterator[ReportChart]:
        """Yield the charts of metrics by the log's own keys, so many of those without one."""
        wanted = [key for key in dict.fromkeys(keys) if key not in self.drawn]
        for key in wanted[:most]:
            known = {
                run.name: key if run.series(key) else None for run in self._runs.all
            }
            yield from self._chart(family, describe(key).label, None, known)

    def _chart(
        self,
        family: str,
        label: str,
        indicator: str | None,
        keys: Mapping[str, str | None],
    ) -> Iterator[ReportChart]:
        """Yield a chart, none if no run has the metric.

        Args:
            family: What it belongs to.
            label: Its name.
            indicator: What it means, None where only its key is known.
            keys: The key of each run, None where it has none.
        """
        named = [(run, keys[run.name]) for run in self._runs.all]
        having = [(run, key) for run, key in named if key is not None]
        if not having:
            return
        first, own = having[0]
        alike, otherwise = _counted_alike(first, own, indicator, having)
        curves = tuple(self._curve(run, key, label) for run, key in alike)
        self.drawn.update(one.data.key for one in curves)
        without = [name for name, key in keys.items() if key is None]
        notes = (*_of_keys(curves), *_lacking(without, otherwise))
        yield ReportChart(family, label, describe(own).unit, indicator, curves, notes)

    def _curve(self, run: Run, key: str, label: str) -> RunCurve:
        planned = single_metric(run, key, label)._replace(spread=None)
        data = chart_data(planned, View(self._monitor, run, self._now), ChartLook())
        return RunCurve(run.name, self._runs.place(run.name), data)


def _counted_alike(
    first: Run, own: str, indicator: str | None, having: Sequence[tuple[Run, str]]
) -> tuple[list[tuple[Run, str]], list[str]]:
    """Return the runs that count a metric as the first one does, and the names of the others."""
    alike = []
    otherwise = []
    for run, key in having:
        if run is first or counterpart(first, own, indicator, run) is not None:
            alike.append((run, key))
        else:
            otherwise.append(run.name)
    return alike, otherwise


def _of_keys(curves: Sequence[RunCurve]) -> Iterator[str]:
    """Yield the log's own key, or those that runs call the metric by."""
    keys: dict[str, list[str]] = {}
    for one in curves:
        keys.setdefault(one.data.key, []).append(one.run)
    if len(keys) == 1:
        yield from map(one_line, keys)
    else:
        yield "; ".join(
            f"{one_line(key)} ({_named(runs)})" for key, runs in keys.items()
        )


def _lacking(without: Sequence[str], otherwise: Sequence[str]) -> Iterator[str]:
    if without:
        yield f"not logged by {_named(without)}"
    if otherwise:
        yield f"counted in another way, so not drawn: {_named(otherwise)}"


def _named(runs: Sequence[str]) -> str:
    if len(runs) > 3:
        return counted(len(runs), "run")
    return ", ".join(one_line(run, 60) for run in runs)
