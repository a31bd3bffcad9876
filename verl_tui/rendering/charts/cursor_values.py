"""The value of everything in a chart at the cursor, in as many rows as that takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from verl_tui.rendering.charts.downsample import value_at
from verl_tui.rendering.charts.picture import signs
from verl_tui.rendering.text.numbers import compact, exact_step
from verl_tui.rendering.text.printable import printable
from verl_tui.rendering.text.units import in_words, value_text
from verl_tui.rendering.text.wrap import fit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from verl_tui.rendering.charts.cache import ChartCache
    from verl_tui.rendering.charts.chart_data import ChartData, ChartLine


_GAP = "   "
_SHORT = 24
"""Cells that a name has in any case; a longer one has as many as take no further row."""


class CursorValue(NamedTuple):
    """One value."""

    name: str
    value: str

    def __str__(self) -> str:
        return f"{self.name} {self.value}" if self.name else self.value

    def cut(self, cells: int, ellipsis: str) -> str:
        """Return the text with a name of at most `cells` cells."""
        return str(self._replace(name=fit(self.name, cells, ellipsis)))


def cursor_values(
    data: ChartData, step: int, cache: ChartCache, at: int | None = None
) -> list[CursorValue]:
    """Return the position of the cursor and the value of every line there: that of its newest point
    up to the step.

    Args:
        data: The chart.
        step: Where on the x axis the cursor is.
        cache: What the chart is drawn from.
        at: Which step that is, where the x axis is not one of steps.
    """
    values = [_position(data, step, at)]
    if data.over_kl:
        return [*_on_paths(data, step)]
    for line, sign in signs(data):
        metric = data.right if line.right and data.right is not None else data
        name = printable(line.label or metric.title)
        values.append(
            CursorValue(
                f"{sign} {name}" if sign else name,
                _value(line, step, data, metric.unit, cache),
            )
        )
    return [*values, *_envelope(data, step), *_quantiles(data, step)]


def _on_paths(data: ChartData, step: int) -> Iterator[CursorValue]:
    """Yield where each run's path was: `step 120: KL 0.031, reward 0.62`."""
    name = printable(data.title).removesuffix(" over KL")
    for line, sign in signs(data):
        over = None if line.over is None else value_at(line.over, step)
        found = value_at(line.points, step)
        figures = [
            f"{word} {compact(one[1])}"
            for word, one in (("KL", over), (name, found))
            if one
        ]
        of_run = f"{sign} {printable(line.label)} " if sign else ""
        at = exact_step(found[0] if found else step)
        yield CursorValue("", f"{of_run}step {at}: {', '.join(figures) or '-'}")


def _envelope(data: ChartData, step: int) -> Iterator[CursorValue]:
    """Yield the least and the greatest around the metric, nothing where it has none."""
    edges = [value_at(points, step) for points in data.envelope or ()]
    low, high = edges or (None, None)
    if low is not None and high is not None:
        least, most = (in_words(edge[1], data.unit)[0] for edge in (low, high))
        yield CursorValue("", f"min {least} max {most}")


def _quantiles(data: ChartData, step: int) -> Iterator[CursorValue]:
    """Yield the median, unless it is the line itself, and the ranges of the middle half and of
    nearly all values.
    """
    found = [value_at(points, step) for points in data.spread]
    if not found or any(point is None for point in found):
        return
    texts = [in_words(point[1], data.unit)[0] for point in found if point is not None]
    yield CursorValue("median", texts[2])
    yield CursorValue("25–75%", f"{texts[1]} to {texts[3]}")
    yield CursorValue("5–95%", f"{texts[0]} to {texts[4]}")


def _position(data: ChartData, position: int, at: int | None) -> CursorValue:
    values = data.axis.exact(position)
    if not data.axis.time:
        return CursorValue(data.axis.label, values)
    if at is None:
        return CursorValue("", values)
    return CursorValue("step", exact_step(at) + " · " + values)


def _value(
    line: ChartLine, step: int, data: ChartData, unit: str, cache: ChartCache
) -> str:
    found = value_at(line.points, step)
    if found is None:
        return "-"
    text = value_text(found[1], unit)
    if line.kind == "line" and 0 < data.smoothing < 1:
        average = cache.smoothed(line.points, data.smoothing)
        smooth = value_at(average, step)
        text += (
            f" (smooth {in_words(smooth[1], unit)[0]})" if smooth is not None else ""
        )
    return text if found[0] == step else f"{text} @ {data.axis.exact(found[0])}"


def rows_of(
    values: Sequence[CursorValue], width: int, most: int, ellipsis: str = "…"
) -> list[str]:
    """Return readings as rows of at most `width` cells; what does not fit into `most` rows ends in
    an ellipsis.

    Names are cut no shorter than it takes to need no further row.
    """
    longest = min(width, max((cell_len(value.name) for value in values), default=0))
    rows = _laid(values, width, _SHORT, ellipsis)
    for cells in range(longest, _SHORT, -1):
        longer = _laid(values, width, cells, ellipsis)
        if len(longer) == len(rows) and all(cell_len(row) <= width for row in longer):
            rows = longer
            break
    kept = rows[: max(1, most)]
    if len(rows) > len(kept):
        kept[-1] = (
            fit(kept[-1], width - 2, ellipsis).removesuffix(ellipsis).rstrip()
            + " "
            + ellipsis
        )
    return [fit(row, width, ellipsis) for row in kept]


def _laid(
    values: Iterable[CursorValue], width: int, cells: int, ellipsis: str
) -> list[str]:
    """Return readings in as few rows as they take with names of so many cells."""
    rows: list[str] = []
    for text in (value.cut(cells, ellipsis) for value in values):
        if rows and cell_len(rows[-1]) + len(_GAP) + cell_len(text) <= width:
            rows[-1] += _GAP + text
        else:
            rows.append(text)
    return rows
