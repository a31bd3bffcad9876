"""What a chart says in one row: name and value at the left, at the right what else there is to say,
or a sparkline.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from math import isfinite

from rich.cells import cell_len, set_cell_size

from verl_tui.rendering.charts.chart_data import (
    ALARM_ROLES,
    ARROWS,
    SCORE,
    ChartData,
    ChartLine,
)
from verl_tui.rendering.charts.downsample import (
    TREND_POINTS,
    trend,
    value_range,
)
from verl_tui.rendering.charts.sparkline import sparkline
from verl_tui.rendering.text.numbers import compact, in_words
from verl_tui.rendering.text.piece import (
    ELLIPSIS,
    Pieces,
    TextRows,
    cells_of,
    fit,
    joined,
    middle,
    printable,
    text_of,
)
from verl_tui.rendering.text.table import sized
from verl_tui.words import counted

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
"""Cells from which a chart of one row has room for the unit."""


def title_row(
    data: ChartData, width: int, cursor: int | None, *, focus: bool = False
) -> Pieces:
    """Write name, value and trend at the left; score, smoothing, target, and key or legend at the
    right, as far as they fit. With a cursor the values are those at its step, of several first.
    """
    title = "▸ " * focus + printable(data.title)
    value = value_pieces(data, cursor)
    names = cursor is not None and data.lettered
    if names or cells_of(value) > width - cell_len(title) - 2:
        del value[1:2]  # the unit
    room = width - cells_of(value) - 2 * bool(value)
    row = [(_cut(title, room), "focused" if focus else "title")]
    left = room - cells_of(row) - 4
    if data.run and left >= _LEAST_NAME and not data.lettered:
        row.append((f" of {middle(data.run, left)}", "trend"))
    row += [*[("  ", "")] * bool(value), *value]
    room = width - cells_of(row) - 2
    if room < -2:
        return [(fit(text_of(row).strip(), width), "value")]
    aside = _fitting(_beside(data, cursor, room), room)
    return joined([*row, *sized(aside, width - cells_of(row), right=True)])


def _fitting(parts: TextRows, room: int) -> Pieces:
    row: Pieces = []
    for words in parts:
        if words and cells_of(words) <= room:
            row += [*[("  ", "")] * bool(row), *words]
            room -= cells_of(words) + 2
    return row


def _cut(title: str, cells: int) -> str:
    """Return a title cut: keys often differ at their ends only, words do not."""
    return (middle if "/" in title else fit)(title, cells)


def _beside(data: ChartData, cursor: int | None, room: int) -> TextRows:
    """Return what stands at the right, the most important first: how a curve is smoothed that
    nobody chose, the score beside it, the note, names or the metric's key.
    """
    by_noise = data.by_noise and data.smoothing > 0
    smoothed = "raw" if data.smoothed_around else f"~{data.smoothing:g}"
    said: TextRows = [[(smoothed, "key")]] * (by_noise is not data.smoothed_around)
    said.append(score_beside_curve(data, cursor))
    said += [[(printable(data.note), "target")]] * bool(data.note)
    if not data.lettered:
        known = data.headed or data.title == data.key
        return [*said, [(printable(data.key) * (not known), "key")]]
    if cursor is not None:
        return [_names(data, cursor, room), *said]
    room -= sum(cells_of(words) + 2 for words in said if words)
    return [*said, _names(data, cursor, room)]


def value_pieces(data: ChartData, cursor: int | None) -> Pieces:
    """Return the value of a chart's main line: the newest, its unit and its trend, or the one at
    the cursor, its unit and where that is; nothing where it has none.
    """
    line = data.main
    if not line.points.steps:
        return []
    if cursor is not None:
        found = line.points.at(cursor)
        number, unit = in_words(found.value, data.unit) if found else ("-", "")
        where = data.axis.exact(found.step if found else cursor)
        return [(number, "cursor"), (unit, "cursor"), (f" @ {where}", "cursor")]
    if data.value:
        return [(data.value, "value")]
    stop = bisect_right(line.points.steps, data.end)
    newest = line.points.values[max(0, stop - TREND_POINTS) : stop]
    if not newest:
        return []
    number, unit = in_words(newest[-1], data.unit)
    role = "value" if isfinite(newest[-1]) else "odd"
    return [(number, role), (unit, role), *_arrow(data, line, newest)]


def _arrow(data: ChartData, line: ChartLine, newest: Sequence[float]) -> Pieces:
    """Return which way the newest values go, unless the chart leaves that out."""
    if data.in_row or data.trendless:
        return []
    # a logarithmic axis shows even small changes
    shown = None if data.log_y else data.extent
    drawn = shown and value_range(line.points, *shown, usual=data.usual_y)
    way = trend(newest, drawn)
    return [] if way is None else [(f" {ARROWS[way]}", "trend")]


def score_beside_curve(data: ChartData, cursor: int | None) -> Pieces:
    """Return what is drawn as points beside a chart's curve; with a cursor the value there."""
    line = next((line for line in data.lines if line.kind == "points"), None)
    text = data.beside
    if line is None or not text:
        return []
    if cursor is not None:
        found = line.points.at(cursor)
        if found is None:
            return []
        text = f"val {compact(found.value)} @ {data.axis.exact(found.step)}"
    return [(f"{SCORE} {text}", line.role)]


