"""A chart as SVG: the screen's picture as polylines, with its axes as text."""

from __future__ import annotations

from html import escape
from itertools import chain
from typing import TYPE_CHECKING

from verl_tui.rendering.session.selection import LETTERS
from verl_tui.rendering.text.hues import BEHIND, FAMILIES
from verl_tui.rendering.text.numbers import distinct_texts
from verl_tui.report.run_charts import OTHER_RUN
from verl_tui.report.sentences import chart_in_words, line
from verl_tui.report.stylesheet import CHART_STYLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from verl_tui.rendering.charts.axes import Scale
    from verl_tui.rendering.charts.picture import DrawnLine, DrawnMark, DrawnShade
    from verl_tui.report.drawing import ChartDrawing
    from verl_tui.report.run_charts import ReportChart

    Point = tuple[int, float]
    """Dot column and height, 0 .. 1."""

WIDTH, HEIGHT = 480, 236
_LEFT, _RIGHT, _TOP, _BOTTOM = 54, 456, 20, 202
"""Edges of the plot."""
_FINE = 4
"""Parts of a unit that curves are drawn in, so that whole numbers are exact enough."""
_FEW = 20
"""Of so many points each gets a marker, if they are far enough apart."""
_SPACED = 8
"""Columns from one to the next."""
_ROW = 16
"""Height of a row of the legend."""
_LETTER = 12
"""Least distance of two letters at the ends of curves."""
_TICKS = 5
_MOST_ODD = 60


def svg(
    chart: ReportChart, drawing: ChartDrawing, name: str, *, alone: bool = False
) -> str:
    """Return a chart as an SVG element.

    Args:
        chart: Its words.
        drawing: What is drawn of it.
        name: Begins the ids in it, so that they are unique in a page.
        alone: True for a file of its own, with its style and the names of the runs.
    """
    runs = [one for one in chart.curves if one.place is not None]
    runs = runs if alone and not chart.alone else []
    height = HEIGHT + len(runs) * _ROW
    space = ' xmlns="http://www.w3.org/2000/svg"' if alone else ""
    size = f' width="{WIDTH}" height="{height}"' if alone else ""
    parts = [
        f'<svg{space}{size} class="chart" viewBox="0 0 {WIDTH} {height}" role="img"'
        f' aria-labelledby="{name}-title {name}-desc">',
        f'<title id="{name}-title">{escape(line(chart.title))}</title>',
        f'<desc id="{name}-desc">{escape(chart_in_words(chart, drawing))}</desc>',
    ]
    if alone:
        parts.append(f"<style>{CHART_STYLE}</style>")
        parts.append(f'<rect class="ground" width="{WIDTH}" height="{height}"/>')
    parts += [*_grid(drawing, chart), *_curves(drawing), *_signs(drawing)]
    parts += _letters(drawing)
    for at, run in enumerate(runs):
        place = run.place or 0
        label = escape(f"{LETTERS[place]}  {line(run.run)[:70]}")
        kind = f"end run-{place + 1}"
        y = HEIGHT + at * _ROW + 8
        parts.append(f'<text class="{kind}" x="{_LEFT}" y="{y}">{label}</text>')
    parts.append("</svg>")
    return "".join(parts)


def _x(share: float) -> float:
    return _LEFT + share * (_RIGHT - _LEFT)


def _y(height: float) -> float:
    return _BOTTOM - height * (_BOTTOM - _TOP)


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _class(role: str) -> str:
    """Return the class that colours a role."""
    own = role.removesuffix(BEHIND)
    name = f"of-{own}" if own in FAMILIES else "grey" if own == OTHER_RUN else own
    return f"{name} behind" if own != role else name


