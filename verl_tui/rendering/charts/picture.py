"""What a chart draws, whatever it is drawn with: lines, shades and marks between its axes.

A picture knows dot columns and values. `paint` makes cells of it, the report an SVG.
"""

from __future__ import annotations

from bisect import bisect_right
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.rendering.charts.axes import Scale, Window
from verl_tui.rendering.charts.chart_data import (
    ALARM_ROLES,
    Alarm,
    ChartData,
    ChartLine,
)
from verl_tui.rendering.charts.downsample import (
    DotColumns,
    dot_columns,
    smoothed,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.runs.series import Points


_ANY = Scale(0.0, 1.0)
"""The y axis without a number."""
_SOME = 3
"""Fewest points for one to be marked as the best."""
_LOOK_BACK = 100
"""A line that ended in so many values that are no numbers has no sign at its end."""


class DrawnLine(NamedTuple):
    """A curve, or joined points."""

    role: str
    columns: DotColumns
    scale: Scale
    sign: str
    """Its letter, or the marker of its points."""
    points: bool
    """True if its points have markers."""
    alarms: dict[int, str] = {}  # noqa: RUF012 - nobody changes it
    """Dot columns that findings are about."""
    end: tuple[int, float] | None = None
    """Dot column and value of its last number, if that is among its last points."""
    values: DotColumns | None = None
    """What it is the average of, None if it is none."""


class DrawnShade(NamedTuple):
    """The area between two series, or between the values around an average."""

    role: str
    columns: DotColumns
    """Its lows and its highs."""


class Picture(NamedTuple):
    """Equal pictures look equal."""

    lines: Sequence[DrawnLine]
    """From the farthest to the nearest."""
    shades: Sequence[DrawnShade]
    restarts: Sequence[int]
    """Dot columns."""
    target: float | None
    window: Window
    scale: Scale
    band: tuple[float, float]
    best: tuple[int, float] | None
    """Dot column and value of the main line's best."""
    main_role: str


def picture_of(
    data: ChartData, scales: tuple[Scale | None, Scale | None], window: Window
) -> Picture:
    """Return what to draw of a chart between its y axes at the left and at the right."""
    scale, main = scales[0] or _ANY, data.main
    # curves over joined points; of several runs the shown one's is on top
    found = sorted(
        data.lines,
        key=lambda one: (one.kind == "line", bool(one.sign) and one is main),
    )
    lines = [_drawn(data, one, scales[one.right] or _ANY, window) for one in found]
    steps = {mark.step for mark in data.marks if mark.role == "restart"}
    return Picture(
        lines,
        shades=[*_shades(data, window)],
        restarts=[*map(window.column, sorted(steps))],
        target=data.target,
        window=window,
        scale=scale,
        band=data.band,
        best=_best(data, scale, window),
        main_role=main.role,
    )


def _drawn(data: ChartData, line: ChartLine, scale: Scale, window: Window) -> DrawnLine:
    """Return a line, smoothed as the chart asks."""
    columns = dot_columns(line.points, window)
    drawn = DrawnLine(line.role, columns, scale, line.sign, line.kind == "points")
    if not drawn.points:
        average = line.points
        if data.smoothing:
            average = smoothed(average, data.smoothing)
            means = dot_columns(average, window)._replace(odds=columns.odds)
            drawn = drawn._replace(columns=means, values=columns)
        drawn = drawn._replace(end=_end(data, line, average, window))
    return drawn._replace(alarms=alarmed(drawn.columns, line.alarms, window, data.band))


def _end(
    data: ChartData, line: ChartLine, points: Points, window: Window
) -> tuple[int, float] | None:
    """Return the end of a line in the window; beyond the present segment of the run there is
    none.
    """
    last = min(window.end, data.end) if line is data.main else window.end
    stop = bisect_right(points.steps, last)
    for i in range(stop - 1, max(0, stop - _LOOK_BACK) - 1, -1):
        if isfinite(points.values[i]) and points.steps[i] >= window.start:
            return window.column(points.steps[i]), points.values[i]
    return None


def alarmed(
    columns: DotColumns,
    alarms: Sequence[Alarm],
    window: Window,
    band: tuple[float, float],
) -> dict[int, str]:
    """Return the dot columns that findings are about: those outside the healthy band while a
    finding held, each up to the next value.

    If nothing in a finding's stretch is outside the band, the finding is about something else: then
    the whole stretch is. A value outside the band is no finding by itself: bands are rules of
    thumb, and rules wait until a breach has lasted.
    """
    found: dict[int, str] = {}
    for alarm in alarms:
        first = max(0, window.column(alarm.first))
        stop = len(columns.lows)
        if alarm.last is not None:
            stop = min(stop, max(first + 1, window.column(alarm.last)))
        outside, is_out = [], False
        for x in range(first, stop):
            low, high = columns.lows[x], columns.highs[x]
            if low is not None and high is not None:
                is_out = low < band[0] or high > band[1]
            outside += [x] * is_out
        role = ALARM_ROLES[alarm.severity]
        found.update(dict.fromkeys(outside or range(first, stop), role))
    return found


def _shades(data: ChartData, window: Window) -> Iterator[DrawnShade]:
    """Yield the areas between two series, then that of the values around the main line's
    average.
    """
    for shade in data.shades:
        low, high = (dot_columns(one, window) for one in (shade.low, shade.high))
        if shade.role:
            yield DrawnShade(shade.role, DotColumns(low.lows, high.highs, low.odds))
    line = data.main
    if data.smoothing and not line.right:
        yield DrawnShade("around", dot_columns(line.points, window))


def _best(data: ChartData, scale: Scale, window: Window) -> tuple[int, float] | None:
    """Return dot column and value of the best value, None where there is none or it is out of
    sight.
    """
    line = data.main
    if not data.best or len(line.points.steps) < _SOME:
        return None
    best = line.points.highest_point(data.best, data.end)
    if best is None or scale.beyond(best.value):
        return None
    seen = window.start <= best.step <= window.end
    return (window.column(best.step), best.value) if seen else None
