"""The data of the charts that are planned for a run, other runs' lines over its own."""

from __future__ import annotations

from itertools import cycle, repeat
from math import inf
from operator import attrgetter
from typing import TYPE_CHECKING

from verl_tui.evaluation import PREFIX, READ_SHARE
from verl_tui.indicators import factor
from verl_tui.means import finite
from verl_tui.metrics import counts, describe, device
from verl_tui.rendering.charts.chart_data import (
    ALARM_ROLES,
    ANY,
    NEVER,
    SCORE,
    Alarm,
    ChartData,
    ChartLine,
    Heat,
    Mark,
    Shade,
)
from verl_tui.rendering.charts.plan import (
    ChartLook,
    PlannedChart,
    newest_and_best,
    reward_parts,
)
from verl_tui.rendering.charts.x_axes import Axis, on_axis
from verl_tui.rendering.session.run_order import without_shared_start
from verl_tui.rendering.text.hues import RUNS, family_role
from verl_tui.rendering.text.numbers import compact, in_words
from verl_tui.runs.views.checkpoints import best, is_better_low, reached

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from verl_tui.health.finding import Episode, Finding
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.runs.run import Run
    from verl_tui.runs.samples import BinsAt
    from verl_tui.runs.series import Points, Series

    Along = Callable[[int | None], int | None]
    """Returns the position of a step on the x axis, None where it has none."""
    Curves = Callable[..., list[Points]]
    """Returns the series of metrics along the x axis, none where one of them is missing."""

_OTHER = "*"
"""Marks the shown run's line where it is not selected itself."""
_LEFT, _RIGHT = "a", "r"
"""Letters of two metrics in one chart."""
_OF_SAMPLES = {
    "reward": {
        f"{PREFIX}score": "scores of samples",
        "rollout/reward_dist": "scores of samples",
    },
    "response_length": {f"{PREFIX}length": "characters of responses as logged"},
}
"""By indicator, the histograms of samples that tell of its distribution, one of an export of ours,
and what they are of.
"""
_MOST_HEAT = 512
"""Steps whose distributions are drawn: more than a wide screen has columns."""


def chart_data(plan: PlannedChart, view: View, look: ChartLook) -> ChartData:
    """Return the data of a chart of the shown run, with the lines of the selected ones."""
    run = view.run
    assert run is not None
    axis, own = on_axis(run, look.axis), run.series(plan.key)

    def along(step: int | None) -> int | None:
        return None if own is None or step is None else axis.place(own, step)

    def points(*keys: str) -> list[Points]:
        """Return several series along the x axis, none where one of them is missing."""
        found = [one for one in map(run.series, keys) if one is not None]
        return [*map(axis.points, found)] if len(found) == len(keys) else []

    (first, last), end = _ends(look, run, axis, own), along(run.end)
    role, alarms = family_role(plan.key, plan.indicator), _alarms(plan, view, along)
    lines = [
        ChartLine(one, "line", role, plan.label, alarms=alarms)
        for one in points(plan.key)
    ]
    for one in points(plan.score):
        name = describe(plan.score).label
        lines.append(ChartLine(one, "points", "validation", name, SCORE))
    target, note = _target(plan, view, run)
    plateaus = (one.key for one in view.verdict.findings if one.id == "plateau")
    data = ChartData(
        key=plan.key,
        label=plan.label,
        unit=plan.unit,
        lines=tuple(lines),
        shades=tuple(_shades(plan, points)),
        band=_band(plan, view, run),
        target=target,
        note=note or _note(plan, own),
        in_row=plan.in_row,
        trendless=any(map(plan.shows, plateaus)),
        beside=newest_and_best(run) if plan.score else "",
        marks=tuple(_marks(plan, view, run, along)),
        best=_best(plan, run),
        cursor=along(view.cursor),
        axis=axis,
        log_y=look.log_y,
        usual_y=look.usual_y,
        first_step=first,
        last_step=last,
        heat=_heat(plan, run, look, along),
        end=NEVER if end is None else end,
        smoothing=look.smoothing or 0.0,
        by_noise=look.smoothing is None,
    )
    data = _overlaid(data, plan.indicator, view)
    return _linear_if_signed(_completed(data, plan, run, points))


def _completed(
    data: ChartData, plan: PlannedChart, run: Run, points: Curves
) -> ChartData:
    """Return a chart with the curves of devices; with what there is room for where it is large, and
    of one run: the best value, the checkpoint near it, and the parts if there are several.
    """
    if plan.devices:
        return _of_devices(data, plan, points)
    if not plan.large or data.lettered:
        return data
    words = [data.note]
    if found := best(run, "validation" if plan.score else plan.indicator or ""):
        words += [f"checkpoint @{found.nearest.step}"] if found.nearest else []
        number, _ = in_words(found.value, plan.unit)
        words += [f"best {number} @{found.step}"] * (not plan.score)
    parts = [
        ChartData(key, name, lines=(ChartLine(one, role="reward"),), from_zero=True)
        for key, name in reward_parts(run).items()
        for one in points(key)
    ]
    return data._replace(note=", ".join(filter(None, words[::-1])), parts=tuple(parts))


