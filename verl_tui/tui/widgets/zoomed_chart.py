"""One chart drawn large."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from verl_tui.rendering.charts.cursor_values import cursor_values
from verl_tui.rendering.charts.title_row import title_row
from verl_tui.tui.widgets.plot import Plot

if TYPE_CHECKING:
    from verl_tui.rendering.charts.braille import Text
    from verl_tui.rendering.charts.cursor_values import CursorValue


class ZoomedChart(Plot):
    """Draws `ChartData` with all the room there is, on a grid; the same data, keys and messages as
    a `Chart`.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._drawing.grid = True

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
        """Return its rows; the title alone before `catch_up`."""
        if self._late:
            return [title_row(self._data, width, self._cursor, focus=self.has_focus)]
        return self._drawing.rows(
            self._data, width, height, cursor=self._cursor, focus=self.has_focus
        )

    def cursor_values(self, at: int | None = None) -> list[CursorValue]:
        """Return what the cursor reads, `at` this step on an axis of time; nothing while there is
        no cursor.
        """
        if self._cursor is None or not self._data.all_lines:
            return []
        return cursor_values(self._data, self._cursor, self._drawing.cache, at)
