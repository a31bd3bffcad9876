"""The plot of a chart: layers of dots and the glyphs on top of them."""

from __future__ import annotations

from bisect import bisect_right
from math import isfinite
from typing import TYPE_CHECKING

from verl_tui.rendering.charts import braille
from verl_tui.rendering.charts.alarms import CurveAlarms, healthy_rows, outside_band
from verl_tui.rendering.charts.band_shade import rows_in_band
from verl_tui.rendering.charts.best_value import best_in
from verl_tui.rendering.charts.braille import DotLayer, Glyph, Text
from verl_tui.rendering.charts.downsample import DotColumns, beyond_edge
from verl_tui.rendering.charts.labels import beyond
from verl_tui.rendering.charts.line_signs import layered, stamps
from verl_tui.rendering.charts.roles import HUES
from verl_tui.rendering.charts.strokes import Curve, Shade, StraightLines
from verl_tui.rendering.charts.symbols import SYMBOLS
from verl_tui.rendering.text.hues import BEHIND

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from verl_tui.rendering.charts.axes import Scale, Window
    from verl_tui.rendering.charts.braille import DotSpan
    from verl_tui.rendering.charts.cache import ChartCache
    from verl_tui.rendering.charts.chart_data import ChartData, ChartLine, Points
    from verl_tui.rendering.charts.strokes import PlotStroke

_APART = 3
"""Cells from one sign of a point to the next."""
_DENSE = 2
"""Dots from one to the next in the shade of the middle half; others are four apart."""
_LOOK_BACK = 100
"""A line that ended in so many values that are no numbers has no sign at its end."""