def _of_devices(data: ChartData, plan: PlannedChart, points: Curves) -> ChartData:
    """Return a chart with a curve for each device, and the least and the greatest of their newest
    values; where the letters of devices, their last digits, would come again, there are none.
    """
    known = [(f"{device(key)}", one) for key in plan.devices for one in points(key)]
    few = len({index[-1] for index, _ in known}) == len(known)
    lines = tuple(
        ChartLine(one, role=role, label=index, sign=index[-1] * few)
        for (index, one), role in zip(known, cycle(RUNS), strict=False)
    )
    newest = finite(one.values[-1] for _, one in known if one.values)
    value = ""
    if newest:
        least, (most, unit) = (in_words(end(newest), plan.unit) for end in (min, max))
        value = "–".join(dict.fromkeys((least[0], most))) + unit
    return data._replace(lines=lines, value=value)


def _linear_if_signed(data: ChartData) -> ChartData:
    """Return a chart whose y axis is not logarithmic where that cannot show values below 0."""
    bounds = (line.points.bounds for line in data.lines if data.log_y)
    if not any(least < 0 for least, _ in filter(None, bounds)):
        return data
    return data._replace(log_y=False, note="linear y: below 0")


def _ends(
    look: ChartLook, run: Run, axis: Axis, own: Series | None
) -> tuple[int | None, int | None]:
    """Return the ends of the zoom along the x axis; None where the data's own hold."""
    shown = look.steps(run)
    if shown is None or run.reach is None or own is None:
        return None, None
    first, last = shown
    newest = last >= run.reach[1]
    return axis.edge(own, first), None if newest else axis.edge(own, last)


def _shades(plan: PlannedChart, points: Curves) -> Iterator[Shade]:
    """Yield the least and the greatest around the metric, and the quantiles of the distribution
    that it is of.
    """
    if around := points(*plan.envelope):
        low, high = around
        yield Shade("min–max", low, high, "envelope", fits=False)
    if spread := points(*plan.spread.quantiles):
        least, lower, middle, upper, most = spread
        yield Shade("median", middle, middle)
        yield Shade("5–95%", least, most, "envelope")
        yield Shade("25–75%", lower, upper, "quartiles")


def _heat(plan: PlannedChart, run: Run, look: ChartLook, along: Along) -> Heat | None:
    """Return how the values are distributed, else those of samples that the metric is the mean
    of; None where neither is known.
    """
    words = {
        plan.spread.stem or plan.key: "values",
        **_OF_SAMPLES.get(plan.indicator or "", {}),
    }
    key = next((one for one in words if one in run.histograms.keys), None)
    if key is None:
        return None
    found = run.histograms.some(key, look.steps(run), _MOST_HEAT)
    known = {at: one.bins for one in found if (at := along(one.step)) is not None}
    if not known:
        return None
    said = f"{words[key]}, {_counted(found[-1], run, key)}"
    return Heat(said, [*known], [*known.values()])


def _counted(newest: BinsAt, run: Run, key: str) -> str:
    """Say of how many values a histogram is, and what part of the step's samples these are."""
    said = f"{compact(sum(newest.bins.counts))} a step"
    read = run.series(f"{PREFIX}{READ_SHARE}")
    if read is None or not key.startswith(PREFIX) or newest.step not in read.steps[-1:]:
        return said
    return f"{said}, {read.values[-1]:.0%} of all"


def _band(plan: PlannedChart, view: View, run: Run) -> tuple[float, float]:
    """Return the healthy range."""
    if not plan.indicator:
        return ANY
    low, high = view.monitor.band(run, plan.indicator)
    return -inf if low is None else low, inf if high is None else high


def _best(plan: PlannedChart, run: Run) -> int:
    """Return which value of the metric is marked as its best: of rewards, and of validations where
    more or less is better; none of a preview, which does not know all.
    """
    metric = describe(plan.key)
    scored = metric.group == "validation" and metric.direction in ("up", "down")
    if run.preview or (plan.indicator != "reward" and not scored):
        return 0
    return -1 if is_better_low(plan.indicator or plan.key, plan.key) else 1


