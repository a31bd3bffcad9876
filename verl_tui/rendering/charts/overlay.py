"""The same metric of the selected runs, laid over a chart of the shown run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from verl_tui.indicators import factor
from verl_tui.metrics import describe
from verl_tui.rendering.charts.chart_data import ChartLine
from verl_tui.rendering.charts.x_axes import kl_key, on_axis
from verl_tui.rendering.session.selection import LETTERS, without_shared_start
from verl_tui.rendering.text.run_colours import RUNS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from verl_tui.rendering.charts.chart_data import ChartData, Points
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Series

_OTHER = "*"
"""Marks the shown run's line where it is not selected itself."""


def overlaid(data: ChartData, indicator: str | None, view: View, axis: str) -> ChartData:
    """Return a chart with the lines of the selected runs; unchanged while fewer than two are.

    Lines run over steps, over the time of day, or over the time since each run's own beginning.

    Args:
        data: The chart of the shown run.
        indicator: What the metric means, whatever another framework calls it; None where only its
            key is known.
        view: The state of everything.
        axis: One of `verl_tui.rendering.charts.x_axes.AXES`.
    """
    shown, main = view.run, data.main
    found = list(others(data, indicator, view, axis))
    if shown is None or main is None or not found:
        return data
    names = [shown.name, *(run.name for run in view.selected if run is not shown)]
    labels = dict(zip(names, without_shared_start(names), strict=True))
    lines = [
        _marked(ChartLine(points, over=_own_kl(main, run)), run, view, labels)
        for run, _, points in found
        if main.over is None or kl_key(run) is not None
    ]
    lacking = [labels[run.name] for run, *_ in found if main.over is not None and not kl_key(run)]
    notes = tuple(
        f"{note}, none of {', '.join(lacking)}" if lacking else note for note in data.notes
    )
    # One kind of points at most: the markers of more would hide the many lines.
    points = [line for line in data.lines if line.kind == "points"][:1]
    return replace(
        data,
        lines=(_marked(main, shown, view, labels), *lines, *points),
        right=None,
        beside=(),
        notes=notes,
    )


def _own_kl(main: ChartLine, run: Run) -> Series | None:
    """Return the KL that another run's line is over, None where the shown one's is over steps."""
    key = kl_key(run) if main.over is not None else None
    return run.series(key) if key is not None else None


def counterpart(run: Run, key: str, indicator: str | None, other: Run) -> Series | None:
    """Return the series of another run that means the same, None where it has none or counts it in
    another way.
    """
    if indicator is not None and run.indicators.get(indicator) == key:
        found = other.indicators.get(indicator)
        if found is None or factor(indicator, found) != factor(indicator, key):
            return None
    else:
        found = key
    units = {describe(one).unit for one in (key, found)} - {""}
    return other.series(found) if len(units) < 2 else None


def others(
    data: ChartData, indicator: str | None, view: View, axis: str
) -> Iterator[tuple[Run, Series, Points]]:
    """Yield the other selected runs that have the same metric: run, series, points on the x axis.

    Args:
        data: The chart of the shown run.
        indicator: What the metric means.
        view: The state of everything.
        axis: One of `verl_tui.rendering.charts.x_axes.AXES`.
    """
    shown, main, selected = view.run, data.main, view.selected
    if shown is None or main is None or main.kind != "line" or len(selected) < 2:
        return
    for run in selected:
        if run is shown or (series := counterpart(shown, data.key, indicator, run)) is None:
            continue
        points = _placed(series, run, data, axis)
        if points is not None and len(points.steps):
            yield run, series, points


def _placed(series: Series, run: Run, data: ChartData, axis: str) -> Points | None:
    """Return another run's series along a chart's x axis, None where it has no times."""
    along = on_axis(run, axis if data.axis.time else "step")
    if along.problem is not None:
        return None
    # Beginnings are laid over each other; times of day and steps are what they are.
    return along.points(series, data.axis.zero - along.axis.zero if axis == "relative" else 0)


def _marked(line: ChartLine, run: Run, view: View, names: dict[str, str]) -> ChartLine:
    place = view.selection.place(run.name)
    if place is None:
        return replace(line, role="line", label=names[run.name], sign=_OTHER)
    return replace(line, role=RUNS[place], label=names[run.name], sign=LETTERS[place])