class Picture:
    """The plot itself: what it is painted of, collected from a chart's data, and painted.

    Pictures of equal content look equal.
    """

    def __init__(
        self,
        data: ChartData,
        scales: tuple[Scale | None, Scale | None],
        window: Window,
        cells: int,
        rows: int,
    ) -> None:
        self._data = data
        self._scale = scales[0]
        self._scales = scales
        """The y axes at the left and at the right."""
        self._window = window
        self._size = (cells, rows)
        self._dots = rows * 4
        self._healthy = healthy_rows(data.band, self._scale, self._dots)
        self._strokes: list[PlotStroke] = []
        """From the farthest to the nearest of those behind the curves, and of the curves."""
        self._joined: list[Curve] = []
        """Lines through points, between those two."""
        self._glyphs: dict[int, dict[int, Glyph]] = {}

    @property
    def content(self) -> object:
        """Everything that it is painted of."""
        return self._size, self._strokes, self._joined, self._glyphs, self.in_band

    def paint(self) -> list[Text]:
        """Return the rows."""
        layers = [one for stroke in self._strokes for one in stroke.layers(*self._size)]
        joined = [one for stroke in self._joined for one in stroke.layers(*self._size)]
        return braille.compose(
            [
                DotLayer(*self._size),
                *(one for one in layers if one.backdrop),
                *joined,
                *(one for one in layers if not one.backdrop),
            ],
            self._glyphs,
        )

    @property
    def in_band(self) -> range:
        """The rows that are in the healthy band."""
        return rows_in_band(self._healthy, self._size[1])

    def collect(self, cache: ChartCache, *, shades: bool = False) -> None:
        """Collect everything but the cursor, from the farthest to the nearest; the edges of the
        band only where there are no shades.
        """
        self._envelope(cache)
        self._spread(cache)
        if not shades:
            self._band()
        self._target()
        self._restarts()
        for line, sign in layered(self._data):
            columns = cache.columns(line.points, self._window)
            if line.kind == "points":
                runs = self._runs(line, line.points, columns, cache)
                self._points(line, runs, columns.odds, Glyph(sign, line.role))
            else:
                self._line(line, columns, cache)
            self._beyond(columns, self._scales[line.right], line.role)
            for x, odd in enumerate(columns.odds):
                if odd:
                    self._put(self._dots - 1, x, Glyph(SYMBOLS.broken, "odd"))
        self._line_ends(cache)

    def rule(self, rows: Iterable[int]) -> None:
        """Add a line of the grid in each of these rows, behind everything."""
        line = Glyph(SYMBOLS.grid, "rule", yields=True, blends=True)
        for y in rows:
            self._glyphs[y] = dict.fromkeys(range(self._size[0]), line)

    def point_at(self, cursor: int | None) -> None:
        """Add the cursor at a step."""
        if cursor is None:
            return
        cell = self._window.column(cursor) // 2
        for y in range(self._size[1]):
            row = self._glyphs.setdefault(y, {})
            there = row.get(cell)
            row[cell] = (
                self._cursor
                if there is None or there.text == SYMBOLS.grid
                else there._replace(style="cursor", blends=False)
            )
        if self._size[1] and not 0 <= cell < self._size[0]:
            for row in self._glyphs.values():
                row.pop(cell, None)

    @property
    def _cursor(self) -> Glyph:
        return Glyph(SYMBOLS.cursor, "cursor", yields=True)

    def _put(self, dot: int, column: int, glyph: Glyph) -> None:
        self._glyphs.setdefault(dot // 4, {})[column // 2] = glyph

    def _runs(
        self, line: ChartLine, points: Points, columns: DotColumns, cache: ChartCache
    ) -> list[DotSpan | None]:
        """Return the dot rows of a line, or of its averages."""
        scale = self._scales[line.right]
        return cache.runs((points, points), columns, scale, self._dots)

    def _envelope(self, cache: ChartCache) -> None:
        if self._data.envelope and self._scale:
            self._shade(self._data.envelope, "envelope", cache)

    def _spread(self, cache: ChartCache) -> None:
        """Add the quantiles of a distribution: the outer ones faint, the middle half stronger, the
        median.
        """
        if not self._data.spread or not self._scale:
            return
        least, lower, middle, upper, most = self._data.spread
        self._shade((least, most), "envelope", cache)
        self._shade((lower, upper), "quartiles", cache, _DENSE)
        if (
            self._data.main is None
            or self._data.main.points.pyramid is not middle.pyramid
        ):
            columns = cache.columns(middle, self._window)
            runs = cache.runs((middle, middle), columns, self._scale, self._dots)
            self._strokes.append(Curve("quartiles", runs, columns.odds, behind=True))

    def _shade(
        self, edges: tuple[Points, Points], role: str, cache: ChartCache, apart: int = 4
    ) -> None:
        low, high = (cache.columns(points, self._window) for points in edges)
        columns = DotColumns(low.lows, high.highs, low.odds)
        runs = cache.runs(edges, columns, self._scale, self._dots)
        self._strokes.append(Shade(role, runs, apart))
        self._beyond(columns, self._scale, role)

    def _beyond(self, columns: DotColumns, scale: Scale | None, role: str) -> None:
        """Mark what lies beyond the y axis at its edge."""
        for x, way in beyond_edge(columns, scale):
            up = way > 0
            self._put(
                0 if up else self._dots - 1,
                x,
                Glyph(SYMBOLS.rising if up else SYMBOLS.falling, role),
            )

    def _band(self) -> None:
        scale = self._scale
        edges = [
            edge
            for edge in self._data.band
            if scale and edge is not None and scale.lo <= edge <= scale.hi
        ]
        if scale and edges:
            self._straight("band", scale.dots(edges, self._dots))

    def _target(self) -> None:
        scale, target = self._scale, self._data.target
        if scale is None or target is None:
            return
        if scale.lo <= target <= scale.hi:
            self._straight("target", scale.dots([target], self._dots))
        else:
            # At the left: what moves towards its target comes near it at the right.
            for cell, sign in enumerate(beyond(target, scale, self._size[0])):
                self._put(
                    0 if target > scale.hi else self._dots - 1,
                    cell * 2,
                    Glyph(sign, "target"),
                )

    def _restarts(self) -> None:
        columns = {
            self._window.column(mark.step)
            for mark in self._data.marks
            if mark.role == "restart"
        }
        if columns:
            self._straight("restart", sorted(columns))

    def _straight(self, role: str, places: Sequence[int | None]) -> None:
        """Add straight lines at these dot rows, or columns."""
        self._strokes.append(StraightLines(role, tuple([at or 0 for at in places])))

    def _line(self, line: ChartLine, columns: DotColumns, cache: ChartCache) -> None:
        smooth = 0 < self._data.smoothing < 1
        runs = self._runs(line, line.points, columns, cache)
        if smooth:
            if self._data.by_noise or not line.sign or line is self._data.main:
                self._curve(line, runs, columns, "raw")
            smoothed = cache.smoothed(line.points, self._data.smoothing)
            average = cache.columns(smoothed, self._window)
            columns = average._replace(odds=columns.odds)
            runs = self._runs(line, smoothed, columns, cache)
        self._curve(line, runs, columns, line.role)
        cells = stamps(line.sign, self._size[0])
        joined = braille.connect(runs, columns.odds) if cells else runs
        for cell in cells:
            if (run := joined[cell * 2]) is not None:
                self._put(sum(run) // 2, cell * 2, Glyph(line.sign, line.role))

    def _curve(
        self,
        line: ChartLine,
        runs: list[DotSpan | None],
        columns: DotColumns,
        role: str,
    ) -> None:
        """Add runs, those that a finding is about in its colour; raw values behind averages."""
        behind, data = role == "raw", self._data
        if behind and line.role in HUES:
            role = line.role + BEHIND
        alarms = None
        if line is data.main and data.alarms:
            outside = outside_band(columns, data.band)
            alarms = CurveAlarms(data.alarms, self._window, self._healthy, outside)
        self._strokes.append(Curve(role, runs, columns.odds, behind, alarms))

    def _points(
        self,
        line: ChartLine,
        runs: list[DotSpan | None],
        odds: list[bool],
        glyph: Glyph,
    ) -> None:
        """Add points joined, the newest and as many as stand apart with their sign: more would
        hide the lines.
        """
        self._joined.insert(0, Curve(line.role, runs, odds))
        free = len(runs)
        for x in range(len(runs) - 1, -1, -1):
            if (run := runs[x]) is None:
                continue
            signed = x // 2 <= free
            for dot in run if signed else ():
                self._put(dot, x, glyph)
            free = x // 2 - _APART if signed else free

    def _best(self) -> None:
        """Mark the best value."""
        line, scale = self._data.main, self._scale
        found = best_in(self._data, self._window, scale)
        if line is not None and scale is not None and found is not None:
            dot = scale.dots([found[1]], self._dots)[0] or 0
            self._put(
                dot, self._window.column(found[0]), Glyph(SYMBOLS.best, line.role)
            )

    def _line_ends(self, cache: ChartCache) -> None:
        """Mark the ends of several lines by their letters, that of a single one by a dot that can
        be seen, and the best value.
        """
        for line, sign in layered(self._data):
            if line.kind == "line" and sign:
                self._line_end(line, sign, 2)
            elif line.kind == "line":
                self._line_end(line, SYMBOLS.single, 0, cache)
        self._best()

    def _line_end(
        self, line: ChartLine, text: str, beside: int, cache: ChartCache | None = None
    ) -> None:
        """Put a sign so many dot columns beside the last number in the window, if it is among the
        last points; none on the number itself if an arrow shows that it lies beyond the edge.
        """
        end = self._end_of(line, cache)
        scale = self._scales[line.right]
        if end is None or scale is None:
            return
        dot = scale.dots([end[1]], self._dots)[0] or 0
        column = min(self._size[0] * 2 - 1, self._window.column(end[0]) + beside)
        if beside:
            self._put(dot, column, Glyph(text, line.role))
        elif not self._is_arrow(dot, column):
            self._put(dot, column, Glyph(text, line.role, blends=True))

    def _end_of(
        self, line: ChartLine, cache: ChartCache | None
    ) -> tuple[int, float] | None:
        """Return step and value of the last number in the window, smoothed if a cache is given;
        beyond the present segment of the run there is none.
        """
        steps, values, window = line.points.steps, line.points.values, self._window
        if cache is not None and 0 < self._data.smoothing < 1:
            average = cache.smoothed(line.points, self._data.smoothing)
            average.pyramid  # noqa: B018 - it reads what has come since
            values = average.values
        end, present = window.end, self._data.end
        if present is not None and line is self._data.main:
            end = min(end, present)
        stop = min(bisect_right(steps, end), len(values))
        for i in range(stop - 1, max(0, stop - _LOOK_BACK) - 1, -1):
            if isfinite(values[i]) and steps[i] >= window.start:
                return steps[i], values[i]
        return None

    def _is_arrow(self, dot: int, column: int) -> bool:
        """Return whether a cell says that there is something beyond the edge."""
        there = self._glyphs.get(dot // 4, {}).get(column // 2)
        return there is not None and there.text in (SYMBOLS.rising, SYMBOLS.falling)