def _names(data: ChartData, cursor: int | None, room: int) -> Pieces:
    """Write the signs of several curves in their colours, and as much of their names as fits, as
    text, which needs more contrast than hues of curves have on every ground; at the cursor the
    values that stand nowhere else. Runs stand in the order of their letters.
    """
    lines = sorted(data.lines, key=lambda line: (line.kind, line.sign))
    if cursor is not None:
        lines = [one for one in lines if one.kind == "line" and one is not data.main]
    words = [_number_at(data, line, cursor) for line in lines]
    letters = room - sum(len(word) + 4 for word in words)
    letters = max(0, letters // max(1, len(lines)))
    letters *= letters >= _LEAST_LETTERS
    names: Pieces = []
    for line, word in zip(lines, words, strict=True):
        said = f" {middle(line.label, letters)} {word}".rstrip().replace("  ", " ")
        piece = [("  " * bool(names) + line.sign, line.role), (said, "value")]
        rest = 2 * (line is not lines[-1])  # for the ellipsis
        if cells_of([*names, *piece]) + rest > room:
            return [*names, (f" {ELLIPSIS}", "key")] * bool(names)
        names += piece
    return names


def _number_at(data: ChartData, line: ChartLine, cursor: int | None) -> str:
    """Return which y axis a line has, and its number at the cursor."""
    found = None if cursor is None else line.points.at(cursor)
    unit = line.unit if line.right else data.unit
    number = in_words(found.value, unit)[0] if found else ""
    return f"right {number}".strip() if line.right else number


# -- a chart in one row ----------------------------------------------------------------------------


def name_cells(width: int) -> int:
    """Return how many cells the name takes in a chart of one row: `response length` has room in 38,
    and in 40 a score beside the sparkline, too.
    """
    return min(18, max(15, width // 3), width * 2 // 5)


def chart_row(
    data: ChartData,
    width: int,
    cursor: int | None,
    *,
    focus: bool = False,
    signs: bool = False,
) -> Pieces:
    """Write a chart in one row: its name, a sparkline, its value and trend. Charts of one width
    stand in columns; `signs` is that of `sparkline`.
    """
    reading = value_pieces(data, cursor) or [(fit(data.empty, width // 2), "key")]
    if width < _UNITS:
        del reading[1:2]
    cells = name_cells(width)
    room = width - cells - 2 - max(_READING, cells_of(reading))
    if room < _LEAST_SPARK:
        return title_row(data, width, cursor, focus=focus)
    name = "▸ " * focus + printable(data.short or data.title)
    name = set_cell_size(_cut(name, cells), cells + 1)
    row: Pieces = [(name, "focused" if focus else "title")]
    score = [
        (text.removeprefix(f"{SCORE} ").partition(",")[0], of)
        for text, of in score_beside_curve(data, cursor)
    ]
    kept = max(_SCORE, cells_of(score)) + 1 if score else 0
    if room - kept < _LEAST_SPARK:
        score, kept = [], 0
    row += sparkline_row(data, room - kept, signs=signs)
    row += sized(score, kept, right=True)
    return joined([*row, *sized(reading, width - cells_of(row), right=True)])


def sparkline_row(data: ChartData, width: int, *, signs: bool) -> Pieces:
    """Write the chart's main line as a sparkline of exactly `width` cells, with marks where a
    breach began, or their signs.
    """
    line = data.main
    row = sparkline(
        line.points,
        width,
        line.role,
        ends=(data.reach and data.shown) or (data.first_step, data.last_step),
        marks=[mark for mark in data.marks if mark.role in ALARM_ROLES],
        signs=signs,
        from_zero=data.from_zero,
    )
    return sized(row, width)


_PART = 22
"""Cells of a part of a metric at least."""


def part_rows(data: ChartData, width: int, height: int, cursor: int | None) -> TextRows:
    """Write the parts of a metric in so many rows at most; in the last one of several how many have
    no room, in a single one all or none.
    """
    if not data.parts or not height:
        return []
    columns = max(1, min(-(-len(data.parts) // height), width // _PART))
    if more := max(0, len(data.parts) - height * columns):
        height -= 1
        more += columns
    rows: TextRows = [[] for _ in range(height)]
    for at, part in enumerate(data.parts[: height * columns]):
        row = chart_row(part._replace(reach=data.shown), width // columns - 3, cursor)
        rows[at // columns] += [*row, ("   ", "")]
    said = [[(f"and {counted(more, 'part')}", "key")]] * (more > 0 < height)
    return [*filter(None, rows), *said]
