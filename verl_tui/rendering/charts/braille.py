"""Pictures made of braille dots: every cell of the terminal is a grid of 2 x 4 dots.

A picture is a list of layers, painted one over the other. A line comes as runs: for every dot
column the first and last dot row that it sets, counted from the top, or None.
"""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

DotSpan = tuple[int, int]
"""First and last dot row of a dot column that are set, from the top."""

Text = tuple[tuple[str, str], ...]
"""A row of text as stretches of one style: (text, name of the style)."""


class Glyph(NamedTuple):
    """A character that stands on a picture instead of dots."""

    text: str
    style: str
    yields: bool = False
    """Leaves the dots where there are any, and only gives them its style."""
    blends: bool = False
    """Takes the style of the dots where there are any."""


_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
_RUNS = tuple(
    tuple(tuple(sum(column[a : b + 1]) for b in range(4)) for a in range(4))
    for column in _DOTS
)
"""Bits of a run within one cell: [left or right][first row][last row]."""
_GLYPH, _STYLE = itemgetter(0), itemgetter(1)
_BRAILLE = " " + "".join(map(chr, range(0x2801, 0x2900)))
"""Glyph of each set of dots. The empty one is a space: some fonts show circles for U+2800."""


class DotLayer:
    """Dots of one style on a grid of cells; sizes are in cells, dots count from the top left.

    A backdrop gives way: its dots vanish from a cell in which a later layer draws.
    """

    __slots__ = ("backdrop", "height", "rows", "style", "width")

    def __init__(
        self, width: int, height: int, style: str = "", *, backdrop: bool = False
    ) -> None:
        self.width = max(0, width)
        self.height = max(0, height)
        self.style = style
        self.backdrop = backdrop
        self.rows = [bytearray(self.width) for _ in range(self.height)]

    def line(self, runs: Sequence[DotSpan | None], first: int = 0) -> None:
        """Set the runs of neighbouring dot columns, beginning at column `first`; what lies outside
        is cut off.
        """
        self.spans(enumerate(runs, first))

    def spans(self, spans: Iterable[tuple[int, DotSpan | None]]) -> None:
        """Set runs of any dot columns; what lies outside is cut off."""
        rows = self.rows
        last_dot = self.height * 4 - 1
        columns = self.width * 2
        for x, run in spans:
            if run is None or not 0 <= x < columns:
                continue
            top, bottom = max(0, run[0]), min(last_dot, run[1])
            if top > bottom:
                continue
            masks = _RUNS[x & 1]
            cell = x >> 1
            above = top >> 2
            below = bottom >> 2
            if above == below:
                rows[above][cell] |= masks[top & 3][bottom & 3]
                continue
            rows[above][cell] |= masks[top & 3][3]
            for y in range(above + 1, below):
                rows[y][cell] |= masks[0][3]
            rows[below][cell] |= masks[0][bottom & 3]

    def dot(self, x: int, y: int) -> None:
        """Set one dot; outside the grid nothing happens."""
        if 0 <= x < self.width * 2 and 0 <= y < self.height * 4:
            self.rows[y >> 2][x >> 1] |= _DOTS[x & 1][y & 3]

    def straight(self, one: tuple[int, int], other: tuple[int, int]) -> None:
        """Draw the line between two dots, each a column and a row; what lies outside is cut off."""
        (x, y), (across, down) = one, (other[0] - one[0], other[1] - one[1])
        length = max(abs(across), abs(down))
        for at in range(length + 1):
            share = at / length if length else 0.0
            self.dot(x + round(across * share), y + round(down * share))

    def shade(self, runs: Sequence[DotSpan | None], apart: int = 4) -> None:
        """Fill the runs with a loose pattern, its dots so far apart, that a line over it still
        stands out from.
        """
        for x, run in enumerate(runs):
            if run is not None and not x & 1:
                top = max(0, run[0])
                bottom = min(self.height * 4 - 1, run[1])
                for y in range(top + -(x + top) % apart, bottom + 1, apart):
                    self.dot(x, y)


