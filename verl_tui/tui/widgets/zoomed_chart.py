"""One chart drawn large by plotext, or as an ordinary chart where that is not possible."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.rendering.charts.cursor_values import cursor_values
from verl_tui.rendering.charts.path import is_path
from verl_tui.rendering.charts.plotext_chart import PlotextChart, load_plotext
from verl_tui.rendering.charts.ranges import extent
from verl_tui.rendering.charts.title_row import title_row
from verl_tui.tui.widgets.plot import Plot, PlotArea

if TYPE_CHECKING:
    from verl_tui.rendering.charts.braille import Text
    from verl_tui.rendering.charts.chart_data import ChartData
    from verl_tui.rendering.charts.cursor_values import CursorValue

_LEAST_WIDTH, _LEAST_HEIGHT = 30, 10
"""Smaller ones are drawn as an ordinary chart."""


class ZoomedChart(Plot):
    """Draws `ChartData` with all the room there is; the same data, keys and messages as a `Chart`.

    Where plotext cannot be loaded it looks like a large `Chart`.
    """

    _zoom: PlotArea | None = None
    _drawn: tuple[object, list[Text]] = (None, [])

    def draw_late(self) -> None:
        """Show only the title until `catch_up`: whoever opens a chart sees at once that it
        opens.
        """
        self._late = True

    def catch_up(self) -> None:
        """Draw."""
        self._late = False
        self._redraw()

    def draw(self, width: int, height: int) -> list[Text]:
        """Return its rows: drawn by plotext where there is room for that, else as small ones."""
        self._zoom = None
        drawing = self._drawing
        data = self._data
        if self._late:
            return [title_row(data, width, self._cursor, focus=self.has_focus)]
        if is_path(data, width, height):
            return drawing.rows(
                data, width, height, cursor=self._cursor, focus=self.has_focus
            )
        roomy = width >= _LEAST_WIDTH and height >= _LEAST_HEIGHT
        shown = extent(data)
        if shown is not None:
            data = drawing.cache.without_flat_envelope(data, *shown)
            data = drawing.cache.smoothed_by_noise(data, shown, width)
        if roomy and shown is not None:
            rows = self._draw_large(data, shown, width, height)
            if rows:
                return rows
        return drawing.rows(
            data, width, height, cursor=self._cursor, focus=self.has_focus
        )

    def _draw_large(
        self, data: ChartData, shown: tuple[int, int], width: int, height: int
    ) -> list[Text]:
        """Draw by plotext; return no rows where no value is a number or it cannot be loaded."""
        drawing = self._drawing
        scale = drawing.cache.scale(data, *shown)
        plotext = load_plotext() if scale is not None else None
        if scale is None or plotext is None:
            return []
        other = (
            drawing.cache.scale(data.right, *shown, right=True) if data.right else None
        )
        chart = PlotextChart(data, (scale, other), shown, width, height - 1)
        chart.shades = drawing.shades
        chart.collect(drawing.cache)
        drawing.cache.forget_unused()
        self._zoom = PlotArea(chart.window, chart.left)
        subject = chart.subject()
        # it takes tens of milliseconds: never twice for one picture
        if subject != self._drawn[0]:
            self._drawn = (subject, chart.draw(plotext))
        title = title_row(data, width, self._cursor, focus=self.has_focus)
        plot = chart.shaded(chart.point_at(self._drawn[1], self._cursor))
        return [title, *plot, *chart.below]

    def cursor_values(self, at: int | None = None) -> list[CursorValue]:
        """Return what the cursor reads, `at` this step on an axis of time; nothing while there is
        no cursor.
        """
        if self._cursor is None or not self._data.all_lines:
            return []
        return cursor_values(self._data, self._cursor, self._drawing.cache, at)

    def plot_area(self) -> PlotArea:
        """Return where the x axis of the last drawing is, however that was drawn."""
        return self._zoom or super().plot_area()
