"""A chart as SVG: the screen's picture as polylines, with its axes as text; and the stylesheet of a
report and of its charts, for light and dark grounds and for paper. That stands in the file itself,
and the file's policy names it by its hash: nothing else is allowed.
"""

from __future__ import annotations

import base64
import hashlib
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from verl_tui.rendering.charts.chart_data import ANY
from verl_tui.rendering.session.run_order import LETTERS
from verl_tui.rendering.text.hues import FAMILIES, HUES
from verl_tui.rendering.text.numbers import distinct_texts
from verl_tui.report import sentences
from verl_tui.report.run_charts import OTHER_RUN, ChartDrawing, ReportChart

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from verl_tui.rendering.charts.axes import Scale
    from verl_tui.rendering.charts.picture import DrawnLine, DrawnShade, Picture

    Point = tuple[int, float]
    """Dot column and height, 0 .. 1."""
    PlacedSign = tuple[float, float, str, str, str]
    """Place, sign, which end of it stands there, class."""


_LEFT, _RIGHT, _TOP, _BOTTOM = 54, 456, 20, 202
"""Edges of the plot."""
_FINE = 4
"""Parts of a unit that curves are drawn in, so that whole numbers are exact enough."""

_LETTER = 12
"""Least distance of two letters at the ends of curves."""
TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    autoescape=select_autoescape(["html.jinja", "svg.jinja"]),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.filters |= vars(sentences)
_TICKS = 5
_MOST_ODD = 60


def svg(chart: ReportChart, name: str, *, alone: bool = False) -> str:
    """Return a chart as an SVG element, empty where nothing of it can be drawn.

    Args:
        chart: What is drawn, and its words.
        name: Begins the ids in it, so that they are unique in a page.
        alone: True for a file of its own, with its style and the names of the runs.
    """
    drawing = chart.drawing
    if drawing is None:
        return ""
    picture = drawing.picture
    named = [one for one in chart.curves if one.place is not None]
    return TEMPLATES.get_template("chart.svg.jinja").render(
        chart=chart,
        name=name,
        alone=alone,
        named=named * (alone and not chart.alone),
        style=CHART_STYLE,
        letters=LETTERS,
        band=_band(picture),
        heights=_heights(picture.scale),
        steps=_steps(drawing),
        curves=_curves(picture),
        marks=[*_straight(picture), *_marks(drawing)],
        signs=[*_signs(drawing), *_letters(picture)],
    )


def _x(picture: Picture, column: int) -> float:
    return _LEFT + column / (picture.window.columns - 1) * (_RIGHT - _LEFT)


def _y(scale: Scale, value: float) -> float:
    return _BOTTOM - scale.fraction(value) * (_BOTTOM - _TOP)


def _class(role: str) -> str:
    """Return the class that colours a role."""
    return f"of-{role}" if role in FAMILIES else "grey" if role == OTHER_RUN else role


def _band(picture: Picture) -> tuple[float, float] | None:
    """Return the upper edge and the height of the healthy band, None where none is in sight."""
    scale, (low, high) = picture.scale, picture.band
    top = _y(scale, high)
    height = _y(scale, low) - top
    return (top, height) if height > 0 and picture.band != ANY else None


def _heights(scale: Scale) -> list[tuple[float, str]]:
    """Return the numbers of the y axis with their heights."""
    values = scale.ticks(_TICKS)
    texts = zip(values, distinct_texts(values), strict=True)
    return [(_y(scale, value), text) for value, text in texts if text]


def _steps(drawing: ChartDrawing) -> Iterator[tuple[float, str]]:
    """Yield the labels of the x axis with their places."""
    axis, window = drawing.data.axis, drawing.picture.window
    apart = window.columns // (2 * _TICKS)
    for step in window.ticks(apart, time=axis.time, zero=axis.zero):
        if window.column(step) in range(window.columns):
            yield _x(drawing.picture, window.column(step)), axis.write(step)


def _curves(picture: Picture) -> Iterator[tuple[str, str]]:
    """Yield class and path of areas, lines and points."""
    for shade in picture.shades:
        area = _area(shade, picture.scale)
        yield f"area {_class(picture.main_role)}", f"{area}z"
    last = picture.window.columns - 1
    for one in picture.lines:
        stretches = _stretches(one)
        yield _class(one.role), _way(stretches, last)
        for role in dict.fromkeys(one.alarms.values()):
            yield _class(role), _way(_alarmed(stretches, one, role), last)
        for point in chain.from_iterable(stretches) if one.points else ():
            yield f"dot {_class(one.role)}", _way([[point]], last)


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


def _straight(picture: Picture) -> Iterator[tuple[str, str]]:
    """Yield class and path of straight lines."""
    for column in picture.restarts:
        if column in range(picture.window.columns):
            yield "restart", f"M{_x(picture, column):.1f} {_TOP}V{_BOTTOM}"
    target, scale = picture.target, picture.scale
    if target is not None and not scale.beyond(target):
        yield "target", f"M{_LEFT} {_y(scale, target):.1f}H{_RIGHT}"


def _signs(drawing: ChartDrawing) -> Iterator[PlacedSign]:
    """Yield what stands on top: the best value, what is no number."""
    picture = drawing.picture
    if picture.best is not None:
        column, value = picture.best
        x, y = _x(picture, column), _y(picture.scale, value) - 3
        yield x, y, "★", "middle", f"sign {_class(picture.main_role)}"
    odds = drawing.odds
    for column in odds[:: max(1, len(odds) // _MOST_ODD)]:
        yield _x(picture, column), _BOTTOM - 3, "✗", "middle", "odd"


def _marks(drawing: ChartDrawing) -> Iterator[tuple[str, str]]:
    """Yield class and path of what stands on the x axis: checkpoints, notes, and where findings
    begin.
    """
    window = drawing.picture.window
    for event in drawing.data.marks:
        column = window.column(event.step)
        if column in range(window.columns) and event.role != "restart":
            kind, way = _MARKS.get(event.role, (event.role, f"{_BOTTOM - 9}l5 9h-10z"))
            yield f"mark {kind}", f"M{_x(drawing.picture, column):.1f} {way}"


_MARKS = {
    "checkpoint": ("checkpoint", f"{_BOTTOM - 4}l3 4-3 4-3-4z"),
    "note": ("noted", f"{_BOTTOM - 4}l-4-8h8z"),
}
"""Roles of marks that have a form of their own: class and path; others are triangles."""


def _letters(picture: Picture) -> Iterator[PlacedSign]:
    """Yield the letters of the runs at the ends of their curves."""
    placed: list[tuple[float, float]] = []
    for one in reversed(picture.lines):
        if one.end is not None and one.sign and one.role != OTHER_RUN:
            x, y = _x(picture, one.end[0]) + 6, _y(one.scale, one.end[1]) + 4
            near = [other for at, other in placed if abs(at - x) < _LETTER]
            placed.append((x, _beside(y, near)))
            yield *placed[-1], one.sign, "start", f"end {one.role}"


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
