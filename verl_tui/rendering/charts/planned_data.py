"""The data of the charts that are planned for a run, other runs' lines over its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from verl_tui.indicators import factor
from verl_tui.metrics import counts, describe
from verl_tui.rendering.charts.chart_data import (
    ALARM_ROLES,
    Alarm,
    ChartData,
    ChartLine,
    Mark,
    Shade,
)
from verl_tui.rendering.charts.plan import newest_and_best
from verl_tui.rendering.charts.x_axes import on_axis
from verl_tui.rendering.session.selection import LETTERS, without_shared_start
from verl_tui.rendering.text.hues import RUNS, family_role
from verl_tui.rendering.text.numbers import compact
from verl_tui.runs.time.forecast import steps_per_minute
from verl_tui.runs.time.step_timing import generation_latency
from verl_tui.runs.views.checkpoints import checkpoints, is_better_low, reached

if TYPE_CHECKING:
    from collections.abc import Iterator

    from verl_tui.health.finding import Episode, Finding
    from verl_tui.rendering.charts.chart_data import Points
    from verl_tui.rendering.charts.plan import ChartLook, PlannedChart
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Series

_OTHER = "*"
"""Marks the shown run's line where it is not selected itself."""
_RATES = {
    "step_time": ("usual", steps_per_minute),
    "generation_time": ("p95", generation_latency),
}
"""What is said beside an indicator of times."""


def chart_data(found: PlannedChart, view: View, look: ChartLook) -> ChartData:
    """Return the data of a chart of the shown run."""
    data = _ChartMaker(found, view, look).data()
    return _overlaid(data, found.indicator, view, look.axis)


