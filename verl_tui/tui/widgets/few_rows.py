"""A few rows of text that take no room while there are none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual.widget import Widget

from verl_tui.tui.terminal.net import ContainedWidget

if TYPE_CHECKING:
    from collections.abc import Sequence


class FewRows(ContainedWidget, Widget):
    """Rows of text as they are, in the colour of the widget; out of sight while there are none."""

    DEFAULT_CSS = """
    FewRows { height: 1; width: 1fr; padding: 0 1; display: none; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, markup=False)
        self.rows: Sequence[str] = ()
        """The rows that are shown."""

    @property
    def room(self) -> int:
        """Cells of a row."""
        return max(1, self.screen.size.width - 2)

    def set_rows(self, rows: Sequence[str]) -> None:
        """Show these rows, where they are others than before."""
        if rows == self.rows:
            return
        if len(rows) != len(self.rows):
            self.styles.height = max(1, len(rows))
            self.display = bool(rows)
        self.rows = rows
        self.refresh()

    def render(self) -> Text:
        """Return the rows."""
        return Text("\n".join(self.rows), no_wrap=True)
