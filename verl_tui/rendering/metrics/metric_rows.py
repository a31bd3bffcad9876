"""Rows of the metrics table: name, last, trend, minimum, maximum, sparkline, as far as they fit."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.rendering.charts.chart_data import ARROWS
from verl_tui.rendering.charts.sparkline import sparkline
from verl_tui.rendering.metrics.listing import movement
from verl_tui.rendering.text.hues import family_role
from verl_tui.rendering.text.numbers import compact
from verl_tui.rendering.text.printable import middle
from verl_tui.rendering.text.table import FittedTable, TextColumn

if TYPE_CHECKING:
    from verl_tui.rendering.metrics.listing import MetricOrder
    from verl_tui.rendering.text.piece import Piece, Pieces
    from verl_tui.runs.series import Series

_LEAST_CHANGE = 0.005
"""Smaller changes round to nothing."""
_LEAST_NAME = 12


class ListedMetric(NamedTuple):
    """One metric of the table."""

    key: str
    series: Series | None
    """Its values, None while these are unknown."""
    pinned: bool = False
    end: int | None = None
    """Last step that reflects the current state of the run, None for all."""
    indicator: str | None = None
    """What it means, whatever its name, None where that is not known."""


def metric_table(
    width: int, longest: int, order: MetricOrder
) -> FittedTable[ListedMetric]:
    """Return the columns that fit, with an arrow at the one that the table is sorted by.

    Args:
        width: Cells of a row.
        longest: Cells of the longest name.
        order: The order of the table.
    """
    down = order.reverse if order.by == "key" else not order.reverse
    name = min(longest, max(_LEAST_NAME, width * 2 // 5))

    def title(word: str, by: str) -> str:
        return word + ("▼" if down else "▲") * (by == order.by)

    columns: list[TextColumn[ListedMetric]] = [
        TextColumn("", lambda one, _: [("★" * one.pinned, "pin")], 1, 8),
        TextColumn(
            title("metric", "key"), _name, name, 9, min(longest, width // 2), gap=1
        ),
        TextColumn(title("last", "last"), _last, 7, 10, right=True, gap=1),
        TextColumn(title("trend", "trend"), _trend, 7, 7, gap=1),
        TextColumn("min", lambda one, _: [_bound(one, 0)], 7, 5, right=True, gap=1),
        TextColumn("max", lambda one, _: [_bound(one, 1)], 7, 4, right=True, gap=1),
        TextColumn("all steps", _spark, 8, 6, most=width, gap=1),
    ]
    return FittedTable(columns, width)


def _name(one: ListedMetric, cells: int) -> Pieces:
    """Return the name with its prefix dimmed."""
    text = middle(one.key, cells)
    slash = text.find("/") + 1
    return [(text[:slash], "prefix"), (text[slash:], "name")]


def _last(one: ListedMetric, _: int) -> Pieces:
    if one.series is None or not one.series.values:
        return [("…", "dim")]
    last = one.series.until(one.end).tail(1)
    if not last:
        return [("-", "value")]
    return [(compact(last[0]), "value" if isfinite(last[0]) else "odd")]


def _trend(one: ListedMetric, _: int) -> Pieces:
    change = movement(
        one.series.until(one.end).values if one.series is not None else ()
    )
    if change is None:
        return []
    way = (change > 0) - (change < 0)
    arrow = ARROWS[way]
    shown = f"{arrow} {change:+.0%}" if abs(change) >= _LEAST_CHANGE else arrow
    return [(shown, "value")]


def _bound(one: ListedMetric, at: int) -> Piece:
    """Return the least (0) or the greatest (1) value."""
    series = one.series
    if series is None or not series.values:
        return "", "dim"
    bounds = series.pyramid.bounds(series.steps[0], series.steps[-1])
    return compact(bounds[at]) if bounds else "-", "dim"


def _spark(one: ListedMetric, cells: int) -> Pieces:
    if one.series is None:
        return []
    role = family_role(one.key, one.indicator)
    return sparkline(one.series, cells, role)
