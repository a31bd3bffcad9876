"""Shared axes of charts below or beside each other: one x axis, and y axes whose numbers are
equally wide, so that one step is in the same column of the screen in all charts.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from verl_tui.rendering.charts.planned_data import chart_data
from verl_tui.rendering.charts.title_row import name_cells
from verl_tui.rendering.text.short_names import distinct_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.rendering.charts.chart_data import ChartData
    from verl_tui.rendering.charts.page import ChartPage
    from verl_tui.rendering.charts.plan import ChartLook
    from verl_tui.rendering.session.snapshot import View


_GUTTER = 6
"""Cells of the numbers of a y axis: nearly all fit, and curves stay where they are."""


def lined_up(charts: Sequence[ChartData]) -> list[ChartData]:
    """Return charts that all show the steps from the first to the last that any of them shows."""
    ends = [data.extent for data in charts if data.extent is not None]
    if not ends:
        return [*charts]
    firsts, lasts = zip(*ends, strict=True)
    reach = (min(firsts), max(lasts))
    return [data._replace(reach=reach, gutter=_GUTTER) for data in charts]


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


def page_data(
    page: ChartPage, room: tuple[int, int], view: View, look: ChartLook
) -> list[ChartData]:
    """Return the data of each chart of a page in a room of so many columns and rows."""
    data = lined_up([chart_data(plan, view, look) for plan in page.charts])
    tiles = page.tiles(*room)
    if all(tile.height == 1 for tile in tiles):
        return with_short_names(data, [tile.width for tile in tiles])
    return data
