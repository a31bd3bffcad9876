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
from verl_tui.rendering.charts.validation import newest_and_best
from verl_tui.rendering.charts.x_axes import kl_key, on_axis
from verl_tui.rendering.text.family_colours import family_role
from verl_tui.rendering.text.numbers import compact
from verl_tui.runs.time.throughput import generation_latency, steps_per_minute
from verl_tui.runs.views.checkpoints import checkpoints, is_better_low, reached
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from verl_tui.health.finding import Episode, Finding
    from verl_tui.rendering.charts.chart_data import Points
    from verl_tui.rendering.charts.plan import ChartLook, PlannedChart
    from verl_tui.rendering.charts.x_axes import XAxis
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Series


def chart_data(found: PlannedChart, view: View, look: ChartLook) -> ChartData:
    """Return the data of a chart of the shown run."""
    run = view.run
    assert run is not None
    axis = on_axis(run, look.axis)
    own = run.series(found.key)

    def along(step: int) -> int | None:
        if own is None:
            return None
        return axis.place(own, step)

    target, notes = _target(found, view)
    ends = _ends(run, own, look) if own is not None else (None, None)
    data = ChartData(
        key=found.key,
        label=found.label,
        unit=found.unit,
        lines=tuple(_lines(found, view, axis, along)),
        envelope=_envelope(found, run, axis),
        spread=_spread(found, run, axis),
        band=_band(found, view),
        target=target,
        notes=_since(found, own) or notes or _rate(found, run) or _averaged(own),
        in_row=found.in_row,
        trendless=_is_trendless(found, view),
        beside=tuple(newest_and_best(run)) if found.points else (),
        marks=tuple(_marks(found, view, along)),
        best=_best(found, run),
        cursor=None if view.cursor is None else along(view.cursor),
        axis=axis.axis,
        log_y=look.log_y,
        usual_y=look.usual_y,
        first_step=ends[0],
        last_step=ends[1],
        end=None if run.end is None else along(run.end),
        smoothing=look.smoothing or 0.0,
        by_noise=look.smoothing is None,
    )
    data = over_kl(data, run, kl_beside(found, run, look))
    return overlaid(data, found.indicator, view, look.axis)


def _lines(
    found: PlannedChart, view: View, axis: XAxis, along: Callable[[int], int | None]
) -> Iterator[ChartLine]:
    """Yield the metric itself, then what is drawn as points with it."""
    run = view.run
    assert run is not None
    series = run.series(found.key)
    if series is not None:
        yield ChartLine(
            axis.points(series),
            role=family_role(found.key, found.indicator),
            label=found.label,
            alarms=tuple(_alarms(found, view, along)),
        )
    for number, key in enumerate(found.points):
        series = run.series(key)
        if series is not None:
            role = "validation" if not number else f"line-{number + 1}"
            yield ChartLine(axis.points(series), "points", role, describe(key).label)


def _best(found: PlannedChart, run: Run) -> Literal["", "highest", "lowest"]:
    """Return which value of a metric is marked as its best: of rewards, and of validations where
    more or less is better; none of a preview, which does not know all.
    """
    if run.preview:
        return ""
    metric = describe(found.key)
    scored = metric.group == "validation" and metric.direction in ("up", "down")
    if found.indicator != "reward" and not scored:
        return ""
    if is_better_low(found.indicator or found.key, found.key):
        return "lowest"
    return "highest"


def _envelope(
    found: PlannedChart, run: Run, axis: XAxis
) -> tuple[Points, Points] | None:
    """Return the least and the greatest around the metric, None where it has none."""
    low, high = (run.series(key) for key in found.envelope or ("", ""))
    if low is not None and high is not None:
        return axis.points(low), axis.points(high)
    return None


def _spread(found: PlannedChart, run: Run, axis: XAxis) -> tuple[Points, ...]:
    """Return the quantiles of the distribution that the metric is of, none where it is of none."""
    if found.spread is None:
        return ()
    quantiles = map(run.series, found.spread.quantiles)
    return tuple(axis.points(series) for series in quantiles if series is not None)


def with_right(data: ChartData, other: ChartData) -> ChartData:
    """Return a chart with another metric drawn into it, over a y axis of its own at the right."""
    if other.main is None or data.over_kl:
        return data
    # Runs laid over each other have letters of their own.
    sign = "r" if any(line.sign for line in data.lines) else ""
    own = other.main._replace(role="right", right=True, label=other.title, sign=sign)
    right = other._replace(
        lines=(own,),
        envelope=None,
        spread=(),
        band=(None, None),
        target=None,
        marks=(),
    )
    lines = tuple(line._replace(label=line.label or data.title) for line in data.lines)
    marks = (*data.marks, *_further_breaches(data, other))
    return data._replace(lines=lines, right=right, marks=marks)


def _further_breaches(data: ChartData, other: ChartData) -> list[Mark]:
    """Return the breaches in a chart that another chart does not have."""
    breaches = (mark for mark in other.marks if mark.role == "breach")
    return [mark for mark in breaches if mark not in data.marks]


