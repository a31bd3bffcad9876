"""Pictures made of braille dots: every cell of the terminal is a grid of 2 x 4 dots.

A picture is a list of layers, painted one over the other. A line comes as spans: for every dot
column the first and last dot row that it sets, counted from the top, or None.
"""

from __future__ import annotations

from itertools import groupby, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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
_SPANS = tuple(
    tuple(tuple(sum(column[a : b + 1]) for b in range(4)) for a in range(4))
    for column in _DOTS
)
"""Bits of a span within one cell: [left or right][first row][last row]."""
_BRAILLE = " " + "".join(map(chr, range(0x2801, 0x2900)))
"""Glyph of each set of dots. The empty one is a space: some fonts show circles for U+2800."""


class DotLayer:
    """Dots of one style on a grid of cells; sizes are in cells, dots count from the top left.

    A backdrop gives way: its dots vanish from a cell in which a later layer draws.
    """

    def __init__(
        self, width: int, height: int, style: str, *, backdrop: bool = False
    ) -> None:
        self.width = max(0, width)
        self.height = max(0, height)
        self.style = style
        self.backdrop = backdrop
        self.rows = [bytearray(self.width) for _ in range(self.height)]

    def spans(self, spans: Iterable[tuple[int, DotSpan | None]]) -> None:
        """Set spans of dot columns; what lies outside is cut off."""
        for x, span in spans:
            if span is None or not 0 <= x < self.width * 2:
                continue
            top, bottom = max(0, span[0]), min(self.height * 4 - 1, span[1])
            masks = _SPANS[x & 1]
            for y in range(top >> 2, (bottom >> 2) + 1):
                first, last = max(top - y * 4, 0), min(bottom - y * 4, 3)
                self.rows[y][x >> 1] |= masks[first][last]

    def straight(self, one: tuple[int, int], other: tuple[int, int]) -> None:
        """Draw the line between two dots, each a column and a row."""
        (x, y), (across, down) = one, (other[0] - one[0], other[1] - one[1])
        length = max(abs(across), abs(down), 1)
        for at in range(length + 1):
            row = y + round(down * at / length)
            self.spans([(x + round(across * at / length), (row, row))])


def connect(
    spans: Sequence[DotSpan | None], breaks: Sequence[bool]
) -> list[DotSpan | None]:
    """Join spans to an unbroken line: neighbours touch, and empty columns in between are bridged by
    straight lines, but not across those where `breaks` is true: a value there is not a number.
    """
    joined = list(spans)
    at, before = 0, None
    for x, span in enumerate(spans):
        if breaks[x]:
            before = None
        if span is None:
            continue
        if before is not None:
            _bridge(joined, at, x, before, span)
        at, before = x, span
    return joined


def _bridge(
    joined: list[DotSpan | None], x0: int, x1: int, before: DotSpan, span: DotSpan
) -> None:
    """Bridge from the span of column `x0` to that of `x1`, between their nearest dots."""
    start, end = (before[1], span[0]) if span[0] > before[1] else (before[0], span[1])
    # they overlap in height: a level line between
    if span[0] <= before[1] and before[0] <= span[1]:
        if x0 + 1 == x1:
            return
        start = end = (max(before[0], span[0]) + min(before[1], span[1])) // 2
    last = start
    for x in range(x0 + 1, x1 + 1):
        y = start + round((end - start) * (x - x0) / (x1 - x0))
        near = last + (y > last) - (y < last)
        own = joined[x] or (y, y)
        joined[x] = (min(own[0], near, y), max(own[1], near, y))
        last = y


def fill_gaps(spans: Sequence[DotSpan | None]) -> list[DotSpan | None]:
    """Fill the empty columns between spans with spans that lead over evenly, as for an area."""
    filled = list(spans)
    known = [(x, span) for x, span in enumerate(spans) if span is not None]
    for (x0, before), (x1, span) in pairwise(known):
        for x in range(x0 + 1, x1):
            ends = [
                a + (b - a) * (x - x0) // (x1 - x0)
                for a, b in zip(before, span, strict=True)
            ]
            filled[x] = (ends[0], ends[1])
    return filled


def dotted(layers: Sequence[DotLayer], y: int, width: int) -> list[tuple[str, str]]:
    """Return the cells of a row, layers from the farthest to the nearest.

    A cell has one style, that of the last layer that draws in it; the dots of all layers show,
    except backdrops.
    """
    masks = [0] * width
    styles = [""] * width
    for layer in reversed(layers):
        row = layer.rows[y]
        for x in range(width) if any(row) else ():
            if row[x] and not (masks[x] and layer.backdrop):
                styles[x] = styles[x] or layer.style
                masks[x] |= row[x]
    return [(_BRAILLE[mask], style) for mask, style in zip(masks, styles, strict=True)]


def join(cells: Iterable[tuple[str, str]]) -> Text:
    """Put neighbouring cells of one style together."""
    return tuple(
        ("".join([text for text, _ in group]), style)
        for style, group in groupby(cells, itemgetter(1))
    )
