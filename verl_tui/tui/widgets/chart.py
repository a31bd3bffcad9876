"""A chart in the terminal: a series in braille dots with axes, healthy band, marks and a cursor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.tui.widgets.chart_data import STEPS, Axis, ChartData, Line, Mark, Points
from verl_tui.tui.widgets.plot import Plot

if TYPE_CHECKING:
    from verl_tui.tui.widgets.braille import Text

__all__ = ["STEPS", "Axis", "Chart", "ChartData", "Line", "Mark", "Points"]


class Chart(Plot):
    """Draws `ChartData` at any size: a full plot, a sparkline below its title, or a single row."""

    def _draw(self, width: int, height: int) -> list[Text]:
        return self._drawing.rows(self._data, width, height, cursor=self._cursor, focus=self.has_focus)
