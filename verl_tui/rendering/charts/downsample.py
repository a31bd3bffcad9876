"""A series made ready for drawing: reduced to dot columns, smoothed, summed up as a trend; each
remembers its work.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from math import copysign, inf, isfinite, nan
from operator import sub
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.runs.pyramid import Pyramid

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.rendering.charts.axes import Scale, Window
    from verl_tui.rendering.charts.braille import DotSpan
    from verl_tui.rendering.charts.chart_data import Points

TREND_POINTS = 40
"""Values that a trend is of."""
_NEWEST = 3
"""Number of newest values that can turn a trend, which one alone cannot."""
_SEEN = 0.03
"""Least share of a chart's range that a trend takes: about a dot of a curve eight rows high
(heuristic).
"""
_COARSE = 128
_HUGE = sys.float_info.max
_SETTLED = 1 - 1e-15
"""From here on the past of an average counts as complete: no digit changes any more."""
_SAMPLE = 2048
_FEW = 8
"""Fewest values for one to be an outlier."""
_MARGIN = 0.2
"""Share of the usual range that is shown on either side of it: what rises evenly keeps both its
ends.
"""


class DotColumns(NamedTuple):
    """Least and greatest value of each dot column, None where there is none, and whether it holds a
    nan or infinity.
    """

    lows: list[float | None]
    highs: list[float | None]
    odds: list[bool]


def read_columns(pyramid: Pyramid, window: Window) -> DotColumns:
    """Return the dot columns of a series in a window."""
    empty: list[float | None] = [None] * window.columns
    lows, highs, odds = empty, empty[:], [False] * window.columns
    found = pyramid.query(window.start, window.per, window.buckets)
    # Whole numbers: to multiply fractions takes as long as all else.
    apart, of = window.stretch.numerator, window.stretch.denominator
    for bucket, (low, high, odd) in enumerate(zip(*found, strict=True)):
        x = bucket * apart // of
        if x < window.columns:
            lows[x], highs[x], odds[x] = low, high, odd
    return DotColumns(lows, highs, odds)


class Smoothed:
    """The exponential moving average of a series, itself a series; corrected for its short past at
    the beginning.

    A value that is not a number has no average and does not affect the average of the others.
    """

    def __init__(self, points: Points, weight: float) -> None:
        self.weight = weight
        self._points = points
        self._average = array("d")
        self._pyramid = Pyramid(points.steps, self._average)
        self._revision = -1
        self._state = self._before = (0.0, 0.0)
        """Sum and weight of the past, with the last value and without."""
        self._last_source = array("d")

    @property
    def steps(self) -> array[int]:
        """The steps of the series itself."""
        return self._points.steps

    @property
    def values(self) -> array[float]:
        """The averages, up to the last time that the pyramid was asked for."""
        return self._average

    @property
    def pyramid(self) -> Pyramid:
        """The pyramid over the averages, caught up with the series."""
        source = self._points.pyramid
        seen = len(self._average)
        if source.revision != self._revision or source.seen < seen:
            del self._average[:]
            self._state = self._before = (0.0, 0.0)
            self._revision = source.revision
            self._pyramid.rebuild()
        elif seen and source.values[seen - 1 : seen] != self._last_source:
            self._average.pop()
            self._state = self._before
        self._extend(source.values[len(self._average) : source.seen])
        self._pyramid.catch_up()
        return self._pyramid

    def _extend(self, fresh: array[float]) -> None:
        if not fresh:
            return
        weight, rest = self.weight, 1 - self.weight
        (total, norm), before = self._state, self._state
        averages: list[float] = []
        for value in fresh:
            before = (total, norm)
            if not isfinite(value):
                averages.append(nan)
                continue
            total = _finite(weight * total + rest * value)
            norm = weight * norm + rest
            if norm >= _SETTLED:
                norm = 1.0
            averages.append(_finite(total / norm))
        self._average.fromlist(averages)
        self._state, self._before, self._last_source = (total, norm), before, fresh[-1:]


def _finite(value: float) -> float:
    """Return a number that rounding may have taken beyond the largest one."""
    return value if isfinite(value) else copysign(_HUGE, value)


def value_range(
    points: Points, first: int, last: int, *, positive: bool = False
) -> tuple[float, float] | None:
    """Return the least and greatest finite value between two steps, None if there is none.

    Args:
        points: The series.
        first: First step that counts.
        last: Last step that counts.
        positive: Look only for values above zero; the least is then that of a coarse look.
    """
    bounds = points.pyramid.bounds(first, last)
    if bounds is None or not positive or bounds[0] > 0:
        return bounds
    if bounds[1] <= 0:
        return None
    width = max(1, (last - first) // _COARSE)
    lows, highs, _ = points.pyramid.query(first, width, (last - first) // width + 1)
    above = [v for v in lows + highs if v is not None and v > 0]
    return min(above), bounds[1]


def usual_range(
    points: Points, first: int, last: int, *, positive: bool = False
) -> tuple[float, float] | None:
    """Return the range of the values between two steps without outliers: the middle 98% of them and
    a margin.

    Of long series a sample is looked at. Where the margin reaches the least or the greatest value
    there is no outlier at that side, and the range ends with it.
    """
    whole = value_range(points, first, last, positive=positive)
    floor = 0.0 if positive else -inf
    known = sorted(v for v in sampled(points, first, last) if v > floor)
    if whole is None or len(known) < _FEW:
        return whole
    cut = -(-len(known) // 100)
    low = known[cut]
    high = known[-1 - cut]
    if positive and whole[0] > 0:
        margin = (high / low) ** _MARGIN
        return max(whole[0], low / margin), min(whole[1], high * margin)
    margin = (high / 2 - low / 2) * _MARGIN * 2
    return max(whole[0], low - margin), min(whole[1], high + margin)


def sampled(points: Points, first: int, last: int) -> list[float]:
    """Return the finite values between two steps; of long series evenly spaced ones."""
    start = bisect_left(points.steps, first)
    stop = bisect_right(points.steps, last)
    stride = 1
    while (stop - start) // stride > _SAMPLE:
        stride *= 2
    return [v for v in points.values[start:stop:stride] if isfinite(v)]


def spans(columns: DotColumns, scale: Scale, rows: int) -> list[DotSpan | None]:
    """Return the first and the last of so many dot rows that each column takes on a y axis."""
    tops = scale.dots(columns.highs, rows)
    bottoms = scale.dots(columns.lows, rows)
    return [
        None if top is None or bottom is None else (top, bottom)
        for top, bottom in zip(tops, bottoms, strict=True)
    ]


def beyond_edge(columns: DotColumns, scale: Scale | None) -> Iterator[tuple[int, int]]:
    """Yield the dot columns that hold a value the y axis does not reach: column, and 1 above it or
    -1 below.
    """
    if scale is None:
        return
    for x, (low, high) in enumerate(zip(columns.lows, columns.highs, strict=True)):
        if high is not None and high > scale.hi and scale.beyond(high) > 0:
            yield x, 1
        if low is not None and low < scale.lo and scale.beyond(low) < 0:
            yield x, -1


def best_point(points: Points, *, lowest: bool = False) -> tuple[int, float] | None:
    """Return step and value of the first of the highest, or lowest, finite values; None without
    any.
    """
    steps = points.steps
    seen = points.pyramid.seen
    bounds = points.pyramid.bounds(steps[0], steps[seen - 1]) if seen else None
    if bounds is None:
        return None
    best = bounds[not lowest]
    return steps[points.values.index(best)], best


def value_at(points: Points, step: int) -> tuple[int, float] | None:
    """Return step and value of the newest point at or before `step`."""
    i = bisect_right(points.steps, step) - 1
    if i >= 0:
        return points.steps[i], points.values[i]
    return None


def neighbour(points: Points, step: int, window: Window, direction: int) -> int | None:
    """Return the step of the last point in the next column left (-1) or right (1) of that of
    `step`, None if none.
    """
    column = (step - window.start) // window.per
    if direction < 0:
        i = bisect_left(points.steps, window.start + column * window.per) - 1
    else:
        i = bisect_left(points.steps, window.start + (column + 1) * window.per)
        if i < len(points.steps):
            column = (points.steps[i] - window.start) // window.per
            i = bisect_left(points.steps, window.start + (column + 1) * window.per) - 1
    if 0 <= i < len(points.steps):
        return points.steps[i]
    return None


def trend(
    values: Sequence[float], drawn: tuple[float, float] | None = None
) -> int | None:
    """Return 1 where the last values rise, -1 where they fall, 0 where that may be noise or is too
    little to be seen, None if they are too few.

    Args:
        values: A series.
        drawn: The least and the greatest value of the chart that shows the trend, None if the
            smallest change counts.
    """
    ends = turn(values, drawn)
    if ends is None:
        return None
    return (ends[1] > ends[0]) - (ends[1] < ends[0])


def turn(
    values: Sequence[float], drawn: tuple[float, float] | None = None
) -> tuple[float, float] | None:
    """Return from where to where the last values went, a quarter of each; twice the same where that
    may be noise or is too little to be seen, None if they are too few.

    Compares the medians of the newer and the older half of the last `TREND_POINTS` values with how
    much neighbours differ, so that neither one outlier nor ordinary noise turns the arrow. The very
    last values count instead where they lie clearly on the other side of the older half, or have
    gone back to it: the newer half holds what was before a collapse. If only the last one has, no
    trend is reported, since the arrow stands beside that value.

    Args:
        values: A series.
        drawn: As for `trend`.
    """
    # Sums and differences of the largest numbers would overflow.
    values = [v / 4 for v in values[-TREND_POINTS:] if isfinite(v)]
    if len(values) < 4:
        return None
    half = len(values) // 2
    older = median(values[:half])
    change = median(values[half:]) - older
    since = median(values[-_NEWEST:]) - older
    noise = median(map(abs, map(sub, values[1:], values)))
    floor = _least_change(values, drawn)
    start, end = _decisive(
        change, since, values[-1] - older, clear=max(noise * 2, floor)
    )
    if abs(end - start) <= max(noise * 0.7, floor):
        end = start
    return older + start, older + end


def _decisive(
    change: float, since: float, last: float, *, clear: float
) -> tuple[float, float]:
    """Return the two differences from the older half that decide the trend: that of the newer half,
    or of the very last values if these clearly differ from it; zero if only the last one does.
    """
    if change * since < 0 and abs(since) > clear:
        return 0.0, since
    if abs(since) < abs(change) / 4 and abs(since - change) > clear:
        return change, since
    belied = change * last < 0 or abs(last) < abs(change) / 4
    return 0.0, (0.0 if belied and abs(last - change) > clear else change)


def _least_change(quarters: list[float], drawn: tuple[float, float] | None) -> float:
    """Return the least change that counts: one beyond rounding, and one that can be seen."""
    least, greatest = drawn or (0.0, 0.0)
    return max(max(map(abs, quarters)) * 2e-6, (greatest / 4 - least / 4) * _SEEN)
