"""A chart as SVG: the screen's picture as polylines, with its axes as text; and the stylesheet of a
report and of its charts, for light and dark grounds and for paper. That stands in the file itself,
and the file's policy names it by its hash: nothing else is allowed.
"""

from __future__ import annotations

import base64
import hashlib
from html import escape
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from verl_tui.rendering.session.run_order import LETTERS
from verl_tui.rendering.text.hues import FAMILIES, HUES
from verl_tui.rendering.text.numbers import distinct_texts
from verl_tui.report.run_charts import OTHER_RUN, ChartDrawing, ReportChart
from verl_tui.report.sentences import line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from verl_tui.rendering.charts.axes import Scale
    from verl_tui.rendering.charts.picture import DrawnLine, DrawnShade

    Point = tuple[int, float]
    """Dot column and height, 0 .. 1."""

WIDTH, HEIGHT = 480, 236
_LEFT, _RIGHT, _TOP, _BOTTOM = 54, 456, 20, 202
"""Edges of the plot."""
_FINE = 4
"""Parts of a unit that curves are drawn in, so that whole numbers are exact enough."""
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
    named = [
        (one.place, one.run)
        for one in chart.curves
        if one.place is not None and alone and not chart.alone
    ]
    height = HEIGHT + len(named) * _ROW
    file = f' xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}"'
    parts = [
        f'<svg{file * alone} class="chart" viewBox="0 0 {WIDTH} {height}" role="img"'
        f' aria-labelledby="{name}">',
        _tag("title", line(chart.title), id=name),
    ]
    if alone:
        parts.append(f"<style>{CHART_STYLE}</style>")
        parts.append(_tag("rect", class_="ground", width=WIDTH, height=height))
    parts += [*_grid(drawing, chart), *_curves(drawing), *_signs(drawing)]
    parts += _letters(drawing)
    for at, (place, run) in enumerate(named):
        label = f"{LETTERS[place]}  {line(run)[:70]}"
        y = HEIGHT + at * _ROW + 8
        parts.append(_text(_LEFT, y, label, "start", f"end run-{place + 1}"))
    return "".join([*parts, "</svg>"])


def _tag(name: str, text: str = "", **attributes: str | float) -> str:
    """Return an element; a number has a digit behind the point at most."""
    words = []
    for key, value in attributes.items():
        shown = f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else value
        words.append(f' {key.rstrip("_").replace("_", "-")}="{escape(str(shown))}"')
    return f"<{name}{''.join(words)}>{escape(text)}</{name}>"


def _text(x: float, y: float, text: str, anchor: str = "middle", kind: str = "") -> str:
    return _tag("text", text, class_=kind, x=x, y=y, text_anchor=anchor)


def _path(kind: str, way: str) -> str:
    return _tag("path", class_=kind, d=way)


def _x(share: float) -> float:
    return _LEFT + share * (_RIGHT - _LEFT)


def _y(height: float) -> float:
    return _BOTTOM - height * (_BOTTOM - _TOP)


def _class(role: str) -> str:
    """Return the class that colours a role."""
    return f"of-{role}" if role in FAMILIES else "grey" if role == OTHER_RUN else role


def _grid(drawing: ChartDrawing, chart: ReportChart) -> Iterator[str]:
    """Yield what lies behind the curves: healthy band, grid, the axes and their labels."""
    scale, (low, high) = drawing.scale, drawing.picture.band
    bottom = 0.0 if low is None else scale.fraction(low)
    top = 1.0 if high is None else scale.fraction(high)
    if (low, high) != (None, None) and top > bottom:
        at, high = _y(top), _y(bottom) - _y(top)
        wide = _RIGHT - _LEFT
        yield _tag("rect", class_="band", x=_LEFT, width=wide, y=at, height=high)
    values = scale.ticks(_TICKS)
    for value, text in zip(values, distinct_texts(values), strict=True):
        y = _y(scale.fraction(value))
        if text:
            yield _path("grid", f"M{_LEFT} {y:.1f}H{_RIGHT}")
            yield _text(_LEFT - 6, y + 4, text, "end")
    yield _path("axis", f"M{_LEFT} {_TOP}V{_BOTTOM}H{_RIGHT}")
    axis, window = drawing.data.axis, drawing.picture.window
    apart = window.columns // (2 * _TICKS)
    for step in window.ticks(apart, time=axis.time, zero=axis.zero):
        share = window.column(step) / (window.columns - 1)
        if 0 <= share <= 1:
            yield _path("axis", f"M{_x(share):.1f} {_BOTTOM}v4")
            yield _text(_x(share), _BOTTOM + 16, axis.write(step))
    yield _text(_RIGHT, _BOTTOM + 30, "step", "end")
    unit = f"{chart.title}, {chart.unit}" if chart.unit else chart.title
    yield _text(4, 11, line(unit)[:60], "start")