class _ChartMaker:
    """The data of one run's chart, while they are put together."""

    def __init__(self, found: PlannedChart, view: View, look: ChartLook) -> None:
        assert view.run is not None
        self._found = found
        self._view = view
        self._look = look
        self._run = view.run
        self._axis = on_axis(view.run, look.axis)
        self._own = view.run.series(found.key)

    def data(self) -> ChartData:
        """Return them."""
        found, look = self._found, self._look
        target, note = self._target()
        first, last = self._ends()
        plateaus = [one for one in self._view.verdict.findings if one.id == "plateau"]
        return ChartData(
            key=found.key,
            label=found.label,
            unit=found.unit,
            lines=tuple(self._lines()),
            shades=tuple(self._shades()),
            band=self._band(),
            target=target,
            note=note or self._note(),
            in_row=found.in_row,
            trendless=any(found.shows(one.key) for one in plateaus),
            beside=newest_and_best(self._run) if found.points else "",
            marks=tuple(self._marks()),
            best=self._best(),
            cursor=self._along(self._view.cursor),
            axis=self._axis.axis,
            log_y=look.log_y,
            usual_y=look.usual_y,
            first_step=first,
            last_step=last,
            end=self._along(self._run.end),
            smoothing=look.smoothing or 0.0,
            by_noise=look.smoothing is None,
        )

    def _along(self, step: int | None) -> int | None:
        """Return the position of a step on the x axis."""
        if self._own is None or step is None:
            return None
        return self._axis.place(self._own, step)

    def _all(self, *keys: str) -> tuple[Points, ...]:
        """Return several series along the x axis, none where one of them is missing."""
        found = [one for one in map(self._run.series, keys) if one is not None]
        whole = len(found) == len(keys)
        return tuple(self._axis.points(series) for series in found if whole)

    def _lines(self) -> Iterator[ChartLine]:
        """Yield the metric itself, then what is drawn as points with it."""
        found = self._found
        for own in self._all(found.key):
            role = family_role(found.key, found.indicator)
            yield ChartLine(own, "line", role, found.label, alarms=self._alarms())
        for number, key in enumerate(found.points):
            role = f"line-{number + 1}" if number else "validation"
            for points in self._all(key):
                yield ChartLine(points, "points", role, describe(key).label)

    def _shades(self) -> Iterator[Shade]:
        """Yield the least and the greatest around the metric, and the quantiles of the distribution
        that it is of.
        """
        found = self._found
        if around := self._all(*(found.envelope or ())):
            low, high = around
            yield Shade("min–max", low, high, "envelope", fits=False)
        if spread := self._all(*(found.spread.quantiles if found.spread else ())):
            least, lower, middle, upper, most = spread
            yield Shade("median", middle, middle)
            yield Shade("5–95%", least, most, "envelope")
            yield Shade("25–75%", lower, upper, "quartiles")

    def _best(self) -> Literal["", "highest", "lowest"]:
        """Return which value of the metric is marked as its best: of rewards, and of validations
        where more or less is better; none of a preview, which does not know all.
        """
        key, indicator = self._found.key, self._found.indicator
        metric = describe(key)
        scored = metric.group == "validation" and metric.direction in ("up", "down")
        if self._run.preview or (indicator != "reward" and not scored):
            return ""
        return "lowest" if is_better_low(indicator or key, key) else "highest"

    def _ends(self) -> tuple[int | None, int | None]:
        """Return the ends of the zoom along the x axis; None where the data's own hold."""
        whole, span = self._run.reach, self._look.span
        if span is None or whole is None or self._own is None:
            return None, None
        first, last = span.shown(whole)
        begin = self._axis.edge(self._own, first)
        return begin, None if last >= whole[1] else self._axis.edge(self._own, last)

    def _band(self) -> tuple[float | None, float | None]:
        """Return the guide's healthy band, which may depend on the run."""
        if self._found.indicator is None:
            return None, None
        return self._view.monitor.band(self._run, self._found.indicator)

    def _target(self) -> tuple[float | None, str]:
        """Return what the metric is to reach in the key's own values, and whether it did."""
        found, wanted = self._found, self._view.monitor.config.targets
        # a validation is drawn as points into the reward's chart
        names = [found.indicator or "", found.key, *found.points]
        names += ["validation"] * bool(found.points)
        for name in names:
            if name in wanted:
                at = reached(self._run, name, wanted[name])
                said = f"target {compact(wanted[name])}"
                said += "" if at is None else f" @ {at.step}"
                return wanted[name] * factor(name, found.key), said
        return None, ""

    def _note(self) -> str:
        """Return what is worth saying of the metric: since when it is constant, a summary of times,
        or of how many measurements the newest point is the mean.
        """
        found, own = self._found, self._own
        if own is None or not len(own):
            return ""
        if found.in_row and not counts(found.key) and len(own) > 1:
            return f"constant since step {own.steps[0]}"
        word, rate_of = _RATES.get(found.indicator or "", ("", lambda _: None))
        if (rate := rate_of(self._run)) is not None:
            return f"{word} {compact(rate.value)} {rate.unit}"
        newest = own.counts[-1] if own.counts else 1
        return f"mean of {newest}" if newest > 1 else ""

    # -- marks -------------------------------------------------------------------------------------

    def _marks(self) -> Iterator[Mark]:
        """Yield the marks of the chart along its x axis."""
        marks = [Mark(step, "checkpoint") for step in sorted(checkpoints(self._run))]
        marks += [Mark(restart.step, "restart") for restart in self._run.restarts]
        found = [
            (one.since_step, one.severity)
            for one in self._view.verdict.findings
            if one.since_step is not None and self._found.shows(one.key)
        ]
        # the worst of a step comes last and holds
        for step, severity in dict(sorted(found)).items():
            marks.append(Mark(step, "breach", ALARM_ROLES[severity]))
        for mark in marks:
            if (at := self._along(mark.step)) is not None:
                yield mark._replace(step=at)

    def _alarms(self) -> tuple[Alarm, ...]:
        """Return when findings about the metric held, along the x axis; the worst last."""
        verdict = self._view.verdict
        known: list[tuple[Episode | Finding, int | None]]
        known = [(one, one.cleared_step) for one in verdict.history]
        known += [(one, None) for one in verdict.findings]
        alarms: set[Alarm] = set()
        for finding, cleared in known:
            first, last = self._along(finding.since_step), self._along(cleared)
            placed = first is not None and (last is None) == (cleared is None)
            if first is not None and placed and self._found.shows(finding.key):
                alarms.add(Alarm(int(finding.severity), first, last))
        return tuple(sorted(alarms, key=lambda alarm: (alarm.severity, alarm.first)))


