"""What charts share that stand below or beside each other: one x axis, and a y axis whose numbers
are equally wide, so that what happened at one step stands in one column of the screen.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from verl_tui.rendering.charts.cache import extent
from verl_tui.rendering.charts.labels import name_cells
from verl_tui.rendering.text.short_names import distinct_names

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


def with_short_names(
    charts: Sequence[ChartData], widths: Sequence[int], *, ascii_only: bool
) -> list[ChartData]:
    """Return charts with names that differ in a row of so many cells each; two metrics of one name
    go by their keys.
    """
    count = Counter(data.title for data in charts)
    names = [data.title if count[data.title] < 2 else data.key for data in charts]
    cells = name_cells(min(widths, default=0))
    short = distinct_names(names, cells, ascii_only=ascii_only)
    return [replace(data, short=short[name]) for data, name in zip(charts, names, strict=True)]


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
