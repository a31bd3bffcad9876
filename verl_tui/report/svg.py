"""A chart as SVG: the screen's drawing as polylines, with its axes as text."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from verl_tui.rendering.session.selection import LETTERS
from verl_tui.rendering.text.family_colours import FAMILIES
from verl_tui.report.sentences import chart_in_words, line
from verl_tui.report.stylesheet import CHART_STYLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.report.drawing import ChartDrawing, LineEnd, Stroke
    from verl_tui.report.run_charts import ReportChart

WIDTH, HEIGHT = 480, 236
_LEFT, _RIGHT, _TOP, _BOTTOM = 54, 24, 20, 34
_PLOT = (WIDTH - _LEFT - _RIGHT, HEIGHT - _TOP - _BOTTOM)
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
_SEVERITIES = ("critical", "warning", "info")


def svg(
    chart: ReportChart, picture: ChartDrawing, name: str, *, alone: bool = False
) -> str:
    """Return a chart as an SVG element.

    Args:
        chart: Its words.
        picture: Its drawing.
        name: Begins the ids in it, so that they are unique in a page.
        alone: True for a file of its own, with its style and the names of the runs.
    """
    runs = _lettered(chart) if alone else []
    height = HEIGHT + len(runs) * _ROW
    space = ' xmlns="http://www.w3.org/2000/svg"' if alone else ""
    size = f' width="{WIDTH}" height="{height}"' if alone else ""
    parts = [
        f'<svg{space}{size} class="chart" viewBox="0 0 {WIDTH} {height}" role="img"'
        f' aria-labelledby="{name}-title {name}-desc">',
        f'<title id="{name}-title">{escape(line(chart.title))}</title>',
        f'<desc id="{name}-desc">{escape(chart_in_words(chart, picture))}</desc>',
    ]
    if alone:
        parts.append(f"<style>{CHART_STYLE}</style>")
        parts.append(f'<rect class="ground" width="{WIDTH}" height="{height}"/>')
    parts += [*_grid(picture, chart), *_curves(picture), *_signs(picture)]
    for at, (place, run) in enumerate(runs):
        label = escape(f"{LETTERS[place]}  {line(run)[:70]}")
        y = HEIGHT + at * _ROW + 8
        parts.append(
            f'<text class="end run-{place + 1}" x="{_LEFT}" y="{y}">{label}</text>'
        )
    parts.append("</svg>")
    return "".join(parts)


def _lettered(chart: ReportChart) -> list[tuple[int, str]]:
    """Return places and names of the runs that have letters, none for a single run."""
    if chart.alone:
        return []
    return [(one.place, one.run) for one in chart.curves if one.place is not None]


def _x(column: float, picture: ChartDrawing) -> float:
    return _LEFT + column / (picture.columns - 1) * _PLOT[0]


def _y(height: float) -> float:
    return _TOP + (1 - height) * _PLOT[1]


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _grid(picture: ChartDrawing, chart: ReportChart) -> Iterator[str]:
    """Yield what lies behind the curves: healthy band, grid, the axes and their labels."""
    right = _LEFT + _PLOT[0]
    bottom = _TOP + _PLOT[1]
    if picture.band is not None:
        low, high = picture.band
        top = _number(_y(high))
        size = _number(_y(low) - _y(high))
        yield f'<rect class="band" x="{_LEFT}" y="{top}" width="{_PLOT[0]}" height="{size}"/>'
    for tick in picture.y_ticks:
        y = _number(_y(tick.at))
        yield f'<path class="grid" d="M{_LEFT} {y}H{right}"/>'
        text = _number(_y(tick.at) + 4)
        yield f'<text x="{_LEFT - 6}" y="{text}" text-anchor="end">{escape(tick.text)}</text>'
    yield f'<path class="axis" d="M{_LEFT} {_TOP}V{bottom}H{right}"/>'
    for tick in picture.x_ticks:
        x = _number(_LEFT + tick.at * _PLOT[0])
        yield f'<path class="axis" d="M{x} {bottom}v4"/>'
        yield f'<text x="{x}" y="{bottom + 16}" text-anchor="middle">{escape(tick.text)}</text>'
    yield f'<text x="{right}" y="{bottom + 30}" text-anchor="end">step</text>'
    unit = escape(
        line(f"{chart.title}, {chart.unit}" if chart.unit else chart.title)[:60]
    )
    yield f'<text x="4" y="11">{unit}</text>'


def _curves(picture: ChartDrawing) -> Iterator[str]:
    """Yield areas, lines and points."""
    yield f'<g transform="translate({_LEFT} {_TOP}) scale({1 / _FINE:g})">'
    for area in picture.areas:
        there = zip(area.x, area.high, strict=True)
        back = zip(area.x, area.low, strict=True)
        x, y = zip(*there, *reversed([*back]), strict=True) if area.x else ((), ())
        yield f'<path class="area {_colour(picture)}" d="{_path(x, y, (), picture)}z"/>'
    for stroke in (*picture.strokes, *picture.dots):
        if stroke.x:
            kind = (
                f"{_class(stroke.role)} behind"
                if stroke.behind
                else _class(stroke.role)
            )
            yield f'<path class="{kind}" d="{_path(stroke.x, stroke.y, stroke.starts, picture)}"/>'
    yield "</g>"
    for stroke in (*picture.strokes, *picture.dots):
        if _has_markers(stroke):
            yield from _dots(stroke, picture)


def _has_markers(stroke: Stroke) -> bool:
    """Return whether each point of a curve has a marker: of few points, none drawn over others."""
    over = stroke.behind or stroke.role in (*_SEVERITIES, "other-run")
    if over or not 0 < len(stroke.x) <= _FEW:
        return False
    return stroke.x[-1] - stroke.x[0] >= _SPACED * (len(stroke.x) - 1)


def _dots(stroke: Stroke, picture: ChartDrawing) -> Iterator[str]:
    for x, y in zip(stroke.x, stroke.y, strict=True):
        at = f'cx="{_number(_x(x, picture))}" cy="{_number(_y(y))}"'
        yield f'<circle class="dot {_class(stroke.role)}" {at} r="2.4"/>'


def _colour(picture: ChartDrawing) -> str:
    """Return what colours the areas: the curve that they are around."""
    main = next(
        (one.role for one in picture.strokes if one.role not in _SEVERITIES), "other"
    )
    return _class(main)


def _class(role: str) -> str:
    """Return the class that colours a role."""
    if role in FAMILIES:
        return f"of-{role}"
    return "grey" if role == "other-run" else role


def _path(
    x: Sequence[float], y: Sequence[float], starts: Sequence[int], picture: ChartDrawing
) -> str:
    """Return a path through points, in whole numbers: each one as the way from the one before."""
    across = _PLOT[0] * _FINE / (picture.columns - 1)
    up = _PLOT[1] * _FINE
    begins = {0, *starts}
    parts = []
    at = (0, 0)
    for i, (column, height) in enumerate(zip(x, y, strict=True)):
        to = (round(column * across), round((1 - height) * up))
        if i in begins:
            parts.append(f"M{to[0]} {to[1]}h0")
            drawing = "l"
        else:
            parts.append(f"{drawing}{to[0] - at[0]} {to[1] - at[1]}".replace(" -", "-"))
            drawing = " "
        at = to
    return "".join(parts).replace(" -", "-")


def _signs(picture: ChartDrawing) -> Iterator[str]:
    """Yield what stands on top: target, marks, the best value, letters at the ends of curves."""
    bottom = _TOP + _PLOT[1]
    if picture.target is not None:
        y = _number(_y(picture.target))
        yield f'<path class="target" d="M{_LEFT} {y}h{_PLOT[0]}"/>'
    for mark in picture.marks:
        x = _number(_x(mark.x, picture))
        if mark.role == "restart":
            yield f'<path class="restart" d="M{x} {_TOP}V{bottom}"/>'
        elif mark.role == "checkpoint":
            yield f'<path class="mark checkpoint" d="M{x} {bottom - 4}l3 4-3 4-3-4z"/>'
        else:
            yield f'<path class="mark {mark.role}" d="M{x} {bottom - 9}l5 9h-10z"/>'
    for odd in picture.odds[:: max(1, len(picture.odds) // 60)]:
        x = _number(_x(odd, picture))
        yield f'<text class="odd" x="{x}" y="{bottom - 3}" text-anchor="middle">✗</text>'
    if picture.best is not None:
        x = _number(_x(picture.best[0], picture))
        y = _number(_y(picture.best[1]) - 3)
        colour = _colour(picture)
        yield f'<text class="sign {colour}" x="{x}" y="{y}" text-anchor="middle">★</text>'
    yield from _letters(picture)


def _letters(picture: ChartDrawing) -> Iterator[str]:
    """Yield the letters of the runs at the ends of their curves."""
    near: list[LineEnd] = []
    for end in sorted(picture.ends, key=lambda end: end.x):
        if near and _x(end.x, picture) - _x(near[-1].x, picture) >= _LETTER:
            yield from _stacked(near, picture)
            near = []
        near.append(end)
    yield from _stacked(near, picture)


def _stacked(near: Sequence[LineEnd], picture: ChartDrawing) -> Iterator[str]:
    """Yield letters that stand side by side, apart from each other."""
    free = float(_TOP)
    places = []
    ends = sorted(near, key=lambda end: -end.y)
    for end in ends:
        free = max(free, _y(end.y) + 4)
        places.append(free)
        free += _LETTER
    over = max(0.0, free - _LETTER - (_TOP + _PLOT[1] + 4))
    for end, y in zip(ends, places, strict=True):
        x = _number(_x(end.x, picture) + 6)
        yield f'<text class="end {end.role}" x="{x}" y="{_number(y - over)}">{end.sign}</text>'