def with_right(data: ChartData, other: ChartData) -> ChartData:
    """Return a chart with another metric drawn into it, over a y axis of its own at the right."""
    if other.main is None:
        return data
    # Runs laid over each other have letters of their own.
    sign = "r" if any(line.sign for line in data.lines) else ""
    points, title = other.main.points, other.title
    own = ChartLine(points, "line", "right", title, sign, right=True, unit=other.unit)
    lines = [line._replace(label=line.label or data.title) for line in data.lines]
    more = (one for one in other.marks if one.role == "breach")
    marks = tuple(dict.fromkeys((*data.marks, *more)))
    return data._replace(lines=(*lines, own), marks=marks)


# -- the same metric of other runs -----------------------------------------------------------------


def _overlaid(
    data: ChartData, indicator: str | None, view: View, axis: str
) -> ChartData:
    """Return a chart with the lines of the selected runs; unchanged while fewer than two are.

    Lines run over steps, over the time of day, or over the time since each run's own beginning.

    Args:
        data: The chart of the shown run.
        indicator: What the metric means, whatever another framework calls it; None where only its
            key is known.
        view: The state of everything.
        axis: One of `verl_tui.rendering.charts.x_axes.AXES`.
    """
    found = list(others(data, indicator, view, axis))
    if not found or view.run is None or data.main is None:
        return data
    of_runs = [(view.run, data.main)]
    of_runs += [(run, ChartLine(points)) for run, _, points in found]
    names = without_shared_start([run.name for run, _ in of_runs])
    lines = []
    for (run, line), name in zip(of_runs, names, strict=True):
        place = view.selection.place(run.name)
        role, sign = (
            ("line", _OTHER) if place is None else (RUNS[place], LETTERS[place])
        )
        lines.append(line._replace(role=role, label=name, sign=sign))
    # the markers of more points would hide the many lines
    lines += [line for line in data.lines if line.kind == "points"][:1]
    return data._replace(lines=tuple(lines), beside="")


def counterpart(run: Run, key: str, indicator: str | None, other: Run) -> Series | None:
    """Return the series of another run with the same meaning, None if it has none or counts it in
    another way.
    """
    found = key
    if indicator is not None and run.indicators.get(indicator) == key:
        found = other.indicators.get(indicator, "")
        if not found or factor(indicator, found) != factor(indicator, key):
            return None
    units = {describe(key).unit, describe(found).unit} - {""}
    return other.series(found) if len(units) < 2 else None


def others(
    data: ChartData, indicator: str | None, view: View, axis: str
) -> Iterator[tuple[Run, Series, Points]]:
    """Yield the other selected runs that have the same metric: run, series, points on the x axis;
    see `_overlaid`.
    """
    shown = view.run
    curves = any(line.kind == "line" for line in data.lines)
    if shown is None or not curves or len(view.selected) < 2:
        return
    for run in view.selected:
        series = None if run is shown else counterpart(shown, data.key, indicator, run)
        if series is not None:
            yield from _placed(series, run, data, axis)


def _placed(
    series: Series, run: Run, data: ChartData, axis: str
) -> Iterator[tuple[Run, Series, Points]]:
    """Yield another run's series along a chart's x axis, unless it has no times."""
    along = on_axis(run, axis if data.axis.time else "step")
    # Beginnings are laid over each other; times of day and steps are what they are.
    later = data.axis.zero - along.axis.zero if axis == "relative" else 0
    points = along.points(series, later)
    if along.problem is None and len(points.steps):
        yield run, series, points
