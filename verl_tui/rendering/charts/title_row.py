"""What a chart says in one row: name and value at the left, at the right what else there is to say,
or a sparkline.
"""

from __future__ import annotations

from bisect import bisect_right
from math import isfinite
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size

from verl_tui.rendering.charts.downsample import (
    TREND_POINTS,
    trend,
    value_at,
    value_range,
)
from verl_tui.rendering.charts.paint import join
from verl_tui.rendering.charts.picture import signs
from verl_tui.rendering.charts.sparkline import spark_column, spark_pieces, sparkline
from verl_tui.rendering.charts.symbols import SYMBOLS, fit
from verl_tui.rendering.text.numbers import compact, in_words
from verl_tui.rendering.text.piece import cells_of, text_of
from verl_tui.rendering.text.printable import middle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.rendering.charts.chart_data import ChartData, ChartLine
    from verl_tui.rendering.charts.symbols import Text
    from verl_tui.rendering.text.piece import Pieces

_GAP = ("  ", "")
_MORE = (f" {SYMBOLS.ellipsis}", "key")
_OF = " of "
_LEAST_NAME = 6
"""Cells below which the name of a run says nothing."""
_LEAST_LETTERS = 3
"""Cells below which the name of a line says nothing beside its sign."""
_READING, _SCORE = 9, 9
"""Cells kept for value and trend, and for a score, so that a sparkline stays as long while their
digits change.
"""
_LEAST_SPARK = 4
"""Cells of a sparkline that is still worth drawing."""
_UNITS = 56
"""Cells from which on a chart of one row has room for the unit."""


def title_row(
    data: ChartData, width: int, cursor: int | None, *, focus: bool = False
) -> Text:
    """Write name, value and trend at the left; score, smoothing, target, and key or legend at the
    right, as far as they fit. With a cursor the values are those at its step, of several first.
    """
    mark = f"{SYMBOLS.focus} " * focus
    value = _fitting_value(data, cursor, width - len(mark) - cell_len(data.title) - 2)
    left = _named_value(data, width, mark, value)
    room = width - cells_of(left) - 2
    if room < -2:
        return ((fit(text_of(left), width), "value"),)
    aside: Pieces = []
    for words in _beside(data, cursor, room):
        if words and cells_of(words) <= room:
            aside += [_GAP] * bool(aside) + words
            room -= cells_of(words) + 2
    space = (" " * (width - cells_of(left) - cells_of(aside)), "")
    return tuple([part for part in (*left, space, *aside) if part[0]])


def _fitting_value(data: ChartData, cursor: int | None, room: int) -> Pieces:
    """Return the value; without its unit where that does not fit, or beside other runs' values."""
    value = value_pieces(data, cursor)
    several = cursor is not None and any(line.sign for line in data.lines)
    if several or cells_of(value) > room:
        return value_pieces(data, cursor, unit=False)
    return value


def _beside(data: ChartData, cursor: int | None, room: int) -> list[Pieces]:
    """Return what stands at the right, the most important first: how a curve is smoothed that
    nobody chose, the score beside it, the note, names or the metric's key.
    """
    said = [
        [(f"~{data.smoothing:g}" * (data.by_noise and data.smoothing > 0), "key")],
        score_beside_curve(data, cursor),
        [(fit(data.note, len(data.note)), "target")],
    ]
    said = [words for words in said if text_of(words)]
    lines = _named(data, at_cursor=cursor is not None)
    if not lines:
        key = data.key if data.title != data.key else ""
        return [*said, [(fit(key, len(key)), "key")] * bool(key)]
    if cursor is not None:
        return [_names(data, lines, cursor, room), *said]
    room -= sum(cells_of(words) + 2 for words in said)
    return [*said, _names(data, lines, cursor, room)]


def _named_value(data: ChartData, width: int, mark: str, value: Pieces) -> Pieces:
    """Write the chart's name, its run where there is room, and the value."""
    room = width - cells_of(value) - 2 * bool(value)
    name = mark + fit(data.title, max(0, room - len(mark)))
    parts = [(name, "focused" if mark else "title")]
    left = room - cell_len(name) - len(_OF)
    if data.run and left >= _LEAST_NAME and not any(line.sign for line in data.lines):
        run = middle(data.run, min(left, cell_len(data.run)))
        parts.append((_OF + run, "trend"))
    if value and len(name) > len(mark):
        parts.append(_GAP)
    return parts + value


def value_pieces(data: ChartData, cursor: int | None, *, unit: bool = True) -> Pieces:
    """Return the value of a chart's main line: the newest with its trend, or the one at the cursor
    and where that is; nothing where it has none.
    """
    line = data.main
    if line is None or not line.points.steps:
        return []
    if cursor is not None:
        found = value_at(line.points, cursor)
        number, of = in_words(found[1], data.unit) if found else ("-", "")
        where = data.axis.exact(found[0] if found else cursor)
        return [(number + of * unit, "cursor"), (f" @ {where}", "cursor")]
    stop = len(line.points.steps)
    if data.end is not None:
        stop = bisect_right(line.points.steps, data.end)
    newest = line.points.values[max(0, stop - TREND_POINTS) : stop]
    if not newest:
        return []
    number, of = in_words(newest[-1], data.unit)
    role = "value" if isfinite(newest[-1]) else "odd"
    return [(number + of * unit, role), *_arrow(data, line, newest)]


