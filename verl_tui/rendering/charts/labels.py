"""The words of a chart: its title row and its axes, as rows of styled text."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import replace
from itertools import chain, product
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
from verl_tui.rendering.charts.line_signs import signs
from verl_tui.rendering.charts.ranges import extent, spark_reach
from verl_tui.rendering.charts.sparkline import spark_column, spark_pieces, sparkline
from verl_tui.rendering.charts.symbols import ASCII, Symbols, fit
from verl_tui.rendering.charts.validation import score_beside_curve
from verl_tui.rendering.text.numbers import compact
from verl_tui.rendering.text.piece import cells_of, text_of
from verl_tui.rendering.text.printable import middle, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from verl_tui.rendering.charts.axes import Scale
    from verl_tui.rendering.charts.braille import Text
    from verl_tui.rendering.charts.chart_data import ChartData, ChartLine


_Parts = list[tuple[str, str]]
"""Texts with their roles."""
_READING = 10
"""Cells kept for value and trend in a chart of one row."""
_GAP = ("  ", "")
_OF = " of "
_LEAST_NAME = 6
"""Cells below which the name of a run says nothing."""
_ENOUGH, _LEAST_LETTERS = 16, 3
"""Cells of a name in the legend that are enough beside a note, and those that are better than no
name.
"""
_SPARK = 24
"""Cells of a sparkline from which on it gives way to the score beside it."""
_LEAST_SPARK, _LEAST_SCORE, _LEAST_READING = 6, 9, 8
"""Cells of a sparkline that is still worth drawing beside a score, and those kept for the score and
the value beside it, so that the sparkline stays as long while their digits change.
"""
_UNITS = 56
"""Cells from which on a chart of one row has room for the unit."""


def value_text(value: float, unit: str) -> str:
    """Write a value with its unit."""
    gap = " " if unit and unit != "%" else ""
    return f"{compact(value)}{gap}{unit}"


def title_row(
    data: ChartData, width: int, cursor: int | None, symbols: Symbols, *, focus: bool = False
) -> Text:
    """Write name, value and trend at the left, key or legend at the right, as far as they fit.

    With a cursor the values are those at its step: of several runs in the legend, as many as fit.
    """
    mark = f"{symbols.focus} " if focus else ""
    reading, side = _runs_at_cursor(data, width - len(mark), cursor, symbols)
    reading = reading or _fitting(data, width, cursor, symbols)
    parts = _named_reading(data, width, mark, reading, symbols)
    room = width - cells_of(parts)
    for aside in [side] if side else _sides(data, cursor, symbols, room - 2):
        if cells_of(aside) + 2 <= room:
            parts += [(" " * (room - cells_of(aside)), ""), *aside]
            break
    if room < 0:
        parts = [(fit(text_of(parts), width, symbols), "value")]
    return tuple([part for part in parts if part[0]])


def _named_reading(
    data: ChartData, width: int, mark: str, reading: _Parts, symbols: Symbols
) -> _Parts:
    """Write the chart's name, its run where there is room, and the value."""
    used = cells_of(reading)
    room = max(0, width - used - len(mark) - (2 if used else 0))
    name = mark + fit(data.title, room, symbols)
    parts = [(name, "focused" if mark else "title")]
    lettered = any(line.sign for line in data.lines)
    run = "" if lettered else _of_run(data, width - used - cell_len(name) - 2, symbols)
    if run:
        parts.append((run, "trend"))
    if reading and len(name) > len(mark):
        parts.append(("  ", ""))
    return parts + reading


def _sides(data: ChartData, cursor: int | None, symbols: Symbols, room: int) -> Iterator[_Parts]:
    """Yield what may stand at the right, from what is wanted most to what needs the least room."""
    beside = score_beside_curve(data, cursor, symbols)
    for words in beside:
        left = room - cells_of(words) - 2
        asides = _asides(data, cursor, symbols, left)
        yield from ([*words, _GAP, *aside] for aside in asides if cells_of(aside) <= left)
        if not _smoothed(data):  # how it is smoothed is said before all else
            yield words
    yield from _asides(data, cursor, symbols, room)
    yield from beside


