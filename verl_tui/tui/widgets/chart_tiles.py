"""Charts in tiles, drawn now or, where all would take too long for one frame, in the next."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from verl_tui.tui.widgets.chart import Chart
from verl_tui.tui.widgets.tiles import Tiles

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from textual.geometry import Size

    from verl_tui.rendering.charts.chart_data import ChartData

_FRAME = 0.05
"""Seconds of drawing after which the charts that are left wait for the next frame: a key may have
been pressed. The first charts of a run of 100,000 steps take longer.
"""


class ChartTiles(Tiles):
    """As many charts as are asked for; those that are not needed any more wait out of sight."""

    def __init__(
        self, fit: Callable[[Size], Sequence[tuple[int, int, int, int]]]
    ) -> None:
        super().__init__(fit)
        self._waiting: list[tuple[Chart, ChartData]] = []
        """Charts that the next frame draws, and what they show then."""

    def have(self, count: int) -> None:
        """Make the charts that there are too few of."""
        missing = count - len(self.children)
        if self.is_attached and missing > 0:
            self.mount(*(Chart() for _ in range(missing)))

    def first(self, count: int) -> list[Chart]:
        """Return so many charts, in order; fewer while there are no more."""
        return self._charts[:count]

    @property
    def _charts(self) -> list[Chart]:
        """All charts there are, without a search by the stylesheet's rules."""
        return [one for one in self.children if isinstance(one, Chart)]

    def fill(self, data: Sequence[ChartData], *, in_layout: bool = False) -> None:
        """Show in each chart what it is of: as many as a frame has time for, then the others.

        Args:
            data: What the first charts show; the others are left as they are.
            in_layout: Whether a layout is under way, which gives charts other sizes: those that are
                drawn later are blank until then.
        """
        self._waiting = [*zip(self.first(len(data)), data, strict=False)]
        for chart, _ in self._waiting if in_layout else ():
            chart.expect_layout()
        self._draw_waiting()
        if in_layout or self._waiting:
            self.call_after_refresh(self._fill_waiting)

    def _fill_waiting(self) -> None:
        """Draw the charts that were left to this frame, and those that a layout left where they had
        been.
        """
        for chart in self._charts:
            chart.catch_up()
        self._draw_waiting()
        if self._waiting:
            self.call_after_refresh(self._fill_waiting)

    def _draw_waiting(self) -> None:
        """Draw the waiting charts, no more after a frame's time."""
        until = monotonic() + _FRAME
        drawn = 0
        for chart, data in self._waiting:
            chart.show(data)
            drawn += 1
            if monotonic() > until:
                break
        del self._waiting[:drawn]
