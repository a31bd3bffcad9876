"""The value that a chart's title says: the newest with its trend, or the one at the cursor."""

from __future__ import annotations

from bisect import bisect_right
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.rendering.charts.downsample import (
    TREND_POINTS,
    trend,
    usual_range,
    value_at,
    value_range,
)
from verl_tui.rendering.charts.ranges import extent
from verl_tui.rendering.charts.symbols import SYMBOLS
from verl_tui.rendering.text.numbers import compact
from verl_tui.rendering.text.units import in_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.rendering.charts.chart_data import ChartData, ChartLine
    from verl_tui.rendering.text.piece import Piece, Pieces


class CurrentValue(NamedTuple):
    """A value in words."""

    number: str
    unit: str
    """As it stands behind the number."""
    role: str
    at: str = ""
    """Where it was reached on the x axis, where that is none of steps."""
    after: Sequence[Piece] = ()
    """Its trend, or its step."""

    def pieces(self, *, unit: bool = True) -> Pieces:
        """Write it, with or without its unit."""
        text = self.number + (self.unit if unit else "") + self.at
        return [(text, self.role), *self.after]


def current_value(data: ChartData, cursor: int | None) -> CurrentValue | None:
    """Return the value of a chart's main line, None where it has none."""
    line = data.main
    if line is None or not line.points.steps:
        return None
    if cursor is not None:
        return _value_at_cursor(line, cursor, data)
    stop = (
        len(line.points.steps)
        if data.end is None
        else bisect_right(line.points.steps, data.end)
    )
    if not stop:
        return None
    last = line.points.values[stop - 1]
    role = "value" if isfinite(last) else "odd"
    reading = CurrentValue(*in_words(last, data.unit), role)
    if data.in_row or data.trendless:
        return reading
    newest = line.points.values[max(0, stop - TREND_POINTS) : stop]
    way = trend(newest, _drawn(line, data))
    if way is None:
        return reading
    arrow = (SYMBOLS.flat, SYMBOLS.rising, SYMBOLS.falling)[way]
    return reading._replace(after=[(f" {arrow}", "trend")])


def _drawn(line: ChartLine, data: ChartData) -> tuple[float, float] | None:
    """Return the range that a line takes on the y axis; None on a logarithmic one, which shows even
    small changes.
    """
    shown = extent(data)
    if shown is None or data.log_y:
        return None
    return (usual_range if data.usual_y else value_range)(line.points, *shown)


def _value_at_cursor(line: ChartLine, cursor: int, data: ChartData) -> CurrentValue:
    """Return a line's value at the cursor, and where that is."""
    found = value_at(line.points, cursor)
    x = value_at(line.over, cursor) if line.over is not None else None
    return CurrentValue(
        *(in_words(found[1], data.unit) if found else ("-", "")),
        "cursor",
        f" at KL {compact(x[1])}" if x is not None else "",
        [(f" @ {data.axis.read(found[0] if found else cursor)}", "cursor")],
    )
