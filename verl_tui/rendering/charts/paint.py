"""Paints pictures as cells: dots in braille, signs on top of them, areas as their ground.

Every cell of the terminal is a grid of 2 x 4 dots. A line comes as spans: for every dot column the
first and last dot row that it sets, counted from the top, or None. A style such as `line+healthy`
is that before the `+`, on the ground of an area.
"""

from __future__ import annotations

from itertools import groupby, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.rendering.charts.symbols import SYMBOLS
from verl_tui.rendering.text.hues import BEHIND
from verl_tui.rendering.text.numbers import compact

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from verl_tui.rendering.charts.axes import Scale
    from verl_tui.rendering.charts.downsample import DotColumns
    from verl_tui.rendering.charts.picture import DrawnLine, DrawnMark, Picture
    from verl_tui.rendering.charts.symbols import Text

DotSpan = tuple[int, int]
"""First and last dot row of a dot column that are set, from the top."""

_APART = 3
"""Cells from one sign of a point to the next."""
_STAMP = 18
"""Cells from one letter on a line to its next."""
AREAS = {"healthy": " ", "envelope": "░", "quartiles": "▒"}
"""Roles of areas, and what fills their empty cells where there are no backgrounds."""
LINE_STYLES = {"band": (2, 1), "target": (8, 6), "restart": (2, 1)}
"""How a straight line of a role is broken up: of so many dots the first ones are drawn. Each looks
unlike the others, so that colour is never needed to distinguish them.
"""
_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
_SPANS = tuple(
    tuple(tuple(sum(column[a : b + 1]) for b in range(4)) for a in range(4))
    for column in _DOTS
)
"""Bits of a span within one cell: [left or right][first row][last row]."""
_BRAILLE = " " + "".join(map(chr, range(0x2801, 0x2900)))
"""Glyph of each set of dots. The empty one is a space: some fonts show circles for U+2800."""


class Glyph(NamedTuple):
    """A character that stands on a picture instead of dots."""

    text: str
    style: str
    yields: bool = False
    """Leaves the dots where there are any, and only gives them its style."""
    blends: bool = False
    """Takes the style of the dots where there are any."""

    def over(self, there: str, style: str) -> tuple[str, str]:
        """Return a cell with this on it."""
        text = there if self.yields and there != " " else self.text
        return text, (self.blends and style) or self.style


_GRID = Glyph(SYMBOLS.grid, "rule", yields=True, blends=True)
_CURSOR = Glyph(SYMBOLS.cursor, "cursor", yields=True)


