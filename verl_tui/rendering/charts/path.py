"""The path of a reward over the KL: a point for each step, joined in the order of the steps.

The distance of the policy from where it began is the price of a reward: a path that rises to the
upper left gains much at little cost, one that turns down gains nothing more. Gao, Schulman and
Hilton draw reward models so ("Scaling Laws for Reward Model Overoptimization", 2022,
https://arxiv.org/abs/2210.10760).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import chain
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.means import clamp
from verl_tui.rendering.charts.axis_labels import axis_rows, cells_of, placed, sides
from verl_tui.rendering.charts.braille import Glyph
from verl_tui.rendering.charts.downsample import best_point
from verl_tui.rendering.charts.paint import Painting
from verl_tui.rendering.charts.picture import DrawnMark, layered
from verl_tui.rendering.charts.symbols import SYMBOLS, sentences
from verl_tui.rendering.text.numbers import distinct_texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

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
    if not steps or step is None:
        return steps[-1] if steps else None
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
    known = _on_axis([points for _, _, points in paths], log=data.log_y)
    axes = 1 if size[1] < 6 else 2
    height = size[1] - axes
    if not known:
        return sentences("no step has both a value and a KL", *size)
    subject = (data.key, data.main.points.pyramid if data.main else None, shown[0])
    _, across, up = zip(*known, strict=True)
    x = cache.axis("path x", subject, (min(across), max(across)))
    y = cache.axis("path y", subject, (min(up), max(up)), log=data.log_y)
    left, _ = sides(data, (y, None), size[0], height)
    taken = cells_of(left)
    width = size[0] - taken
    picture = _PathPainting(data, (x, y), (width, height))
    for line, _, points in paths:
        picture.draw(line, points)
    for line, sign, points in paths:
        picture.mark(line, sign, points, cursor)
    drawn = picture.rows(shades=False)
    rows = [a + b for a, b in zip(left, drawn, strict=True)]
    labels = placed(_labels(x, width), width - 3)
    return [*rows, *axis_rows(labels, "KL", (width, axes), taken, {})]


def _on_axis(paths: Iterable[list[PathPoint]], *, log: bool) -> list[PathPoint]:
    """Return the points that axes show: on a logarithmic one those above 0, if there are any."""
    known = [*chain.from_iterable(paths)]
    return [point for point in known if point.y > 0 or not log] or known


def _labels(scale: Scale, width: int) -> Iterator[tuple[int, str]]:
    """Yield the cells of round values, and how they are written."""
    values = scale.ticks(max(2, width // 14))
    for value, text in zip(values, distinct_texts(values), strict=True):
        if text:
            yield min(width - 1, int(scale.fraction(value) * width)), text


def _paths(
    data: ChartData, shown: tuple[int, int], cache: ChartCache
) -> Iterator[tuple[ChartLine, str, list[PathPoint]]]:
    """Yield each run's line, sign and points, the shown run's last; of averages where the chart is
    smoothed.
    """
    for line, sign in layered(data):
        over, points = line.over, line.points
        if line.kind == "line" and over is not None:
            if data.smoothing:
                over = cache.smoothed(over, data.smoothing)
                points = cache.smoothed(points, data.smoothing)
            yield line, sign, path_points(over, points, *shown)


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

    def draw(self, line: ChartLine, points: Sequence[PathPoint]) -> None:
        """Draw one path."""
        layer = self.layer(line.role)
        dots = [self._dot(point) for point in points]
        for before, dot in zip([*dots[:1], *dots], dots, strict=False):
            layer.straight(before, dot)

    def mark(
        self,
        line: ChartLine,
        sign: str,
        points: Sequence[PathPoint],
        cursor: int | None,
    ) -> None:
        """Mark where a path begins and ends; of the shown run's findings, the best value, and the
        cursor.
        """
        if not points:
            return
        marks = [(points[0], SYMBOLS.start, line.role)]
        if line is self._data.main:
            marks += self._marks(line, points)
        marks.append((points[-1], sign or SYMBOLS.single, line.role))
        if line is self._data.main and (at := _at_step(points, cursor)) is not None:
            self.point_at(self._dot(at)[0] // 2)
            marks.append((at, SYMBOLS.points[1], "cursor"))
        for point, symbol, role in marks:
            self.put(*self._dot(point), Glyph(symbol, role))

    def _marks(
        self, line: ChartLine, points: Sequence[PathPoint]
    ) -> Iterator[tuple[PathPoint, str, str]]:
        """Yield where the best value was, and where findings began."""
        best = best_point(line.points, lowest=self._data.best == "lowest")
        if self._data.best and best and (at := _at_step(points, best[0])):
            yield at, SYMBOLS.best, line.role
        for mark in self._data.marks:
            if mark.role == "breach" and (at := _at_step(points, mark.step)):
                yield at, SYMBOLS.breach, mark.style

    def _dot(self, point: PathPoint) -> tuple[int, int]:
        columns = self.size[0] * 2
        across = int(self._scales[0].fraction(point.x) * columns)
        return min(columns - 1, across), self.row(point.y, self._scales[1])


def _at_step(points: Sequence[PathPoint], step: int | None) -> PathPoint | None:
    """Return the newest point up to a step, None where there is none."""
    if step is None:
        return None
    count = bisect_right(points, step, key=lambda point: point.step)
    return points[count - 1] if count else None
