"""A series made ready for drawing: reduced to dot columns, smoothed, its range and its trend."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from functools import partial
from itertools import pairwise
from math import copysign, inf, isfinite, nan
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.means import finite
from verl_tui.runs.series import Points

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.rendering.charts.axes import Window
    from verl_tui.rendering.charts.chart_data import ChartData

TREND_POINTS = 40
"""Values that a trend is of."""
_WINDOWS = ((4, 2.0), (2, 1.4), (1, 0.7))
"""What part of them is looked at, and by how many differences between neighbours it must change:
noise alone seldom does (2%, 2%, 9% of 40 values).
"""
_NEWEST = 6
"""Fewest values that can turn a trend, three against three."""
_SEEN = 0.03
"""Least share of a chart's range that a trend takes: about a dot of a curve eight rows high
(heuristic).
"""
_FEW = 8
"""Fewest values for one to be an outlier."""
_MARGIN = 0.2
"""Share of the usual range that is shown on either side of it: what rises evenly keeps both its
ends.
"""
WEIGHTS = (0.6, 0.9, 0.97)
"""Weights of the past to choose from."""
_CHOICES = ((0.6, 4, 0.04), (0.9, 19, 0.1), (0.97, 65, 0.5), (0.99, 199, 2.0))
"""Weights that noise chooses from, the values that each averages over, (1 + w) / (1 - w), and the
noise, as a share of the trend, from which it is chosen: below the first it is hardly two of the
forty dots that a chart is high (heuristic).
"""
_PARTS = 6
"""A series is at least so many times as long as what is averaged over: else the trend goes, too."""
_BLOCKS = 16
_FEWEST = 32
_ENOUGH = 4096
"""Most values whose noise is looked at, the last ones."""


class DotColumns(NamedTuple):
    """Least and greatest value of each dot column, None where there is none, and whether it holds a
    nan or infinity.
    """

    lows: list[float | None]
    highs: list[float | None]
    odds: list[bool]


def dot_columns(points: Points, window: Window) -> DotColumns:
    """Return the dot columns of a series in a window."""
    newest = (points.revision, len(points.values), *points.values[-1:])
    return points.kept["columns"].of((newest, window), lambda: _columns(points, window))


def _columns(points: Points, window: Window) -> DotColumns:
    empty: list[float | None] = [None] * window.columns
    lows, highs, odds = empty, empty[:], [False] * window.columns
    found = points.query(window.start, window.per, window.buckets)
    apart, of = window.apart, window.of
    for bucket, (low, high, odd) in enumerate(zip(*found, strict=True)):
        x = bucket * apart // of
        lows[x], highs[x], odds[x] = low, high, odd
    return DotColumns(lows, highs, odds)


class Smoothed(Points):
    """The exponential moving average of a series, itself a series; corrected for its short past at
    the beginning.

    A value that is not a number has no average and does not affect the average of the others.
    """

    def __init__(self, points: Points, weight: float) -> None:
        super().__init__(points.steps, array("d"))
        self._weight = weight
        self._before = (0.0, 0.0)
        """Sum and weight of the past before the last value, which may be replaced."""
        self.catch_up(points)

    def catch_up(self, points: Points) -> None:
        """Average what has come since."""
        self.steps = points.steps
        if len(points.values) < len(self.values):
            del self.values[:]
            self._before = (0.0, 0.0)
        del self.values[-1:]
        weight, rest = self._weight, 1 - self._weight
        total, norm = before = self._before
        averages: list[float] = []
        for value in points.values[len(self.values) :]:
            before = (total, norm)
            if isfinite(value):
                total = weight * total + rest * value
                norm = weight * norm + rest
            averages.append(total / norm if isfinite(value) else nan)
        self.values.fromlist(averages)
        self._before = before


def smoothed(points: Points, weight: float) -> Smoothed:
    """Return the moving average of a series, caught up with it."""
    subject = (points.revision, weight)
    found = points.kept["averages"].of(subject, lambda: Smoothed(points, weight))
    found.catch_up(points)
    return found


# -- what a series says ----------------------------------------------------------------------------


def value_range(
    points: Points,
    first: int,
    last: int,
    *,
    positive: bool = False,
    usual: bool = False,
) -> tuple[float, float] | None:
    """Return the least and greatest finite value between two steps, None if there is none.

    Args:
        points: The series.
        first: First step that counts.
        last: Last step that counts.
        positive: Look only for values above zero.
        usual: Leave out outliers: the middle 98% of the values and a margin. Where that reaches the
            least or the greatest value there is no outlier at that side, and the range ends there.
    """
    import numpy as np

    start = bisect_left(points.steps, first)
    values = np.asarray(points.values)[start : bisect_right(points.steps, last)]
    values = values[np.isfinite(values)]
    if positive:
        values = values[values > 0]
    if not len(values):
        return None
    least, most = float(values.min()), float(values.max())
    if not usual or len(values) < _FEW:
        return least, most
    cut = -(-len(values) // 100)
    values.sort()
    low, high = float(values[cut]), float(values[-1 - cut])
    if positive:
        ratio = (high / low) ** _MARGIN
        return max(least, low / ratio), min(most, high * ratio)
    margin = (high - low) * _MARGIN
    return max(least, low - margin), min(most, high + margin)


def neighbour(points: Points, step: int, window: Window, direction: int) -> int | None:
    """Return the step of the last point in the next column left (-1) or right (1) of that of
    `step`, None if none.
    """

    def begin(column: int) -> int:
        """Return the index of the first point from a column on."""
        return bisect_left(points.steps, window.start + column * window.per)

    column = (step - window.start) // window.per
    i = begin(column) - 1
    if direction > 0:
        i = begin(column + 1)
        if i < len(points.steps):
            i = begin((points.steps[i] - window.start) // window.per + 1) - 1
    return points.steps[i] if 0 <= i < len(points.steps) else None


def trend(values: Sequence[float], drawn: tuple[float, float] | None) -> int | None:
    """Return 1 where the last values rise, -1 where they fall, 0 where that may be noise or is too
    little to be seen, None if they are too few.

    Args:
        values: A series.
        drawn: The least and the greatest value of the chart that shows the trend, None if the
            smallest change counts.
    """
    ends = trend_ends(values, drawn)
    return None if ends is None else (ends[1] > ends[0]) - (ends[1] < ends[0])


def whole_trend(points: Points) -> int | None:
    """Return the trend of a series that is drawn whole."""
    return trend(points.values, points.bounds)


def trend_ends(
    values: Sequence[float], drawn: tuple[float, float] | None
) -> tuple[float, float] | None:
    """Return from where to where the last values went, twice the same where that may be noise or is
    too little to be seen, None if they are too few.

    Compares the medians of the newer and the older half of the last `TREND_POINTS` values with how
    much neighbours differ, so that neither one outlier nor ordinary noise turns the arrow. Those of
    the newest quarter, or half, count instead where they differ clearly: what rose and now falls is
    falling. Where they, or the very last value, lie against it, no trend is reported.

    Args:
        values: A series.
        drawn: As for `trend`.
    """
    # Sums and differences of the largest numbers would overflow.
    values = [value / 4 for value in finite(values[-TREND_POINTS:])]
    if len(values) < 4:
        return None
    jumps = [abs(after - before) for before, after in pairwise(values)]
    noise = median(jumps)
    # what is beyond rounding, and can be seen
    least, greatest = drawn or (0.0, 0.0)
    floor = max(max(map(abs, values)) * 2e-6, (greatest / 4 - least / 4) * _SEEN)
    start, newer = 0.0, list[float]()
    for part, clear in _WINDOWS:
        newest = values[-max(_NEWEST, len(values) // part) :]
        half = len(newest) // 2
        start, end = median(newest[:half]), median(newest[half:])
        size, way = abs(end - start), copysign(1.0, end - start)
        # What was level before may be noisy now.
        now = max(noise, median(jumps[1 - len(newest) :]))
        if size > max(now * clear, floor):
            # by less waver values that have come to a level
            turned = any(way * one < -size / 6 for one in newer)
            # nearly nothing of it, or its contrary, is left in the last value
            left = min(size / 4, size - max(noise * 2, floor))
            lost = way * (values[-1] - start) < left
            return start, start if turned or lost else end
        newer.append(end - start)
    return start, start


def weight_for(values: Sequence[float]) -> float:
    """Return the weight of the past that a curve is smoothed with, 0 where it is clean or short.

    The noise is how much neighbours differ, mostly; where they seldom do, but then by far, as of a
    share that is 0 or 1, it is how much they do on average, if that is more than the trend.
    """
    known = finite(values[-_ENOUGH:])
    if len(known) < _FEWEST:
        return 0.0
    apart = [abs(b - a) for a, b in pairwise(known)]
    noise, rare = median(apart), sum(apart) / len(apart)
    size = -(-len(known) // _BLOCKS)
    blocks = [known[i : i + size] for i in range(0, len(known), size)]
    means = [sum(block) / len(block) for block in blocks]
    seen = (max(means) - min(means)) or inf
    noise = max(noise, rare * (rare > seen))
    weights = [
        weight * (noise > seen * share and averaged * _PARTS <= len(known))
        for weight, averaged, share in _CHOICES
    ]
    return max(weights)


# -- of a chart ------------------------------------------------------------------------------------


def smoothed_by_noise(data: ChartData, shown: tuple[int, int], cells: int) -> ChartData:
    """Return a chart smoothed as its noise asks for, unless the user has chosen.

    Points that are no denser than so many columns are not smoothed. Runs over each other are
    smoothed as the shown one is, two metrics with a y axis each not at all.
    """
    main = data.main
    if not data.by_noise or main.kind != "line":
        return data
    if any(line.right for line in data.lines):
        return data
    points = main.points
    within = bisect_right(points.steps, shown[1]) - bisect_left(points.steps, shown[0])
    if within <= cells:
        return data._replace(by_noise=False)
    # found again when it has doubled, so that pictures stay still
    stop = 1 << len(points.steps).bit_length() >> 1
    known = points.values[max(0, stop - _ENOUGH) : stop]
    subject = (points.revision, stop)
    weight = points.kept["weight"].of(subject, lambda: weight_for(known))
    # what a cell shows is averaged, too: else the curve still shows the noise within it
    denser = (
        one
        for one, averaged, _ in _CHOICES
        if within // cells <= averaged <= within / _PARTS
    )
    weight = max(weight, next(denser, 0.0)) if weight else weight
    return data._replace(smoothing=weight, by_noise=weight > 0)


def values_shown(
    data: ChartData, shown: tuple[int, int], *, right: bool = False
) -> tuple[float, float] | None:
    """Return the least and the greatest value that a y axis makes room for between two steps, None
    without any: those of lines and quantiles, at the left the target and the edges of the healthy
    band where they are near. What is least and greatest around a mean would press its curve flat.
    """
    sources = _sources(data, right=right)
    read = partial(value_range, first=shown[0], last=shown[1], usual=data.usual_y)
    above_0 = filter(None, map(partial(read, positive=data.log_y), sources))
    known = [*above_0] or [*filter(None, map(read, sources))]
    if not known:
        return None
    lows, highs = zip(*known, strict=True)
    lo, hi = min(lows), max(highs)
    reach = (hi - lo) or max(abs(lo), abs(hi)) / 2
    least = max(lo - reach, 0.0 if data.log_y else -inf)
    edges = (*data.band, data.target) * (not right)
    near = [edge for edge in edges if edge is not None and least < edge <= hi + reach]
    return min([lo, *near]), max([hi, *near])


def _sources(data: ChartData, *, right: bool) -> list[Points]:
    """Return the series that a y axis makes room for."""
    sources = [line.points for line in data.lines if line.right is right]
    for shade in data.shades:
        sources += [shade.low, shade.high] * (shade.fits and not right)
    return sources
