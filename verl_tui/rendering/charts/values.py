"""The numbers behind a chart, to be taken elsewhere: where the cursor is as text, all that is in
sight as columns.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from datetime import datetime, timezone
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from verl_tui.distributions import OF_NONE
from verl_tui.exporters.csv import CsvColumn, exact
from verl_tui.rendering.charts.downsample import Smoothed, smoothed
from verl_tui.rendering.charts.planned_data import chart_data, others
from verl_tui.rendering.charts.x_axes import on_axis, steps_of
from verl_tui.rendering.text.numbers import in_words
from verl_tui.rendering.text.piece import ELLIPSIS, fit, middle, printable, wrap

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from verl_tui.rendering.charts.chart_data import ChartData, ChartLine
    from verl_tui.rendering.charts.plan import ChartLook, PlannedChart
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Points, Series

    Plotted = tuple[Run, Series, Points]
    """One series of a chart, and the same along its x axis."""


def reading(
    found: PlannedChart, right: PlannedChart | None, view: View, look: ChartLook
) -> str:
    """Return what a chart says where the cursor is, else of its newest points: a line for each
    series.

    Args:
        found: What the chart is of.
        right: What its y axis at the right is of.
        view: What there is.
        look: How the chart is drawn.
    """
    data = chart_data(found, view, look)
    lines = []
    for run, series, points in _plotted(found, right, view, data):
        steps = steps_of(points)
        if data.cursor is not None:
            at = bisect_right(points.steps, data.cursor)
        else:
            at = len(steps) if run.end is None else bisect_right(steps, run.end)
        if at:
            name = series.key + _whose(run, view)
            lines.append(f"{name} step {steps[at - 1]} {exact(points.values[at - 1])}")
    return "\n".join(lines)


def in_sight(
    found: PlannedChart, right: PlannedChart | None, view: View, look: ChartLook
) -> list[CsvColumn]:
    """Return every point of a chart between the ends of its x axis, as it was logged: a column for
    each series, beside it the averages where the chart is smoothed. Arguments as for `reading`.
    """
    data = chart_data(found, view, look)
    plotted = _plotted(found, right, view, data)
    return _columns(plotted, view, (data.first_step, data.last_step), look.smoothing)


def listed(keys: Iterable[str], view: View, look: ChartLook) -> list[CsvColumn]:
    """Return metrics of the shown run at the steps that are in sight, as `in_sight` does."""
    run = view.run
    assert run is not None
    ends = look.steps(run) or (None, None)
    wanted: dict[str, None] = {}
    for key in keys:
        wanted |= dict.fromkeys((key, *run.spreads.get(key, OF_NONE).quantiles))
    found = [(run, one, one) for one in map(run.series, wanted) if one is not None]
    return _columns(found, view, ends, look.smoothing)


def _plotted(
    found: PlannedChart,
    right: PlannedChart | None,
    view: View,
    data: ChartData,
) -> Iterator[Plotted]:
    """Yield what is in a chart: the metric, what is drawn with it, then the same of other runs."""
    run = view.run
    assert run is not None
    keys = dict.fromkeys([*found.keys, *([right.key] if right else [])])
    for series in map(run.series, keys):
        if series is not None:
            yield run, series, data.axis.points(series)
    yield from others(data, found.indicator, view)


def _whose(run: Run, view: View) -> str:
    """Return what the names of a run's columns end with: those of other runs include its name."""
    return "" if run is view.run else f" ({run.name})"


