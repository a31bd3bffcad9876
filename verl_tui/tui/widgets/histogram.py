"""A histogram as bars over a line of its ends, and in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual.widget import Widget

from verl_tui.rendering.text.numbers import compact
from verl_tui.rendering.text.wrap import fit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.distributions import Bins

_BLOCKS, _ASCII_BLOCKS = " ▁▂▃▄▅▆▇█", " .:|#"
_WIDEST = 3
"""Cells of a bar at most."""
_SCALED = 4
"""Rows from which on the ends are written below the bars, too."""
_LEAST = 16
"""Cells below which a histogram is told in words alone."""


def words(bins: Bins, unit: str = "") -> str:
    """Return what a histogram says: how many values lie where, and where most of them do."""
    total, fullest = sum(bins.counts), max(range(len(bins.counts)), key=bins.counts.__getitem__)
    unit = f" {unit}" if unit else ""
    if bins.high <= bins.low:
        return f"{compact(total)} values, all {compact(bins.low)}{unit}"
    width = (bins.high - bins.low) / len(bins.counts)
    begin = bins.low + fullest * width
    share = f"{bins.counts[fullest] / total:.0%}" if total else "none"
    return (
        f"{compact(total)} values from {compact(bins.low)} to {compact(bins.high)}{unit}, "
        f"{share} of them from {compact(begin)} to {compact(begin + width)}"
    )


def bars(counts: Sequence[float], width: int, height: int, *, ascii_only: bool) -> list[str]:
    """Return rows of bars, the tallest as high as all of them; every bin that is not empty is
    seen.
    """
    blocks = _ASCII_BLOCKS if ascii_only else _BLOCKS
    shown = counts if len(counts) <= width else _fewer(counts, width)
    levels, cells, top = len(blocks) - 1, _cells(len(shown), width), max(shown)
    tall = [max(1, round(count / top * height * levels)) if count > 0 else 0 for count in shown]
    return [
        "".join(blocks[min(levels, max(0, high - row * levels))] * cells for high in tall).rstrip()
        for row in reversed(range(height))
    ]


def _cells(count: int, width: int) -> int:
    return min(_WIDEST, max(1, width // count))


def _scale(bins: Bins, width: int) -> str:
    """Return the ends of a histogram as they stand below its bars."""
    count = min(len(bins.counts), width)
    low, high = compact(bins.low), compact(bins.high)
    return low + high.rjust(max(len(high) + 1, count * _cells(count, width) - len(low)))


def _fewer(counts: Sequence[float], width: int) -> list[float]:
    """Return as many bins as there are cells, neighbours put together."""
    together = -(-len(counts) // width)
    return [sum(counts[at : at + together]) for at in range(0, len(counts), together)]


class HistogramBars(Widget):
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
        rows: list[str] = []
        if bins is not None and height > 0 and width > 0:
            rows = [fit(f"{title}{words(bins, unit)}", width, "~" if self._ascii else "…")]
            if height > 1 and width >= _LEAST and bins.high > bins.low:
                scaled = height >= _SCALED
                rows += bars(bins.counts, width, height - 1 - scaled, ascii_only=self._ascii)
                rows += [_scale(bins, width)] if scaled else []
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
