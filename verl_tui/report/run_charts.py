"""The charts of a report: for each family of metrics the curves of all runs."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.health.finding import Verdict, weighty
from verl_tui.indicators import INDICATORS
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
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from verl_tui.monitor import Monitor
    from verl_tui.rendering.charts.chart_data import ChartData, ChartLine
    from verl_tui.rendering.session.notes import NoteBook
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


class ReportChart(NamedTuple):
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
        marks = (
            mark
            for one in self.curves
            for mark in (one.data.marks if one.place is not None else ())
        )
        return first._replace(
            lines=tuple(filter(None, map(_lettered, self.curves))),
            shades=(),
            beside="",
            marks=tuple(mark for mark in marks if mark.role in ("breach", "note")),
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


class DrawnRuns(NamedTuple):
    """The runs that are drawn."""

    coloured: tuple[Run, ...]
    grey: tuple[Run, ...] = ()
    left_out: int = 0
    """Number of runs that are not drawn."""

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
    return DrawnRuns(coloured, tuple(grey[:MOST_GREY]), len(grey[MOST_GREY:]))


class ChartMaker:
    """Makes the charts: the families', then those of metrics that findings are about.

    Args:
        monitor: Has read and judged.
        runs: Those that are drawn.
        now: Seconds since the epoch.
        notebook: The user's notes, which are marks.
    """

    def __init__(
        self, monitor: Monitor, runs: DrawnRuns, now: float, notebook: NoteBook
    ) -> None:
        self._drawn: set[str] = set()
        """Keys that have a chart."""
        self._monitor = monitor
        self._runs = runs
        self._now = now
        self._notebook = notebook
        self._alone = len(runs.all) == 1
        wanted = [*chain.from_iterable(FAMILIES.values())]
        self._plans = plan_charts(runs.all[0], wanted) if self._alone else ()
        """The charts of a single run as the screen has them, with their bands and points."""

    def charts(self) -> Iterator[ReportChart]:
        """Yield them."""
        for family, names in FAMILIES.items():
            for name in names:
                keys = [run.indicators.get(name) for run in self._runs.all]
                yield from self._chart(family, name, keys)
            if family == "loss":
                losses = filter(None, (run.loss_alone for run in self._runs.all))
                yield from self._of_keys(family, losses, 1)
        yield from self._of_keys(OF_FINDINGS, self._named(), _MOST_OF_FINDINGS)
        if not self._drawn:
            own = [plan.key for plan in self._plans]
            own += chain.from_iterable(run.keys for run in self._runs.coloured)
            yield from self._of_keys(OTHERS, own, _MOST_OTHERS)

    def _named(self) -> Iterator[str]:
        """Yield the metrics that warnings and worse are about."""
        for run in self._runs.coloured:
            verdict = self._monitor.verdicts.get(run.name, Verdict())
            for finding in weighty(verdict.primary):
                yield from () if finding.key is None else (finding.key,)

    def _of_keys(
        self, family: str, keys: Iterable[str], most: int
    ) -> Iterator[ReportChart]:
        """Yield the charts of metrics by the log's own keys, so many of those without one."""
        homes = (
            next((one.key for one in self._plans if one.shows(key)), key)
            for key in keys
        )
        wanted = [key for key in dict.fromkeys(homes) if key not in self._drawn]
        for key in wanted[:most]:
            known = [key if run.series(key) else None for run in self._runs.all]
            yield from self._chart(family, None, known)

    def _chart(
        self, family: str, indicator: str | None, keys: list[str | None]
    ) -> Iterator[ReportChart]:
        """Yield a chart, none if no run has the metric.

        Args:
            family: What it belongs to.
            indicator: What it means, None where only its key is known.
            keys: The key of each run, None where it has none.
        """
        named = [*zip(self._runs.all, keys, strict=True)]
        having = [(run, key) for run, key in named if key is not None]
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
            view = View(self._monitor, run, self._now, notebook=self._notebook)
            data = chart_data(self._planned(run, key, indicator), view, ChartLook())
            curves.append(RunCurve(run.name, self._runs.place(run), data))
            by_key.setdefault(data.key, []).append(run.name)
        self._drawn.update(by_key)
        without = [run.name for run, key in named if key is None]
        beside = (
            f"joined points: {one_line(key)}" for key in filter(None, [planned.score])
        )
        notes = (_keys_in_words(by_key), *beside, *_lacking(without, otherwise))
        words = (planned.label, planned.unit, planned.indicator)
        yield ReportChart(family, *words, tuple(curves), notes, self._alone)

    def _planned(self, run: Run, key: str, indicator: str | None) -> PlannedChart:
        """Return what is drawn of a metric: of several runs the curve alone."""
        label = INDICATORS[indicator].label if indicator is not None else ""
        single = single_metric(run, key, label)
        if not self._alone:
            return single._replace(spread=None)
        named = (one for one in self._plans if indicator in (None, one.indicator))
        return next((one for one in named if one.key == key), single)


def _lacking(without: Sequence[str], otherwise: Sequence[str]) -> Iterator[str]:
    if without:
        yield f"not logged by {_named(without)}"
    if otherwise:
        yield f"counted in another way, so not drawn: {_named(otherwise)}"


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
