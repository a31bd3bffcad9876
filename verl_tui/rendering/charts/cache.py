"""Columns, averages and y axes kept from one drawing of a chart to the next, so that drawing is
quick and pictures stay still.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from verl_tui.rendering.charts.axes import Scale, Window, fit_scale
from verl_tui.rendering.charts.downsample import (
    DotColumns,
    DotRuns,
    Downsampled,
    Smoothed,
)
from verl_tui.rendering.charts.envelopes import (
    are_uniform,
    have_few_values,
    presses_flat,
)
from verl_tui.rendering.charts.noise import ENOUGH, weight_for
from verl_tui.rendering.charts.ranges import values_shown
from verl_tui.rendering.last_result import LastResult

if TYPE_CHECKING:
    from verl_tui.rendering.charts.braille import DotSpan
    from verl_tui.rendering.charts.chart_data import ChartData, Points
    from verl_tui.runs.pyramid import Pyramid


class ChartCache:
    """The columns, averages and y axes of what one chart draws.

    Series are known by their pyramids: each is equal to itself only.
    """

    def __init__(self) -> None:
        self._columns: dict[Pyramid, Downsampled] = {}
        self._averages: dict[tuple[Pyramid, float], Smoothed] = {}
        """By series and weight of the past."""
        self._runs: dict[tuple[Pyramid, Pyramid], DotRuns] = {}
        """By the series of the least and of the greatest values."""
        self._used: set[object] = set()
        """Keys of all that were asked for since `forget_unused`."""
        self._axes: dict[str, tuple[object, Scale]] = {}
        """By name: what an axis was fitted to, and the axis."""
        self._uniform_envelope: LastResult[bool] = LastResult()
        self._few_quantiles: LastResult[bool] = LastResult()
        self._weight: LastResult[float] = LastResult()
        """The smoothing that the noise asks for."""

    # -- series ------------------------------------------------------------------------------------

    def columns(self, points: Points, window: Window) -> DotColumns:
        """Return the dot columns of a series."""
        pyramid = points.pyramid
        self._used.add(pyramid)
        if pyramid not in self._columns:
            self._columns[pyramid] = Downsampled()
        return self._columns[pyramid].read(points, window)

    def runs(
        self,
        edges: tuple[Points, Points],
        columns: DotColumns,
        scale: Scale | None,
        rows: int,
    ) -> list[DotSpan | None]:
        """Return the dot rows between two series, or of one, on a y axis of so many.

        Args:
            edges: The series of the least and of the greatest values.
            columns: The dot columns of both.
            scale: The y axis, None where there is none.
            rows: Its dot rows.
        """
        if scale is None:
            return [None] * len(columns.lows)
        key = (edges[0].pyramid, edges[1].pyramid)
        self._used.add(key)
        if key not in self._runs:
            self._runs[key] = DotRuns()
        return self._runs[key].of(columns.lows, columns.highs, scale, rows)

    def smoothed(self, points: Points, weight: float) -> Smoothed:
        """Return the moving average of a series."""
        key = (points.pyramid, weight)
        self._used.add(key)
        if key not in self._averages:
            self._averages[key] = Smoothed(points, weight)
        return self._averages[key]

    def forget_unused(self) -> None:
        """Let go of what has not been asked for since the last call."""
        used, self._used = self._used, set()
        self._columns = {
            key: kept for key, kept in self._columns.items() if key in used
        }
        self._averages = {
            key: kept for key, kept in self._averages.items() if key in used
        }
        self._runs = {key: kept for key, kept in self._runs.items() if key in used}

    # -- y axes ------------------------------------------------------------------------------------

    def scale(
        self, data: ChartData, first: int, last: int, *, right: bool = False
    ) -> Scale | None:
        """Return the y axis for the values between two steps, None without a number."""
        reach = values_shown(data, first, last)
        if reach is None:
            return None
        pyramid = data.main.points.pyramid if data.main else None
        alone = data.envelope is None and not data.spread
        subject = (
            data.key,
            pyramid,
            alone,
            data.usual_y,
            data.first_step,
            data.last_step,
        )
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

    # -- what is drawn at all ----------------------------------------------------------------------

    def without_flat_envelope(
        self, data: ChartData, first: int, last: int
    ) -> ChartData:
        """Return what to draw between two steps: no envelope of which neither edge says anything
        there, and none that would press the curve flat; no quantiles that say nothing.
        """
        if self._has_idle_spread(data, first, last):
            data = data._replace(spread=())
        if self._has_idle_envelope(data, first, last):
            data = data._replace(envelope=None)
        return data

    def _has_idle_envelope(self, data: ChartData, first: int, last: int) -> bool:
        """Return whether an envelope says nothing between two steps, or leaves no room."""
        edges = data.envelope
        if edges is None:
            return False
        # To look at thousands of points takes a third of a millisecond.
        uniform = self._uniform_envelope.of(
            (first, last, *map(_state, edges)), lambda: are_uniform(edges, first, last)
        )
        return uniform or presses_flat(data, first, last)

    def _has_idle_spread(self, data: ChartData, first: int, last: int) -> bool:
        """Return whether quantiles say nothing that the mean does not."""
        quantiles, main = data.spread, data.main
        if not quantiles or main is None:
            return False
        middle = quantiles[len(quantiles) // 2]
        if main.points.pyramid is middle.pyramid:
            return False
        return middle.pyramid.seen > 1 and self._few_quantiles.of(
            (first, last, _state(middle)),
            lambda: have_few_values(quantiles, first, last),
        )

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
        within = bisect_right(points.steps, shown[1]) - bisect_left(
            points.steps, shown[0]
        )
        weight = self._weight_for(points) if within > cells else 0.0
        return data._replace(smoothing=weight, by_noise=weight > 0)

    def _weight_for(self, points: Points) -> float:
        """Return the smoothing for a series; found again when it has doubled, so that pictures
        stay still.
        """
        pyramid = points.pyramid
        octave = pyramid.seen.bit_length()
        stop = 1 << octave >> 1
        return self._weight.of(
            (pyramid, pyramid.revision, octave),
            lambda: weight_for(points.values[max(0, stop - ENOUGH) : stop]),
        )


def _state(points: Points) -> tuple[Pyramid, int, int]:
    """Return what is another once a series has other points."""
    pyramid = points.pyramid
    return pyramid, pyramid.revision, pyramid.seen


def _is_of_one_metric(data: ChartData) -> bool:
    """Return whether a chart has a single curve, or those of several runs."""
    curves = [line for line in data.all_lines if line.kind == "line"]
    return len(curves) == 1 or (
        bool(curves) and all(one.sign and not one.right for one in curves)
    )
