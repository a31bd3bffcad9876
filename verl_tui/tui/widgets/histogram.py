"""A histogram with its words above it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual.widget import Widget

from verl_tui.rendering.charts.histogram_rows import histogram_rows
from verl_tui.tui.terminal.net import ContainedWidget

if TYPE_CHECKING:
    from verl_tui.distributions import Bins


class HistogramBars(ContainedWidget, Widget):
    """A histogram with its words above; out of sight while there is none."""

    DEFAULT_CSS = """
    HistogramBars { height: 1; width: 1fr; padding: 0 1; color: $text-primary; display: none; }
    """

    def __init__(self, *, ascii_only: bool = False, id: str | None = None) -> None:
        super().__init__(id=id, markup=False)
        self._ascii = ascii_only
        self._rows: list[str] = []

    def show(self, title: str, bins: Bins | None, unit: str, height: int) -> None:
        """Show a histogram in at most so many rows, its words among them.

        Args:
            title: Whose it is, the beginning of its words.
            bins: The histogram; None for none.
            unit: Of its values.
            height: Rows there are; 0 for none.
        """
        width = self.screen.size.width - 2
        rows = []
        if bins is not None:
            rows = histogram_rows(title, bins, unit, width, height, ascii_only=self._ascii)
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
