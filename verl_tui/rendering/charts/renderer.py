"""Draws a chart as rows of styled text; knows data and size, nothing of the screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.rendering.charts.axes import FEW_STEPS, fill_window, fit_window
from verl_tui.rendering.charts.axis_labels import (
    axis_marks,
    axis_rows,
    cells_of,
    row_labels,
    sides,
    step_labels,
)
from verl_tui.rendering.charts.cache import ChartCache
from verl_tui.rendering.charts.paint import paint
from verl_tui.rendering.charts.path import is_path, path_rows
from verl_tui.rendering.charts.picture import picture_of
from verl_tui.rendering.charts.symbols import sentences
from verl_tui.rendering.charts.title_row import chart_row, sparkline_row, title_row
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
        shown = data.shown
        if height == 1 and not data.in_row:
            return [chart_row(data, width, cursor, focus=focus)]
        if shown is not None and height >= _PLOT_FROM:
            data = self.cache.smoothed_by_noise(data, shown, width)
        title = title_row(data, width, cursor, focus=focus)
        return [title, *self._below(data, shown, width, height - 1, cursor)]

    def _below(
        self,
        data: ChartData,
        shown: tuple[int, int] | None,
        width: int,
        height: int,
        cursor: int | None,
    ) -> list[Text]:
        """Draw what is below the title: a sparkline, a path, or the plot with its axes."""
        if shown is None or not height:
            return sentences(data.empty, width, height)
        if height + 1 < _PLOT_FROM:
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
        axes = (height >= 3) + (height >= 6)
        height -= axes
        if height < _ENVELOPE_FROM and data.around:
            data = data._replace(envelope=None, spread=())
        scale = self.cache.scale(data, *shown)
        other = self.cache.scale(data.right, *shown, right=True) if data.right else None
        left, right = sides(data, (scale, other), width, height)
        self.left = cells_of(left)
        size = (width - self.left - cells_of(right), height)
        # few steps, and a stretch of the past, take the whole width
        past = data.last_step is not None or shown[1] - shown[0] < FEW_STEPS
        self.window = (fill_window if past else fit_window)(*shown, size[0] * 2)
        picture = picture_of(data, (scale, other), self.window, self.cache)
        self.cache.forget_unused()
        grid = [*row_labels(scale, height)] if self.grid else []
        plot = self._plots.of(
            (picture, size, cursor, self.shades, grid),
            lambda: paint(picture, size, cursor, shades=self.shades, grid=grid),
        )
        marks = axis_marks(data.marks, self.window, size[0])
        taken = marks.keys() if axes == 1 else frozenset[int]()
        labels = step_labels(data.axis, self.window, size[0], taken)
        return [
            *(a + b + c for a, b, c in zip(left, plot, right, strict=True)),
            *axis_rows(labels, data.axis.label, (size[0], axes), self.left, marks),
        ]
