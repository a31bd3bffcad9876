"""What a chart shows: from which step to which, and from which value to which."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from verl_tui.rendering.charts.axes import (
    FEW_STEPS,
    Window,
    fill_window,
    fit_window,
    sliding_window,
)
from verl_tui.rendering.charts.downsample import usual_range, value_range

if TYPE_CHECKING:
    from verl_tui.rendering.charts.chart_data import ChartData


def extent(data: ChartData) -> tuple[int, int] | None:
    """Return the first and last step to be shown, None without a point."""
    sources = [line.points for line in data.all_lines]
    known = [points.steps for points in (*sources, *data.around) if points.steps]
    if not known:
        return None
    first = data.first_step
    if first is None:
        first = min(steps[0] for steps in known)
    last = data.last_step
    if last is None:
        last = max(steps[-1] for steps in known)
    return first, max(first, last)


def shown_reach(data: ChartData) -> tuple[int, int] | None:
    """Return the first and last step on the x axis, None without a point: those of charts around it
    are shown, too.
    """
    own = extent(data)
    if own is None or data.reach is None:
        return own
    first, last = own
    if data.first_step is None:
        first = min(first, data.reach[0])
    if data.last_step is None:
        last = max(last, data.reach[1])
    return first, last


def spark_reach(data: ChartData) -> dict[str, Any]:
    """Return the steps of a sparkline, by the names of the arguments."""
    if data.reach is None:
        return {"first_step": data.first_step, "last_step": data.last_step}
    first, last = shown_reach(data) or data.reach
    return {"first_step": first, "last_step": last, "shared": True}


def window_of(data: ChartData, shown: tuple[int, int], columns: int) -> Window:
    """Return the x axis of a chart: a stretch of the past, one that ends at the newest step, or all
    there is; few steps take the whole width.
    """
    if data.last_step is not None or shown[1] - shown[0] < FEW_STEPS:
        return fill_window(*shown, columns)
    if data.first_step is not None:
        return sliding_window(*shown, columns)
    return fit_window(*shown, columns)


def values_between(
    data: ChartData, first: int, last: int
) -> tuple[float, float] | None:
    """Return the least and the greatest value of all series between two steps, None without any."""
    sources = [*[line.points for line in data.lines], *data.around]
    reach = usual_range if data.usual_y else value_range
    for positive in (True, False) if data.log_y else (False,):
        ranges = [reach(points, first, last, positive=positive) for points in sources]
        known = [one for one in ranges if one]
        if known:
            lows, highs = zip(*known, strict=True)
            return min(lows), max(highs)
    return None


def values_shown(data: ChartData, first: int, last: int) -> tuple[float, float] | None:
    """Return the least and the greatest value to be shown between two steps, None without any: also
    the target and the edges of the healthy band where they are near.
    """
    found = values_between(data, first, last)
    if found is None:
        return None
    lo, hi = found
    reach = (hi / 2 - lo / 2) or max(abs(lo), abs(hi)) / 4
    known = [edge for edge in (*data.band, data.target) if edge is not None]
    edges = [edge for edge in known if lo / 2 - reach <= edge / 2 <= hi / 2 + reach]
    if data.log_y:
        edges = [edge for edge in edges if edge > 0]
    return min([lo, *edges]), max([hi, *edges])
