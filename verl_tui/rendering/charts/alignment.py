"""What charts share that stand below or beside each other: one x axis, and a y axis whose numbers
are equally wide, so that what happened at one step stands in one column of the screen.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from verl_tui.rendering.charts.cache import extent

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from verl_tui.rendering.charts.chart_data import ChartData


def on_one_axis(charts: Sequence[ChartData]) -> list[ChartData]:
    """Return charts that all show the steps from the first to the last that any of them shows."""
    known = [found for data in charts if (found := extent(data)) is not None]
    if not known:
        return [*charts]
    firsts, lasts = zip(*known, strict=True)
    reach = (min(firsts), max(lasts))
    return [replace(data, reach=reach) for data in charts]


class Gutters:
    """How wide the numbers at the y axes are, by column of charts.

    A column grows with the widest of its numbers and stays that wide while the same charts are
    shown in the same room, so that curves do not move to and fro.
    """

    def __init__(self) -> None:
        self._subject: object = None
        self._cells: dict[int, int] = {}

    def of(self, subject: object, needed: Iterable[tuple[int, int]]) -> dict[int, int]:
        """Return the cells of each column.

        Args:
            subject: What is shown, and the room for it; where it differs widths begin anew.
            needed: Columns, and the cells that the numbers of a chart in it need.
        """
        if subject != self._subject:
            self._subject, self._cells = subject, {}
        for column, cells in needed:
            self._cells[column] = max(cells, self._cells.get(column, 0))
        return self._cells
