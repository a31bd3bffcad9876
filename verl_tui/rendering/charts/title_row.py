"""What a chart says in one row: name and value at the left, at the right what else there is to say,
or a sparkline.
"""

from __future__ import annotations

from bisect import bisect_right
from math import isfinite
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size

from verl_tui.rendering.charts.braille import join
from verl_tui.rendering.charts.downsample import (
    TREND_POINTS,
    trend,
    usual_range,
    value_at,
    value_range,
)
from verl_tui.rendering.charts.picture import signs
from verl_tui.rendering.charts.sparkline import spark_column, spark_pieces, sparkline
from verl_tui.rendering.charts.symbols import SYMBOLS, fit
from verl_tui.rendering.text.numbers import compact
from verl_tui.rendering.text.piece import cells_of, text_of
from verl_tui.rendering.text.printable import middle
from verl_tui.rendering.text.units import in_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.rendering.charts.braille import Text
    from verl_tui.rendering.charts.chart_data import ChartData, ChartLine
    from verl_tui.rendering.text.piece import Pieces

_GAP = ("  ", "")
_MORE = (f" {SYMBOLS.ellipsis}", "key")
_OF = " of "
_LEAST_NAME = 6
"""Cells below which the name of a run says nothing."""
_SIZES = (24, 16, 12, 10, 8, 6, 5, 4, 3)
"""Cells that the names of lines are cut to where they do not fit."""
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
    right, as far as they fit. With a cursor the values are those at its step.
    """
    mark = f"{SYMBOLS.focus} " if focus else ""
    notes: list[Pieces] = [[(fit(note, len(note)), "target")] for note in data.notes]
    said = [_smoothing_words(data), score_beside_curve(data, cursor), notes]
    value = _fitting_value(data, cursor, width - len(mark), said)
    left = _named_value(data, width, mark, value)
    names = _names_or_key(data, cursor)
    # the values of several runs come first, the key last
    said.insert(0 if cursor is not None and names and names[-1] else 3, names)
    room = width - cells_of(left)
    if room < 0:
        left = [(fit(text_of(left), width), "value")]
    aside = _aside(said, room)
    if aside:
        left += [(" " * (room - cells_of(aside)), ""), *aside]
    return tuple([part for part in left if part[0]])


def _fitting_value(
    data: ChartData, cursor: int | None, width: int, said: Sequence[Sequence[Pieces]]
) -> Pieces:
    """Return the value, without its unit where that leaves the name whole, or makes room for what
    else there is to say; only where the cursor is if the values of several runs are named.
    """
    room = width - cell_len(data.title) - 2
    if cursor is not None and sum(bool(one.sign) for one in data.lines) > 1:
        where = text_of(value_pieces(data, cursor)[-1:]).strip()
        if where and cell_len(where) + 2 + cells_of(_names(data, cursor, 0)) <= room:
            return [(where, "cursor")]
    ways = [value_pieces(data, cursor, unit=unit) for unit in (True, False)]
    rooms = [room - cells_of(way) for way in ways]
    fits = [(left >= 0, len(_chosen(said, left))) for left in rooms]
    return ways[fits[1] > fits[0]]


def _aside(groups: Sequence[Sequence[Pieces]], room: int) -> Pieces:
    """Return what stands at the right: of each group the shortest way to say it, as far as there is
    room, each then as long as fits.

    Args:
        groups: What there is to say, the most important first; the ways to say it, the longest
            first.
        room: Cells there are.
    """
    chosen = _chosen(groups, room)
    room -= sum(_cost(group[-1]) for group in chosen)
    row: Pieces = []
    for group in chosen:
        room += _cost(group[-1])
        longest = next(way for way in group if _cost(way) <= room)
        room -= _cost(longest)
        row += [_GAP, *longest] if row and longest else longest
    return row


def _chosen(groups: Sequence[Sequence[Pieces]], room: int) -> list[Sequence[Pieces]]:
    """Return the groups of which the shortest ways fit."""
    chosen: list[Sequence[Pieces]] = []
    for group in groups:
        if group and _cost(group[-1]) <= room:
            chosen.append(group)
            room -= _cost(group[-1])
    return chosen


def _cost(way: Pieces) -> int:
    """Return the cells of a way to say something, with a gap before it."""
    return cells_of(way) + 2 if way else 0


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


def _smoothing_words(data: ChartData) -> list[Pieces]:
    """Return the ways to say how a curve is smoothed that nobody chose, the longest first."""
    if not data.by_noise or not data.smoothing:
        return []
    weight = f"{data.smoothing:g}"
    return [[(text, "key")] for text in (f"smoothed {weight}", f"~{weight}")]


# -- the value -------------------------------------------------------------------------------------


def value_pieces(data: ChartData, cursor: int | None, *, unit: bool = True) -> Pieces:
    """Return the value of a chart's main line: the newest with its trend, or the one at the cursor
    and where that is; nothing where it has none.
    """
    line = data.main
    if line is None or not line.points.steps:
        return []
    values, stop = line.points.values, len(line.points.steps)
    if cursor is not None:
        return _value_at_cursor(line, cursor, data, unit=unit)
    if data.end is not None:
        stop = bisect_right(line.points.steps, data.end)
    if not stop:
        return []
    number, of = in_words(values[stop - 1], data.unit)
    role = "value" if isfinite(values[stop - 1]) else "odd"
    pieces = [(number + of * unit, role)]
    if data.in_row or data.trendless:
        return pieces
    way = trend(values[max(0, stop - TREND_POINTS) : stop], _drawn(line, data))
    if way is not None:
        arrow = (SYMBOLS.flat, SYMBOLS.rising, SYMBOLS.falling)[way]
        pieces.append((f" {arrow}", "trend"))
    return pieces


def _drawn(line: ChartLine, data: ChartData) -> tuple[float, float] | None:
    """Return the range that a line takes on the y axis; None on a logarithmic one, which shows even
    small changes.
    """
    shown = data.extent
    if shown is None or data.log_y:
        return None
    return (usual_range if data.usual_y else value_range)(line.points, *shown)


def _value_at_cursor(
    line: ChartLine, cursor: int, data: ChartData, *, unit: bool
) -> Pieces:
    found = value_at(line.points, cursor)
    x = value_at(line.over, cursor) if line.over is not None else None
    number, of = in_words(found[1], data.unit) if found else ("-", "")
    at = f" at KL {compact(x[1])}" if x is not None else ""
    where = data.axis.read(found[0] if found else cursor)
    return [(number + of * unit + at, "cursor"), (f" @ {where}", "cursor")]


def score_beside_curve(data: ChartData, cursor: int | None) -> list[Pieces]:
    """Return the ways to say what is drawn as points beside a chart's curve, the longest first;
    with a cursor the value there.
    """
    line = next((line for line in data.lines if line.kind == "points"), None)
    if line is None or not data.beside:
        return []
    texts: Sequence[str] = data.beside
    if cursor is not None:
        found = value_at(line.points, cursor)
        at = f" @ {data.axis.read(found[0])}" if found else ""
        texts = [f"val {compact(found[1])}{at}"] if found else []
    return [[(f"{SYMBOLS.points[0]} {text}", line.role)] for text in texts]


# -- the names of lines ----------------------------------------------------------------------------


def _names_or_key(data: ChartData, cursor: int | None) -> list[Pieces]:
    """Return the ways to name the lines of a chart, with their values at the cursor; where they
    need no names the metric's key.
    """
    kinds = [line.kind for line in data.all_lines]
    letters = _names(data, cursor, 0)
    if not letters or (cursor is None and len(set(kinds)) == len(kinds)):
        key = [(fit(data.key, len(data.key)), "key")]
        return [] if data.title == data.key else [key, []]
    longest = max(cell_len(line.label) for line in data.all_lines)
    ways = [_names(data, cursor, cells) for cells in (longest, *_SIZES)]
    if cursor is not None:
        fewer = range(len(letters) - 2, 0, -2)
        ways += [letters, *([*letters[:n], _MORE] for n in fewer)]
    return ways


def _names(data: ChartData, cursor: int | None, letters: int) -> Pieces:
    """Write the signs of the lines in their colours, and their names as text, which needs more
    contrast than hues of curves have on every ground.
    """
    names: Pieces = []
    # Runs stand in the order of their letters, whichever of them is shown.
    for line, sign in sorted(signs(data), key=lambda pair: pair[0].sign or "~"):
        if not sign or (not letters and line.kind == "points"):
            continue
        # names of runs differ at their ends
        name = (middle if line.sign else fit)(line.label, letters)
        words = [sign, name, "right" * (line.right and letters > 0)]
        words.append(_number_at(data, line, cursor))
        said = " ".join(filter(None, words)).removeprefix(sign)
        names += [(("  " if names else "") + sign, line.role), (said, "value")]
    return names


def _number_at(data: ChartData, line: ChartLine, cursor: int | None) -> str:
    """Return the number of a line at the cursor, empty where there is none."""
    metric = data.right if line.right and data.right is not None else data
    found = value_at(line.points, cursor) if cursor is not None else None
    return in_words(found[1], metric.unit)[0] if found else ""


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
    score = [words[0] for words in score_beside_curve(data, cursor)[-1:]]
    score = [(text.removeprefix(f"{SYMBOLS.points[0]} "), of) for text, of in score]
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
    shown = (data.shown or data.reach) if data.reach else None
    ends = shown or (data.first_step, data.last_step)
    cells = spark_pieces(
        sparkline(line.points, width, ends=ends, shared=bool(shown)).ljust(width),
        line.role,
    )
    for mark in data.marks:
        column = spark_column(
            line.points, width, mark.step, ends=ends, shared=bool(shown)
        )
        if mark.role == "breach" and column is not None:
            cells[column] = (SYMBOLS.breach, mark.style)
    return join(cells)
