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
from verl_tui.rendering.charts.axis_labels import axis_rows, cells_of, placed, sides
from verl_tui.rendering.charts.braille import Glyph
from verl_tui.rendering.charts.downsample import best_point
from verl_tui.rendering.charts.paint import Painting
from verl_tui.rendering.charts.picture import DrawnMark, faint, layered
from verl_tui.rendering.charts.symbols import SYMBOLS, sentences
from verl_tui.rendering.text.numbers import distinct_texts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.rendering.charts.axes import Scale
    from verl_tui.rendering.charts.braille import Text
    from verl_tui.rendering.charts.cache import ChartCache
    from verl_tui.rendering.charts.chart_data import ChartData, ChartLine, Points

_LEAST_WIDTH = 16
_LEAST_HEIGHT = 5
"""Smallest chart, in cells with its title, in which a path shows more than a curve over steps."""
_MOST = 1024
"""Points of a path; of longer ones every second, fourth, eighth … is drawn, and the newest."""


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
    """Return the points of the steps from first to last that have a number in both series."""
    across = dict(zip(over.steps, over.values, strict=False))
    begin = bisect_left(points.steps, first)
    end = min(bisect_right(points.steps, last), len(points.values))
    stride = 1
    while (end - begin) // stride > _MOST:
        stride *= 2
    found: list[PathPoint] = []
    for i in range(begin, end):
        # Counted from the first value of all, so that a new step leaves the others as they are.
        if i % stride == 0 or i == end - 1:
            x, y = across.get(points.steps[i]), points.values[i]
            if x is not None and isfinite(x) and isfinite(y):
                found.append(PathPoint(points.steps[i], x, y))
    return found


def is_path(data: ChartData, width: int, height: int) -> bool:
    """Return whether a chart is drawn as a path in so much room."""
    return data.over_kl and width >= _LEAST_WIDTH and height >= _LEAST_HEIGHT


def neighbour_on_path(line: ChartLine, step: int | None, count: int) -> int | None:
    """Return the step that is so many points later on a path, or earlier if `count` is negative, as
    far as it goes; the last one where there is no step yet, None where there is none.
    """
    known = set(line.over.steps if line.over is not None else ())
    steps = [own for own in line.points.steps if own in known]
    if not steps:
        return None
    if step is None:
        return steps[-1]
    at = bisect_left(steps, step) if count < 0 else bisect_right(steps, step) - 1
    return steps[clamp(at + count, 0, len(steps) - 1)]


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
    paths = [*_paths(data, shown, cache)]
    known = [point for path in paths for point in path.behind + path.points]
    axes = 1 if size[1] < 6 else 2
    height = size[1] - axes
    if not known:
        return sentences("no step has both a value and a KL", *size)
    scales = _scales(data, known, shown[0], cache)
    left, _ = sides(data, (scales[1], None), size[0], height)
    taken = cells_of(left)
    width = size[0] - taken
    picture = _PathPainting(data, scales, (width, height))
    for path in paths:
        picture.draw(path)
    for path in paths:
        picture.mark(path, cursor)
    rows = [a + b for a, b in zip(left, picture.rows(), strict=True)]
    labels = placed(_labels(scales[0], width), width - 3)
    return [*rows, *axis_rows(labels, "KL", (width, axes), taken, {})]


def _labels(scale: Scale, width: int) -> Iterator[tuple[int, str]]:
    """Yield the cells of round values, and how they are written."""
    values = scale.ticks(max(2, width // 14))
    for value, text in zip(values, distinct_texts(values), strict=True):
        if text:
            yield min(width - 1, int(scale.fraction(value) * width)), text


def _scales(
    data: ChartData, known: Sequence[PathPoint], first: int, cache: ChartCache
) -> tuple[Scale, Scale]:
    """Return the axes that all points fit on; on a logarithmic one those above 0, if there are
    any.
    """
    if data.log_y:
        known = [point for point in known if point.y > 0] or known
    subject = (data.key, data.main.points.pyramid if data.main else None, first)
    _, across, up = zip(*known, strict=True)
    x = cache.axis("path x", subject, (min(across), max(across)))
    return x, cache.axis("path y", subject, (min(up), max(up)), log=data.log_y)


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
        behind = raw if line is data.main else []
        yield _DrawnPath(line, sign, path_points(over, points, *shown), behind)


class _PathPainting(Painting):
    """The plot."""

    def __init__(
        self, data: ChartData, scales: tuple[Scale, Scale], size: tuple[int, int]
    ) -> None:
        super().__init__(*size)
        self._data = data
        self._scales = scales
        if data.target is not None:
            self.across(DrawnMark("target", value=data.target), scales[1])

    def draw(self, path: _DrawnPath) -> None:
        """Draw one path, and faintly the values behind its averages."""
        role = path.line.role
        behind = self.layer(faint(role), backdrop=True)
        for point in path.behind:
            behind.dot(*self._dot(point))
        layers = {role: self.layer(role)}
        before = None
        for point in path.points:
            own = _role_at(path.line, point.step)
            if own not in layers:
                layers[own] = self.layer(own)
            place = self._dot(point)
            layers[own].straight(before or place, place)
            before = place

    def mark(self, path: _DrawnPath, cursor: int | None) -> None:
        """Mark where a path begins and ends, the best value, findings, and the cursor."""
        line, sign, points, _ = path
        if not points:
            return
        self._put(points[0], Glyph(SYMBOLS.start, line.role))
        main = line is self._data.main
        if main:
            self._mark_steps(path)
        end = Glyph(sign or SYMBOLS.single, _role_at(line, points[-1].step))
        self._put(points[-1], end)
        if main and (at := _at_step(points, cursor)) is not None:
            self.point_at(self._dot(at)[0] // 2)
            self._put(at, Glyph(SYMBOLS.points[1], "cursor"))

    def _mark_steps(self, path: _DrawnPath) -> None:
        line, _, points, behind = path
        if self._data.best:
            best = best_point(line.points, lowest=self._data.best == "lowest")
            at = _at_step(behind or points, best[0] if best else None)
            if at is not None and best is not None and at.step == best[0]:
                self._put(at, Glyph(SYMBOLS.best, line.role))
        for mark in self._data.marks:
            at = _at_step(points, mark.step)
            if mark.role == "breach" and at is not None:
                self._put(at, Glyph(SYMBOLS.breach, mark.style))

    def _put(self, point: PathPoint, glyph: Glyph) -> None:
        self.put(*self._dot(point), glyph)

    def _dot(self, point: PathPoint) -> tuple[int, int]:
        columns = self.size[0] * 2
        across = int(self._scales[0].fraction(point.x) * columns)
        return min(columns - 1, across), self.row(point.y, self._scales[1])


def _role_at(line: ChartLine, step: int) -> str:
    """Return the colour of a step: that of the worst finding that held, else the line's own."""
    for alarm in reversed(line.alarms):
        if alarm.first <= step and (alarm.last is None or step < alarm.last):
            return alarm.role
    return line.role


def _at_step(points: Sequence[PathPoint], step: int | None) -> PathPoint | None:
    """Return the newest point up to a step, None where there is none."""
    if step is None:
        return None
    count = bisect_right(points, step, key=lambda point: point.step)
    return points[count - 1] if count else None
