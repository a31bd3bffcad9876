"""The numbers behind a chart, to be taken elsewhere: where the cursor is as text, all that is in
sight as columns.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from datetime import datetime, timezone
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from verl_tui.exporters.csv import CsvColumn, exact
from verl_tui.rendering.charts.downsample import Smoothed, value_at
from verl_tui.rendering.charts.overlaid_runs import others
from verl_tui.rendering.charts.picture import signs
from verl_tui.rendering.charts.planned_data import chart_data, kl_beside
from verl_tui.rendering.charts.x_axes import on_axis, steps_of
from verl_tui.rendering.text.numbers import compact, exact_step, in_words, value_text
from verl_tui.rendering.text.printable import printable
from verl_tui.rendering.text.wrap import ELLIPSIS, fit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from verl_tui.rendering.charts.cache import ChartCache
    from verl_tui.rendering.charts.chart_data import ChartData, ChartLine, Points
    from verl_tui.rendering.charts.plan import ChartLook, PlannedChart
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Series


class _Plotted(NamedTuple):
    """One series of a chart."""

    run: Run
    series: Series
    points: Points
    """The series along the chart's x axis."""


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
    assert view.run is not None
    data = chart_data(found, view, look)
    lines = []
    for trace in _plotted(found, right, view, look, data):
        steps = steps_of(trace.points)
        end = trace.run.end
        if data.cursor is not None:
            at = bisect_right(trace.points.steps, data.cursor)
        else:
            at = len(steps) if end is None else bisect_right(steps, end)
        if at:
            step = steps[at - 1]
            value = trace.points.values[at - 1]
            lines.append(
                f"{_of(trace.run, view.run, trace.series.key)} step {step} {exact(value)}"
            )
    return "\n".join(lines)


def in_sight(
    found: PlannedChart, right: PlannedChart | None, view: View, look: ChartLook
) -> list[CsvColumn]:
    """Return every point of a chart between the ends of its x axis, as it was logged: a column for
    each series.

    Args:
        found: What the chart is of.
        right: What its y axis at the right is of.
        view: What there is.
        look: How the chart is drawn; where it is smoothed the averages come beside the values.
    """
    data = chart_data(found, view, look)
    assert view.run is not None
    ends = (data.first_step, data.last_step)
    return _columns(
        _plotted(found, right, view, look, data), view.run, ends, look.smoothing
    )


def listed(keys: Iterable[str], view: View, look: ChartLook) -> list[CsvColumn]:
    """Return metrics of the shown run at the steps that are in sight, as `in_sight` does."""
    run = view.run
    assert run is not None
    span, whole = look.span, run.reach
    ends = span.shown(whole) if span and whole else (None, None)
    wanted: dict[str, Series | None] = {}
    for key in keys:
        spread = run.spreads.get(key)
        for part in (key, *(spread.quantiles if spread is not None else ())):
            wanted[part] = run.series(part)
    found = [_Plotted(run, one, one) for one in wanted.values() if one is not None]
    return _columns(found, run, ends, look.smoothing)


def _plotted(
    found: PlannedChart,
    right: PlannedChart | None,
    view: View,
    look: ChartLook,
    data: ChartData,
) -> Iterator[_Plotted]:
    """Yield what is in a chart: the metric, what is drawn with it, then the same of other runs."""
    run = view.run
    assert run is not None
    along = on_axis(run, look.axis)
    laid_over = list(others(data, found.indicator, view, look.axis))
    # As in the chart: among the lines of several runs there is one kind of points at most.
    points = found.points[:1] if laid_over else found.points
    keys = [*found._replace(points=points).keys, kl_beside(found, run, look) or ""]
    keys.append(right.key if right is not None else "")
    for key in dict.fromkeys(keys):
        series = run.series(key)
        if series is not None:
            yield _Plotted(run, series, along.points(series))
    for other in laid_over:
        yield _Plotted(*other)


def _columns(
    traces: Iterable[_Plotted],
    shown: Run,
    ends: tuple[int | None, int | None],
    smoothing: float | None,
) -> list[CsvColumn]:
    """Return the times of each run, as far as they are known, then its series and their
    averages.
    """
    columns: list[CsvColumn] = []
    shared: dict[bytes, array[int]] = {}  # hundreds of metrics have the same steps
    for run, of_run in groupby(traces, lambda trace: trace.run):
        found: list[CsvColumn] = []
        timed: dict[int, tuple[array[int], Series]] = {}
        for trace in of_run:
            stretch = _between(trace.points.steps, *ends)
            name = _of(run, shown, trace.series.key)
            steps = steps_of(trace.points)[stretch]
            steps = shared.setdefault(steps.tobytes(), steps)
            timed.setdefault(id(steps), (steps, trace.series))
            found.append(CsvColumn(name, steps, trace.points.values[stretch]))
            if smoothing:
                average = Smoothed(trace.points, smoothing)
                average.pyramid  # noqa: B018 - it reads what there is
                name += f" (smoothed {smoothing:g})"
                found.append(CsvColumn(name, steps, average.values[stretch]))
        columns += [*_times(run, shown, timed.values()), *found]
    return columns