def _asides(data: ChartData, cursor: int | None, symbols: Symbols, room: int) -> Iterator[_Parts]:
    """Yield what else may stand there: target, smoothing, key or legend."""
    notes = [(fit(note, len(note), symbols), "target") for note in data.notes]
    smooth = _smoothed(data)
    if smooth and data.run:  # a chart over the full screen, with the only place for the key
        for named, how in product(_named(data, cursor, symbols, _ENOUGH, room), smooth):
            yield [*named, *(part for note in notes[:1] for part in (_GAP, note)), _GAP, *how]
    yield from _legend_smoothed(data, cursor, symbols, room)
    for note in notes:
        yield from _behind(note, smooth[-1:])
    yield from smooth
    for note in notes[:1]:
        left = room - cells_of([note]) - 2
        yield from _behind(note, _named(data, cursor, symbols, _ENOUGH, left))
    yield from ([note] for note in notes)
    yield from _named(data, cursor, symbols, _LEAST_LETTERS, room)


def _legend_smoothed(
    data: ChartData, cursor: int | None, symbols: Symbols, room: int
) -> Iterator[_Parts]:
    """Yield the legend of runs over each other and how all of them are smoothed."""
    for how in _smoothed(data)[1:] if _several(data) else ():
        left = room - cells_of(how) - len(_GAP[0])
        for named in _named(data, cursor, symbols, _LEAST_LETTERS, left):
            yield [*named, _GAP, *how]


def _behind(note: tuple[str, str], sides: Iterable[_Parts]) -> Iterator[_Parts]:
    """Return what may stand at the right, each behind a note."""
    return ([note, _GAP, *side] for side in sides)


def _smoothed(data: ChartData) -> list[_Parts]:
    """Return the ways to say how a curve is smoothed that nobody chose, the longest first."""
    if not data.by_noise or not data.smoothing:
        return []
    weight = f"{data.smoothing:g}"
    texts = (f"smoothed {weight}, by its noise", f"smoothed {weight}", f"~{weight}")
    return [[(text, "key")] for text in texts]


def _named(
    data: ChartData, cursor: int | None, symbols: Symbols, least: int, room: int
) -> list[_Parts]:
    """Return the legend with names as long as fit, but of `least` cells; where there is no legend
    the key.
    """
    if not _legend(data, cursor, symbols, least):
        return [[(fit(data.key, len(data.key), symbols), "key")]] if data.title != data.key else []
    longest = max(cell_len(line.label) for line in data.all_lines)
    sizes = range(max(longest, least), least - 1, -1)
    at = bisect_left(
        sizes, -room, key=lambda cells: -cells_of(_legend(data, cursor, symbols, cells))
    )
    return [_legend(data, cursor, symbols, cells) for cells in sizes[at : at + 1]]


def _runs_at_cursor(
    data: ChartData, width: int, cursor: int | None, symbols: Symbols
) -> tuple[_Parts, _Parts]:
    """Return where the cursor is, and the values of several runs there, as many as fit.

    Both are empty where not even one value fits.
    """
    runs = [line for line in data.lines if line.sign and line.kind == "line"]
    main = data.main
    if cursor is None or main is None or len(runs) < 2:
        return [], []
    runs.sort(key=lambda line: line.sign)
    own = value_at(main.points, cursor)
    at = [(f"@ {data.axis.read(own[0] if own else cursor)}", "cursor")]
    room = width - cell_len(data.title) - cells_of(at) - 4
    side = _fitting_values(data, runs, main, cursor, room, symbols)
    return (at, side) if side else ([], [])


def _fitting_values(
    data: ChartData,
    runs: Sequence[ChartLine],
    main: ChartLine,
    cursor: int,
    room: int,
    symbols: Symbols,
) -> _Parts:
    """Return the values of the runs with their names, else with their letters, as many as fit."""
    named = _named(data, cursor, symbols, _LEAST_LETTERS, room)
    lettered = (
        _values(runs, main, count, gap, cursor, symbols)
        for count in range(len(runs), 0, -1)
        for gap in ("  ", " ")
    )
    return next((side for side in chain(named, lettered) if cells_of(side) <= room), [])


def _values(
    runs: Sequence[ChartLine], main: ChartLine, count: int, gap: str, cursor: int, symbols: Symbols
) -> _Parts:
    """Write values of so many runs behind their letters, the shown one's among them."""
    kept = [main, *(line for line in runs if line is not main)][:count]
    side: _Parts = []
    for line in (line for line in runs if line in kept):
        found = value_at(line.points, cursor)
        side += [
            (gap if side else "", ""),
            (line.sign, line.role),
            (f" {compact(found[1]) if found else '-'}", "value"),
        ]
    return side if len(kept) == len(runs) else [*side, (f" {symbols.ellipsis}", "key")]