def _grid(drawing: ChartDrawing, chart: ReportChart) -> Iterator[str]:
    """Yield what lies behind the curves: healthy band, grid, the axes and their labels."""
    scale = drawing.scale
    low, high = drawing.picture.band
    if low is not None or high is not None:
        bottom = 0.0 if low is None else scale.fraction(low)
        top = 1.0 if high is None else scale.fraction(high)
        at = f'y="{_number(_y(top))}" height="{_number(_y(bottom) - _y(top))}"'
        if top > bottom:
            yield f'<rect class="band" x="{_LEFT}" width="{_RIGHT - _LEFT}" {at}/>'
    values = scale.ticks(_TICKS)
    for value, text in zip(values, distinct_texts(values), strict=True):
        y = _y(scale.fraction(value))
        at = f'x="{_LEFT - 6}" y="{_number(y + 4)}" text-anchor="end"'
        if text:
            yield f'<path class="grid" d="M{_LEFT} {_number(y)}H{_RIGHT}"/>'
            yield f"<text {at}>{escape(text)}</text>"
    yield f'<path class="axis" d="M{_LEFT} {_TOP}V{_BOTTOM}H{_RIGHT}"/>'
    yield from _steps(drawing)
    yield f'<text x="{_RIGHT}" y="{_BOTTOM + 30}" text-anchor="end">step</text>'
    unit = f"{chart.title}, {chart.unit}" if chart.unit else chart.title
    yield f'<text x="4" y="11">{escape(line(unit)[:60])}</text>'


def _steps(drawing: ChartDrawing) -> Iterator[str]:
    """Yield the labels of the x axis."""
    axis, window = drawing.data.axis, drawing.picture.window
    apart = window.columns // (2 * _TICKS)
    for step in window.ticks(apart, time=axis.time, zero=axis.zero):
        share = window.column(step) / (window.columns - 1)
        at = f'x="{_number(_x(share))}" y="{_BOTTOM + 16}" text-anchor="middle"'
        if 0 <= share <= 1:
            yield f'<path class="axis" d="M{_number(_x(share))} {_BOTTOM}v4"/>'
            yield f"<text {at}>{escape(axis.write(step))}</text>"


def _curves(drawing: ChartDrawing) -> Iterator[str]:
    """Yield areas, lines and points."""
    picture = drawing.picture
    yield f'<g transform="translate({_LEFT} {_TOP}) scale({1 / _FINE:g})">'
    for shade in picture.shades:
        kind = _class(picture.main_role)
        yield f'<path class="area {kind}" d="{_area(shade, drawing.scale)}z"/>'
    drawn = [(one, _stretches(one)) for one in picture.lines]
    for one, stretches in drawn:
        last = len(one.columns.lows) - 1
        yield f'<path class="{_class(one.role)}" d="{_path(stretches, last)}"/>'
        for role in dict.fromkeys(one.alarms.values()):
            path = _path(_alarmed(stretches, one, role), last)
            yield f'<path class="{_class(role + BEHIND * one.behind)}" d="{path}"/>'
    yield "</g>"
    for one, stretches in drawn:
        yield from _markers(one, [*chain.from_iterable(stretches)])


def _markers(drawn: DrawnLine, points: Sequence[Point]) -> Iterator[str]:
    last = len(drawn.columns.lows) - 1
    for x, y in points if _has_markers(drawn, points) else ():
        at = f'cx="{_number(_x(x / last))}" cy="{_number(_y(y))}"'
        yield f'<circle class="dot {_class(drawn.role)}" {at} r="2.4"/>'


def _has_markers(drawn: DrawnLine, points: Sequence[Point]) -> bool:
    """Return whether each point of a curve has a marker: of few points, none drawn over others."""
    if drawn.behind or drawn.role == OTHER_RUN or not 0 < len(points) <= _FEW:
        return False
    return points[-1][0] - points[0][0] >= _SPACED * (len(points) - 1)


def _stretches(drawn: DrawnLine) -> list[list[Point]]:
    """Return the curve through dot columns, at most two points each, in stretches between values
    that are no numbers.
    """
    found: list[list[Point]] = [[]]
    end = 0.0
    for x, (lo, hi, odd) in enumerate(zip(*drawn.columns, strict=True)):
        if odd:
            found.append([])
        if lo is None or hi is None:
            continue
        low, high = drawn.scale.fraction(lo), drawn.scale.fraction(hi)
        # The end that is nearer to the point before comes first, so that the line does not
        # zigzag needlessly.
        near, end = (low, high) if abs(low - end) < abs(high - end) else (high, low)
        found[-1] += [(x, y) for y in ((end,) if low == high else (near, end))]
    return [one for one in found if one]


def _alarmed(
    stretches: Sequence[Sequence[Point]], drawn: DrawnLine, role: str
) -> Iterator[list[Point]]:
    """Yield the stretches that findings are about, each up to the next point."""
    for stretch in stretches:
        part: list[Point] = []
        for point in stretch:
            about = drawn.alarms.get(point[0]) == role
            if about or part:
                part.append(point)
            if part and not about:
                yield part
                part = []
        if part:
            yield part


