"""The charts of a report: for each family of metrics the curves of all runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.comparison.figures import loss_key
from verl_tui.health.finding import Severity, Verdict
from verl_tui.indicators import INDICATORS
from verl_tui.metrics import describe
from verl_tui.rendering.charts.overlay import counterpart
from verl_tui.rendering.charts.plan import ChartLook, plan_charts, single_metric
from verl_tui.rendering.charts.planned_data import chart_data
from verl_tui.rendering.session.selection import LETTERS
from verl_tui.rendering.session.snapshot import View
from verl_tui.rendering.text.run_colours import RUNS
from verl_tui.text import one_line
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

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
"""Families of what findings are about beyond these, and of runs without any of these."""
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
class Chart:
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
        lines = (main for one in self.curves if (main := _lettered(one)) is not None)
        return replace(
            first, lines=tuple(lines), envelope=None, spread=(), beside=(), alarms=(), best=""
        )


def _lettered(curve: RunCurve) -> ChartLine | None:
    """Return a run's line with its colour and its letter."""
    main = curve.data.main
    if main is None:
        return None
    if curve.place is None:
        return replace(main, role="raw", sign="·", label=one_line(curve.run, 40))
    return replace(
        main,
        role=RUNS[curve.place],
        sign=LETTERS[curve.place],
        label=one_line(curve.run, 40),
    )


@dataclass(frozen=True, slots=True)
class DrawnRuns:
    """The runs that are drawn."""

    coloured: tuple[Run, ...]
    grey: tuple[Run, ...]
    left_out: int
    """How many are not drawn."""

    @property
    def all(self) -> tuple[Run, ...]:
        """Those with a colour first."""
        return (*self.coloured, *self.grey)

    def place(self, run: str) -> int | None:
        """Return the place of a run among those with a colour."""
        return next((i for i, one in enumerate(self.coloured) if one.name == run), None)


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


def charts_of(monitor: Monitor, drawn: DrawnRuns, now: float) -> tuple[Chart, ...]:
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


def _of_one_run(monitor: Monitor, run: Run, now: float) -> Iterator[Chart]:
    """Yield the charts of a single run as the screen has them, with their bands and points."""
    named = _keys_of_findings(monitor, [run])
    planned = plan_charts(run, tuple(name for names in FAMILIES.values() for name in names))
    known = {one.indicator: one for one in planned if one.indicator is not None}
    found = [
        (family, known[name])
        for family, names in FAMILIES.items()
        for name in names
        if name in known
    ]
    if "validation" not in known and (key := run.indicators.get("validation")) is not None:
        found.insert(1 if found else 0, ("validation", single_metric(run, key, "validation")))
    if (loss := loss_key(run)) is not None and not any(one.shows(loss) for _, one in found):
        found.append(("loss", single_metric(run, loss)))
    drawn = {one.key for _, one in found}
    more = [one for one in planned if one.key not in drawn and any(map(one.shows, named))]
    found += [(OF_FINDINGS, one) for one in more[:_MOST_OF_FINDINGS]]
    if not found:
        found = [(OTHERS, one) for one in planned[:_MOST_OTHERS]]
    view = View(monitor, run, now)
    for family, one in found:
        curve = RunCurve(run.name, 0, chart_data(one, view, ChartLook()))
        yield Chart(family, one.label, one.unit, one.indicator, (curve,), _of_key(one), alone=True)


def _of_key(planned: PlannedChart) -> tuple[str, ...]:
    return (one_line(planned.key),)


def _keys_of_findings(monitor: Monitor, runs: Iterable[Run]) -> list[str]:
    """Return the metrics that warnings and worse are about."""
    found: dict[str, None] = {}
    for run in runs:
        for finding in monitor.verdicts.get(run.name, Verdict()).primary:
            if finding.key is not None and finding.severity > Severity.INFO:
                found[finding.key] = None
    return list(found)


# -- several runs ----------------------------------------------------------------------------------


def _of_many(monitor: Monitor, drawn: DrawnRuns, now: float) -> Iterator[Chart]:
    keys: set[str] = set()
    for family, names in FAMILIES.items():
        for name in names:
            if (chart := _overlay(monitor, drawn, now, family, indicator=name)) is not None:
                keys.update(one.data.key for one in chart.curves)
                yield chart
    loss = next((key for run in drawn.all if (key := loss_key(run)) is not None), None)
    if loss is not None and loss not in keys:
        chart = _overlay(monitor, drawn, now, "loss", key=loss)
        if chart is not None:
            keys.add(loss)
            yield chart
    family = OF_FINDINGS
    more = [key for key in _keys_of_findings(monitor, drawn.coloured) if key not in keys]
    if not keys and not more:
        family = OTHERS
        more = list(dict.fromkeys(key for run in drawn.coloured for key in run.keys))
    for key in more[: _MOST_OF_FINDINGS if family == OF_FINDINGS else _MOST_OTHERS]:
        if (chart := _overlay(monitor, drawn, now, family, key=key)) is not None:
            yield chart


def _overlay(
    monitor: Monitor,
    drawn: DrawnRuns,
    now: float,
    family: str,
    *,
    indicator: str | None = None,
    key: str = "",
) -> Chart | None:
    """Return the chart of an indicator or of one key, None where no run has it."""
    first = next((run for run in drawn.all if _key_in(run, indicator, key) is not None), None)
    own = None if first is None else _key_in(first, indicator, key)
    if first is None or own is None:
        return None
    indicator = indicator or next((id for id, of in first.indicators.items() if of == own), None)
    label = INDICATORS[indicator].label if indicator is not None else describe(own).label
    curves, otherwise, without = [], [], []
    for run in drawn.all:
        named = _key_in(run, indicator, key)
        if named is None:
            without.append(run)
        elif run is not first and counterpart(first, own, indicator, run) is None:
            otherwise.append(run)
        else:
            view = View(monitor, run, now)
            planned = replace(single_metric(run, named, label), spread=None)
            data = chart_data(planned, view, ChartLook())
            curves.append(RunCurve(run.name, drawn.place(run.name), data))
    notes = (*_of_keys(curves), *_lacking(without, otherwise))
    return Chart(family, label, describe(own).unit, indicator, tuple(curves), notes)


def _key_in(run: Run, indicator: str | None, key: str) -> str | None:
    """Return what a run calls a metric, None where it has none."""
    if indicator is not None:
        return run.indicators.get(indicator)
    return key if run.series(key) is not None else None


def _of_keys(curves: Sequence[RunCurve]) -> Iterator[str]:
    """Yield the log's own key, or those that runs call the metric by."""
    keys: dict[str, list[str]] = {}
    for one in curves:
        keys.setdefault(one.data.key, []).append(one.run)
    if len(keys) == 1:
        yield from map(one_line, keys)
    else:
        yield "; ".join(f"{one_line(key)} ({_named(runs)})" for key, runs in keys.items())


def _lacking(without: Sequence[Run], otherwise: Sequence[Run]) -> Iterator[str]:
    if without:
        yield f"not logged by {_named([run.name for run in without])}"
    if otherwise:
        yield f"counted in another way, so not drawn: {_named([run.name for run in otherwise])}"


def _named(runs: Sequence[str]) -> str:
    if len(runs) > 3:
        return counted(len(runs), "run")
    return ", ".join(one_line(run, 60) for run in runs)
