"""The data of the charts that are planned for a run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from verl_tui.indicators import factor
from verl_tui.metrics import counts, describe
from verl_tui.rendering.charts.alarms import alarms_of
from verl_tui.rendering.charts.chart_data import (
    ALARM_ROLES,
    Alarm,
    ChartData,
    ChartLine,
    Mark,
)
from verl_tui.rendering.charts.over_kl import kl_beside, over_kl
from verl_tui.rendering.charts.overlaid_runs import overlaid
from verl_tui.rendering.charts.validation import newest_and_best
from verl_tui.rendering.charts.x_axes import on_axis
from verl_tui.rendering.text.family_colours import family_role
from verl_tui.rendering.text.numbers import compact
from verl_tui.runs.time.rates import generation_latency, steps_per_minute
from verl_tui.runs.views.best import is_better_low
from verl_tui.runs.views.checkpoints import checkpoints
from verl_tui.runs.views.targets import reached

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
        return axis.place(own, step) if own is not None else None

    target, notes = _target(found, view)
    ends = _ends(run, own, look) if own is not None else (None, None)
    data = ChartData(
        key=found.key,
        label=found.label,
        unit=found.unit,
        lines=tuple(_lines(found, run, axis)),
        envelope=_envelope(found, run, axis),
        spread=_spread(found, run, axis),
        band=_band(found, view),
        target=target,
        notes=_since(found, own) or notes or _rate(found, run),
        in_row=found.in_row,
        beside=tuple(newest_and_best(run)) if found.points else (),
        marks=tuple(_marks(found, view, along)),
        alarms=tuple(_alarms(found, view, along)),
        best="" if run.preview else _best(found),
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


def _lines(found: PlannedChart, run: Run, axis: XAxis) -> Iterator[ChartLine]:
    """Yield the metric itself, then what is drawn as points with it."""
    if (series := run.series(found.key)) is not None:
        role = family_role(found.key, found.indicator)
        yield ChartLine(axis.points(series), role=role, label=found.label)
    for number, key in enumerate(found.points):
        if (series := run.series(key)) is not None:
            role = "validation" if not number else f"line-{number + 1}"
            yield ChartLine(axis.points(series), "points", role, describe(key).label)


def _best(found: PlannedChart) -> Literal["", "highest", "lowest"]:
    """Return which value of a metric is marked as its best: of rewards, and of validations where
    more or less is better.
    """
    metric = describe(found.key)
    scored = metric.group == "validation" and metric.direction in ("up", "down")
    if found.indicator != "reward" and not scored:
        return ""
    return (
        "lowest"
        if is_better_low(found.indicator or found.key, found.key)
        else "highest"
    )


def _envelope(
    found: PlannedChart, run: Run, axis: XAxis
) -> tuple[Points, Points] | None:
    """Return the least and the greatest around the metric, None where it has none."""
    low, high = (run.series(key) for key in found.envelope or ("", ""))
    return (
        (axis.points(low), axis.points(high))
        if low is not None and high is not None
        else None
    )


def _spread(found: PlannedChart, run: Run, axis: XAxis) -> tuple[Points, ...]:
    """Return the quantiles of the distribution that the metric is of, none where it is of none."""
    series = (
        [run.series(key) for key in found.spread.quantiles]
        if found.spread is not None
        else []
    )
    return tuple(axis.points(one) for one in series if one is not None)


def with_right(data: ChartData, other: ChartData) -> ChartData:
    """Return a chart with another metric drawn into it, over a y axis of its own at the right."""
    if other.main is None or data.over_kl:
        return data
    # Runs laid over each other have letters of their own.
    sign = "r" if any(one.sign for one in data.lines) else ""
    line = replace(other.main, role="right", right=True, label=other.title, sign=sign)
    right = replace(
        other,
        lines=(line,),
        envelope=None,
        spread=(),
        band=(None, None),
        target=None,
        marks=(),
    )
    breaches = [
        mark for mark in other.marks if mark.role == "breach" and mark not in data.marks
    ]
    lines = tuple(replace(one, label=one.label or data.title) for one in data.lines)
    return replace(data, lines=lines, right=right, marks=(*data.marks, *breaches))


def _ends(run: Run, own: Series, look: ChartLook) -> tuple[int | None, int | None]:
    """Return the ends of the zoom along the x axis; None where the data's own hold."""
    whole = run.reach
    if look.span is None or whole is None:
        return None, None
    axis = on_axis(run, look.axis)
    first, last = look.span.shown(whole)
    return axis.edge(own, first), None if last >= whole[1] else axis.edge(own, last)


def _band(found: PlannedChart, view: View) -> tuple[float | None, float | None]:
    """Return the guide's healthy band, which may depend on the run."""
    if found.indicator is None or view.run is None:
        return (None, None)
    return view.monitor.band(view.run, found.indicator)


def _target(found: PlannedChart, view: View) -> tuple[float | None, tuple[str, ...]]:
    """Return what the metric is to reach in the key's own values, and whether it did, in words."""
    run, wanted = view.run, view.monitor.config.targets
    name = next(
        (
            name
            for name in (found.indicator, found.key, *found.points)
            if name in wanted
        ),
        None,
    )
    if name is None and found.points and "validation" in wanted:
        name = "validation"  # drawn as points into the reward's chart
    if run is None or name is None:
        return None, ()
    at = reached(run, name, wanted[name])
    said = f"target {compact(wanted[name])}"
    notes = (
        (said,)
        if at is None
        else (f"{said} reached at step {at.step}", f"{said} @ {at.step}")
    )
    return wanted[name] * factor(name, found.key), notes


def _rate(found: PlannedChart, run: Run) -> tuple[str, ...]:
    """Return a summary of the times in a chart: steps per minute, the 95th percentile of
    generation.
    """
    if found.indicator == "step_time" and (rate := steps_per_minute(run)) is not None:
        return (f"{compact(rate.value)} {rate.unit}",)
    if (
        found.indicator == "generation_time"
        and (latency := generation_latency(run)) is not None
    ):
        return (f"p95 {compact(latency.value)} {latency.unit}",)
    return ()


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
        if (at := along(mark.step)) is not None:
            yield mark._replace(step=at)


def _marks_at_steps(found: PlannedChart, view: View) -> tuple[Mark, ...]:
    assert view.run is not None
    breaches: dict[int, int] = {}
    for finding in view.verdict.findings:
        since, key = finding.since_step, finding.key
        if since is not None and key is not None and found.shows(key):
            breaches[since] = max(finding.severity, breaches.get(since, 0))
    return (
        *(Mark(step, "checkpoint") for step in sorted(checkpoints(view.run))),
        *(Mark(mark.step, "restart") for mark in view.run.restarts),
        *(
            Mark(step, "breach", ALARM_ROLES[worst])
            for step, worst in sorted(breaches.items())
        ),
    )


def _alarms(
    found: PlannedChart, view: View, along: Callable[[int], int | None]
) -> Iterator[Alarm]:
    """Yield when findings about a chart's metric held, along its x axis."""
    for alarm in alarms_of(found, view.verdict):
        first = along(alarm.first)
        last = None if alarm.last is None else along(alarm.last)
        if first is not None and (last is not None or alarm.last is None):
            yield Alarm(alarm.severity, first, last)
