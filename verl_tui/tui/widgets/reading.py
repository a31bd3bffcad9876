"""What the cursor reads: the value of everything in a chart at one step, in as many rows as that takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len
from rich.text import Text
from textual.widget import Widget

from verl_tui.tui.widgets.columns import value_at
from verl_tui.tui.widgets.labels import signs, value_text
from verl_tui.tui.widgets.numbers import compact
from verl_tui.tui.widgets.words import printable
from verl_tui.tui.widgets.wrap import fit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from verl_tui.tui.widgets.chart_data import ChartData, Line
    from verl_tui.tui.widgets.labels import Symbols
    from verl_tui.tui.widgets.remembered import Remembered

_GAP = "   "
_LONGEST = 24
"""Cells of a name."""


class Reading(NamedTuple):
    """One value."""

    name: str
    value: str

    def __str__(self) -> str:
        return f"{self.name} {self.value}" if self.name else self.value


def readings(data: ChartData, step: int, symbols: Symbols, remembered: Remembered) -> list[Reading]:
    """Return where the cursor is, and the value of every line there: that of its newest point up to the step."""
    told = [Reading(data.axis.label if data.axis.label == "step" else "", data.axis.read(step))]
    for line, sign in signs(data, symbols):
        metric = data.right if line.right and data.right is not None else data
        name = fit(printable(line.label or metric.title), _LONGEST, symbols.ellipsis)
        told.append(Reading(f"{sign} {name}" if sign else name, _value(line, step, data, metric.unit, remembered)))
    if data.envelope is not None:
        low, high = (value_at(points, step) for points in data.envelope)
        if low is not None and high is not None:
            told.append(Reading("", f"min {compact(low[1])} max {compact(high[1])}"))
    return told


def _value(line: Line, step: int, data: ChartData, unit: str, remembered: Remembered) -> str:
    found = value_at(line.points, step)
    if found is None:
        return "-"
    text = value_text(found[1], unit)
    if line.kind == "line" and 0 < data.smoothing < 1:
        average = remembered.smoothed(line.points, data.smoothing)
        average.pyramid  # noqa: B018 - it reads what has come since
        smooth = value_at(average, step)
        text += f" (smooth {compact(smooth[1])})" if smooth is not None else ""
    return text if found[0] == step else f"{text} @ {data.axis.read(found[0])}"


def rows_of(told: Sequence[Reading], width: int, most: int, ellipsis: str = "…") -> list[str]:
    """Return readings as rows of at most `width` cells; what does not fit into `most` rows ends in an ellipsis."""
    rows: list[str] = []
    for text in map(str, told):
        if rows and cell_len(rows[-1]) + len(_GAP) + cell_len(text) <= width:
            rows[-1] += _GAP + text
        else:
            rows.append(text)
    kept = rows[: max(1, most)]
    if len(rows) > len(kept):
        kept[-1] = fit(kept[-1], width - 2, ellipsis).removesuffix(ellipsis).rstrip() + " " + ellipsis
    return [fit(row, width, ellipsis) for row in kept]


class ReadOut(Widget):
    """The readings; out of sight while there are none."""

    DEFAULT_CSS = """
    ReadOut { height: 1; width: 1fr; padding: 0 1; color: $text-accent; display: none; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, markup=False)
        self._rows: list[str] = []

    def show(self, told: Iterable[Reading], most: int, *, ellipsis: str = "…") -> None:
        """Show readings in at most so many rows."""
        found = list(told)
        rows = rows_of(found, max(1, self.screen.size.width - 2), most, ellipsis) if found and most > 0 else []
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