def _area(shade: DrawnShade, scale: Scale) -> str:
    lows, highs, _ = shade.columns
    edges = [
        [
            (x, scale.fraction(value))
            for x, value in enumerate(edge)
            if value is not None
        ]
        for edge in (highs, lows)
    ]
    return _path([edges[0] + edges[1][::-1]], len(lows) - 1)


def _path(stretches: Iterable[Sequence[Point]], last: int) -> str:
    """Return a path through points, in whole numbers: each one as the way from the one before."""
    across = (_RIGHT - _LEFT) * _FINE / last
    up = (_BOTTOM - _TOP) * _FINE
    parts = []
    for stretch in stretches:
        at = None
        for column, height in stretch:
            to = (round(column * across), round((1 - height) * up))
            if at is None:
                parts.append(f"M{to[0]} {to[1]}h0l")
            else:
                parts.append(f"{to[0] - at[0]} {to[1] - at[1]} ")
            at = to
    return "".join(parts).replace(" -", "-").replace(" M", "M").removesuffix("l")


def _signs(drawing: ChartDrawing) -> Iterator[str]:
    """Yield what stands on top: straight lines, marks, the best value, what is no number."""
    window = drawing.picture.window
    for mark in drawing.picture.marks:
        yield from _sign(mark, drawing)
    for event in drawing.data.marks:
        share = window.column(event.step) / (window.columns - 1)
        x = _number(_x(share))
        if not 0 <= share <= 1 or event.role == "restart":
            continue
        if event.role == "checkpoint":
            yield f'<path class="mark checkpoint" d="M{x} {_BOTTOM - 4}l3 4-3 4-3-4z"/>'
        else:
            yield f'<path class="mark {event.style}" d="M{x} {_BOTTOM - 9}l5 9h-10z"/>'
    if drawing.picture.best is not None:
        column, value = drawing.picture.best
        y = _y(drawing.scale.fraction(value)) - 3
        x = _number(_x(column / (window.columns - 1)))
        at = f'x="{x}" y="{_number(y)}" text-anchor="middle"'
        yield f'<text class="sign {_class(drawing.picture.main_role)}" {at}>★</text>'
    odds = drawing.odds
    for share in odds[:: max(1, len(odds) // _MOST_ODD)]:
        at = f'x="{_number(_x(share))}" y="{_BOTTOM - 3}" text-anchor="middle"'
        yield f'<text class="odd" {at}>✗</text>'


def _sign(mark: DrawnMark, drawing: ChartDrawing) -> Iterator[str]:
    scale, columns = drawing.scale, drawing.picture.window.columns
    x = _number(_x((mark.column or 0) / (columns - 1)))
    height = 0.0 if mark.value is None else scale.fraction(mark.value)
    if mark.role == "restart" and 0 <= (mark.column or 0) < columns:
        yield f'<path class="restart" d="M{x} {_TOP}V{_BOTTOM}"/>'
    elif mark.role == "target" and not scale.beyond(mark.value or 0.0):
        across = f"M{_LEFT} {_number(_y(height))}H{_RIGHT}"
        yield f'<path class="target" d="{across}"/>'


def _letters(drawing: ChartDrawing) -> Iterator[str]:
    """Yield the letters of the runs at the ends of their curves, apart from each other."""
    last = drawing.picture.window.columns - 1
    placed: list[tuple[float, float]] = []
    for one in reversed(drawing.picture.lines):
        if one.end is None or not one.sign or one.role == OTHER_RUN:
            continue
        x = _x(one.end[0] / last) + 6
        y = _y(one.scale.fraction(one.end[1])) + 4
        placed.append((x, _beside(y, [b for a, b in placed if abs(a - x) < _LETTER])))
        at = f'x="{_number(x)}" y="{_number(placed[-1][1])}"'
        yield f'<text class="end {one.role}" {at}>{one.sign}</text>'


def _beside(y: float, taken: Sequence[float]) -> float:
    """Return the nearest place apart from those that are taken."""
    shifts = [way * at * _LETTER for at in range(len(taken) + 2) for way in (1, -1)]
    places = (y + shift for shift in shifts if _TOP <= y + shift <= _BOTTOM + 4)
    apart = (at for at in places if all(abs(at - one) >= _LETTER for one in taken))
    return next(apart, y)
