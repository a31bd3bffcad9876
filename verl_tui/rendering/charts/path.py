"""The path of a reward over the KL: a point for each step, joined in the order of the steps.

The distance of the policy from where it began is the price of a reward: a path that rises to the
upper left gains much at little cost, one that turns down gains nothing more. Gao, Schulman and
Hilton draw reward models so ("Scaling Laws for Reward Model Overoptimization", 2022,
https://arxiv.org/abs/2210.10760).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.means import clamp
from verl_tui.rendering.charts import braille
from verl_tui.rendering.charts.axis_labels import cells_of, sides
from verl_tui.rendering.charts.best_value import best_point
from verl_tui.rendering.charts.braille import DotLayer, Glyph
from verl_tui.rendering.charts.labels import sentences
from verl_tui.rendering.charts.line_signs import layered
from verl_tui.rendering.charts.line_styles import straight_lines
from verl_tui.rendering.charts.roles import HUES
from verl_tui.rendering.charts.symbols import SYMBOLS
from verl_tui.rendering.text.hues import BEHIND
from verl_tui.rendering.text.numbers import distinct_texts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.rendering.charts.axes import Scale
    from verl_tui.rendering.charts.braille import Text
    from verl_tui.rendering.charts.cache import ChartCache
    from verl_tui.rendering.charts.chart_data import ChartData, ChartLine, Points

LEAST_WIDTH = 16
LEAST_HEIGHT = 5
"""Smallest chart, in cells with its title, in which a path shows more than a curve over steps."""
_MOST = 1024
"""Points of a path; of longer ones every second, fourth, eighth … is drawn, and the newest."""
_LABEL = "KL"


class PathPoint(NamedTuple):
    """Where a run was at a step."""

    step: int
    x: float
    y: float


class _DrawnPath(NamedTuple):
    """One run's path."""

    line: ChartLine
    sign: str
    points: list[PathPoint]
    behind: list[PathPoint]
    """The values themselves where the path is one of averages."""


def path_points(over: Points, points: Points, first: int, last: int) -> list[PathPoint]:
    """Return the points of the steps from first to last that have a number in both series.

    Args:
        over: The series of the x axis.
        points: The series of the y axis.
        first: First step.
        last: Last step.
    """
    found: list[PathPoint] = []
    for i in _drawn_indices(points, first, last):
        step = points.steps[i]
        at = bisect_right(over.steps, step) - 1
        if not 0 <= at < len(over.values) or over.steps[at] != step:
            continue
        x = over.values[at]
        y = points.values[i]
        if isfinite(x) and isfinite(y):
            found.append(PathPoint(step, x, y))
    return found


def _drawn_indices(points: Points, first: int, last: int) -> list[int]:
    """Return the indices of the points that are drawn: at most about so many, and the newest."""
    begin = bisect_left(points.steps, first)
    end = bisect_right(points.steps, last)
    end = min(end, len(points.values))
    stride = 1
    while (end - begin) // stride > _MOST:
        stride *= 2
    # Counted from the first value of all, so that a new step leaves the others as they are.
    begin_at_stride = begin + -begin % stride
    indices = [*range(begin_at_stride, end, stride)]
    newest = end - 1
    if end > begin and indices[-1:] != [newest]:
        indices.append(newest)
    return indices


def is_path(data: ChartData, width: int, height: int) -> bool:
    """Return whether a chart is drawn as a path in so much room."""
    return data.over_kl and width >= LEAST_WIDTH and height >= LEAST_HEIGHT


def neighbour_on_path(line: ChartLine, step: int | None, count: int) -> int | None:
    """Return the step that is so many points later on a path, or earlier if `count` is negative, as
    far as it goes; the last one where there is no step yet, None where there is none.
    """
    if line.over is None:
        return None
    known = set(line.over.steps)
    steps = [own for own in line.points.steps if own in known]
    if not steps:
        return None
    if step is None:
        return steps[-1]
    at = bisect_right(steps, step) + count - 1
    if count < 0:
        at = bisect_left(steps, step) + count
    return steps[clamp(at, 0, len(steps) - 1)]


