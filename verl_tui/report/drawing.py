"""The drawing of a chart apart from its form: polylines and areas in columns and heights.

Points are reduced, smoothed and scaled as on the screen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.rendering.charts.alarms import alarmed_polylines
from verl_tui.rendering.charts.axes import fill_window
from verl_tui.rendering.charts.best_value import best_in
from verl_tui.rendering.charts.cache import ChartCache
from verl_tui.rendering.charts.joined_points import joined
from verl_tui.rendering.charts.ranges import shown_reach
from verl_tui.rendering.session.selection import LETTERS
from verl_tui.rendering.text.numbers import distinct_texts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.rendering.charts.axes import Scale
    from verl_tui.rendering.charts.chart_data import ChartData, ChartLine, Mark, Points
    from verl_tui.report.run_charts import ReportChart, RunCurve

COLUMNS = 320
"""Columns that points are reduced to."""
_GREY_COLUMNS = 120
"""The same of runs without a colour of their own."""
_CELLS = 80
"""Points denser than in a chart of so many cells on the screen are smoothed as far as their noise
asks for.
"""
_TICKS = 5
_MOST_WITH_VALUES = 3
"""Runs up to which the values stand behind their averages."""


class Stroke(NamedTuple):
    """Joined points, in columns and heights of 0 to 1."""

    role: str
    x: Sequence[float]
    y: Sequence[float]
    starts: Sequence[int]
    """Indices at which a new stretch begins."""
    behind: bool = False
    """True for the values behind their average."""
    run: str = ""


class Area(NamedTuple):
    """The area between two curves."""

    role: str
    x: list[float]
    low: list[float]
    high: list[float]


class Label(NamedTuple):
    """A text at a place along an axis, 0 .. 1."""

    at: float
    text: str


class LineEnd(NamedTuple):
    """The end of a run's curve, with its letter."""

    role: str
    sign: str
    x: float
    y: float


class PlacedMark(NamedTuple):
    """Something that happened at a step."""

    role: str
    x: float


@dataclass(frozen=True, slots=True)
class ChartDrawing:
    """Everything that a chart draws; heights count from the bottom."""

    columns: int
    x_ticks: tuple[Label, ...]
    y_ticks: tuple[Label, ...]
    band: tuple[float, float] | None
    """The healthy band, None where there is none in sight."""
    target: float | None
    areas: tuple[Area, ...]
    strokes: tuple[Stroke, ...]
    """From the farthest to the nearest."""
    dots: tuple[Stroke, ...]
    """Points with a marker each, joined: validation scores."""
    ends: tuple[LineEnd, ...]
    best: tuple[float, float] | None
    odds: tuple[float, ...]
    """Columns with a value that is not a number."""
    marks: tuple[PlacedMark, ...]
    smoothing: float
    has_values: bool
    """True if the values stand behind their averages, or there are none."""
    reach: tuple[int, int]
    """First and last step."""


def picture_of(chart: ReportChart) -> ChartDrawing | None:
    """Return the drawing of a chart, None where it has no point or no number at all."""
    cache = ChartCache()
    whole = chart.overlaid
    shown = shown_reach(whole)
    if shown is None:
        return None
    whole = cache.smoothed_by_noise(whole, shown, _CELLS)
    whole = cache.without_flat_envelope(whole, *shown)
    if _only_averages(chart, whole.smoothing):
        lines = (_averaged(line, whole.smoothing, cache) for line in whole.lines)
        whole = whole._replace(lines=tuple(lines))
    scale = cache.scale(whole, *shown)
    if scale is None:
        return None
    return _Drawing(chart, whole, shown, scale, cache).picture()


def _only_averages(chart: ReportChart, smoothing: float) -> bool:
    """Return whether the values behind the averages of so many runs would hide the averages."""
    return 0 < smoothing < 1 and len(chart.curves) > _MOST_WITH_VALUES


def _averaged(line: ChartLine, smoothing: float, cache: ChartCache) -> ChartLine:
    return line._replace(points=cache.smoothed(line.points, smoothing))