def paint(
    picture: Picture,
    size: tuple[int, int],
    cursor: int | None = None,
    *,
    shades: bool = False,
    grid: Iterable[int] = (),
) -> list[Text]:
    """Return the rows of a picture.

    Args:
        picture: What is drawn.
        size: Width and height in cells.
        cursor: Step that is read.
        shades: True where the terminal has backgrounds: areas are then shades, the healthy band no
            lines.
        grid: Rows with a dotted line behind everything.
    """
    painting = _Painting(*size)
    for y in grid:
        painting.glyphs[y] = dict.fromkeys(range(size[0]), _GRID)
    painting.areas(picture, picture.scale)
    for mark in picture.marks:
        if not (shades and mark.role == "band"):
            painting.across(mark, picture.scale)
    for line in picture.lines:
        painting.line(line)
    for line in picture.lines:
        painting.end(line)
    if picture.best is not None:
        x, value = picture.best
        y = painting.row(value, picture.scale)
        painting.put(x, y, Glyph(SYMBOLS.best, picture.main_role))
    if cursor is not None:
        painting.point_at(picture.window.column(cursor) // 2)
    return [join(painting.cells(y, shades=shades)) for y in range(size[1])]


class _Layer:
    """Dots of one style on a grid of cells, counted from the top left.

    A backdrop gives way: its dots vanish from a cell in which a later layer draws.
    """

    def __init__(self, width: int, height: int, style: str, *, backdrop: bool) -> None:
        self.style = style
        self.backdrop = backdrop
        self.rows = [bytearray(width) for _ in range(height)]

    def spans(self, spans: Iterable[tuple[int, DotSpan | None]]) -> None:
        """Set spans of dot columns; what lies outside is cut off."""
        height = len(self.rows)
        width = len(self.rows[0]) if self.rows else 0
        for x, span in spans:
            if span is None or not 0 <= x < width * 2:
                continue
            top, bottom = max(0, span[0]), min(height * 4 - 1, span[1])
            masks = _SPANS[x & 1]
            for y in range(top >> 2, (bottom >> 2) + 1):
                first, last = max(top - y * 4, 0), min(bottom - y * 4, 3)
                self.rows[y][x >> 1] |= masks[first][last]


class _Painting:
    """Layers of dots and the glyphs on top of them; places are dot columns and rows."""

    def __init__(self, width: int, height: int) -> None:
        self.size = (width, height)
        self.dots = height * 4
        self._layers: list[_Layer] = []
        """From the farthest to the nearest."""
        self.glyphs: dict[int, dict[int, Glyph]] = {}
        """By row and cell."""
        self._grounds = [[""] * width for _ in range(height)]
        """The area of each cell."""

    def cells(self, y: int, *, shades: bool) -> Iterator[tuple[str, str]]:
        """Yield the cells of a row.

        A cell has one style, that of the last layer that draws in it; the dots of all layers show,
        except backdrops.
        """
        cells = self._dotted(y)
        for x, glyph in self.glyphs.get(y, {}).items():
            cells[x] = glyph.over(*cells[x])
        for (text, style), area in zip(cells, self._grounds[y], strict=True):
            if area and shades:
                yield text, f"{style}+{area}"
            else:
                yield (AREAS[area], area) if area and text == " " else (text, style)

    def _dotted(self, y: int) -> list[tuple[str, str]]:
        masks, styles = [0] * self.size[0], [""] * self.size[0]
        for layer in reversed(self._layers):
            row = layer.rows[y]
            for x in range(len(row)) if any(row) else ():
                if row[x] and not (masks[x] and layer.backdrop):
                    styles[x] = styles[x] or layer.style
                    masks[x] |= row[x]
        return [(_BRAILLE[mask], one) for mask, one in zip(masks, styles, strict=True)]

    def put(self, x: int, y: int, glyph: Glyph) -> None:
        """Put a glyph on the cell of a dot."""
        if 0 <= x < self.size[0] * 2:
            self.glyphs.setdefault(y // 4, {})[x // 2] = glyph

    def row(self, value: float, scale: Scale) -> int:
        """Return the dot row of a value."""
        return scale.dots([value], self.dots)[0] or 0

    def point_at(self, cell: int) -> None:
        """Draw the cursor; glyphs that are there take its colour."""
        for y in range(self.size[1] if 0 <= cell < self.size[0] else 0):
            row = self.glyphs.setdefault(y, {})
            there = row.get(cell, _GRID)
            own = there._replace(style="cursor", blends=False)
            row[cell] = _CURSOR if there == _GRID else own

    # -- areas -------------------------------------------------------------------------------------

    def areas(self, picture: Picture, scale: Scale) -> None:
        """Fill the healthy band, and what lies between two series."""
        low = scale.lo if picture.band[0] is None else picture.band[0]
        high = scale.hi if picture.band[1] is None else picture.band[1]
        if picture.band != (None, None) and low <= scale.hi and high >= scale.lo:
            rows = self.row(high, scale), self.row(low, scale)
            self._fill("healthy", [rows] * self.size[0] * 2)
        for role, columns in picture.shades:
            self._fill(role, _without_gaps(_spans(columns, scale, self.dots)))

    def _fill(self, role: str, area: Sequence[DotSpan | None]) -> None:
        """Fill the cells at least half of which are in an area, but at least one where it is
        narrower.
        """
        for x in range(self.size[0]):
            found = [span for span in area[x * 2 : x * 2 + 2] if span is not None]
            if found:
                top, bottom = min(one[0] for one in found), max(one[1] for one in found)
                first, stop = (top + 1) // 4, (bottom + 3) // 4
                if first >= stop:
                    first, stop = (top + bottom) // 8, (top + bottom) // 8 + 1
                for row in self._grounds[first:stop]:
                    row[x] = role

    # -- lines -------------------------------------------------------------------------------------

    def _layer(self, role: str, *, backdrop: bool) -> _Layer:
        self._layers.append(_Layer(*self.size, role, backdrop=backdrop))
        return self._layers[-1]

    def across(self, mark: DrawnMark, scale: Scale) -> None:
        """Draw a straight line, or say which way its value lies that the y axis does not reach."""
        period, dots = LINE_STYLES[mark.role]
        upright = mark.column is not None
        place, length = mark.column or 0, self.dots if upright else self.size[0] * 2
        if mark.value is not None:
            place = self.row(mark.value, scale)
            if not scale.lo <= mark.value <= scale.hi:
                self._point_at_edge(mark.role, mark.value, place)
                return
        kept = [at for at in range(length) if at % period < dots]
        spans = [(place, (at, at)) if upright else (at, (place, place)) for at in kept]
        self._layer(mark.role, backdrop=True).spans(spans)

    def _point_at_edge(self, role: str, value: float, place: int) -> None:
        # At the left: what moves towards its target comes near it at the right.
        arrow = SYMBOLS.falling if place else SYMBOLS.rising
        text = arrow + compact(value)
        for cell, sign in enumerate(text if len(text) * 4 <= self.size[0] else arrow):
            self.put(cell * 2, place, Glyph(sign, role))

    def line(self, line: DrawnLine) -> None:
        """Draw a line, its stretches that a finding is about in the colour of that; then its signs,
        what lies beyond the y axis, and what is no number.
        """
        own = _spans(line.columns, line.scale, self.dots)
        joined = connect(own, line.columns.odds)
        calm = [None if x in line.alarms else span for x, span in enumerate(joined)]
        self._layer(line.role, backdrop=line.behind).spans(enumerate(calm))
        for role in dict.fromkeys(line.alarms.values()):
            layer = self._layer(role + BEHIND * line.behind, backdrop=line.behind)
            layer.spans((x, joined[x]) for x, of in line.alarms.items() if of == role)
        if line.points:
            self._mark_points(own, Glyph(line.sign, line.role))
        elif line.sign:
            self._mark_line(joined, Glyph(line.sign, line.role))
        self._signs(line, line.columns.highs, 1)
        self._signs(line, line.columns.lows, -1)
        for x, odd in enumerate(line.columns.odds):
            if odd:
                self.put(x, self.dots - 1, Glyph(SYMBOLS.broken, "odd"))

    def _signs(self, line: DrawnLine, values: Sequence[float | None], way: int) -> None:
        """Mark what lies above (1) or below (-1) the y axis at its edge."""
        edge, arrow = line.scale.hi, Glyph(SYMBOLS.rising, line.role)
        if way < 0:
            edge, arrow = line.scale.lo, Glyph(SYMBOLS.falling, line.role)
        for x, value in enumerate(values):
            out = value is not None and value * way > edge * way
            if out and line.scale.beyond(value or 0.0):
                self.put(x, 0 if way > 0 else self.dots - 1, arrow)

    def _mark_line(self, joined: Sequence[DotSpan | None], glyph: Glyph) -> None:
        """Put the letter of a line on it; those next to each other in the alphabet stand three
        cells apart.
        """
        for cell in range(ord(glyph.text) * 3 % _STAMP, self.size[0], _STAMP):
            if (span := joined[cell * 2]) is not None:
                self.put(cell * 2, sum(span) // 2, glyph)

    def _mark_points(self, own: Sequence[DotSpan | None], glyph: Glyph) -> None:
        """Mark the newest point and as many as stand apart: more would hide the lines."""
        free = len(own)
        for x in range(len(own) - 1, -1, -1):
            if (span := own[x]) is not None and x // 2 <= free:
                for y in span:
                    self.put(x, y, glyph)
                free = x // 2 - _APART

    def end(self, line: DrawnLine) -> None:
        """Mark the end of a line by its letter, that of the only one by a dot that can be seen,
        unless an arrow shows that it lies beyond the edge.
        """
        if line.end is None:
            return
        x, y = line.end[0], self.row(line.end[1], line.scale)
        there = self.glyphs.get(y // 4, {}).get(x // 2)
        if line.sign:
            self.put(min(self.size[0] * 2 - 1, x + 2), y, Glyph(line.sign, line.role))
        elif there is None or there.text not in (SYMBOLS.rising, SYMBOLS.falling):
            self.put(x, y, Glyph(SYMBOLS.single, line.role, blends=True))


# -- spans -----------------------------------------------------------------------------------------


def _spans(columns: DotColumns, scale: Scale, rows: int) -> list[DotSpan | None]:
    """Return the first and the last of so many dot rows that each column takes on a y axis."""
    ends = zip(
        scale.dots(columns.highs, rows), scale.dots(columns.lows, rows), strict=True
    )
    return [
        None if top is None or bottom is None else (top, bottom) for top, bottom in ends
    ]


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


def _without_gaps(spans: Sequence[DotSpan | None]) -> list[DotSpan | None]:
    """Fill the empty columns between spans with spans that lead over evenly, as for an area."""
    filled = list(spans)
    known = [(x, span) for x, span in enumerate(spans) if span is not None]
    for (x0, (top, bottom)), (x1, (end_top, end_bottom)) in pairwise(known):
        for x in range(x0 + 1, x1):
            way, whole = x - x0, x1 - x0
            above = top + (end_top - top) * way // whole
            filled[x] = (above, bottom + (end_bottom - bottom) * way // whole)
    return filled


def join(cells: Iterable[tuple[str, str]]) -> Text:
    """Put neighbouring cells of one style together."""
    return tuple(
        ("".join([text for text, _ in group]), style)
        for style, group in groupby(cells, itemgetter(1))
    )