def _arrow(data: ChartData, line: ChartLine, newest: Sequence[float]) -> Pieces:
    """Return which way the newest values go, where that is to be said."""
    # a logarithmic axis shows even small changes
    shown = None if data.log_y else data.extent
    drawn = shown and value_range(line.points, *shown, usual=data.usual_y)
    way = trend(newest, drawn)
    if way is None or data.in_row or data.trendless:
        return []
    return [(f" {(SYMBOLS.flat, SYMBOLS.rising, SYMBOLS.falling)[way]}", "trend")]


def score_beside_curve(data: ChartData, cursor: int | None) -> Pieces:
    """Return what is drawn as points beside a chart's curve; with a cursor the value there."""
    line = next((line for line in data.lines if line.kind == "points"), None)
    text = data.beside
    if line is None or not text:
        return []
    if cursor is not None:
        found = value_at(line.points, cursor)
        if found is None:
            return []
        text = f"val {compact(found[1])} @ {data.axis.exact(found[0])}"
    return [(f"{SYMBOLS.points[0]} {text}", line.role)]


# -- the names of lines ----------------------------------------------------------------------------


def _named(data: ChartData, *, at_cursor: bool) -> list[tuple[ChartLine, str]]:
    """Return lines with their signs, none where there is a single curve; at the cursor those whose
    values stand nowhere else. Runs stand in the order of their letters.
    """
    lines = sorted(signs(data), key=lambda pair: pair[0].sign or "~")
    if not any(sign and line.kind == "line" for line, sign in lines):
        return []
    said = data.main if at_cursor else None
    return [
        (line, sign)
        for line, sign in lines
        if line is not said and not (at_cursor and line.kind == "points")
    ]


def _names(
    data: ChartData,
    lines: list[tuple[ChartLine, str]],
    cursor: int | None,
    room: int,
) -> Pieces:
    """Write the signs of several curves in their colours, and as much of their names as fits, as
    text, which needs more contrast than hues of curves have on every ground; with the values at the
    cursor.
    """
    words = [_number_at(data, line, cursor) for line, _ in lines]
    longest = max((cell_len(line.label) for line, _ in lines), default=0)
    letters = (room - sum(len(word) + 4 for word in words)) // max(1, len(lines))
    letters = min(longest, letters) if letters >= min(longest, _LEAST_LETTERS) else 0
    names: Pieces = []
    for (line, sign), word in zip(lines, words, strict=True):
        # names of runs differ at their ends
        name = (middle if line.sign else fit)(line.label, letters)
        said = f" {name} {word}".rstrip().replace("  ", " ")
        piece = [("  " * bool(names) + sign, line.role), (said, "value")]
        rest = 2 * (line is not lines[-1][0])  # for the ellipsis
        if cells_of([*names, *piece]) + rest > room:
            return [*names, _MORE] * bool(names)
        names += piece
    return names


def _number_at(data: ChartData, line: ChartLine, cursor: int | None) -> str:
    """Return which y axis a line has, and its number at the cursor."""
    found = value_at(line.points, cursor) if cursor is not None else None
    unit = line.unit if line.right else data.unit
    number = in_words(found[1], unit)[0] if found else ""
    return f"right {number}" if line.right else number


# -- a chart in one row ----------------------------------------------------------------------------


def name_cells(width: int) -> int:
    """Return how many cells the name takes in a chart of one row."""
    return min(18, width // 3)


def chart_row(
    data: ChartData, width: int, cursor: int | None, *, focus: bool = False
) -> Text:
    """Write a chart in one row: its name, a sparkline, its value and trend. Charts of one width
    stand in columns.
    """
    reading = value_pieces(data, cursor, unit=width >= _UNITS)
    reading = reading or [(fit(data.empty, width // 2), "key")]
    cells = name_cells(width)
    room = width - cells - 2 - max(_READING, cells_of(reading))
    if room < _LEAST_SPARK:
        return title_row(data, width, cursor, focus=focus)
    name = f"{SYMBOLS.focus} " * focus + (data.short or data.title)
    # keys often differ at their ends only, words do not
    name = (middle if "/" in name else fit)(name, cells)
    row: Pieces = [(set_cell_size(name, cells + 1), "focused" if focus else "title")]
    score = [
        (text.removeprefix(f"{SYMBOLS.points[0]} ").partition(",")[0], of)
        for text, of in score_beside_curve(data, cursor)
    ]
    kept = max(_SCORE, cells_of(score)) + 2
    if score and room - kept >= _LEAST_SPARK:
        row += sparkline_row(data, room - kept)
        row += [(" " * (kept - cells_of(score)), ""), *score]
    else:
        row += sparkline_row(data, room)
    return (*row, (" " * (width - cells_of(row) - cells_of(reading)), ""), *reading)


def sparkline_row(data: ChartData, width: int) -> Text:
    """Write the chart's main line as a sparkline of exactly `width` cells, with marks where a
    breach began.
    """
    line = data.main
    if line is None:
        return ((" " * width, ""),)
    shown = data.shown if data.reach else None
    ends = shown or (data.first_step, data.last_step)
    cells = spark_pieces(
        sparkline(line.points, width, ends=ends).ljust(width),
        line.role,
    )
    for mark in data.marks:
        column = spark_column(line.points, width, mark.step, ends=ends)
        if mark.role == "breach" and column is not None:
            cells[column] = (SYMBOLS.breach, mark.style)
    return join(cells)
