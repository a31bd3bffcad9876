"""The data of the charts on a page of the dashboard, with axes that line up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from verl_tui.rendering.charts.alignment import on_one_axis, with_short_names
from verl_tui.rendering.charts.planned_data import chart_data

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.rendering.charts.alignment import Gutters
    from verl_tui.rendering.charts.chart_data import ChartData
    from verl_tui.rendering.charts.page import ChartPage
    from verl_tui.rendering.charts.plan import ChartLook
    from verl_tui.rendering.session.snapshot import View


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
