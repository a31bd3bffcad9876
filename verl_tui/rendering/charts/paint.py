"""Paints pictures as cells: dots in braille, signs on top of them, the healthy band as a shade.

A style that ends in `ON_BAND` has the background of the band and is else the style before that.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.rendering.charts import braille
from verl_tui.rendering.charts.braille import DotLayer, Glyph
from verl_tui.rendering.charts.downsample import beyond_edge, spans
from verl_tui.rendering.charts.symbols import SYMBOLS
from verl_tui.rendering.text.hues import BEHIND
from verl_tui.rendering.text.numbers import compact

if TYPE_CHECKING:
    from collections.abc import Iterable

    from verl_tui.rendering.charts.axes import Scale
    from verl_tui.rendering.charts.braille import DotSpan, Text
    from verl_tui.rendering.charts.downsample import DotColumns
    from verl_tui.rendering.charts.picture import DrawnLine, DrawnMark, Picture

ON_BAND = "+healthy"
_APART = 3
"""Cells from one sign of a point to the next."""
_STAMP = 18
"""Cells from one letter on a line to its next."""
SHADES = {"envelope": 4, "quartiles": 2}
"""Dots from one to the next in a shade."""


class LineStyle(NamedTuple):
    """How a straight line is broken up: of each `period` dots the first `dots` are drawn."""

    period: int
    dots: int
    sign: str
    """A character that looks like it."""
    upright: bool = False


LINE_STYLES = {
    "band": LineStyle(2, 1, "═"),
    "target": LineStyle(8, 6, "━"),
    "restart": LineStyle(2, 1, "┊", upright=True),
}
"""By role: each looks unlike the others, so that colour is never needed to distinguish them."""


def straight_line(role: str, width: int, height: int, place: int) -> DotLayer:
    """Return a layer of `width` x `height` cells with the line of a role at a dot row, or column if
    upright.
    """
    style = LINE_STYLES[role]
    layer = DotLayer(width, height, role, backdrop=True)
    for at in range(height * 4 if style.upright else width * 2):
        if at % style.period < style.dots:
            layer.dot(*((place, at) if style.upright else (at, place)))
    return layer


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
        shades: True where the terminal has backgrounds: the healthy band is then a shade, not
            lines.
        grid: Rows with a dotted line behind everything.
    """
    painting = Painting(*size)
    for y in grid:
        painting.glyphs[y] = dict.fromkeys(range(size[0]), _GRID)
    painting.shade(picture)
    for mark in picture.marks:
        if not (shades and mark.role == "band"):
            painting.across(mark, picture.scale)
    for line in picture.lines:
        painting.line(line)
    for line in picture.lines:
        painting.end(line)
    painting.best(picture)
    if cursor is not None:
        painting.point_at(picture.window.column(cursor) // 2)
    return _on_band(painting.rows(), picture) if shades else painting.rows()


_GRID = Glyph(SYMBOLS.grid, "rule", yields=True, blends=True)
_CURSOR = Glyph(SYMBOLS.cursor, "cursor", yields=True)


class Painting:
    """Layers of dots and the glyphs on top of them; places are dot columns and rows."""

    def __init__(self, width: int, height: int) -> None:
        self.size = (width, height)
        self.dots = height * 4
        self.layers = [DotLayer(width, height)]
        """From the farthest to the nearest."""
        self.glyphs: dict[int, dict[int, Glyph]] = {}
        """By row and cell."""

    def rows(self) -> list[Text]:
        """Return the rows."""
        return braille.compose(self.layers, self.glyphs)

    def layer(self, role: str, *, backdrop: bool = False) -> DotLayer:
        """Add a layer of dots."""
        self.layers.append(DotLayer(*self.size, role, backdrop=backdrop))
        return self.layers[-1]

    def put(self, x: int, y: int, glyph: Glyph) -> None:
        """Put a glyph on the cell of a dot."""
        self.glyphs.setdefault(y // 4, {})[x // 2] = glyph

    def row(self, value: float | None, scale: Scale) -> int:
        """Return the dot row of a value."""
        return scale.dots([value], self.dots)[0] or 0

    def point_at(self, cell: int) -> None:
        """Draw the cursor; glyphs that are there take its colour."""
        for y in range(self.size[1] if 0 <= cell < self.size[0] else 0):
            row = self.glyphs.setdefault(y, {})
            there = row.get(cell, _GRID)
            row[cell] = (
                _CURSOR
                if there == _GRID
                else there._replace(style="cursor", blends=False)
            )

    def shade(self, picture: Picture) -> None:
        """Fill the areas with patterns of dots."""
        for role, columns in picture.shades:
            if picture.scale is not None:
                area = braille.fill_gaps(spans(columns, picture.scale, self.dots))
                self.layer(role, backdrop=True).shade(area, SHADES[role])
                self._beyond(columns, picture.scale, role)

    def across(self, mark: DrawnMark, scale: Scale | None) -> None:
        """Draw a straight line, or say which way its value lies that the y axis does not reach."""
        if mark.value is None or scale is None:
            place = mark.column or 0
        else:
            place = self.row(mark.value, scale)
            if not scale.lo <= mark.value <= scale.hi:
                self._point_beyond(mark, mark.value, place, scale)
                return
        self.layers.append(straight_line(mark.role, *self.size, place))

    def _point_beyond(
        self, mark: DrawnMark, value: float, place: int, scale: Scale
    ) -> None:
        # At the left: what moves towards its target comes near it at the right.
        arrow = SYMBOLS.rising if value > scale.hi else SYMBOLS.falling
        text = arrow + compact(value)
        for cell, sign in enumerate(text if len(text) * 4 <= self.size[0] else arrow):
            self.put(cell * 2, place, Glyph(sign, mark.role))

    def line(self, line: DrawnLine) -> None:
        """Draw a line, its stretches that a finding is about in the colour of that; then its signs,
        what lies beyond the y axis, and what is no number.
        """
        own = spans(line.columns, line.scale, self.dots)
        joined = braille.connect(own, line.columns.odds)
        calm = [None if x in line.alarms else span for x, span in enumerate(joined)]
        self.layer(line.role, backdrop=line.behind).spans(enumerate(calm))
        for role in dict.fromkeys(line.alarms.values()):
            layer = self.layer(role + BEHIND * line.behind, backdrop=line.behind)
            layer.spans((x, joined[x]) for x, of in line.alarms.items() if of == role)
        glyph = Glyph(line.sign, line.role)
        if line.points:
            self._mark_points(own, glyph)
        elif line.sign:
            self._mark_line(joined, glyph)
        self._beyond(line.columns, line.scale, line.role)
        for x, odd in enumerate(line.columns.odds):
            if odd:
                self.put(x, self.dots - 1, Glyph(SYMBOLS.broken, "odd"))

    def _mark_line(self, joined: list[DotSpan | None], glyph: Glyph) -> None:
        """Put the letter of a line on it; those next to each other in the alphabet stand three
        cells apart.
        """
        for cell in range(ord(glyph.text) * 3 % _STAMP, self.size[0], _STAMP):
            if (span := joined[cell * 2]) is not None:
                self.put(cell * 2, sum(span) // 2, glyph)

    def _mark_points(self, own: list[DotSpan | None], glyph: Glyph) -> None:
        """Mark the newest point and as many as stand apart: more would hide the lines."""
        free = len(own)
        for x in range(len(own) - 1, -1, -1):
            if (span := own[x]) is not None and x // 2 <= free:
                for y in span:
                    self.put(x, y, glyph)
                free = x // 2 - _APART

    def _beyond(self, columns: DotColumns, scale: Scale, role: str) -> None:
        """Mark what lies beyond the y axis at its edge."""
        for x, way in beyond_edge(columns, scale):
            arrow = SYMBOLS.rising if way > 0 else SYMBOLS.falling
            self.put(x, 0 if way > 0 else self.dots - 1, Glyph(arrow, role))

    def best(self, picture: Picture) -> None:
        """Mark the best value."""
        if picture.best is not None and picture.scale is not None:
            x, value = picture.best
            y = self.row(value, picture.scale)
            self.put(x, y, Glyph(SYMBOLS.best, picture.main_role))

    def end(self, line: DrawnLine) -> None:
        """Mark the end of a line by its letter, that of the only one by a dot that can be seen,
        unless an arrow shows that it lies beyond the edge.
        """
        if line.end is None:
            return
        x, y = line.end[0], self.row(line.end[1], line.scale)
        if line.sign:
            x = min(self.size[0] * 2 - 1, x + 2)
            self.put(x, y, Glyph(line.sign, line.role))
            return
        there = self.glyphs.get(y // 4, {}).get(x // 2)
        if there is None or there.text not in (SYMBOLS.rising, SYMBOLS.falling):
            self.put(x, y, Glyph(SYMBOLS.single, line.role, blends=True))


def _on_band(rows: list[Text], picture: Picture) -> list[Text]:
    for y in _rows_in_band(picture, len(rows)):
        rows[y] = tuple([(text, style + ON_BAND) for text, style in rows[y]])
    return rows


def _rows_in_band(picture: Picture, rows: int) -> range:
    """Return the rows of cells at least half of which are in the band, but at least one for a
    narrower band.
    """
    scale = picture.scale
    if scale is None or picture.band == (None, None):
        return range(0)
    low, high = (
        end if edge is None else edge
        for edge, end in zip(picture.band, scale[:2], strict=True)
    )
    if high < scale.lo or low > scale.hi:
        return range(0)
    top, bottom = (row or 0 for row in scale.dots([high, low], rows * 4))
    first = ceil((top - 2) / 4)
    stop = (bottom + 3) // 4
    if first >= stop:
        first = (top + bottom) // 8
        stop = first + 1
    return range(max(0, first), min(rows, stop))