def connect(
    runs: Sequence[DotSpan | None], breaks: Sequence[bool] = ()
) -> list[DotSpan | None]:
    """Join runs to an unbroken line: neighbours touch, and empty columns in between are bridged by
    straight lines.

    Args:
        runs: The runs of the points themselves.
        breaks: Where true, the line is interrupted: a value there is not a number.
    """
    joined = list(runs)
    at, before = 0, None
    for x, run in enumerate(runs):
        if x < len(breaks) and breaks[x]:
            before = None
        if run is None:
            continue
        if before is not None and (
            at + 1 != x or before[0] > run[1] or run[0] > before[1]
        ):
            _bridge(joined, at, x, before, run)
        at, before = x, run
    return joined


def _bridge(
    joined: list[DotSpan | None], x0: int, x1: int, before: DotSpan, run: DotSpan
) -> None:
    """Bridge from the run of column `x0` to that of `x1`, between their nearest dots."""
    start, end = (before[1], run[0]) if run[0] > before[1] else (before[0], run[1])
    # they overlap in height: a level line between
    if run[0] <= before[1] and before[0] <= run[1]:
        start = end = (max(before[0], run[0]) + min(before[1], run[1])) // 2
    last = start
    for x in range(x0 + 1, x1 + 1):
        y = start + round((end - start) * (x - x0) / (x1 - x0))
        near = last + (y > last) - (y < last)
        piece = (min(near, y), max(near, y))
        own = joined[x]
        joined[x] = (
            piece if own is None else (min(own[0], piece[0]), max(own[1], piece[1]))
        )
        last = y


def fill_gaps(runs: Sequence[DotSpan | None]) -> list[DotSpan | None]:
    """Fill the empty columns between runs with runs that lead over evenly, as for an area."""
    filled = list(runs)
    at, before = 0, None
    for x, run in enumerate(runs):
        if run is None:
            continue
        if before is not None:
            for i in range(at + 1, x):
                share = (i - at) / (x - at)
                top, bottom = (
                    round(a + (b - a) * share) for a, b in zip(before, run, strict=True)
                )
                filled[i] = (top, bottom)
        at, before = x, run
    return filled


def compose(
    layers: Sequence[DotLayer], marks: Mapping[int, Mapping[int, Glyph]] | None = None
) -> list[Text]:
    """Paint layers of one size over each other and glyphs on top; return the rows.

    A cell has one style, that of the last layer that draws in it; the dots of all layers show,
    except backdrops.

    Args:
        layers: From the farthest to the nearest.
        marks: Row, then column of a cell to the glyph that stands there.
    """
    if not layers:
        return []
    return [
        _row(layers, y, marks.get(y, {}) if marks else {})
        for y in range(layers[0].height)
    ]


def _row(layers: Sequence[DotLayer], y: int, marks: Mapping[int, Glyph]) -> Text:
    """Write one row of a picture."""
    drawn = [
        (one.rows[y], one.style, one.backdrop) for one in layers if any(one.rows[y])
    ]
    if len(drawn) > 1 or marks:
        return _mixed_row(layers[0].width, drawn[::-1], marks)
    mask, style = drawn[0][:2] if drawn else (layers[0].rows[y], "")
    return ((mask.decode("latin-1").translate(_BRAILLE), style),)


def _mixed_row(
    width: int, drawn: Sequence[tuple[bytearray, str, bool]], marks: Mapping[int, Glyph]
) -> Text:
    """Write a row to which several layers or marks contribute.

    `drawn` is from the nearest to the farthest.
    """
    cells: list[tuple[str, str]] = []
    for x in range(width):
        mask, style = 0, ""
        for row, name, backdrop in drawn:
            if row[x] and not (mask and backdrop):
                style = style or name
                mask |= row[x]
        cells.append((_BRAILLE[mask], style))
    _set_marks(cells, marks)
    return join(cells)


def _set_marks(cells: list[tuple[str, str]], marks: Mapping[int, Glyph]) -> None:
    for x, mark in marks.items():
        if not 0 <= x < len(cells):
            continue
        there, style = cells[x]
        keeps_dots = mark.yields and there != " "
        cells[x] = (
            there if keeps_dots else mark.text,
            (mark.blends and style) or mark.style,
        )


def join(cells: Iterable[tuple[str, str]]) -> Text:
    """Put neighbouring cells of one style together."""
    return tuple(
        ("".join(map(_GLYPH, group)), style) for style, group in groupby(cells, _STYLE)
    )
