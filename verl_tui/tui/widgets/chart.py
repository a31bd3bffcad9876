"""A chart in the terminal: a series in braille dots with axes, healthy band, marks and a cursor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.geometry import Size

from verl_tui.rendering.charts.chart_data import (
    STEPS,
    Axis,
    ChartData,
    ChartLine,
    Mark,
    Points,
)
from verl_tui.tui.widgets.plot import Plot

if TYPE_CHECKING:
    from verl_tui.rendering.charts.braille import Text

__all__ = ["STEPS", "Axis", "Chart", "ChartData", "ChartLine", "Mark", "Points"]


class Chart(Plot):
    """Draws `ChartData` at any size: a full plot, a sparkline below its title, or a single row."""

    def show(self, data: ChartData) -> None:
        """Show other data, or the same after their series grew; it is blank no more."""
        self._late = False
        super().show(data)

    def expect_layout(self, *, blank: bool) -> None:
        """Draw nothing before a layout in progress has placed the chart; if blank, not before
        something is shown after it.

        Widgets that the layout moves are painted with it; one that keeps its place would keep its
        old rows.
        """
        if self._drawn_size == self.outer_size:
            self.refresh()
        self._drawn_size = Size(0, 0)
        self._late = blank

    def label_cells(self, data: ChartData, width: int, height: int) -> int:
        """Return how many cells the numbers at the y axis need to show data in a size."""
        return self._drawing.label_cells(data, width, height)

    def catch_up(self) -> None:
        """Paint the chart if the layout left it where it was."""
        if self._drawn_size != self.outer_size:
            self.refresh()

    def draw(self, width: int, height: int) -> list[Text]:
        """Return its rows, in braille or ASCII; none while it is blank."""
        if self._late:
            return []
        return self._drawing.rows(
            self._data, width, height, cursor=self._cursor, focus=self.has_focus
        )
