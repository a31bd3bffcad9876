"""The title row of a chart: name and value at the left; what else there is to say at the right."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from rich.cells import cell_len

from verl_tui.rendering.charts.current_value import current_value
from verl_tui.rendering.charts.line_names import (
    LEAST_LETTERS,
    has_several,
    names_or_key,
    runs_at_cursor,
)
from verl_tui.rendering.charts.symbols import SYMBOLS, fit
from verl_tui.rendering.charts.validation import score_beside_curve
from verl_tui.rendering.text.piece import cells_of, text_of
from verl_tui.rendering.text.printable import middle

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from verl_tui.rendering.charts.braille import Text
    from verl_tui.rendering.charts.chart_data import ChartData
    from verl_tui.rendering.text.piece import Piece, Pieces

_GAP = ("  ", "")
_OF = " of "
_LEAST_NAME = 6
"""Cells below which the name of a run says nothing."""
_ENOUGH = 16
"""Cells of a line's name that are enough beside a note."""


def title_row(
    data: ChartData, width: int, cursor: int | None, *, focus: bool = False
) -> Text:
    """Write name, value and trend at the left, key or legend at the right, as far as they fit.

    With a cursor the values are those at its step: of several runs in the legend, as many as fit.
    """
    mark = f"{SYMBOLS.focus} " if focus else ""
    reading, side = runs_at_cursor(data, width - len(mark), cursor)
    reading = reading or _fitting_value(data, width, cursor)
    parts = _named_value(data, width, mark, reading)
    room = width - cells_of(parts)
    for aside in [side] if side else _sides(data, cursor, room - 2):
        gap = room - cells_of(aside)
        if gap >= 2:
            parts += [(" " * gap, ""), *aside]
            break
    if room < 0:
        parts = [(fit(text_of(parts), width), "value")]
    return tuple([part for part in parts if part[0]])


def _fitting_value(data: ChartData, width: int, cursor: int | None) -> Pieces:
    """Return the value, without its unit where that makes room for a name cut short or a target
    left unsaid.
    """
    value = current_value(data, cursor)
    if value is None:
        return []
    whole, bare = value.pieces(), value.pieces(unit=False)
    if whole == bare:
        return whole
    room = width - cell_len(data.title) - 2
    least = room - cells_of(whole)
    most = room - cells_of(bare)
    smoothing = [text for ((text, _),) in _smoothing_words(data)]
    said = [*data.notes, *smoothing]
    note = min(map(len, said), default=-2) + 2
    if least < 2 or least < note <= most:
        return bare
    return whole


def _named_value(data: ChartData, width: int, mark: str, value: Pieces) -> Pieces:
    """Write the chart's name, its run where there is room, and the value."""
    used = cells_of(value)
    gap = 2 if used else 0
    room = max(0, width - used - len(mark) - gap)
    name = mark + fit(data.title, room)
    parts = [(name, "focused" if mark else "title")]
    lettered = any(line.sign for line in data.lines)
    if not lettered:
        run = _of_run(data, width - used - cell_len(name) - 2)
        parts += [(run, "trend")] if run else []
    if value and len(name) > len(mark):
        parts.append(_GAP)
    return parts + value


def _of_run(data: ChartData, room: int) -> str:
    """Return the words that name the metric's run, empty where there is no room for it."""
    if not data.run or room - len(_OF) < _LEAST_NAME:
        return ""
    cells = min(room - len(_OF), cell_len(data.run))
    return _OF + middle(data.run, cells)


# -- what may stand at the right -------------------------------------------------------------------


def _sides(data: ChartData, cursor: int | None, room: int) -> Iterator[Pieces]:
    """Yield what may stand at the right, from what is wanted most to what needs the least room."""
    beside = score_beside_curve(data, cursor)
    for words in beside:
        left = room - cells_of(words) - 2
        for aside in _asides(data, cursor, left):
            if cells_of(aside) <= left:
                yield [*words, _GAP, *aside]
        if not _smoothing_words(data):  # how it is smoothed is said before all else
            yield words
    yield from _asides(data, cursor, room)
    yield from beside


def _asides(data: ChartData, cursor: int | None, room: int) -> Iterator[Pieces]:
    """Yield what else may stand there: target, smoothing, key or legend."""
    notes = [(fit(note, len(note)), "target") for note in data.notes]
    smoothing = _smoothing_words(data)
    # a chart over the full screen, with the only place for the key
    if smoothing and data.run:
        named = names_or_key(data, cursor, _ENOUGH, room)
        for names, how in product(named, smoothing):
            first = (_GAP, notes[0]) if notes else ()
            yield [*names, *first, _GAP, *how]
    yield from _names_and_smoothing(data, cursor, room)
    for note in notes:
        yield from _behind(note, smoothing[-1:])
    yield from smoothing
    for note in notes[:1]:
        left = room - cells_of([note]) - 2
        yield from _behind(note, names_or_key(data, cursor, _ENOUGH, left))
    yield from ([note] for note in notes)
    yield from names_or_key(data, cursor, LEAST_LETTERS, room)


def _names_and_smoothing(
    data: ChartData, cursor: int | None, room: int
) -> Iterator[Pieces]:
    """Yield the names of runs over each other and how all of them are smoothed."""
    for how in _smoothing_words(data)[1:] if has_several(data) else ():
        left = room - cells_of(how) - len(_GAP[0])
        for names in names_or_key(data, cursor, LEAST_LETTERS, left):
            yield [*names, _GAP, *how]


def _behind(note: Piece, sides: Iterable[Pieces]) -> Iterator[Pieces]:
    """Return what may stand at the right, each behind a note."""
    return ([note, _GAP, *side] for side in sides)


def _smoothing_words(data: ChartData) -> list[Pieces]:
    """Return the ways to say how a curve is smoothed that nobody chose, the longest first."""
    if not data.by_noise or not data.smoothing:
        return []
    weight = f"{data.smoothing:g}"
    texts = (f"smoothed {weight}, by its noise", f"smoothed {weight}", f"~{weight}")
    return [[(text, "key")] for text in texts]
