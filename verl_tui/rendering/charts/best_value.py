"""The best value of a curve, which a chart marks."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from verl_tui.rendering.charts.axes import Scale, Window
    from verl_tui.rendering.charts.chart_data import ChartData, Points

_SOME = 3
"""Fewest points for one to be marked as the best."""


def best_in(
    data: ChartData, window: Window, scale: Scale | None
) -> tuple[int, float] | None:
    """Return position and value of a chart's best, None where it has none or that is out of
    sight.
    """
    line = data.main
    if not data.best or line is None or scale is None or len(line.points.steps) < _SOME:
        return None
    found = best_point(line.points, lowest=data.best == "lowest")
    if (
        found is None
        or scale.beyond(found[1])
        or not window.start <= found[0] <= window.end
    ):
        return None
    return found


def best_point(points: Points, *, lowest: bool = False) -> tuple[int, float] | None:
    """Return step and value of the first of the highest, or lowest, finite values; None without
    any. It looks at few points, whatever their number.
    """
    steps = points.steps
    seen = points.pyramid.seen
    bounds = points.pyramid.bounds(steps[0], steps[seen - 1]) if seen else None
    if bounds is None:
        return None
    top = bounds[not lowest]
    first = 0
    last = seen - 1
    while first < last:
        middle = (first + last) // 2
        half = points.pyramid.bounds(steps[first], steps[middle])
        if half is not None and half[not lowest] == top:
            last = middle
        else:
            first = middle + 1
    return steps[first], top