def _curves(drawing: ChartDrawing) -> Iterator[str]:
    """Yield areas, lines and points."""
    picture = drawing.picture
    yield f'<g transform="translate({_LEFT} {_TOP}) scale({1 / _FINE:g})">'
    for shade in picture.shades:
        area = _area(shade, drawing.scale)
        yield _path(f"area {_class(picture.main_role)}", f"{area}z")
    for one in picture.lines:
        stretches = _stretches(one)
        last = len(one.columns.lows) - 1
        yield _path(_class(one.role), _way(stretches, last))
        for role in dict.fromkeys(one.alarms.values()):
            way = _way(_alarmed(stretches, one, role), last)
            yield _path(_class(role), way)
        for x, y in chain.from_iterable(stretches) if one.points else ():
            yield _path(f"dot {_class(one.role)}", _way([[(x, y)]], last))
    yield "</g>"


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
        yield part


def _area(shade: DrawnShade, scale: Scale) -> str:
    """Return the outline of an area; around averages two values or more make a point of it."""
    lows, highs, _ = shade.columns
    known = sum(one is not None for one in lows)
    size = -(-2 * len(lows) // max(1, known)) if shade.role == "around" else 1
    above, below = (
        [
            (x + size // 2, scale.fraction(best(found)))
            for x in range(0, len(lows) - size // 2, size)
            if (found := [one for one in edge[x : x + size] if one is not None])
        ]
        for edge, best in ((highs, max), (lows, min))
    )
    return _way([above + below[::-1]], len(lows) - 1)


def _way(stretches: Iterable[Sequence[Point]], last: int) -> str:
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
    picture, scale = drawing.picture, drawing.scale
    last = picture.window.columns - 1
    for mark in picture.marks:
        if mark.role == "target" and not scale.beyond(mark.value or 0.0):
            y = _y(scale.fraction(mark.value or 0.0))
            yield _path("target", f"M{_LEFT} {y:.1f}H{_RIGHT}")
        elif mark.column in range(last + 1):
            x = _x((mark.column or 0) / last)
            yield _path("restart", f"M{x:.1f} {_TOP}V{_BOTTOM}")
    yield from _marks(drawing)
    if picture.best is not None:
        column, value = picture.best
        y = _y(scale.fraction(value)) - 3
        kind = f"sign {_class(picture.main_role)}"
        yield _text(_x(column / last), y, "★", kind=kind)
    odds = drawing.odds
    for share in odds[:: max(1, len(odds) // _MOST_ODD)]:
        yield _text(_x(share), _BOTTOM - 3, "✗", kind="odd")


def _marks(drawing: ChartDrawing) -> Iterator[str]:
    """Yield what stands on the x axis: checkpoints, and where findings begin."""
    window = drawing.picture.window
    for event in drawing.data.marks:
        share = window.column(event.step) / (window.columns - 1)
        if 0 <= share <= 1 and event.role != "restart":
            kind, way = _MARKS.get(event.role, (event.style, f"{_BOTTOM - 9}l5 9h-10z"))
            yield _path(f"mark {kind}", f"M{_x(share):.1f} {way}")


_MARKS = {
    "checkpoint": ("checkpoint", f"{_BOTTOM - 4}l3 4-3 4-3-4z"),
    "note": ("noted", f"{_BOTTOM - 4}l-4-8h8z"),
}
"""Roles of marks that have a form of their own: class and path; others are triangles."""


def _letters(drawing: ChartDrawing) -> Iterator[str]:
    """Yield the letters of the runs at the ends of their curves."""
    last = drawing.picture.window.columns - 1
    placed: list[tuple[float, float]] = []
    for one in reversed(drawing.picture.lines):
        if one.end is not None and one.sign and one.role != OTHER_RUN:
            x = _x(one.end[0] / last) + 6
            y = _y(one.scale.fraction(one.end[1])) + 4
            near = [other for at, other in placed if abs(at - x) < _LETTER]
            placed.append((x, _beside(y, near)))
            yield _text(*placed[-1], one.sign, "start", f"end {one.role}")


def _beside(y: float, taken: Sequence[float]) -> float:
    """Return the nearest place apart from those that are taken."""
    shifts = [way * at * _LETTER for at in range(len(taken) + 2) for way in (1, -1)]
    places = (y + shift for shift in shifts if _TOP <= y + shift <= _BOTTOM + 4)
    apart = (at for at in places if all(abs(at - one) >= _LETTER for one in taken))
    return next(apart, y)


# -- the stylesheet --------------------------------------------------------------------------------


def _written(name: str) -> str:
    """Return the rules of a file beside this one."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _hues() -> str:
    """Return the screen's colours of runs and families, on light grounds and on dark ones."""
    hues = HUES | {f"of-{role}": hue for role, hue in FAMILIES.items()}
    on_light, on_dark = (
        "".join(
            f"--{name}:{hue.on_ground(ansi=False, dark=dark)};"
            for name, hue in hues.items()
        )
        for dark in (False, True)
    )
    return (
        f":root{{{on_light}}}\n"
        f"@media screen and (prefers-color-scheme:dark){{:root{{{on_dark}}}}}\n"
        + "".join(f".{role}{{color:var(--{role})}}\n" for role in hues)
    )


CHART_STYLE = _written("colours.css") + _hues() + _written("chart.css")
"""Of a chart in a file of its own."""
PAGE_STYLE = CHART_STYLE + _written("page.css")
"""Of a page."""


def policy(style: str) -> str:
    """Return the content security policy under which only this style holds, and nothing is
    loaded.
    """
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
