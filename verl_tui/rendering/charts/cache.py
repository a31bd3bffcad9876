"""Columns, averages and y axes kept from one drawing of a chart to the next, so that drawing is
quick and pictures stay still.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import pairwise
from math import inf, isfinite
from statistics import median
from typing import TYPE_CHECKING, Any

from verl_tui.rendering.charts.axes import Scale, Window, fit_scale
from verl_tui.rendering.charts.downsample import (
    DotColumns,
    Smoothed,
    read_columns,
    usual_range,
    value_range,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from verl_tui.rendering.charts.chart_data import ChartData, Points


class ChartCache:
    """The columns, averages and y axes of what one chart draws.

    Series are known by their pyramids: each is equal to itself only.
    """

    def __init__(self) -> None:
        self._kept: dict[object, Any] = {}
        self._used: set[object] = set()
        """Keys of all that were asked for since `forget_unused`."""
        self._axes: dict[str, tuple[object, Scale]] = {}
        """By name: what an axis was fitted to, and the axis."""

    # -- series ------------------------------------------------------------------------------------

    def _keep(self, key: object, make: Callable[[], Any]) -> Any:
        self._used.add(key)
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]

    def columns(self, points: Points, window: Window) -> DotColumns:
        """Return the dot columns of a series."""
        pyramid = points.pyramid
        seen = pyramid.seen
        newest = (seen, *points.values[seen - 1 : seen])
        found: DotColumns = self._keep(
            (pyramid, pyramid.revision, newest, window),
            lambda: read_columns(pyramid, window),
        )
        return found

    def smoothed(self, points: Points, weight: float) -> Smoothed:
        """Return the moving average of a series, caught up with it."""
        found: Smoothed = self._keep(
            ("smoothed", points.pyramid, weight), lambda: Smoothed(points, weight)
        )
        found.pyramid  # noqa: B018 - it reads what has come since
        return found

    def forget_unused(self) -> None:
        """Let go of what has not been asked for since the last call."""
        self._kept = {key: one for key, one in self._kept.items() if key in self._used}
        self._used = set()

    # -- y axes ------------------------------------------------------------------------------------

    def scale(
        self, data: ChartData, first: int, last: int, *, right: bool = False
    ) -> Scale | None:
        """Return the y axis for the values between two steps, None without a number."""
        reach = values_shown(data, first, last)
        if reach is None:
            return None
        pyramid = data.main.points.pyramid if data.main else None
        ends = (data.first_step, data.last_step)
        subject = (data.key, pyramid, bool(data.spread), data.usual_y, ends)
        return self.axis("right" if right else "left", subject, reach, log=data.log_y)

    def axis(
        self,
        name: str,
        subject: object,
        reach: tuple[float, float],
        *,
        log: bool = False,
    ) -> Scale:
        """Return an axis from the least to the greatest value: the last one of its name while it
        serves, and its subject is the same.
        """
        before, kept = self._axes.get(name, (None, None))
        scale = fit_scale(*reach, log=log, previous=kept if subject == before else None)
        self._axes[name] = (subject, scale)
        return scale

    # -- smoothing ---------------------------------------------------------------------------------

    def smoothed_by_noise(
        self, data: ChartData, shown: tuple[int, int], cells: int
    ) -> ChartData:
        """Return a chart with the smoothing that its noise asks for, if it is to be chosen by that.

        Points that are no denser than so many columns are not smoothed. Runs over each other are
        smoothed as the shown one is, two metrics with a y axis each not at all.
        """
        if not data.by_noise or data.main is None or not _is_of_one_metric(data):
            return data
        points = data.main.points
        first, last = shown
        within = bisect_right(points.steps, last) - bisect_left(points.steps, first)
        weight = self._weight_for(points) if within > cells else 0.0
        return data._replace(smoothing=weight, by_noise=weight > 0)

    def _weight_for(self, points: Points) -> float:
        """Return the smoothing for a series; found again when it has doubled, so that pictures
        stay still.
        """
        pyramid = points.pyramid
        octave = pyramid.seen.bit_length()
        stop = 1 << octave >> 1
        return float(
            self._keep(
                ("weight", pyramid, pyramid.revision, octave),
                lambda: weight_for(points.values[max(0, stop - ENOUGH) : stop]),
            )
        )


def _is_of_one_metric(data: ChartData) -> bool:
    """Return whether a chart has a single curve, or those of several runs."""
    curves = [line for line in data.all_lines if line.kind == "line"]
    of_runs = all(one.sign and not one.right for one in curves)
    return len(curves) == 1 or (bool(curves) and of_runs)


def values_shown(data: ChartData, first: int, last: int) -> tuple[float, float] | None:
    """Return the least and the greatest value to be shown between two steps, None without any: of
    lines and quantiles, the target and the edges of the healthy band where they are near. What is
    least and greatest around a mean would press its curve flat.
    """
    found = _bounds(data, first, last, positive=data.log_y)
    if data.log_y and found is None:
        found = _bounds(data, first, last, positive=False)
    if found is None:
        return None
    lo, hi = found
    reach = (hi / 2 - lo / 2) or max(abs(lo), abs(hi)) / 4
    least = max(lo / 2 - reach, 0.0 if data.log_y else -inf)
    edges = [edge for edge in (*data.band, data.target) if edge is not None]
    near = [edge for edge in edges if least < edge / 2 <= hi / 2 + reach]
    return min([lo, *near]), max([hi, *near])


def _bounds(
    data: ChartData, first: int, last: int, *, positive: bool
) -> tuple[float, float] | None:
    """Return the least and the greatest value of lines and quantiles, None without any."""
    sources = [*[line.points for line in data.lines], *data.spread]
    reach = usual_range if data.usual_y else value_range
    found = [reach(points, first, last, positive=positive) for points in sources]
    known = [one for one in found if one]
    return (
        (min(one[0] for one in known), max(one[1] for one in known)) if known else None
    )


WEIGHTS = (0.6, 0.9, 0.97)
"""Weights of the past to choose from; they average over 4, 19 and 66 values: (1 + w) / (1 - w)."""
_NOISE = (0.04, 0.1, 0.5)
"""Noise, as a share of the trend, from which on each is chosen. Below the first it is hardly two of
the forty dots that a chart is high.
"""
_PARTS = 6
"""A series is at least so many times as long as what is averaged over: else the trend goes, too."""
_BLOCKS = 16
_FEWEST = 32
ENOUGH = 4096
"""Most values that are looked at, the last ones."""


def weight_for(values: Sequence[float]) -> float:
    """Return the weight of the past that a curve is smoothed with, 0 where it is clean or short."""
    # Parts: sums and differences of the largest numbers would overflow.
    known = [value / ENOUGH for value in values[-ENOUGH:] if isfinite(value)]
    if len(known) < _FEWEST:
        return 0.0
    noise = median(abs(b - a) for a, b in pairwise(known))
    size = -(-len(known) // _BLOCKS)
    blocks = [known[i : i + size] for i in range(0, len(known), size)]
    means = [sum(block) / len(block) for block in blocks]
    trend = max(means) - min(means)
    weight = 0.0
    for choice, share in zip(WEIGHTS, _NOISE, strict=True):
        bears = (1 + choice) / (1 - choice) * _PARTS <= len(known)
        if noise > trend * share and bears:
            weight = choice
    return weight