def _columns(
    plotted: Iterable[Plotted],
    view: View,
    ends: tuple[int | None, int | None],
    smoothing: float | None,
) -> list[CsvColumn]:
    """Return the times of each run, as far as they are known, then its series and their
    averages.
    """
    columns: list[CsvColumn] = []
    for run, of_run in groupby(plotted, itemgetter(0)):
        found: list[CsvColumn] = []
        whose = _whose(run, view)
        # hundreds of metrics have the same steps
        shared: dict[bytes, tuple[array[int], Series]] = {}
        for _, series, points in of_run:
            first, last = ends
            start = 0 if first is None else bisect_left(points.steps, first)
            stop = None if last is None else bisect_right(points.steps, last)
            steps = steps_of(points)[start:stop]
            steps, _ = shared.setdefault(steps.tobytes(), (steps, series))
            name = series.key + whose
            found.append(CsvColumn(name, steps, points.values[start:stop]))
            if smoothing:
                average = Smoothed(points, smoothing).values[start:stop]
                name += f" (smoothed {smoothing:g})"
                found.append(CsvColumn(name, steps, average))
        columns += [*_times(run, shared.values(), whose), *found]
    return columns


def _times(
    run: Run, shared: Iterable[tuple[array[int], Series]], whose: str
) -> Iterator[CsvColumn]:
    """Yield the times of a run's steps, as far as known."""
    clock = on_axis(run, "time")
    known: dict[int, int] = {}
    for steps, series in () if clock.problem else shared:
        timed, wanted = clock.points(series), set(steps)
        pairs = zip(steps_of(timed), timed.steps, strict=True)
        known |= {step: second for step, second in pairs if step in wanted}
    if known:
        dated = array("q", sorted(known))
        word = "time (estimated)" if clock.estimated else "time"
        moments = [datetime.fromtimestamp(known[step], timezone.utc) for step in dated]
        texts = [moment.isoformat().replace("+00:00", "Z") for moment in moments]
        yield CsvColumn(word + whose, dated, texts)


# -- at the cursor ---------------------------------------------------------------------------------

_GAP, _UNBROKEN = "   ", "\u00a0"
"""Between two values, and for the time of wrapping within one."""
_LONGEST = 40
"""Cells of a name."""


def cursor_values(data: ChartData, step: int, at: int | None) -> Iterator[str]:
    """Yield the position of the cursor and the value of every line there: that of its newest point
    up to the step.

    Args:
        data: The chart.
        step: Where on the x axis the cursor is.
        at: Which step that is, where the x axis is not one of steps.
    """
    position = data.axis.exact(step)
    if not data.axis.time:
        position = f"{data.axis.label} {position}"
    yield (position if at is None or not data.axis.time else f"step {at} · {position}")
    for line in data.lines:
        name = fit(printable(line.label or data.title), _LONGEST)
        yield f"{line.sign} {name} {_value(line, step, data)}".lstrip()
    for shade in data.shades:
        low, high = shade.low.at(step), shade.high.at(step)
        if low is not None and high is not None:
            words = [in_words(value, data.unit)[0] for _, value in (low, high)]
            yield f"{shade.words} {' to '.join(dict.fromkeys(words))}"


def _value(line: ChartLine, step: int, data: ChartData) -> str:
    found = line.points.at(step)
    if found is None:
        return "-"
    unit = line.unit if line.right else data.unit
    text = "".join(in_words(found[1], unit))
    if line.kind == "line" and data.smoothing:
        smooth = smoothed(line.points, data.smoothing).at(step)
        text += (
            f" (smooth {in_words(smooth[1], unit)[0]})" if smooth is not None else ""
        )
    return text if found[0] == step else f"{text} @ {data.axis.exact(found[0])}"


def rows_of(values: Sequence[str], width: int, most: int) -> list[str]:
    """Return readings as rows of at most `width` cells; what does not fit into `most` rows ends in
    an ellipsis.
    """
    text = _GAP.join(middle(value, width).replace(" ", _UNBROKEN) for value in values)
    wrapped = wrap(text, width) if text else ()
    rows = [row.strip().replace(_UNBROKEN, " ") for row in wrapped]
    if len(rows) > most:
        rows[most - 1 :] = [fit(f"{rows[most - 1]} {ELLIPSIS}", width)]
    return rows