def path_rows(
    data: ChartData,
    shown: tuple[int, int],
    size: tuple[int, int],
    cursor: int | None,
    cache: ChartCache,
) -> list[Text]:
    """Draw everything below the title.

    Args:
        data: The chart; its lines have the series that they are drawn over.
        shown: First and last step.
        size: Width and height in cells.
        cursor: Step that is read.
        cache: What was drawn before.
    """
    width, height = size
    paths = [*_paths(data, shown, cache)]
    known: list[PathPoint] = []
    for path in paths:
        known += path.behind
        known += path.points
    if not known:
        return sentences("no step has both a value and a KL", width, height)
    x, y = _scales(data, known, shown[0], cache)
    axes = 1 if height < 6 else 2
    left, _ = sides(data, (y, None), width, height - axes)
    taken = cells_of(left)
    picture = _PathPicture(data, x, y, (width - taken, height - axes))
    for path in paths:
        picture.draw(path)
    picture.mark(paths, cursor)
    rows = [a + b for a, b in zip(left, picture.compose(), strict=True)]
    corner = SYMBOLS.corner
    for row in _axis_rows(x, width - taken, axes):
        rows.append(((corner.rjust(taken)[:taken], "rule"), *row))
        corner = ""
    return rows


def _scales(
    data: ChartData, known: Sequence[PathPoint], first: int, cache: ChartCache
) -> tuple[Scale, Scale]:
    """Return the axes that all points fit on; on a logarithmic one those above 0, if there are
    any.
    """
    if data.log_y:
        known = [point for point in known if point.y > 0] or known
    pyramid = data.main.points.pyramid if data.main else None
    subject = (data.key, pyramid, first)
    across = [point.x for point in known]
    up = [point.y for point in known]
    x = cache.axis("path x", subject, (min(across), max(across)))
    y = cache.axis("path y", subject, (min(up), max(up)), log=data.log_y)
    return x, y


def _paths(
    data: ChartData, shown: tuple[int, int], cache: ChartCache
) -> Iterator[_DrawnPath]:
    """Yield the paths, the shown run's last; of averages where the chart is smoothed."""
    for line, sign in layered(data):
        if line.kind != "line" or line.over is None:
            continue
        raw = path_points(line.over, line.points, *shown)
        if not 0 < data.smoothing < 1:
            yield _DrawnPath(line, sign, raw, [])
            continue
        over = cache.smoothed(line.over, data.smoothing)
        points = cache.smoothed(line.points, data.smoothing)
        over.pyramid, points.pyramid  # noqa: B018 - they read what there is
        behind = raw if line is data.main else []
        yield _DrawnPath(line, sign, path_points(over, points, *shown), behind)


