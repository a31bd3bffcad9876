"""Shared axes of charts below or beside each other: one x axis, and y axes whose numbers are
equally wide, so that one step is in the same column of the screen in all charts.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Protocol

from verl_tui.rendering.charts.planned_data import chart_data
from verl_tui.rendering.charts.title_row import name_cells
from verl_tui.rendering.text.short_names import distinct_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from verl_tui.rendering.charts.chart_data import ChartData
    from verl_tui.rendering.charts.page import ChartPage
    from verl_tui.rendering.charts.plan import ChartLook
    from verl_tui.rendering.session.snapshot import View


def on_one_axis(charts: Sequence[ChartData]) -> list[ChartData]:
    """Return charts that all show the steps from the first to the last that any of them shows."""
    ends = [data.extent for data in charts if data.extent is not None]
    if not ends:
        return [*charts]
    firsts, lasts = zip(*ends, strict=True)
    return [data._replace(reach=(min(firsts), max(lasts))) for data in charts]


def with_short_names(
    charts: Sequence[ChartData], widths: Sequence[int]
) -> list[ChartData]:
    """Return charts with names that differ in a row of so many cells each; two metrics of one name
    go by their keys. The value of a single point stands where those of sparklines do.
    """
    sparklines = not all(data.in_row for data in charts)
    count = Counter(data.title for data in charts)
    names = [data.title if count[data.title] < 2 else data.key for data in charts]
    cells = name_cells(min(widths, default=0))
    short = distinct_names(names, cells)
    return [
        data._replace(
            short=short[name],
            in_row=data.in_row and not (sparklines and _is_point(data)),
        )
        for data, name in zip(charts, names, strict=True)
    ]


def _is_point(data: ChartData) -> bool:
    return max([len(line.points.steps) for line in data.lines], default=0) == 1


class Gutters:
    """How wide the numbers at the y axes are, by column of charts.

    A column grows to its widest number and keeps that width while the same charts are shown in the
    same room, so that curves do not move back and forth.
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
            self._subject = subject
            self._cells = {}
        for column, cells in needed:
            self._cells[column] = max(cells, self._cells.get(column, 0))
        return self._cells


class HasLabels(Protocol):
    """Something that draws a chart with numbers at its y axis."""

    def label_cells(self, data: ChartData, width: int, height: int) -> int:
        """Return how many cells the numbers need to show data in a size."""


def page_data(
    page: ChartPage,
    room: tuple[int, int],
    view: View,
    look: ChartLook,
    charts: Sequence[HasLabels],
    gutters: Gutters,
) -> list[ChartData]:
    """Return the data of each chart of a page.

    Args:
        page: Which charts these are.
        room: Width and height of the page in cells.
        view: What there is to show.
        look: How charts are drawn.
        charts: What draws them, as far as there are some yet.
        gutters: How wide the numbers at the y axes were.
    """
    data = on_one_axis([chart_data(plan, view, look) for plan in page.charts])
    tiles = page.tiles(*room)
    if all(tile.height == 1 for tile in tiles):
        widths = [tile.width for tile in tiles]
        return with_short_names(data, widths)
    needed = [
        (tile.column, chart.label_cells(one, tile.width, tile.height))
        for chart, one, tile in zip(charts, data, tiles, strict=False)
    ]
    subject = (view.run, page.charts, room, look.log_y, look.usual_y)
    cells = gutters.of(subject, needed)
    return [
        one._replace(gutter=cells.get(tile.column, 0))
        for one, tile in zip(data, tiles, strict=True)
    ]