def _times(
    run: Run, shown: Run, timed: Iterable[tuple[array[int], Series]]
) -> Iterator[CsvColumn]:
    """Yield the times of a run's steps, as far as known."""
    clock = on_axis(run, "time")
    known: dict[int, str] = {}
    for steps, series in timed if clock.problem is None else ():
        for step in set(steps).difference(known):
            second = clock.place(series, step)
            if second is not None:
                known[step] = (
                    datetime.fromtimestamp(second, timezone.utc)
                    .isoformat()
                    .replace("+00:00", "Z")
                )
    if known:
        word = "time (estimated)" if clock.estimated else "time"
        dated = array("q", sorted(known))
        yield CsvColumn(_of(run, shown, word), dated, [known[step] for step in dated])


def _of(run: Run, shown: Run, word: str) -> str:
    """Name a column; those of other runs than the shown one include the run's name."""
    return word if run is shown else f"{word} ({run.name})"


def _between(positions: Sequence[int], first: int | None, last: int | None) -> slice:
    """Return which points lie between the ends of an axis."""
    start = 0 if first is None else bisect_left(positions, first)
    return slice(
        start, len(positions) if last is None else bisect_right(positions, last)
    )


_GAP = "   "
_LONGEST = 40
"""Cells of a name."""


def cursor_values(
    data: ChartData, step: int, cache: ChartCache, at: int | None = None
) -> Iterator[str]:
    """Yield the position of the cursor and the value of every line there: that of its newest point
    up to the step.

    Args:
        data: The chart.
        step: Where on the x axis the cursor is.
        cache: What the chart is drawn from.
        at: Which step that is, where the x axis is not one of steps.
    """
    if data.over_kl:
        yield from _on_paths(data, step)
        return
    exact = data.axis.exact(step)
    if not data.axis.time:
        yield f"{data.axis.label} {exact}"
    else:
        yield exact if at is None else f"step {exact_step(at)} · {exact}"
    for line, sign in signs(data):
        metric = data.right if line.right and data.right is not None else data
        name = fit(printable(line.label or metric.title), _LONGEST)
        value = _value(line, step, data, metric.unit, cache)
        yield f"{sign} {name} {value}".lstrip()
    yield from _around(data, step)


def _on_paths(data: ChartData, step: int) -> Iterator[str]:
    """Yield where each run's path was: `step 120: KL 0.031, reward 0.62`."""
    name = printable(data.title).removesuffix(" over KL")
    for line, sign in signs(data):
        over = None if line.over is None else value_at(line.over, step)
        found = value_at(line.points, step)
        named = (("KL", over), (name, found))
        figures = [f"{word} {compact(one[1])}" for word, one in named if one]
        of_run = f"{sign} {printable(line.label)} " if sign else ""
        at = exact_step(found[0] if found else step)
        yield f"{of_run}step {at}: {', '.join(figures) or '-'}"


def _around(data: ChartData, step: int) -> Iterator[str]:
    """Yield the least and the greatest around the metric; the median, and the ranges of the middle
    half and of nearly all values.
    """
    found = [value_at(points, step) for points in data.around]
    texts = [in_words(one[1], data.unit)[0] for one in found if one is not None]
    if len(texts) < len(found):
        return
    if data.envelope:
        yield f"min {texts[0]} max {texts[1]}"
    if data.spread:
        least, lower, middle, upper, most = texts[-5:]
        yield f"median {middle}"
        yield f"25–75% {lower} to {upper}"
        yield f"5–95% {least} to {most}"


def _value(
    line: ChartLine, step: int, data: ChartData, unit: str, cache: ChartCache
) -> str:
    found = value_at(line.points, step)
    if found is None:
        return "-"
    text = value_text(found[1], unit)
    if line.kind == "line" and 0 < data.smoothing < 1:
        smooth = value_at(cache.smoothed(line.points, data.smoothing), step)
        if smooth is not None:
            text += f" (smooth {in_words(smooth[1], unit)[0]})"
    return text if found[0] == step else f"{text} @ {data.axis.exact(found[0])}"


def rows_of(values: Sequence[str], width: int, most: int) -> list[str]:
    """Return readings as rows of at most `width` cells; what does not fit into `most` rows ends in
    an ellipsis.
    """
    rows: list[str] = []
    for text in values:
        if rows and cell_len(rows[-1]) + len(_GAP) + cell_len(text) <= width:
            rows[-1] += _GAP + text
        else:
            rows.append(text)
    kept = [fit(row, width) for row in rows[: max(1, most)]]
    if len(rows) > len(kept):
        last = fit(kept[-1], width - 2).removesuffix(ELLIPSIS).rstrip()
        kept[-1] = f"{last} {ELLIPSIS}"
    return kept
