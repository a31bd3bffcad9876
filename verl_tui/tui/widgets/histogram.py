"""A histogram with its words above it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.rendering.charts.histogram_rows import histogram_rows
from verl_tui.tui.widgets.few_rows import FewRows

if TYPE_CHECKING:
    from verl_tui.distributions import Bins


class HistogramBars(FewRows):
    """A histogram with its words above; out of sight while there is none."""

    DEFAULT_CSS = """
    HistogramBars { color: $text-primary; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)

    def show(self, title: str, bins: Bins | None, unit: str, height: int) -> None:
        """Show a histogram in at most so many rows, its words among them.

        Args:
            title: Whose it is, the beginning of its words.
            bins: The histogram; None for none.
            unit: Of its values.
            height: Rows there are; 0 for none.
        """
        if bins is None:
            self.set_rows([])
        else:
            asked = (title, bins, unit, self.room, height)
            self.set_rows(histogram_rows(*asked))