def _of_run(data: ChartData, room: int, symbols: Symbols) -> str:
    """Return the words that name the metric's run, empty where there is no room for it."""
    if not data.run or room - len(_OF) < _LEAST_NAME:
        return ""
    cells = min(room - len(_OF), cell_len(data.run))
    return _OF + middle(data.run, cells, ascii_only=symbols is ASCII)


def name_cells(width: int) -> int:
    """Return how many cells the name takes in a chart of one row."""
    return min(18, width // 3)


def one_line(
    data: ChartData, width: int, cursor: int | None, symbols: Symbols, *, focus: bool = False
) -> Text:
    """Write a chart in one row: name, sparkline, value and trend.

    Charts of one width stand in columns.
    """
    with_unit = data if width >= _UNITS else replace(data, unit="")
    reading = _reading(with_unit, cursor, symbols) or [
        (fit(data.empty, width // 2, symbols), "key")
    ]
    name_width = name_cells(width)
    room = width - name_width - max(_READING, cells_of(reading)) - 2
    if room < 4:
        return title_row(data, width, cursor, symbols, focus=focus)
    name = _name(data, name_width, symbols, focus=focus)
    title = (set_cell_size(name, name_width + 1), "focused" if focus else "title")
    score = score_beside_curve(data, cursor, symbols)[-1:]
    score = [[*words, _GAP] for words in score if room - cells_of(words) - len(_GAP[0]) >= _SPARK]
    if not score and (close := _beside_short_spark(data, width, cursor, symbols, reading)):
        return (title, *close)
    spark = spark_row(data, room - sum(map(cells_of, score)), symbols)
    gap = width - name_width - 1 - room - cells_of(reading)
    return (title, *spark, (" " * gap, ""), *chain(*score), *reading)


def _name(data: ChartData, width: int, symbols: Symbols, *, focus: bool) -> str:
    """Return a chart's name, cut to a width in cells."""
    name = (f"{symbols.focus} " if focus else "") + (data.short or data.title)
    if "/" in name:  # keys often differ at their ends only, words do not
        return middle(name, width, ascii_only=symbols is ASCII)
    return fit(name, width, symbols)


def _beside_short_spark(
    data: ChartData, width: int, cursor: int | None, symbols: Symbols, reading: _Parts
) -> Text:
    """Write what follows the name where the score leaves a short sparkline; nothing where there is
    no score, or no room for both.
    """
    words = next(iter(score_beside_curve(data, cursor, symbols)[-1:]), None)
    if words is None:
        return ()
    score = [(text.removeprefix(f"{symbols.points[0]} "), role) for text, role in words]
    kept, held = max(_LEAST_SCORE, cells_of(score)), max(_LEAST_READING, cells_of(reading))
    room = width - name_cells(width) - 1 - kept - held - 2
    if room < _LEAST_SPARK:
        return ()
    before, between = 1 + kept - cells_of(score), 1 + held - cells_of(reading)
    return (
        *spark_row(data, room, symbols),
        (" " * before, ""),
        *score,
        (" " * between, ""),
        *reading,
    )


def spark_row(data: ChartData, width: int, symbols: Symbols) -> Text:
    """Write the chart's main line as a sparkline of exactly `width` cells, with marks where a
    breach began.
    """
    line = data.main
    if line is None:
        return ((" " * width, ""),)
    zoom = spark_reach(data)
    text = sparkline(line.points, width, **zoom, ascii_only=symbols is ASCII).ljust(width)
    cells = spark_pieces(text, line.role)
    for mark in data.marks:
        if mark.role != "breach":
            continue
        column = spark_column(line.points, width, mark.step, **zoom)
        if column is not None:
            cells[column] = (symbols.breach, mark.style)
    return join(cells)


def beyond(target: float, scale: Scale, cells: int, symbols: Symbols) -> str:
    """Write which way a target lies that the y axis does not reach, and its value where there is
    room.
    """
    arrow = symbols.rising if target > scale.hi else symbols.falling
    text = arrow + compact(target)
    return text if len(text) * 4 <= cells else arrow[:cells]


def sentences(text: str, width: int, rows: int, symbols: Symbols) -> list[Text]:
    """Write sentences, a line each, in the middle of `rows` rows, wrapped and cut to fit."""
    lines: list[str] = []
    for sentence in text.split("\n"):
        lines += wrapped(sentence, width, ascii_only=symbols is ASCII)
    if len(lines) > rows > 0:
        lines[rows - 1] = fit(lines[rows - 1] + " " * width, width - 1, symbols)
    lines = lines[: max(0, rows)]
    above = (rows - len(lines)) // 2
    filled = [""] * above + lines + [""] * (rows - above - len(lines))
    centred = (" " * ((width - cell_len(line)) // 2) + line for line in filled)
    return [((set_cell_size(line, width), "key"),) for line in centred]


def _reading(data: ChartData, cursor: int | None, symbols: Symbols) -> _Parts:
    line = data.main
    if line is None or not line.points.steps:
        return []
    if cursor is not None:
        return _reading_at(line, cursor, data)
    stop = len(line.points.steps) if data.end is None else bisect_right(line.points.steps, data.end)
    if not stop:
        return []
    last = line.points.values[stop - 1]
    reading = [(value_text(last, data.unit), "value" if isfinite(last) else "odd")]
    way = trend(line.points.values[max(0, stop - TREND_POINTS) : stop], _drawn(line, data))
    if way is not None and not data.in_row:
        reading.append((f" {(symbols.flat, symbols.rising, symbols.falling)[way]}", "trend"))
    return reading


def _drawn(line: ChartLine, data: ChartData) -> tuple[float, float] | None:
    """Return the range that a line takes on the y axis; None on a logarithmic one, which shows even
    small changes.
    """
    shown = extent(data)
    if shown is None or data.log_y:
        return None
    return (usual_range if data.usual_y else value_range)(line.points, *shown)


def _reading_at(line: ChartLine, cursor: int, data: ChartData) -> _Parts:
    """Return a line's value at the cursor, and where that is."""
    found = value_at(line.points, cursor)
    text = value_text(found[1], data.unit) if found else "-"
    x = value_at(line.over, cursor) if line.over is not None else None
    text += f" at KL {compact(x[1])}" if x is not None else ""
    return [(text, "cursor"), (f" @ {data.axis.read(found[0] if found else cursor)}", "cursor")]


def _fitting(data: ChartData, width: int, cursor: int | None, symbols: Symbols) -> _Parts:
    """Return the reading, without its unit where that makes room for a name cut short or a target
    left unsaid.
    """
    whole = _reading(data, cursor, symbols)
    if not data.unit:
        return whole
    bare = _reading(replace(data, unit=""), cursor, symbols)
    room = width - cell_len(data.title) - 2
    least, most = room - cells_of(whole), room - cells_of(bare)
    said = [*data.notes, *(text for ((text, _),) in _smoothed(data))]
    note = min(map(len, said), default=-2) + 2
    return bare if least < 2 or least < note <= most else whole


def _legend(data: ChartData, cursor: int | None, symbols: Symbols, letters: int) -> _Parts:
    """Write the signs of the lines in their colours, and their names as text, which needs more
    contrast than hues of curves have on every ground.
    """
    if cursor is None and not _several(data):
        return []
    legend: _Parts = []
    # Runs stand in the order of their letters, whichever of them is shown.
    for line, sign in sorted(signs(data, symbols), key=lambda pair: pair[0].sign or "~"):
        if not sign:
            continue
        found = value_at(line.points, cursor) if cursor is not None else None
        value = (" right" if line.right else "") + (f" {compact(found[1])}" if found else "")
        gap = "  " if legend else ""
        legend.append((gap + sign, line.role))
        legend.append((f" {_short(line, letters, symbols)}{value}", "value"))
    return legend


def _short(line: ChartLine, cells: int, symbols: Symbols) -> str:
    """Return a line's name in little room: names of runs differ at their ends."""
    if line.sign:
        return middle(line.label, cells, ascii_only=symbols is ASCII)
    return fit(line.label, cells, symbols)


def _several(data: ChartData) -> bool:
    kinds = [line.kind for line in data.all_lines]
    return len(set(kinds)) < len(kinds)
