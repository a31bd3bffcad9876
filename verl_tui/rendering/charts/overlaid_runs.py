"""The same metric of the selected runs, laid over a chart of the shown run."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from verl_tui.indicators import factor
from verl_tui.metrics import describe
from verl_tui.rendering.charts.chart_data import ChartLine
from verl_tui.rendering.charts.x_axes import kl_key, on_axis
from verl_tui.rendering.session.selection import LETTERS, without_shared_start
from verl_tui.rendering.text.hues import RUNS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from verl_tui.rendering.charts.chart_data import ChartData, Points
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Series

_OTHER = "*"
"""Marks the shown run's line where it is not selected itself."""


def overlaid(
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
    shown = view.run
    main = data.main
    found = list(others(data, indicator, view, axis))
    if not found:
        return data
    assert shown is not None and main is not None  # noqa: PT018 - else there is none
    names = [shown.name, *(run.name for run, *_ in found)]
    labels = dict(zip(names, without_shared_start(names), strict=True))
    lacking = [run for run, *_ in found if data.over_kl and kl_key(run) is None]
    lines = [_marked(main, shown, view, labels)]
    lines += [
        _marked(ChartLine(points, over=_over(run, data)), run, view, labels)
        for run, _, points in found
        if run not in lacking
    ]
    return data._replace(
        lines=(*lines, *_first_scores(data)),
        right=None,
        beside="",
        note=data.note + _none_of(labels[run.name] for run in lacking),
    )


def _first_scores(data: ChartData) -> Iterator[ChartLine]:
    """Yield a line of points at most: the markers of more would hide the many lines."""
    return islice((line for line in data.lines if line.kind == "points"), 1)


def _none_of(names: Iterable[str]) -> str:
    """Return that some runs are not drawn, empty for none."""
    said = ", ".join(names)
    return f", none of {said}" if said else ""


def _over(run: Run, data: ChartData) -> Series | None:
    """Return a run's own KL where the chart is drawn over it."""
    return run.series(kl_key(run) or "") if data.over_kl else None


def counterpart(run: Run, key: str, indicator: str | None, other: Run) -> Series | None:
    """Return the series of another run with the same meaning, None if it has none or counts it in
    another way.
    """
    if indicator is not None and run.indicators.get(indicator) == key:
        found = other.indicators.get(indicator)
        if found is None or factor(indicator, found) != factor(indicator, key):
            return None
    else:
        found = key
    units = {describe(key).unit, describe(found).unit} - {""}
    if len(units) < 2:
        return other.series(found)
    return None


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
    shown = view.run
    main = data.main
    selected = view.selected
    if shown is None or main is None or main.kind != "line" or len(selected) < 2:
        return
    for run in selected:
        if run is shown:
            continue
        series = counterpart(shown, data.key, indicator, run)
        if series is None:
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
    later = data.axis.zero - along.axis.zero if axis == "relative" else 0
    return along.points(series, later)


def _marked(line: ChartLine, run: Run, view: View, names: dict[str, str]) -> ChartLine:
    label = names[run.name]
    place = view.selection.place(run.name)
    if place is None:
        return line._replace(role="line", label=label, sign=_OTHER)
    return line._replace(role=RUNS[place], label=label, sign=LETTERS[place])
