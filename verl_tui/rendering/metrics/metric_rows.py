"""Rows of the metrics table: name, last, trend, minimum, maximum, sparkline, as far as they fit."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from verl_tui.means import clamp
from verl_tui.rendering.charts.sparkline import BROKEN, sparkline
from verl_tui.rendering.charts.symbols import SYMBOLS
from verl_tui.rendering.metrics.listing import movement
from verl_tui.rendering.text.family_colours import family_role
from verl_tui.rendering.text.numbers import compact
from verl_tui.rendering.text.printable import middle

if TYPE_CHECKING:
    from verl_tui.rendering.metrics.listing import MetricOrder, Movement
    from verl_tui.rendering.text.piece import Piece, Pieces
    from verl_tui.runs.series import Series


_NUMBER = 8
"""Cells of a number and the blank before it."""
_TREND = 8
_BARE_TREND = 2
_LEAST_NAME = 12
_LEAST_SPARK = 8
_LEAST_CHANGE = 0.005
"""Smaller changes round to nothing."""
_CHUNK = 8
"""Cells of a sparkline painted together, so that a new point repaints only the last few."""


class TableLayout(NamedTuple):
    """Width of each column in cells, 0 if it has no room."""

    mark: int
    name: int
    last: int
    trend: int
    least: int
    greatest: int
    spark: int


def layout(width: int, longest: int) -> TableLayout:
    """Return the columns that fit.

    Args:
        width: Cells of a row.
        longest: Cells of the longest name.
    """
    mark = 2 if width >= 30 else 0
    room = width - mark - _NUMBER
    if room < _LEAST_NAME:
        last = clamp(width - mark, 0, _NUMBER)
        return TableLayout(mark, max(0, room), last, 0, 0, 0, 0)
    name = min(longest, max(_LEAST_NAME, width * 2 // 5))
    room -= name
    sizes = dict.fromkeys(("trend", "least", "greatest", "spark"), 0)
    for columns, least in (
        (("trend",), _BARE_TREND),
        (("spark",), _LEAST_SPARK + 1),
        (("least", "greatest"), _NUMBER),
    ):
        if room >= least * len(columns):
            sizes.update(dict.fromkeys(columns, least))
            room -= least * len(columns)
    if sizes["greatest"] and room >= _TREND - _BARE_TREND:
        sizes["trend"] = _TREND
        room -= _TREND - _BARE_TREND
    if sizes["spark"]:
        sizes["spark"] += room
    else:
        name += min(room, longest - name)
    return TableLayout(mark, name, _NUMBER, **sizes)


def metric_heading(shown: TableLayout, order: MetricOrder) -> Pieces:
    """Return the column titles, with an arrow at the one that the table is sorted by."""
    down = order.reverse if order.by == "key" else not order.reverse
    sign = "▼" if down else "▲"

    def title(word: str, by: str = "") -> str:
        return word + sign if by == order.by else word

    if shown.trend > _BARE_TREND:
        trend = title("trend", "trend")
    else:
        trend = sign if order.by == "trend" else ""
    cells = [
        " " * shown.mark,
        title("metric", "key")[: shown.name].ljust(shown.name),
        title("last", "last").rjust(shown.last)[: shown.last],
        " " + trend,
        "min".rjust(shown.least),
        "max".rjust(shown.greatest),
        " all steps",
    ]
    widths = (*shown[:3], shown.trend, shown.least, shown.greatest, shown.spark)
    return [
        (cell[:width].ljust(width), "heading")
        for cell, width in zip(cells, widths, strict=True)
        if width
    ]


def metric_row(
    key: str,
    series: Series | None,
    shown: TableLayout,
    *,
    pinned: bool,
    end: int | None = None,
    indicator: str | None = None,
) -> Pieces:
    """Return one metric; only its name while its series is unknown.

    Pieces of all rows have the same widths, so that a changed piece can be repainted alone.

    Args:
        key: Its name.
        series: Its values.
        shown: The columns.
        pinned: True for a metric pinned to the top.
        indicator: What it means, whatever its name, None where that is not known.
        end: Last step that reflects the current state of the run, None for all.
    """
    pin = "★" if pinned else ""
    pieces: Pieces = [(_fixed(pin, shown.mark, left=True), "pin" if pinned else "name")]
    pieces += _name(key, shown.name)
    if series is None or not series.values:
        unknown = _fixed("…", shown.last)
        return [*pieces, (unknown.ljust(sum(shown[2:])), "dim")]
    pieces.append(_last(series.until(end), shown))
    bounds = series.pyramid.bounds(series.steps[0], series.steps[-1])
    least, greatest = map(compact, bounds) if bounds else ("-", "-")
    pieces += [
        (_fixed(least, shown.least), "dim"),
        (_fixed(greatest, shown.greatest), "dim"),
    ]
    pieces += _spark(series, shown.spark, family_role(key, indicator))
    return [piece for piece in pieces if piece[0]]


def _last(series: Series, shown: TableLayout) -> Piece:
    """Return last value and trend as one piece: as they change at every step, this saves bytes."""
    last = series.last
    number = _fixed("-" if last is None else compact(last.value), shown.last)
    trend = _trend(movement(series.values), shown.trend)
    return number + trend, "value" if last is None or isfinite(last.value) else "odd"


def _fixed(text: str, cells: int, *, left: bool = False) -> str:
    """Return ASCII text padded or cut to exactly `cells` cells."""
    return (text.ljust(cells) if left else text.rjust(cells))[:cells]


def _name(key: str, width: int) -> Pieces:
    """Return the name with its prefix dimmed."""
    text = middle(key, width)
    slash = text.find("/") + 1
    return [
        (text[:slash], "prefix"),
        (text[slash:] + " " * (width - cell_len(text)), "name"),
    ]


def _trend(found: Movement, width: int) -> str:
    if width < _BARE_TREND or found.turn is None:
        return " " * width
    arrow = (SYMBOLS.flat, SYMBOLS.rising, SYMBOLS.falling)[found.turn]
    shown = abs(found.change) >= _LEAST_CHANGE and width >= _TREND
    change = f"{found.change:+.0%}" if shown else ""
    return f" {arrow} {change}"[:width].ljust(width)


def _spark(series: Series, width: int, role: str) -> Pieces:
    if width < 2:
        return []
    text = " " + sparkline(series, width - 1).ljust(width - 1)
    chunks = (text[at : at + _CHUNK] for at in range(0, width, _CHUNK))
    return [(chunk, "odd" if BROKEN in chunk else role) for chunk in chunks]
