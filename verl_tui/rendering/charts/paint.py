"""Paints pictures as cells: dots in braille, signs on top of them, areas as their ground.

A style such as `line+healthy` is that before the `+`, on the ground of an area.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from verl_tui.rendering.charts.braille import (
    DotLayer,
    Glyph,
    connect,
    dotted,
    fill_gaps,
    join,
)
from verl_tui.rendering.charts.downsample import beyond_edge, spans
from verl_tui.rendering.charts.symbols import SYMBOLS
from verl_tui.rendering.text.hues import BEHIND
from verl_tui.rendering.text.numbers import compact

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from verl_tui.rendering.charts.axes import Scale
    from verl_tui.rendering.charts.braille import DotSpan, Text
    from verl_tui.rendering.charts.downsample import DotColumns
    from verl_tui.rendering.charts.picture import DrawnLine, DrawnMark, Picture

_APART = 3
"""Cells from one sign of a point to the next."""
_STAMP = 18
"""Cells from one letter on a line to its next."""
AREAS = {"healthy": " ", "envelope": "░", "quartiles": "▒"}
"""Roles of areas, and what fills their empty cells where there are no backgrounds."""


class LineStyle(NamedTuple):
    """How a straight line is broken up: of each `period` dots the first `dots` are drawn."""

    period: int
    dots: int
    upright: bool = False


LINE_STYLES = {
    "band": LineStyle(2, 1),
    "target": LineStyle(8, 6),
    "restart": LineStyle(2, 1, upright=True),
}
"""By role: each looks unlike the others, so that colour is never needed to distinguish them."""
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
    painting = Painting(*size)
    for y in grid:
        painting.glyphs[y] = dict.fromkeys(range(size[0]), _GRID)
    painting.areas(picture)
    for mark in picture.marks:
        if not (shades and mark.role == "band"):
            painting.across(mark, picture.scale)
    for line in picture.lines:
        painting.line(line)
    for line in picture.lines:
        painting.end(line)
    if picture.best is not None and picture.scale is not None:
        x, value = picture.best
        y = painting.row(value, picture.scale)
        painting.put(x, y, Glyph(SYMBOLS.best, picture.main_role))
    if cursor is not None:
        painting.point_at(picture.window.column(cursor) // 2)
    return painting.rows(shades=shades)


def _over(cell: tuple[str, str], glyph: Glyph) -> tuple[str, str]:
    """Return a cell with a glyph on it."""
    there, style = cell
    text = there if glyph.yields and there != " " else glyph.text
    return text, (glyph.blends and style) or glyph.style


class Painting:
    """Layers of dots and the glyphs on top of them; places are dot columns and rows."""

    def __init__(self, width: int, height: int) -> None:
        self.size = (width, height)
        self.dots = height * 4
        self.layers: list[DotLayer] = []
        """From the farthest to the nearest."""
        self.glyphs: dict[int, dict[int, Glyph]] = {}
        """By row and cell."""
        self._grounds = [[""] * width for _ in range(height)]
        """The area of each cell."""

    def rows(self, *, shades: bool) -> list[Text]:
        """Return the rows."""
        return [join(self._row(y, shades=shades)) for y in range(self.size[1])]

    def _row(self, y: int, *, shades: bool) -> Iterator[tuple[str, str]]:
        cells = dotted(self.layers, y, self.size[0])
        for x, glyph in self.glyphs.get(y, {}).items():
            if 0 <= x < len(cells):
                cells[x] = _over(cells[x], glyph)
        for (text, style), area in zip(cells, self._grounds[y], strict=True):
            if area and shades:
                yield text, f"{style}+{area}"
            else:
                blank = bool(area) and text == " "
                yield (AREAS[area], area) if blank else (text, style)

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
            own = there._replace(style="cursor", blends=False)
            row[cell] = _CURSOR if there == _GRID else own

    # -- areas -------------------------------------------------------------------------------------

    def areas(self, picture: Picture) -> None:
        """Fill the healthy band, and what lies between two series."""
        scale = picture.scale
        if scale is None:
            return
        edges = zip(picture.band, scale[:2], strict=True)
        low, high = (end if edge is None else edge for edge, end in edges)
        if picture.band != (None, None) and low <= scale.hi and high >= scale.lo:
            rows = self.row(high, scale), self.row(low, scale)
            self._fill("healthy", [rows] * self.size[0] * 2)
        for role, columns in picture.shades:
            self._fill(role, fill_gaps(spans(columns, scale, self.dots)))

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

    def across(self, mark: DrawnMark, scale: Scale | None) -> None:
        """Draw a straight line, or say which way its value lies that the y axis does not reach."""
        place = mark.column or 0
        if mark.value is not None and scale is not None:
            place = self.row(mark.value, scale)
            if not scale.lo <= mark.value <= scale.hi:
                self._point_at_edge(mark.role, mark.value, place)
                return
        style = LINE_STYLES[mark.role]
        length = self.dots if style.upright else self.size[0] * 2
        kept = (at for at in range(length) if at % style.period < style.dots)
        layer = self.layer(mark.role, backdrop=True)
        layer.spans(
            (place, (at, at)) if style.upright else (at, (place,) * 2) for at in kept
        )

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
        own = spans(line.columns, line.scale, self.dots)
        joined = connect(own, line.columns.odds)
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

    def _beyond(self, columns: DotColumns, scale: Scale, role: str) -> None:
        """Mark what lies beyond the y axis at its edge."""
        for x, way in beyond_edge(columns, scale):
            arrow = SYMBOLS.rising if way > 0 else SYMBOLS.falling
            self.put(x, 0 if way > 0 else self.dots - 1, Glyph(arrow, role))

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
