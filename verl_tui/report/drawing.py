"""The picture of a report's chart, as the screen's are made: reduced, smoothed and scaled."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from verl_tui.rendering.charts.axes import Scale, fill_window
from verl_tui.rendering.charts.downsample import ChartCache
from verl_tui.rendering.charts.picture import Picture, picture_of
from verl_tui.report.run_charts import OTHER_RUN, ReportChart

if TYPE_CHECKING:
    from verl_tui.rendering.charts.chart_data import ChartData

COLUMNS = 320
"""Columns that points are reduced to."""
_COARSE = 120
"""The same where runs without a colour of their own are drawn, which are many."""
_CELLS = 80
"""Points denser than in a chart of so many cells on the screen are smoothed as far as their noise
asks for.
"""


class ChartDrawing(NamedTuple):
    """A chart as it is drawn."""

    picture: Picture
    scale: Scale
    data: ChartData
    smoothing: float
    has_values: bool
    """True if the values stand around their average, or are drawn themselves: with several runs the
    averages stand alone.
    """
    reach: tuple[int, int]
    """First and last step."""

    @property
    def odds(self) -> list[float]:
        """Places along the x axis, 0 .. 1, with a value that is not a number."""
        found: set[float] = set()
        for line in self.picture.lines:
            odds = line.columns.odds
            found.update(x / (len(odds) - 1) for x, odd in enumerate(odds) if odd)
        return sorted(found)


def drawing_of(chart: ReportChart) -> ChartDrawing | None:
    """Return the drawing of a chart, None where it has no point or no number at all."""
    cache = ChartCache()
    data = chart.overlaid
    shown = data.shown
    if shown is None:
        return None
    data = cache.smoothed_by_noise(data, shown, _CELLS)
    smoothing = data.smoothing
    has_values = not smoothing or len(chart.curves) == 1
    if not has_values:
        averages = tuple(
            line._replace(points=cache.smoothed(line.points, smoothing))
            for line in data.lines
        )
        data = data._replace(lines=averages, smoothing=0.0)
    scale = cache.scale(data, *shown)
    if scale is None:
        return None
    columns = _COARSE if any(one.place is None for one in chart.curves) else COLUMNS
    window = fill_window(*shown, columns)
    picture = picture_of(data, (scale, None), window, cache)
    lines = sorted(picture.lines, key=lambda one: one.role != OTHER_RUN)
    picture = picture._replace(lines=lines)
    return ChartDrawing(picture, scale, data, smoothing, has_values, shown)
