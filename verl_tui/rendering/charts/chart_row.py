"""A chart in one row: its name, a sparkline, its value and trend."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from rich.cells import set_cell_size

from verl_tui.rendering.charts.braille import join
from verl_tui.rendering.charts.current_value import current_value
from verl_tui.rendering.charts.ranges import spark_reach
from verl_tui.rendering.charts.sparkline import spark_column, spark_pieces, sparkline
from verl_tui.rendering.charts.symbols import SYMBOLS, fit
from verl_tui.rendering.charts.title_row import title_row
from verl_tui.rendering.charts.validation import score_beside_curve
from verl_tui.rendering.text.piece import cells_of
from verl_tui.rendering.text.printable import middle

if TYPE_CHECKING:
    from verl_tui.rendering.charts.braille import Text
    from verl_tui.rendering.charts.chart_data import ChartData
    from verl_tui.rendering.text.piece import Pieces

_READING = 10
"""Cells kept for value and trend."""
_GAP = ("  ", "")
_SPARK = 24
"""Cells of a sparkline from which on it gives way to the score beside it."""
_LEAST_SPARK, _LEAST_SCORE, _LEAST_READING = 6, 9, 8
"""Cells of a sparkline that is still worth drawing beside a score, and those kept for the score and
the value beside it, so that the sparkline stays as long while their digits change.
"""
_UNITS = 56
"""Cells from which on there is room for the unit."""


def name_cells(width: int) -> int:
    """Return how many cells the name takes in a chart of one row."""
    return min(18, width // 3)


def chart_row(
    data: ChartData, width: int, cursor: int | None, *, focus: bool = False
) -> Text:
    """Write a chart in one row. Charts of one width stand in columns."""
    value = current_value(data, cursor)
    if value is None:
        reading = [(fit(data.empty, width // 2), "key")]
    else:
        reading = value.pieces(unit=width >= _UNITS)
    name_width = name_cells(width)
    room = width - name_width - max(_READING, cells_of(reading)) - 2
    if room < 4:
        return title_row(data, width, cursor, focus=focus)
    name = _name(data, name_width, focus=focus)
    title = (set_cell_size(name, name_width + 1), "focused" if focus else "title")
    score = score_beside_curve(data, cursor)[-1:]
    score = [
        [*words, _GAP]
        for words in score
        if room - cells_of(words) - len(_GAP[0]) >= _SPARK
    ]
    if not score and (close := _beside_short_spark(data, width, cursor, reading)):
        return (title, *close)
    spark = sparkline_row(data, room - sum(map(cells_of, score)))
    gap = width - name_width - 1 - room - cells_of(reading)
    return (title, *spark, (" " * gap, ""), *chain(*score), *reading)


def _name(data: ChartData, width: int, *, focus: bool) -> str:
    """Return a chart's name, cut to a width in cells."""
    name = (f"{SYMBOLS.focus} " if focus else "") + (data.short or data.title)
    if "/" in name:  # keys often differ at their ends only, words do not
        return middle(name, width)
    return fit(name, width)


def _beside_short_spark(
    data: ChartData, width: int, cursor: int | None, reading: Pieces
) -> Text:
    """Write what follows the name where the score leaves a short sparkline; nothing where there is
    no score, or no room for both.
    """
    words = next(iter(score_beside_curve(data, cursor)[-1:]), None)
    if words is None:
        return ()
    score = [(text.removeprefix(f"{SYMBOLS.points[0]} "), role) for text, role in words]
    kept = max(_LEAST_SCORE, cells_of(score))
    held = max(_LEAST_READING, cells_of(reading))
    room = width - name_cells(width) - 1 - kept - held - 2
    if room < _LEAST_SPARK:
        return ()
    before = 1 + kept - cells_of(score)
    between = 1 + held - cells_of(reading)
    return (
        *sparkline_row(data, room),
        (" " * before, ""),
        *score,
        (" " * between, ""),
        *reading,
    )


def sparkline_row(data: ChartData, width: int) -> Text:
    """Write the chart's main line as a sparkline of exactly `width` cells, with marks where a
    breach began.
    """
    line = data.main
    if line is None:
        return ((" " * width, ""),)
    zoom = spark_reach(data)
    text = sparkline(line.points, width, **zoom).ljust(width)
    cells = spark_pieces(text, line.role)
    for mark in data.marks:
        if mark.role != "breach":
            continue
        column = spark_column(line.points, width, mark.step, **zoom)
        if column is not None:
            cells[column] = (SYMBOLS.breach, mark.style)
    return join(cells)