class _PathPicture:
    """The plot: layers of dots, and glyphs on top of them."""

    def __init__(
        self, data: ChartData, x: Scale, y: Scale, size: tuple[int, int]
    ) -> None:
        self._data = data
        self._x = x
        self._y = y
        self._size = size
        self._layers = [DotLayer(*size)]
        self._glyphs: dict[int, dict[int, Glyph]] = {}
        if data.target is not None and y.lo <= data.target <= y.hi:
            row = y.dots([data.target], size[1] * 4)[0] or 0
            self._layers.append(straight_lines("target", *size, [row]))

    def compose(self) -> list[Text]:
        """Return the rows."""
        return braille.compose(self._layers, self._glyphs)

    def draw(self, path: _DrawnPath) -> None:
        """Draw one path, and faintly the values behind its averages."""
        role = path.line.role
        if path.behind:
            faint = role + BEHIND if role in HUES else "raw"
            behind = self._layer(faint, backdrop=True)
            for point in path.behind:
                behind.dot(*self._dot(point))
        layers = {role: self._layer(role)}
        is_main = path.line is self._data.main
        before: tuple[int, int] | None = None
        for point in path.points:
            own = self._role_at(point.step, role) if is_main else role
            if own not in layers:
                layers[own] = self._layer(own)
            place = self._dot(point)
            layers[own].straight(before or place, place)
            before = place

    def mark(self, paths: Sequence[_DrawnPath], cursor: int | None) -> None:
        """Mark where paths begin and end, the best value, findings, and the cursor."""
        for path in paths:
            if not path.points:
                continue
            role = path.line.role
            main = path.line is self._data.main
            self._put(path.points[0], Glyph(SYMBOLS.start, role))
            if main:
                self._mark_steps(path)
            end = path.points[-1]
            sign = path.sign or SYMBOLS.single
            self._put(end, Glyph(sign, self._role_at(end.step, role)))
            at = _at_step(path.points, cursor)
            if main and at is not None:
                self._cross(at)

    def _mark_steps(self, path: _DrawnPath) -> None:
        """Mark the best value, and where findings began."""
        if self._data.best:
            best = best_point(path.line.points, lowest=self._data.best == "lowest")
            step = None if best is None else best[0]
            at = _at_step(path.behind or path.points, step)
            if at is not None and at.step == step:
                self._put(at, Glyph(SYMBOLS.best, path.line.role))
        for mark in self._data.marks:
            if mark.role != "breach":
                continue
            at = _at_step(path.points, mark.step)
            if at is not None:
                self._put(at, Glyph(SYMBOLS.breach, mark.style))

    def _cross(self, point: PathPoint) -> None:
        """Draw the cursor: a line through its point, and the point itself."""
        x, y = self._dot(point)
        for row in range(self._size[1]):
            cells = self._glyphs.setdefault(row, {})
            cells.setdefault(x // 2, Glyph(SYMBOLS.cursor, "cursor", yields=True))
        self._put_dot(x, y, Glyph(SYMBOLS.points[1], "cursor"))

    def _role_at(self, step: int, role: str) -> str:
        """Return the colour of a step: that of the worst finding that held, else the line's own."""
        for alarm in reversed(self._data.alarms):
            is_over = alarm.last is not None and step >= alarm.last
            if alarm.first <= step and not is_over:
                return alarm.role
        return role

    def _layer(self, style: str, *, backdrop: bool = False) -> DotLayer:
        self._layers.append(DotLayer(*self._size, style, backdrop=backdrop))
        return self._layers[-1]

    def _dot(self, point: PathPoint) -> tuple[int, int]:
        width, height = self._size
        columns = width * 2
        across = min(columns - 1, int(self._x.fraction(point.x) * columns))
        up = self._y.dots([point.y], height * 4)[0]
        return across, up or 0

    def _put(self, point: PathPoint, glyph: Glyph) -> None:
        self._put_dot(*self._dot(point), glyph)

    def _put_dot(self, x: int, y: int, glyph: Glyph) -> None:
        self._glyphs.setdefault(y // 4, {})[x // 2] = glyph


def _at_step(points: Sequence[PathPoint], step: int | None) -> PathPoint | None:
    """Return the newest point up to a step, None where there is none."""
    if step is None:
        return None
    count = bisect_right(points, step, key=lambda point: point.step)
    return points[count - 1] if count else None


def _axis_rows(scale: Scale, width: int, count: int) -> list[Text]:
    """Write the x axis in one or two rows, as those of steps are."""
    rule = [(SYMBOLS.rule, "rule")] * width
    text = [(" ", "axis")] * width if count > 1 else rule
    values = scale.ticks(max(2, width // 14))
    free = 0
    room = width - len(_LABEL) - 1
    for value, label in zip(values, distinct_texts(values), strict=True):
        cell = min(width - 1, int(scale.fraction(value) * width))
        start = max(0, cell - len(label) // 2)
        if not label or start < free or start + len(label) > room:
            continue
        if count > 1:
            rule[cell] = (SYMBOLS.tick, "rule")
        text[start : start + len(label)] = [(c, "axis") for c in label]
        free = start + len(label) + 1
    text[width - len(_LABEL) :] = [(c, "key") for c in _LABEL]
    return [braille.join(rule), braille.join(text)][:count]
