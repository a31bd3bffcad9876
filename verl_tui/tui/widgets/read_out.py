"""The values at the cursor, below a large chart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.rendering.charts.cursor_values import rows_of
from verl_tui.tui.widgets.few_rows import FewRows

if TYPE_CHECKING:
    from collections.abc import Iterable

    from verl_tui.rendering.charts.cursor_values import CursorValue


class ReadOut(FewRows):
    """The readings; out of sight while there are none."""

    DEFAULT_CSS = """
    ReadOut { color: $text-accent; }
    """

    def show(
        self, readings: Iterable[CursorValue], most: int, *, ellipsis: str = "…"
    ) -> None:
        """Show readings in at most so many rows."""
        found = list(readings)
        self.set_rows(
            rows_of(found, self.room, most, ellipsis) if found and most > 0 else []
        )
