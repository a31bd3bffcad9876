"""The data of the charts that are planned for a run."""

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
)
from verl_tui.rendering.charts.overlaid_runs import overlaid
from verl_tui.rendering.charts.plan import newest_and_best
from verl_tui.rendering.charts.x_axes import kl_key, on_axis
from verl_tui.rendering.text.hues import family_role
from verl_tui.rendering.text.numbers import compact
from verl_tui.runs.time.throughput import generation_latency, steps_per_minute
from verl_tui.runs.views.checkpoints import checkpoints, is_better_low, reached
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from verl_tui.health.finding import Episode, Finding
    from verl_tui.rendering.charts.chart_data import Points
    from verl_tui.rendering.charts.plan import ChartLook, PlannedChart
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.runs.run import Run


def chart_data(found: PlannedChart, view: View, look: ChartLook) -> ChartData:
    """Return the data of a chart of the shown run."""
    data = _ChartMaker(found, view, look).data()
    assert view.run is not None
    data = over_kl(data, view.run, kl_beside(found, view.run, look))
    return overlaid(data, found.indicator, view, look.axis)


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
        return ChartData(
            key=found.key,
            label=found.label,
            unit=found.unit,
            lines=tuple(self._lines()),
            envelope=self._envelope(),
            spread=self._spread(),
            band=self._band(),
            target=target,
            note=note or self._note(),
            in_row=found.in_row,
            trendless=self._is_trendless(),
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

    def _points(self, *keys: str) -> Iterator[Points | None]:
        for series in map(self._run.series, keys):
            yield None if series is None else self._axis.points(series)

    def _lines(self) -> Iterator[ChartLine]:
        """Yield the metric itself, then what is drawn as points with it."""
        found = self._found
        (own,) = self._points(found.key)
        if own is not None:
            role = family_role(found.key, found.indicator)
            yield ChartLine(own, "line", role, found.label, alarms=self._alarms())
        for number, (key, points) in enumerate(
            zip(found.points, self._points(*found.points), strict=True)
        ):
            if points is not None:
                role = "validation" if not number else f"line-{number + 1}"
                yield ChartLine(points, "points", role, describe(key).label)

    def _envelope(self) -> tuple[Points, Points] | None:
        """Return the least and the greatest around the metric, None where it has none."""
        low, high = [*self._points(*(self._found.envelope or ()))] or (None, None)
        return (low, high) if low is not None and high is not None else None

    def _spread(self) -> tuple[Points, ...]:
        """Return the quantiles of the distribution that the metric is of."""
        spread = self._found.spread
        found = self._points(*spread.quantiles) if spread is not None else ()
        return tuple(points for points in found if points is not None)

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
        end = None if last >= whole[1] else self._axis.edge(self._own, last)
        return begin, end

    def _band(self) -> tuple[float | None, float | None]:
        """Return the guide's healthy band, which may depend on the run."""
        if self._found.indicator is None:
            return None, None
        return self._view.monitor.band(self._run, self._found.indicator)

    def _target(self) -> tuple[float | None, str]:
        """Return what the metric is to reach in the key's own values, and whether it did."""
        found, wanted = self._found, self._view.monitor.config.targets
        names = [found.indicator, found.key, *found.points]
        if found.points:
            names.append("validation")  # drawn as points into the reward's chart
        name = next((name for name in names if name in wanted), None)
        if name is None:
            return None, ""
        target = wanted[name] * factor(name, found.key)
        said = f"target {compact(wanted[name])}"
        at = reached(self._run, name, wanted[name])
        return target, said if at is None else f"{said} @ {at.step}"

    def _note(self) -> str:
        """Return what is worth saying of the metric: since when it is constant, a summary of times,
        or of how many measurements the newest point is the mean.
        """
        found, own = self._found, self._own
        if own is None or not len(own):
            return ""
        if found.in_row and not counts(found.key) and len(own) > 1:
            return f"constant since step {own.steps[0]}"
        rates = {
            "step_time": ("usual", steps_per_minute),
            "generation_time": ("p95", generation_latency),
        }
        word, rate_of = rates.get(found.indicator or "", ("", lambda _: None))
        if (rate := rate_of(self._run)) is not None:
            return f"{word} {compact(rate.value)} {rate.unit}"
        newest = own.counts[-1] if own.counts else 1
        return f"mean of {newest}" if newest > 1 else ""

    # -- marks -------------------------------------------------------------------------------------

    def _is_trendless(self) -> bool:
        """Return whether health finds no trend in the metric."""
        found = self._view.verdict.findings
        return any(one.id == "plateau" and self._found.shows(one.key) for one in found)

    def _marks(self) -> Iterator[Mark]:
        """Yield the marks of the chart along its x axis."""
        marks = [Mark(step, "checkpoint") for step in sorted(checkpoints(self._run))]
        marks += [Mark(restart.step, "restart") for restart in self._run.restarts]
        breaches: dict[int, int] = {}
        for finding in self._view.verdict.findings:
            since = finding.since_step
            if since is not None and self._found.shows(finding.key):
                breaches[since] = max(finding.severity, breaches.get(since, 0))
        for step, worst in sorted(breaches.items()):
            marks.append(Mark(step, "breach", ALARM_ROLES[worst]))
        for mark in marks:
            if (at := self._along(mark.step)) is not None:
                yield mark._replace(step=at)

    def _alarms(self) -> tuple[Alarm, ...]:
        """Return when findings about the metric held, along the x axis; the worst last."""
        known: list[tuple[Episode | Finding, int | None]]
        known = [(one, one.cleared_step) for one in self._view.verdict.history]
        known += [(one, None) for one in self._view.verdict.findings]
        alarms: set[Alarm] = set()
        for finding, cleared in known:
            first, last = self._along(finding.since_step), self._along(cleared)
            placed = first is not None and (last is None) == (cleared is None)
            if first is not None and placed and self._found.shows(finding.key):
                alarms.add(Alarm(int(finding.severity), first, last))
        return tuple(sorted(alarms, key=lambda alarm: (alarm.severity, alarm.first)))


# -- other metrics in a chart ----------------------------------------------------------------------


def with_right(data: ChartData, other: ChartData) -> ChartData:
    """Return a chart with another metric drawn into it, over a y axis of its own at the right."""
    if other.main is None or data.over_kl:
        return data
    # Runs laid over each other have letters of their own.
    sign = "r" if any(line.sign for line in data.lines) else ""
    own = other.main._replace(
        role="right", right=True, label=other.title, sign=sign, alarms=()
    )
    right = other._replace(
        lines=(own,),
        envelope=None,
        spread=(),
        band=(None, None),
        target=None,
        marks=(),
    )
    lines = tuple(line._replace(label=line.label or data.title) for line in data.lines)
    more = (one for one in other.marks if one.role == "breach")
    marks = dict.fromkeys((*data.marks, *more))
    return data._replace(lines=lines, right=right, marks=tuple(marks))


def kl_beside(found: PlannedChart, run: Run, look: ChartLook) -> str | None:
    """Return the KL that a chart is drawn over as a path, None where it is not: only rewards and
    scores are.
    """
    is_score = describe(found.key).group in ("reward", "validation")
    named = found.indicator in ("reward", "validation")
    return kl_key(run) if look.axis == "kl" and (is_score or named) else None


def over_kl(data: ChartData, run: Run, key: str | None) -> ChartData:
    """Return the chart of a reward as its path over a KL, the chart itself where that is None."""
    over = run.series(key or "")
    main = data.main
    if key is None or over is None or main is None:
        return data
    return data._replace(
        label=f"{data.title} over KL",
        lines=(main._replace(over=over, kind="line"),),
        envelope=None,
        spread=(),
        beside="",
        note=f"KL: {one_line(key)}",
    )
