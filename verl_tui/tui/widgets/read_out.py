"""The values at the cursor, below a large chart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual.widget import Widget

from verl_tui.rendering.charts.cursor_values import rows_of
from verl_tui.tui.terminal.net import ContainedWidget

if TYPE_CHECKING:
    from collections.abc import Iterable

    from verl_tui.rendering.charts.cursor_values import CursorValue


class ReadOut(ContainedWidget, Widget):
    """The readings; out of sight while there are none."""

    DEFAULT_CSS = """
    ReadOut { height: 1; width: 1fr; padding: 0 1; color: $text-accent; display: none; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, markup=False)
        self._rows: list[str] = []

    def show(self, told: Iterable[CursorValue], most: int, *, ellipsis: str = "…") -> None:
        """Show readings in at most so many rows."""
        found = list(told)
        rows = (
            rows_of(found, max(1, self.screen.size.width - 2), most, ellipsis)
            if found and most > 0
            else []
        )
        if rows == self._rows:
            return
        if len(rows) != len(self._rows):
            self.styles.height = max(1, len(rows))
            self.display = bool(rows)
        self._rows = rows
        self.refresh()

    def render(self) -> Text:
        """Return the rows."""
        return Text("\n".join(self._rows), no_wrap=True)