def _ends(run: Run, own: Series, look: ChartLook) -> tuple[int | None, int | None]:
    """Return the ends of the zoom along the x axis; None where the data's own hold."""
    whole = run.reach
    if look.span is None or whole is None:
        return None, None
    axis = on_axis(run, look.axis)
    first, last = look.span.shown(whole)
    begin = axis.edge(own, first)
    if last >= whole[1]:
        return begin, None
    return begin, axis.edge(own, last)


def _band(found: PlannedChart, view: View) -> tuple[float | None, float | None]:
    """Return the guide's healthy band, which may depend on the run."""
    if found.indicator is None or view.run is None:
        return None, None
    return view.monitor.band(view.run, found.indicator)


def _target(found: PlannedChart, view: View) -> tuple[float | None, tuple[str, ...]]:
    """Return what the metric is to reach in the key's own values, and whether it did, in words."""
    run = view.run
    wanted = view.monitor.config.targets
    names = (found.indicator, found.key, *found.points)
    name = next((name for name in names if name in wanted), None)
    if name is None and found.points and "validation" in wanted:
        name = "validation"  # drawn as points into the reward's chart
    if run is None or name is None:
        return None, ()
    target = wanted[name] * factor(name, found.key)
    said = f"target {compact(wanted[name])}"
    at = reached(run, name, wanted[name])
    if at is None:
        return target, (said,)
    return target, (f"{said} reached at step {at.step}", f"{said} @ {at.step}")


def _rate(found: PlannedChart, run: Run) -> tuple[str, ...]:
    """Return a summary of the times in a chart: steps per minute, the 95th percentile of
    generation.
    """
    if found.indicator == "step_time":
        rate = steps_per_minute(run)
        return () if rate is None else (f"usual {compact(rate.value)} {rate.unit}",)
    if found.indicator == "generation_time":
        latency = generation_latency(run)
        if latency is not None:
            return (f"p95 {compact(latency.value)} {latency.unit}",)
    return ()


def _is_trendless(found: PlannedChart, view: View) -> bool:
    """Return whether health finds no trend in the metric."""
    plateaus = (one for one in view.verdict.findings if one.id == "plateau")
    return any(one.key is not None and found.shows(one.key) for one in plateaus)


def _averaged(series: Series | None) -> tuple[str, ...]:
    """Return of how many measurements the newest point is the mean, nothing where it is one."""
    if series is None or not series.counts or series.counts[-1] < 2:
        return ()
    return f"mean of {series.counts[-1]} measurements", f"mean of {series.counts[-1]}"


def _since(found: PlannedChart, series: Series | None) -> tuple[str, ...]:
    """Return the ways to say since when a metric is constant, none where it varies, counts, or has
    been logged only once.
    """
    if not found.in_row or counts(found.key) or series is None or len(series) < 2:
        return ()
    step = series.steps[0]
    return f"constant since step {step}", f"constant since {step}", "constant"


def _marks(
    found: PlannedChart, view: View, along: Callable[[int], int | None]
) -> Iterator[Mark]:
    """Yield the marks of a chart along its x axis."""
    for mark in _marks_at_steps(found, view):
        at = along(mark.step)
        if at is not None:
            yield mark._replace(step=at)


def _marks_at_steps(found: PlannedChart, view: View) -> Iterator[Mark]:
    assert view.run is not None
    breaches: dict[int, int] = {}
    for finding in view.verdict.findings:
        since = finding.since_step
        key = finding.key
        if since is not None and key is not None and found.shows(key):
            breaches[since] = max(finding.severity, breaches.get(since, 0))
    for step in sorted(checkpoints(view.run)):
        yield Mark(step, "checkpoint")
    for restart in view.run.restarts:
        yield Mark(restart.step, "restart")
    for step, worst in sorted(breaches.items()):
        yield Mark(step, "breach", ALARM_ROLES[worst])


def _alarms(
    found: PlannedChart, view: View, along: Callable[[int], int | None]
) -> list[Alarm]:
    """Return when findings about a chart's metric held, along its x axis; the worst last."""
    known: list[tuple[Episode | Finding, int | None]]
    known = [(one, one.cleared_step) for one in view.verdict.history]
    known += [(one, None) for one in view.verdict.findings]
    alarms: set[Alarm] = set()
    for finding, cleared in known:
        since = finding.since_step
        if since is None or not found.shows(finding.key):
            continue
        first, last = along(since), along(since if cleared is None else cleared)
        if first is not None and last is not None:
            end = None if cleared is None else last
            alarms.add(Alarm(int(finding.severity), first, end))
    return sorted(alarms, key=lambda alarm: (alarm.severity, alarm.first))


def kl_beside(found: PlannedChart, run: Run, look: ChartLook) -> str | None:
    """Return the KL that a chart is drawn over as a path, None where it is not: only rewards and
    scores are.
    """
    is_score = describe(found.key).group in ("reward", "validation")
    if look.axis != "kl" or not (
        is_score or found.indicator in ("reward", "validation")
    ):
        return None
    return kl_key(run)


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
        beside=(),
        notes=(f"KL: {one_line(key)}",),
    )
