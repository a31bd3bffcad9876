"""Columns, averages and y axes kept from one drawing of a chart to the next, so that drawing is
quick and pictures stay still.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import replace
from statistics import median_low
from typing import TYPE_CHECKING, Any

from verl_tui.rendering.charts.axes import (
    FEW_STEPS,
    Scale,
    Window,
    fill_window,
    fit_scale,
    fit_window,
    sliding_window,
)
from verl_tui.rendering.charts.downsample import (
    DotColumns,
    Downsampled,
    Smoothed,
    sampled,
    usual_range,
    value_range,
)
from verl_tui.rendering.charts.noise import ENOUGH, weight_for

if TYPE_CHECKING:
    from verl_tui.rendering.charts.chart_data import ChartData, Points
    from verl_tui.runs.pyramid import Pyramid

_ALIKE = 0.9
"""Share of its points from which on an edge of the envelope that has one value says nothing. A
heuristic: scores of 0 and 1 have a 0 and a 1 in nearly every batch, while spreads that mean
something differ from step to step.
"""
_LEAST_SHARE = 0.25
"""Share of the height below which a curve says too little: a heuristic."""
_FEW = 3
"""Values of a quantile, and half of those of all, up to which they tell nothing that the mean does
not: where scores are 0 or 1 they jump between these and what lies between two values. A heuristic.
"""


class ChartCache:
    """The columns, averages and y axis of what one chart draws."""

    def __init__(self) -> None:
        self._scales: dict[bool | str, tuple[tuple[object, ...], Scale]] = {}
        """By True for the right y axis, or by name: what it was fitted to, and the axis."""
        self._series: dict[int, tuple[Pyramid, Downsampled]] = {}
        self._averages: dict[tuple[int, float], Smoothed] = {}
        self._used: set[int] = set()
        self._mute: tuple[object, bool] = (None, False)
        """An envelope, where it was looked at, and whether it says nothing there."""
        self._few: tuple[object, bool] = (None, False)
        """The same of quantiles."""
        self._noise: tuple[object, float] = (None, 0.0)
        """A series, how long it was, and the smoothing for it."""

    def columns(self, points: Points, window: Window) -> DotColumns:
        """Return the dot columns of a series."""
        pyramid = points.pyramid
        self._used.add(id(pyramid))
        return self._series.setdefault(id(pyramid), (pyramid, Downsampled()))[1].read(
            points, window
        )

    def smoothed(self, points: Points, weight: float) -> Smoothed:
        """Return the moving average of a series."""
        key = (id(points.pyramid), weight)
        if key not in self._averages:
            self._averages[key] = Smoothed(points, weight)
        return self._averages[key]

    def scale(self, data: ChartData, first: int, last: int, *, right: bool = False) -> Scale | None:
        """Return the y axis for the values between two steps, None without a number.

        The last one is kept while it serves.
        """
        reach = _value_range_of(data, first, last)
        if reach is None:
            return None
        # Pyramids are only ever equal to themselves.
        pyramid = data.main.points.pyramid if data.main else None
        alone = data.envelope is None and not data.spread
        subject = (data.key, pyramid, alone, data.usual_y, data.first_step, data.last_step)
        before, previous = self._scales.get(right, (None, None))
        lo, hi = _with_band(*reach, data)
        scale = fit_scale(lo, hi, log=data.log_y, previous=previous if subject == before else None)
        self._scales[right] = (subject, scale)
        return scale

    def fitted(
        self, name: str, subject: tuple[object, ...], values: list[float], *, log: bool = False
    ) -> Scale:
        """Return an axis for values, the last one of that name while it serves and its subject is
        the same.
        """
        before, previous = self._scales.get(name, (None, None))
        kept = previous if subject == before else None
        scale = fit_scale(min(values), max(values), log=log, previous=kept)
        self._scales[name] = (subject, scale)
        return scale

    def without_flat_envelope(self, data: ChartData, first: int, last: int) -> ChartData:
        """Return what to draw between two steps: no envelope of which neither edge says anything
        there, and none that would press the curve flat.
        """
        if data.spread and data.main is not None and self._says_nothing(data, first, last):
            data = replace(data, spread=())
        if data.envelope is None or self._is_told(data, data.envelope, first, last):
            return data
        return replace(data, envelope=None)

    def _is_told(
        self, data: ChartData, envelope: tuple[Points, Points], first: int, last: int
    ) -> bool:
        """Return whether an envelope says something between two steps, and leaves room."""
        pyramids = [points.pyramid for points in envelope]
        revisions = [(pyramid, pyramid.revision, pyramid.seen) for pyramid in pyramids]
        subject = (first, last, *revisions)
        # To look at thousands of points takes a third of a millisecond.
        if subject != self._mute[0]:
            self._mute = (subject, all(_uniform(points, first, last) for points in envelope))
        return not self._mute[1] and not _presses_flat(data, first, last)

    def _says_nothing(self, data: ChartData, first: int, last: int) -> bool:
        """Return whether the quantiles have so few values that they jump between these, as those of
        scores of 0 and 1.
        """
        middle = data.spread[len(data.spread) // 2].pyramid
        if data.main is None or data.main.points.pyramid is middle:
            return False
        subject = (first, last, middle, middle.revision, middle.seen)
        if subject != self._few[0]:
            values = [set(sampled(points, first, last)) for points in data.spread]
            few = max(map(len, values)) <= _FEW and len(set().union(*values)) <= 2 * _FEW
            self._few = (subject, middle.seen > 1 and few)
        return self._few[1]

    def smoothed_by_noise(self, data: ChartData, shown: tuple[int, int], cells: int) -> ChartData:
        """Return a chart with the smoothing that its noise asks for, if it is to be chosen by that.

        Where its points are denser than so many columns. Runs over each other are all
        smoothed as the shown one is; two metrics with a y axis each are not.
        """
        if not data.by_noise or data.main is None or not _is_of_one_metric(data):
            return data
        points = data.main.points
        within = bisect_right(points.steps, shown[1]) - bisect_left(points.steps, shown[0])
        weight = self._weight(points) if within > cells else 0.0
        return replace(data, smoothing=weight, by_noise=weight > 0)

    def _weight(self, points: Points) -> float:
        """Return the smoothing for a series; found again when it has doubled, so that pictures
        stay still.
        """
        pyramid = points.pyramid
        octave = pyramid.seen.bit_length()
        known = (pyramid, pyramid.revision, octave)
        if self._noise[0] != known:
            stop = 1 << octave >> 1
            self._noise = (known, weight_for(points.values[max(0, stop - ENOUGH) : stop]))
        return self._noise[1]

    def forget_unused(self) -> None:
        """Let go of series that have not been drawn since the last call."""
        if len(self._series) == len(self._used) and not self._averages:
            self._used.clear()
            return
        self._series = {key: kept for key, kept in self._series.items() if key in self._used}
        averages = {id(average.pyramid) for average in self._averages.values()}
        self._averages = {
            key: kept
            for key, kept in self._averages.items()
            if key[0] in self._used and averages & self._used
        }
        self._used.clear()


def _presses_flat(data: ChartData, first: int, last: int) -> bool:
    """Return whether the curve would take little of the height beside its envelope."""
    whole = _value_range_of(data, first, last)
    curve = _value_range_of(replace(data, envelope=None), first, last)
    if data.log_y or whole is None or curve is None:
        return False
    height = curve[1] / 2 - curve[0] / 2  # halves: the difference of two may be too large
    return 0 < height < _LEAST_SHARE * (whole[1] / 2 - whole[0] / 2)


def _value_range_of(data: ChartData, first: int, last: int) -> tuple[float, float] | None:
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


def _with_band(lo: float, hi: float, data: ChartData) -> tuple[float, float]:
    """Widen a range by the target and the edges of the healthy band that are near it."""
    reach = (hi / 2 - lo / 2) or max(abs(lo), abs(hi)) / 4
    known = [edge for edge in (*data.band, data.target) if edge is not None]
    edges = [edge for edge in known if lo / 2 - reach <= edge / 2 <= hi / 2 + reach]
    if data.log_y:
        edges = [edge for edge in edges if edge > 0]
    return min([lo, *edges]), max([hi, *edges])


def extent(data: ChartData) -> tuple[int, int] | None:
    """Return the first and last step to be shown, None without a point."""
    sources = [line.points for line in data.all_lines]
    steps = [points.steps for points in (*sources, *data.around) if points.steps]
    if not steps:
        return None
    first = data.first_step if data.first_step is not None else min([one[0] for one in steps])
    last = data.last_step if data.last_step is not None else max([one[-1] for one in steps])
    return first, max(first, last)


def shown_reach(data: ChartData) -> tuple[int, int] | None:
    """Return the first and last step on the x axis, None without a point: those of charts around it
    are shown, too.
    """
    own = extent(data)
    if own is None or data.reach is None:
        return own
    first = own[0] if data.first_step is not None else min(own[0], data.reach[0])
    return first, own[1] if data.last_step is not None else max(own[1], data.reach[1])


def spark_reach(data: ChartData) -> dict[str, Any]:
    """Return the steps of a sparkline, by the names of the arguments."""
    if data.reach is None:
        return {"first_step": data.first_step, "last_step": data.last_step}
    first, last = shown_reach(data) or data.reach
    return {"first_step": first, "last_step": last, "shared": True}


def _is_of_one_metric(data: ChartData) -> bool:
    """Return whether a chart has a single curve, or those of several runs."""
    curves = [line for line in data.all_lines if line.kind == "line"]
    return len(curves) == 1 or (bool(curves) and all(one.sign and not one.right for one in curves))


def _uniform(points: Points, first: int, last: int) -> bool:
    """Return whether a series has one value at nearly all points between two steps; of a single one
    it is not known.
    """
    known = sampled(points, first, last)
    if len(known) < 2:
        return False
    return (
        known.count(median_low(known)) >= len(known) * _ALIKE
    )  # what most have stands in the middle


def window_of(data: ChartData, shown: tuple[int, int], columns: int) -> Window:
    """Return the x axis of a chart: a stretch of the past, one that ends at the newest step, or all
    there is; few steps take the whole width.
    """
    if data.last_step is not None or shown[1] - shown[0] < FEW_STEPS:
        return fill_window(*shown, columns)
    if data.first_step is not None:
        return sliding_window(*shown, columns)
    return fit_window(*shown, columns)
