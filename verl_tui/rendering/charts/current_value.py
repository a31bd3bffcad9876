"""The value that a chart's title says: the newest with its trend, or the one at the cursor."""

from __future__ import annotations

from bisect import bisect_right
from math import isfinite
from typing import TYPE_CHECKING

from verl_tui.rendering.charts.downsample import (
    TREND_POINTS,
    trend,
    usual_range,
    value_at,
    value_range,
)
from verl_tui.rendering.charts.labels import value_text
from verl_tui.rendering.charts.ranges import extent
from verl_tui.rendering.text.numbers import compact

if TYPE_CHECKING:
    from verl_tui.rendering.charts.chart_data import ChartData, ChartLine
    from verl_tui.rendering.charts.symbols import Symbols
    from verl_tui.rendering.text.piece import Pieces


def current_value(data: ChartData, cursor: int | None, symbols: Symbols) -> Pieces:
    """Write the value of a chart's main line; nothing where it has none."""
    line = data.main
    if line is None or not line.points.steps:
        return []
    if cursor is not None:
        return _value_at_cursor(line, cursor, data)
    stop = (
        len(line.points.steps)
        if data.end is None
        else bisect_right(line.points.steps, data.end)
    )
    if not stop:
        return []
    last = line.points.values[stop - 1]
    reading = [(value_text(last, data.unit), "value" if isfinite(last) else "odd")]
    way = trend(
        line.points.values[max(0, stop - TREND_POINTS) : stop], _drawn(line, data)
    )
    if way is not None and not data.in_row:
        reading.append(
            (f" {(symbols.flat, symbols.rising, symbols.falling)[way]}", "trend")
        )
    return reading


def _drawn(line: ChartLine, data: ChartData) -> tuple[float, float] | None:
    """Return the range that a line takes on the y axis; None on a logarithmic one, which shows even
    small changes.
    """
    shown = extent(data)
    if shown is None or data.log_y:
        return None
    return (usual_range if data.usual_y else value_range)(line.points, *shown)


def _value_at_cursor(line: ChartLine, cursor: int, data: ChartData) -> Pieces:
    """Return a line's value at the cursor, and where that is."""
    found = value_at(line.points, cursor)
    text = value_text(found[1], data.unit) if found else "-"
    x = value_at(line.over, cursor) if line.over is not None else None
    text += f" at KL {compact(x[1])}" if x is not None else ""
    return [
        (text, "cursor"),
        (f" @ {data.axis.read(found[0] if found else cursor)}", "cursor"),
    ]