def _target(plan: PlannedChart, view: View, run: Run) -> tuple[float | None, str]:
    """Return what the metric is to reach in the key's own values, and whether it did; the
    validation's where that is drawn with the reward.
    """
    wanted = view.monitor.config.targets
    names = (plan.indicator, plan.key, plan.score, "validation" if plan.score else "")
    for name in filter(wanted.__contains__, filter(None, names)):
        at = reached(run, name, wanted[name])
        said = f"target {compact(wanted[name])}"
        said += "" if at is None else f" @ {at.step}"
        return wanted[name] * factor(name, plan.key), said
    return None, ""


def _note(plan: PlannedChart, own: Series | None) -> str:
    """Return what is worth saying of the metric: since when it is constant, or of how many
    measurements the newest point is the mean.
    """
    if own is None or not len(own):
        return ""
    if plan.in_row and not counts(plan.key) and len(own) > 1:
        return f"constant since step {own.steps[0]}"
    newest = own.counts[-1] if own.counts else 1
    return f"mean of {newest}" if newest > 1 else ""


def _marks(plan: PlannedChart, view: View, run: Run, along: Along) -> Iterator[Mark]:
    """Yield what happened along the x axis; of findings that began at a step the worst."""
    mildest_first = sorted(view.verdict.findings, key=attrgetter("severity"))
    worst = {
        one.since_step: ALARM_ROLES[one.severity]
        for one in mildest_first
        if one.since_step is not None and plan.shows(one.key)
    }
    happened = (
        *zip(sorted(run.checkpoints), repeat("checkpoint")),
        *zip(view.notebook.of(run), repeat("note")),
        *zip(map(attrgetter("step"), run.restarts), repeat("restart")),
        *sorted(worst.items()),
    )
    for step, role in happened:
        if (at := along(step)) is not None:
            yield Mark(at, role)


def _alarms(plan: PlannedChart, view: View, along: Along) -> tuple[Alarm, ...]:
    """Return when findings about the metric held, along the x axis; the worst last."""
    known: list[tuple[Episode | Finding, int | None]]
    known = [(one, one.cleared_step) for one in view.verdict.history]
    known += [(one, None) for one in view.verdict.findings]
    alarms = set()
    for one, cleared in known:
        first, last = along(one.since_step), along(cleared)
        placed = (last is None) == (cleared is None)
        if first is not None and placed and plan.shows(one.key):
            alarms.add(Alarm(int(one.severity), first, last))
    return tuple(sorted(alarms, key=lambda alarm: (alarm.severity, alarm.first)))


def with_right(data: ChartData, other: ChartData) -> ChartData:
    """Return a chart with another metric drawn into it, over a y axis of its own at the right."""
    if not other.lines:
        return data
    points, title = other.main.points, other.title
    own = ChartLine(points, "line", "right", title, _RIGHT, right=True, unit=other.unit)
    lines = [
        line._replace(label=line.label or data.title, sign=line.sign or _LEFT)
        for line in data.lines
    ]
    more = (one for one in other.marks if one.role in ALARM_ROLES)
    marks = tuple(dict.fromkeys((*data.marks, *more)))
    axis = min(data, other, key=lambda one: one.log_y)
    log, note = axis.log_y, data.note if axis is data else axis.note
    return data._replace(lines=(*lines, own), marks=marks, log_y=log, note=note)


# -- the same metric of other runs -----------------------------------------------------------------


def _overlaid(data: ChartData, indicator: str | None, view: View) -> ChartData:
    """Return a chart with the lines of the selected runs; unchanged while fewer than two are."""
    found = [*others(data, indicator, view)]
    if not found or view.run is None:
        return data
    of_runs = [(view.run, data.main)]
    of_runs += [(run, ChartLine(points)) for run, _, points in found]
    names = without_shared_start([run.name for run, _ in of_runs])
    lines = []
    for (run, line), name in zip(of_runs, names, strict=True):
        sign, role = view.selection.letter(run.name) or (_OTHER, "line")
        lines.append(line._replace(role=role, label=name, sign=sign))
    lines += [line for line in data.lines if line.kind == "points"]
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
    data: ChartData, indicator: str | None, view: View
) -> Iterator[tuple[Run, Series, Points]]:
    """Yield the other selected runs that have the same metric: run, series, points on the x axis,
    that of steps, of the time of day, or of the time since each run's own beginning; none that has
    no times there.

    Args:
        data: The chart of the shown run.
        indicator: What the metric means, whatever another framework calls it; None where only its
            key is known.
        view: The state of everything.
    """
    shown, axis = view.run, data.axis
    if shown is None or data.main.kind != "line" or len(view.selected) < 2:
        return
    for run in view.selected:
        series = counterpart(shown, data.key, indicator, run)
        if run is not shown and series is not None:
            along = on_axis(run, axis.label)
            # Beginnings are laid over each other; times of day and steps are what they are.
            later = (axis.zero - along.zero) * (axis.label == "relative")
            points = along.points(series, later)
            if along.problem is None and len(points.steps):
                yield run, series, points
