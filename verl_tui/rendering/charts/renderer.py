"""Draws a chart as rows of styled text; knows data and size, nothing of the screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.rendering.charts.axis_labels import (
    axis_marks,
    axis_rows,
    cells_of,
    label_cells,
    label_rows,
    sides,
)
from verl_tui.rendering.charts.band_shade import on_band
from verl_tui.rendering.charts.cache import ChartCache
from verl_tui.rendering.charts.chart_row import chart_row, sparkline_row
from verl_tui.rendering.charts.labels import sentences
from verl_tui.rendering.charts.path import is_path, path_rows
from verl_tui.rendering.charts.picture import Picture
from verl_tui.rendering.charts.ranges import shown_reach, window_of
from verl_tui.rendering.charts.symbols import SYMBOLS
from verl_tui.rendering.charts.title_row import title_row
from verl_tui.rendering.last_result import LastResult

if TYPE_CHECKING:
    from verl_tui.rendering.charts.axes import Window
    from verl_tui.rendering.charts.braille import Text
    from verl_tui.rendering.charts.chart_data import ChartData

_PLOT_FROM = 3
"""Rows from which on there is a plot below the title."""
_ENVELOPE_FROM = 6
"""Rows of the plot from which on there is room for the least and the greatest beside the mean."""


class ChartRenderer:
    """Turns data into rows of text, again and again as they grow."""

    def __init__(self) -> None:
        self.window: Window | None = None
        """The x axis of the last drawing, None where it had none."""
        self.left = 0
        """Columns that the y axis of the last drawing took."""
        self.cache = ChartCache()
        self.shades = False
        """True where the terminal has backgrounds: the healthy band is then a shade, not lines."""
        self.grid = False
        """True if a dotted line leads from each number of the y axis through the plot."""
        self._plots: LastResult[list[Text]] = LastResult()
        self._axes: LastResult[list[Text]] = LastResult()

    def rows(
        self,
        data: ChartData,
        width: int,
        height: int,
        *,
        cursor: int | None = None,
        focus: bool = False,
    ) -> list[Text]:
        """Draw a chart of `width` x `height` cells: a title, the plot, and the axes where they
        fit.
        """
        if width < 1 or height < 1:
            return []
        self.window = None
        shown = shown_reach(data)
        if height == 1 and not data.in_row:
            return [chart_row(data, width, cursor, focus=focus)]
        if shown is not None and height >= _PLOT_FROM:
            data = self.cache.smoothed_by_noise(data, shown, width)
        title = title_row(data, width, cursor, focus=focus)
        if height == 1:
            return [title]
        if shown is None:
            return [title, *sentences(data.empty, width, height - 1)]
        return [title, *self._below_title(data, shown, width, height - 1, cursor)]

    def label_cells(self, data: ChartData, width: int, height: int) -> int:
        """Return how many cells the numbers of the y axis need in a chart of `width` x `height`."""
        shown = shown_reach(data)
        if shown is None or height < _PLOT_FROM:
            return 0
        data, rows, _ = self._within(data, shown, height - 1)
        return label_cells(self.cache.scale(data, *shown), width, rows)

    def _within(
        self, data: ChartData, shown: tuple[int, int], height: int
    ) -> tuple[ChartData, int, int]:
        """Return what is drawn of a chart in so many rows below its title, the rows of its plot,
        and those of its x axis.
        """
        axes = _axis_height(height)
        height -= axes
        if height < _ENVELOPE_FROM and data.around:
            data = data._replace(envelope=None, spread=())
        return self.cache.without_flat_envelope(data, *shown), height, axes

    def _below_title(
        self,
        data: ChartData,
        shown: tuple[int, int],
        width: int,
        height: int,
        cursor: int | None,
    ) -> list[Text]:
        """Draw a sparkline, a path, or the plot with its axes."""
        if height == 1:
            return [sparkline_row(data, width)]
        if is_path(data, width, height + 1):
            return path_rows(data, shown, (width, height), cursor, self.cache)
        return self._plot(data, shown, width, height, cursor)

    def _plot(
        self,
        data: ChartData,
        shown: tuple[int, int],
        width: int,
        height: int,
        cursor: int | None,
    ) -> list[Text]:
        data, height, axes = self._within(data, shown, height)
        scale = self.cache.scale(data, *shown)
        other = self.cache.scale(data.right, *shown, right=True) if data.right else None
        left, right = sides(data, (scale, other), width, height)
        self.left = cells_of(left)
        cells = width - self.left - cells_of(right)
        self.window = window = window_of(data, shown, cells * 2)
        picture = Picture(data, (scale, other), window, cells, height)
        if self.grid:
            picture.rule(label_rows(scale, height))
        picture.collect(self.cache, shades=self.shades)
        picture.point_at(cursor)
        self.cache.forget_unused()
        plot = self._plots.of(
            (picture.content, left, right, self.shades),
            lambda: self._painted(picture, left, right),
        )
        axis = (data.marks, data.axis, window, cells, axes, self.left)
        return plot + self._axes.of(
            axis, lambda: self._axis_rows(data, window, cells, axes)
        )

    def _painted(
        self, picture: Picture, left: list[Text], right: list[Text]
    ) -> list[Text]:
        """Paint a picture between its y axes."""
        drawn = picture.paint()
        for y in picture.in_band if self.shades else ():
            drawn[y] = on_band(drawn[y])
        return [a + b + c for a, b, c in zip(left, drawn, right, strict=True)]

    def _axis_rows(
        self, data: ChartData, window: Window, cells: int, count: int
    ) -> list[Text]:
        """Write the x axis, below the left corner of the plot."""
        marks = axis_marks(data.marks, window, cells)
        rows: list[Text] = []
        for row in axis_rows(data.axis, window, cells, count, marks):
            corner = ("" if rows else SYMBOLS.corner).rjust(self.left)[: self.left]
            rows.append(((corner, "rule"), *row))
        return rows


def _axis_height(height: int) -> int:
    """Return the rows of the x axis below a plot, of so many for both."""
    if height < 3:
        return 0
    return 1 if height < 6 else 2