class _Drawing:
    """A chart while it is being drawn."""

    def __init__(
        self,
        chart: ReportChart,
        whole: ChartData,
        shown: tuple[int, int],
        scale: Scale,
        cache: ChartCache,
    ) -> None:
        self._chart = chart
        self._whole = whole
        self._scale = scale
        self._cache = cache
        self._window = fill_window(*shown, COLUMNS)
        self._coarse = fill_window(*shown, _GREY_COLUMNS)
        self._shown = shown
        self._odds: set[float] = set()
        self._behind: list[Stroke] = []
        self._strokes: list[Stroke] = []
        self._alarmed: list[Stroke] = []
        self._ends: list[LineEnd] = []

    def picture(self) -> ChartDrawing:
        """Draw everything."""
        for curve in reversed(self._chart.curves):
            self._curve(curve)
        return ChartDrawing(
            columns=COLUMNS,
            x_ticks=tuple(self._x_ticks()),
            y_ticks=tuple(self._y_ticks()),
            band=self._band(),
            target=self._height(self._whole.target),
            areas=tuple(self._areas()),
            strokes=(*self._behind, *self._strokes, *self._alarmed),
            dots=tuple(self._dots()),
            ends=tuple(reversed(self._ends)),
            best=self._best(),
            odds=tuple(sorted(self._odds)),
            marks=tuple(self._marks()),
            smoothing=self._whole.smoothing,
            has_values=not _only_averages(self._chart, self._whole.smoothing),
            reach=self._shown,
        )

    def _best(self) -> tuple[float, float] | None:
        best = best_in(self._whole, self._window, self._scale)
        if best is None:
            return None
        step, value = best
        return self._place(step), self._scale.fraction(value)

    def _curve(self, curve: RunCurve) -> None:
        """Draw one run: its values behind their average, and what findings are about."""
        line = curve.data.main
        alone = self._chart.alone
        if line is None or line.kind != "line":
            return
        role = _role(curve, alone=alone)
        points = line.points
        smooth = 0 < self._whole.smoothing < 1
        if smooth and not _only_averages(self._chart, self._whole.smoothing):
            self._stroke(curve, role, points, behind=True)
        if smooth:
            points = self._cache.smoothed(points, self._whole.smoothing)
        drawn = self._stroke(curve, role, points)
        if curve.place is not None and not alone and drawn.x:
            sign = LETTERS[curve.place]
            self._ends.append(LineEnd(role, sign, drawn.x[-1], drawn.y[-1]))

    def _stroke(
        self, curve: RunCurve, role: str, points: Points, *, behind: bool = False
    ) -> Stroke:
        window = self._window if curve.place is not None else self._coarse
        columns = self._cache.columns(points, window)
        x, y, starts = joined(columns, self._scale.fraction)
        share = COLUMNS / window.columns
        found = Stroke(role, [share * at for at in x], y, starts, behind, curve.run)
        (self._behind if behind else self._strokes).append(found)
        self._odds.update(share * at for at, odd in enumerate(columns.odds) if odd)
        if curve.place is not None:
            low, high = (self._height_of_edge(edge) for edge in curve.data.band)
            parts = alarmed_polylines(
                (x, y, starts), curve.data.alarms, window, (low, high)
            )
            (self._behind if behind else self._alarmed).extend(
                Stroke(part.role, part.x, part.y, part.starts, behind, curve.run)
                for part in parts
            )
        return found

    def _areas(self) -> Iterator[Area]:
        """Yield what is shaded behind a single curve."""
        if self._whole.envelope is not None:
            yield self._between("envelope", *self._whole.envelope)
        if self._whole.spread:
            least, lower, _, upper, most = self._whole.spread
            yield self._between("envelope", least, most)
            yield self._between("quartiles", lower, upper)

    def _between(self, role: str, low: Points, high: Points) -> Area:
        lows = self._cache.columns(low, self._window).lows
        highs = self._cache.columns(high, self._window).highs
        area = Area(role, [], [], [])
        for x, (least, most) in enumerate(zip(lows, highs, strict=True)):
            if least is not None and most is not None:
                area.x.append(x)
                area.low.append(self._scale.fraction(least))
                area.high.append(self._scale.fraction(most))
        return area

    def _dots(self) -> Iterator[Stroke]:
        """Yield the points that are drawn beside a single curve, and a chart that has only some."""
        for line in self._whole.lines:
            if line.kind == "points":
                x, y, starts = self._points_of(line)
                yield Stroke("validation", x, y, starts)

    def _points_of(
        self, line: ChartLine
    ) -> tuple[Sequence[float], Sequence[float], Sequence[int]]:
        return joined(
            self._cache.columns(line.points, self._window), self._scale.fraction
        )

    def _place(self, step: int) -> float:
        return min(COLUMNS - 1, max(0, self._window.column(step)))

    def _height(self, value: float | None) -> float | None:
        if value is None or not self._scale.lo <= value <= self._scale.hi:
            return None
        return self._scale.fraction(value)

    def _height_of_edge(self, value: float | None) -> float | None:
        if value is None:
            return None
        return self._scale.fraction(value)

    def _band(self) -> tuple[float, float] | None:
        low, high = self._whole.band
        if low is None and high is None:
            return None
        bottom = 0.0 if low is None else self._scale.fraction(low)
        top = 1.0 if high is None else self._scale.fraction(high)
        return (bottom, top) if top > bottom else None

    def _x_ticks(self) -> Iterator[Label]:
        axis = self._whole.axis
        window = self._window
        for step in window.ticks(
            COLUMNS // (2 * _TICKS), time=axis.time, zero=axis.zero
        ):
            at = window.column(step) / (COLUMNS - 1)
            if 0 <= at <= 1:
                yield Label(at, axis.write(step))

    def _y_ticks(self) -> Iterator[Label]:
        values = self._scale.ticks(_TICKS)
        for value, text in zip(values, distinct_texts(values), strict=True):
            if text:
                yield Label(self._scale.fraction(value), text)

    def _marks(self) -> Iterator[PlacedMark]:
        """Yield the marks of all runs with a colour; checkpoints of a single run only."""
        alone = self._chart.alone
        for curve in self._chart.curves:
            for mark in curve.data.marks if curve.place is not None else ():
                if self._is_shown(mark, alone=alone):
                    yield PlacedMark(mark.style, self._place(mark.step))

    def _is_shown(self, mark: Mark, *, alone: bool) -> bool:
        within = self._shown[0] <= mark.step <= self._shown[1]
        return within and (alone or mark.role == "breach")


def _role(curve: RunCurve, *, alone: bool) -> str:
    """Return what colours a run's curve: its family where it stands alone, else its place."""
    main = curve.data.main
    if alone and main is not None:
        return main.role
    return "other-run" if curve.place is None else f"run-{curve.place + 1}"
