"""Paints pictures as cells: dots in braille, signs on top of them, areas as their ground.

Every cell of the terminal is a grid of 2 x 4 dots. A line comes as spans: for every dot column the
first and last dot row that it sets, counted from the top, or None. A style such as `line+healthy`
is that before the `+`, on the ground of an area.
"""

from __future__ import annotations

from itertools import pairwise
from statistics import median_low
from typing import TYPE_CHECKING

from verl_tui.rendering.charts.chart_data import ANY, ARROWS, BEST, BROKEN
from verl_tui.rendering.text.numbers import compact
from verl_tui.rendering.text.piece import TextRows, joined

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from verl_tui.rendering.charts.axes import Scale
    from verl_tui.rendering.charts.downsample import DotColumns
    from verl_tui.rendering.charts.picture import DrawnLine, Picture

DotSpan = tuple[int, int]
"""First and last dot row of a dot column that are set, from the top."""

_APART = 3
"""Cells from one sign of a point to the next."""
_STAMP = 18
"""Cells from one letter on a line to its next."""
_AREAS = {"healthy": "", "quartiles": "▒"}
"""Roles of areas, and what fills their empty cells where there are no backgrounds."""
_AREA = "░"
"""The same of the others; where signs would fill half of the plot, there are none."""
_FULL = 0.85
"""Share of the height from which an area fills the plot, as of scores of 0 and 1, and says nothing:
a heuristic.
"""
_STRAIGHT = {"band": (2, 1), "target": (8, 6), "restart": (2, 1)}
"""How a straight line of a role is broken up: of so many dots the first ones are drawn. Each looks
unlike the others, so that colour is never needed to distinguish them.
"""
_GRID = "┈"
_BITS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Bits of the dots of a cell, row by row."""
_BRAILLE = " " + "".join(map(chr, range(0x2801, 0x2900)))
"""Glyph of each set of dots. The empty one is a space: some fonts show circles for U+2800."""


def paint(
    picture: Picture,
    size: tuple[int, int],
    cursor: int | None = None,
    *,
    shades: bool = False,
    grid: Iterable[int] = (),
) -> TextRows:
    """Return the rows of a picture.

    Args:
        picture: What is drawn.
        size: Width and height in cells.
        cursor: Step that is read.
        shades: True where the terminal has backgrounds: areas are then shades, the healthy band no
            lines.
        grid: Rows with a dotted line behind everything.
    """
    painting, scale = _Painting(*size), picture.scale
    painting.areas(picture, shades=shades)
    painting.straight(picture, shades=shades)
    for line in picture.lines:
        painting.line(line)
    for line in picture.lines:
        painting.end(line)
    if picture.best is not None:
        x, value = picture.best
        painting.put(x, scale.dot(value, size[1] * 4), BEST, picture.main_role)
    column = -1 if cursor is None else picture.window.column(cursor) // 2
    return painting.rows(grid, column, shades=shades)


class _Painting:
    """Layers of dots and the glyphs on top of them; places are dot columns and rows."""

    def __init__(self, width: int, height: int) -> None:
        self._width = width
        self._dots = height * 4
        self._layers: list[tuple[str, dict[int, int]]] = []
        """From the farthest to the nearest: the style, and the bits of each cell."""
        self._glyphs: dict[int, tuple[str, str]] = {}
        """By cell; one without a style takes that of the dots."""
        self._grounds: dict[int, str] = {}
        """The areas of cells that are in one."""

    def rows(self, grid: Iterable[int], cursor: int, *, shades: bool) -> TextRows:
        """Return the rows.

        A cell has one style, that of the last layer that draws in it; the dots of all layers show,
        except those of straight lines, which vanish from a cell in which a later one draws.
        """
        width, count = self._width, self._width * self._dots // 4
        cells = self._dotted(count)
        for y in grid:
            for at in range(y * width, (y + 1) * width):
                if cells[at] == (" ", ""):
                    cells[at] = _GRID, "rule"
        for at, (sign, style) in self._glyphs.items():
            cells[at] = sign, style or cells[at][1]
        for at in range(cursor, count, width) if 0 <= cursor < width else ():
            text = cells[at][0]
            cells[at] = ("│" if text in (" ", _GRID) else text), "cursor"
        self._ground(cells, shades=shades)
        return [joined(cells[at : at + width]) for at in range(0, count, width)]

    def _ground(self, cells: list[tuple[str, str]], *, shades: bool) -> None:
        """Lay the grounds of areas under cells."""
        for at, area in self._grounds.items():
            text, style = cells[at]
            if shades:
                cells[at] = text, f"{style}+{area}"
            elif text == " " and (sign := _AREAS.get(area, _AREA)):
                cells[at] = sign, area

    def _dotted(self, count: int) -> list[tuple[str, str]]:
        masks, styles = [0] * count, [""] * count
        for style, dots in reversed(self._layers):
            for at, bits in dots.items():
                if not (masks[at] and style in _STRAIGHT):
                    styles[at] = styles[at] or style
                    masks[at] |= bits
        return [(_BRAILLE[bits], of) for bits, of in zip(masks, styles, strict=True)]

    def put(self, x: int, y: int, sign: str, style: str) -> None:
        """Put a sign on the cell of a dot."""
        if 0 <= x < self._width * 2:
            self._glyphs[y // 4 * self._width + x // 2] = sign, style

    # -- areas -------------------------------------------------------------------------------------

    def areas(self, picture: Picture, *, shades: bool) -> None:
        """Fill the healthy band, and what lies between two series, or around an average."""
        scale, (low, high) = picture.scale, picture.band
        if picture.band != ANY and low <= scale.hi and high >= scale.lo:
            rows = scale.dot(high, self._dots), scale.dot(low, self._dots)
            self._fill("healthy", [rows] * self._width * 2)
        for role, columns in picture.shades:
            area = _without_gaps(_spans(columns, scale, self._dots))
            full = _full(area, self._dots * (_FULL if shades else 0.5))
            around = role == "around"
            if (around and shades) or not full:
                self._fill(role, area, around)

    def _fill(self, role: str, area: Sequence[DotSpan | None], reach: int = 0) -> None:
        """Fill the cells at least half of which are in an area, but at least one where it is
        narrower; of values the columns next to a cell count, too, else the outline is as ragged.
        """
        width, height = self._width, self._dots // 4
        for x in range(0, width * 2, 2):
            if area[x : x + 2] != [None, None]:
                near = [*filter(None, area[max(0, x - reach) : x + 2 + reach])]
                tops, bottoms = zip(*near, strict=True)
                top, bottom = min(tops), max(bottoms)
                first, stop = (top + 1) // 4, (bottom + 3) // 4
                if first >= stop:
                    first = (top + bottom) // 8
                    stop = first + 1
                cells = range(first * width + x // 2, min(stop, height) * width, width)
                self._grounds |= dict.fromkeys(cells, role)

    # -- lines -------------------------------------------------------------------------------------

    def _layer(self, role: str, spans: Iterable[tuple[int, DotSpan | None]]) -> None:
        """Set spans of dot columns; columns outside are left out."""
        import numpy as np

        dots = np.zeros((self._dots, self._width * 2), bool)
        for x, span in spans:
            if span is not None and 0 <= x < self._width * 2:
                dots[span[0] : span[1] + 1, x] = True
        of_cells = dots.reshape(-1, 4, self._width, 2)
        bits = np.einsum("ydxr,dr->yx", of_cells, _BITS).ravel()
        cells = np.flatnonzero(bits)
        found = zip(cells.tolist(), bits[cells].tolist(), strict=True)
        self._layers.append((role, dict(found)))

    def straight(self, picture: Picture, *, shades: bool) -> None:
        """Draw restarts, the edges of the healthy band, and the target."""
        scale = picture.scale
        period, dots = _STRAIGHT["restart"]
        for x in picture.restarts:
            rows = (y for y in range(self._dots) if y % period < dots)
            self._layer("restart", ((x, (y, y)) for y in rows))
        for edge in () if shades else picture.band:
            if scale.lo <= edge <= scale.hi:
                self.across("band", edge, scale)
        if picture.target is not None:
            self.across("target", picture.target, scale)

    def across(self, role: str, value: float, scale: Scale) -> None:
        """Draw a straight line, or say which way its value lies that the y axis does not reach."""
        period, dots = _STRAIGHT[role]
        y = scale.dot(value, self._dots)
        if scale.lo <= value <= scale.hi:
            columns = (x for x in range(self._width * 2) if x % period < dots)
            self._layer(role, ((x, (y, y)) for x in columns))
            return
        # At the left: what moves towards its target comes near it at the right.
        arrow = ARROWS[2 if y else 1]
        text = arrow + compact(value)
        for cell, sign in enumerate(text if len(text) * 4 <= self._width else arrow):
            self.put(cell * 2, y, sign, role)

    def line(self, line: DrawnLine) -> None:
        """Draw a line, its stretches that a finding is about in the colour of that; then its signs,
        what lies beyond the y axis, and what is no number.
        """
        own = _spans(line.columns, line.scale, self._dots)
        spans, of = connect(own, line.columns.odds), line.alarms.get
        for role in dict.fromkeys((line.role, *line.alarms.values())):
            found = (one for one in enumerate(spans) if of(one[0], line.role) == role)
            self._layer(role, found)
        for x, y in _stamps(line, own, spans):
            self.put(x, y, line.sign, line.role)
        self._edges(line)

    def _edges(self, line: DrawnLine) -> None:
        columns, scale = line.values or line.columns, line.scale
        for x, (low, high, odd) in enumerate(zip(*columns, strict=True)):
            if high is not None and high > scale.hi and scale.beyond(high):
                self.put(x, 0, ARROWS[1], line.role)
            if low is not None and low < scale.lo and scale.beyond(low):
                self.put(x, self._dots - 1, ARROWS[2], line.role)
            if odd:
                self.put(x, self._dots - 1, BROKEN, "odd")

    def end(self, line: DrawnLine) -> None:
        """Mark the end of a line by its letter, that of the only one by a dot that can be seen,
        unless an arrow shows that it lies beyond the edge.
        """
        if line.end is None:
            return
        x, y = line.end[0], line.scale.dot(line.end[1], self._dots)
        there = self._glyphs.get(y // 4 * self._width + x // 2, " ")[0]
        if line.sign:
            self.put(min(self._width * 2 - 1, x + 2), y, line.sign, line.role)
        elif there not in ARROWS[1:]:
            self.put(x, y, "●", "")


def _stamps(
    line: DrawnLine, own: Sequence[DotSpan | None], spans: Sequence[DotSpan | None]
) -> Iterator[tuple[int, int]]:
    """Yield where the sign of a line stands: the newest point and as many as stand apart, since
    more would hide the lines; on a curve those next to each other in the alphabet stand three cells
    apart.
    """
    if line.points:
        free = len(own)
        for x in range(len(own) - 1, -1, -1):
            if (span := own[x]) is not None and x // 2 <= free:
                yield from ((x, y) for y in span)
                free = x // 2 - _APART
    elif line.sign:
        for x in range(ord(line.sign) * 3 % _STAMP * 2, len(spans) - 1, _STAMP * 2):
            if (span := spans[x]) is not None:
                yield x, sum(span) // 2


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


def _full(area: Sequence[DotSpan | None], rows: float) -> bool:
    """Return whether an area mostly takes so many rows."""
    heights = [span[1] - span[0] for span in area if span is not None]
    return bool(heights) and median_low(heights) >= rows


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
