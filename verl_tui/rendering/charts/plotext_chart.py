"""A large chart drawn by plotext, with frame, grid and rows of marks of its own below.

Plotext takes numbers on trust: a nan ends the whole process, an infinity is an error, and it draws
each point it is given. So it only ever sees dot columns and heights between 0 and 1, computed here,
at most two a dot column.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui.rendering.charts.alarms import BEHIND, alarmed_polylines, healthy_rows
from verl_tui.rendering.charts.axis_labels import axis_marks, height_labels
from verl_tui.rendering.charts.band_shade import on_band, rows_in_band
from verl_tui.rendering.charts.best_value import best_in
from verl_tui.rendering.charts.braille import Glyph, fill_gaps, join
from verl_tui.rendering.charts.chart_data import ALARM_ROLES
from verl_tui.rendering.charts.downsample import beyond_edge
from verl_tui.rendering.charts.joined_points import joined
from verl_tui.rendering.charts.labels import beyond
from verl_tui.rendering.charts.line_signs import layered, stamps
from verl_tui.rendering.charts.line_styles import LINE_STYLES
from verl_tui.rendering.charts.plotext_rows import crossed, overwritten, pixel, split
from verl_tui.rendering.charts.ranges import window_of
from verl_tui.rendering.charts.roles import HUES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from verl_tui.rendering.charts.axes import Scale
    from verl_tui.rendering.charts.braille import DotSpan, Text
    from verl_tui.rendering.charts.cache import ChartCache
    from verl_tui.rendering.charts.chart_data import ChartData, ChartLine, Points
    from verl_tui.rendering.charts.downsample import DotColumns
    from verl_tui.rendering.charts.symbols import Symbols

_DOTS = "braille"
"""Name of plotext's finest marker."""
_BROKEN, _MARKS = "nan", "marks"
_BELOW = 2
"""Rows that these take at most."""
_APART = 4
"""Dots from one to the next in the shade of nearly all values; half as many in that of the middle
half.
"""


def load_plotext() -> Any:
    """Return plotext, None where its kernel cannot be loaded. Imported late: it takes a fifth of a
    second.
    """
    try:
        import plotext
    except (ImportError, OSError):
        return None
    plotext.terminal.limit(width=False, height=False)  # type: ignore[no-untyped-call]
    return plotext


class Signal(NamedTuple):
    """One signal for plotext: dot columns, heights 0 .. 1, and where a new stretch begins."""

    role: str
    glyph: str
    x: list[int] | list[float]
    y: list[float]
    starts: list[int]
    joined: bool = True
    """True if a line goes through the points."""


class PlotextChart:
    """One drawing by plotext: the geometry, and what is to be drawn."""

    def __init__(
        self,
        data: ChartData,
        scales: tuple[Scale, Scale | None],
        shown: tuple[int, int],
        width: int,
        height: int,
        symbols: Symbols,
    ) -> None:
        self._data = data
        self._scale = scales[0]
        self._scales = scales
        """The y axes at the left and at the right."""
        self._symbols = symbols
        self._plot_size = (width, height)
        ticks = max(2, (height - _BELOW) // 4)
        self._labels, self._right = (height_labels(scale, ticks) for scale in scales)
        gutter = max(len(_MARKS), *(len(text) for text in self._labels.values()))
        self.left = gutter + 1
        """Columns to the left of the plot: the labels and the side of the frame."""
        self._cells = (
            width
            - self.left
            - 1
            - max(0, *(len(text) for text in self._right.values()), 0)
        )
        self.window = window_of(data, shown, self._cells * 2)
        self._signals: list[Signal] = []
        self._odd_columns: set[int] = set()
        self.shades = False
        """True where the healthy band is a shade instead of lines."""
        self.below: list[Text] = []
        """Rows below the plot for values that are not numbers and for marks; only those with
        content.
        """

    def collect(self, cache: ChartCache) -> None:
        """Gather what is to be drawn, from the farthest to the nearest."""
        arrows = (
            self._envelope(self._data.envelope, cache) if self._data.envelope else []
        )
        if self._data.spread:
            self._spread(self._data.spread, cache)
        letters: list[Signal] = []
        lines = layered(self._data, self._symbols)
        for line, sign in sorted(lines, key=lambda pair: pair[0].kind == "line"):
            columns = cache.columns(line.points, self.window)
            self._odd_columns.update(
                x // 2 for x, odd in enumerate(columns.odds) if odd
            )
            scale = self._scales[line.right]
            if scale is None:
                continue
            arrows += self._arrows(line.role, columns, scale)
            if line.kind == "points":
                joined = self._add(line.role, columns, scale=scale)
                letters.append(joined._replace(glyph=sign))
            else:
                drawn = self._line(line, columns, scale, cache)
                letters += self._letters(line, sign, drawn)
        self._signals += letters + arrows + self._best()
        self.below = [row for row in (self._broken_row(), self._marks_row()) if row]
        self._plot_size = (self._plot_size[0], self._plot_size[1] - len(self.below))

    def _envelope(
        self, edges: tuple[Points, Points], cache: ChartCache
    ) -> list[Signal]:
        """Draw the least and the greatest; return the signs of what lies beyond the y axis."""
        low, high = (cache.columns(points, self.window) for points in edges)
        self._add("envelope", low._replace(highs=low.lows))
        self._add("envelope", high._replace(lows=high.highs))
        return self._arrows("envelope", low._replace(highs=high.highs), self._scale)

    def _line(
        self, line: ChartLine, columns: DotColumns, scale: Scale, cache: ChartCache
    ) -> Signal:
        """Draw a line, smoothed in front of its values where that is wanted."""
        smoothing = self._data.smoothing
        if 0 < smoothing < 1:
            if self._data.by_noise or not line.sign or line is self._data.main:
                faint = line.role + BEHIND if line.role in HUES else "raw"
                behind = self._add(faint, columns, scale=scale)
                self._alarms(line, behind)
            average = cache.columns(cache.smoothed(line.points, smoothing), self.window)
            columns = average._replace(odds=columns.odds)
        glyph = self._symbols.single if len(line.points.steps) == 1 else _DOTS
        drawn = self._add(line.role, columns, glyph, scale=scale)
        self._alarms(line, drawn)
        return drawn

    def _alarms(self, line: ChartLine, drawn: Signal) -> None:
        """Draw over a curve the parts of it that findings are about."""
        if line is self._data.main and self._data.alarms:
            low, high = (
                None if edge is None else self._scale.fraction(edge)
                for edge in self._data.band
            )
            curve = (drawn.x, drawn.y, drawn.starts)
            ending = "" if drawn.role == line.role else BEHIND
            parts = alarmed_polylines(
                curve, self._data.alarms, self.window, (low, high)
            )
            self._signals += [
                Signal(part.role + ending, drawn.glyph, part.x, part.y, part.starts)
                for part in parts
            ]

    def _letters(self, line: ChartLine, sign: str, drawn: Signal) -> list[Signal]:
        """Return the letters that stand on a line and at its end, or a dot that can be seen."""
        x, y = drawn.x, drawn.y
        if x and not sign and line.kind == "line":
            end = self._end_of(line, x)
            role = self._role_at_end(line, drawn)
            return [
                Signal(
                    role, self._symbols.single, x[end : end + 1], y[end : end + 1], []
                )
            ]
        at = self._stamped(line, x)
        if x and sign:
            at.append(len(x) - 1)
        if not at:
            return []
        return [Signal(line.role, sign, [x[i] for i in at], [y[i] for i in at], [])]

    def _role_at_end(self, line: ChartLine, drawn: Signal) -> str:
        """Return the role that colours the end of a line: that of a finding about it, if any."""
        end = drawn.x[-1], drawn.y[-1]
        over = (
            one for one in reversed(self._signals) if one.role in ALARM_ROLES and one.x
        )
        found = (one.role for one in over if (one.x[-1], one.y[-1]) == end)
        return next(found, line.role) if line is self._data.main else line.role

    def _end_of(self, line: ChartLine, x: list[int] | list[float]) -> int:
        """Return the index of the last point of the present segment of the run."""
        if self._data.end is None or line is not self._data.main:
            return len(x) - 1
        return max(0, bisect_right(x, self.window.column(self._data.end)) - 1)

    def _stamped(self, line: ChartLine, x: list[int] | list[float]) -> list[int]:
        """Return the first points in the dot columns at which a letter stands on a line."""
        stamped = {cell * 2 for cell in stamps(line.sign, self._cells)}
        pairs = enumerate(zip((-1, *x), x, strict=False))
        return [
            i for i, (before, column) in pairs if column in stamped and column != before
        ]

    def _best(self) -> list[Signal]:
        """Return the sign of the best value, where it is in the window and on the y axis."""
        data = self._data
        found = best_in(data, self.window, self._scale)
        if data.main is None or found is None:
            return []
        x = self.window.column(found[0])
        y = self._scale.fraction(found[1])
        return [Signal(data.main.role, self._symbols.best, [x], [y], [])]

    def _spread(self, quantiles: tuple[Points, ...], cache: ChartCache) -> None:
        """Shade what lies between the quantiles of a distribution, and draw the median where the
        line is not that.
        """
        least, lower, middle, upper, most = (
            cache.columns(points, self.window) for points in quantiles
        )
        self._shade("envelope", least, most, _APART)
        self._shade("quartiles", lower, upper, _APART // 2)
        main = self._data.main
        if main is None or main.points.pyramid is not quantiles[2].pyramid:
            self._add("quartiles", middle)

    def _shade(self, role: str, low: DotColumns, high: DotColumns, apart: int) -> None:
        """Fill a band with dots so far apart."""
        dots = self._plot_size[1] * 4
        fraction = self._scale.fraction
        runs: list[DotSpan | None] = []
        for least, most in zip(low.lows, high.highs, strict=True):
            if least is None or most is None:
                runs.append(None)
            else:
                runs.append((int(fraction(least) * dots), int(fraction(most) * dots)))
        trace = Signal(role, _DOTS, [], [], [], joined=False)
        for x, run in enumerate(fill_gaps(runs)):
            if run is None or x & 1:
                continue
            heights = range(
                max(0, run[0] + -(x + run[0]) % apart), min(run[1], dots) + 1, apart
            )
            trace.x.extend([x] * len(heights))
            trace.y.extend(y / dots for y in heights)
        self._signals.append(trace)

    def _arrows(self, role: str, columns: DotColumns, scale: Scale) -> list[Signal]:
        """Return the signs of what lies beyond the y axis, at its edge."""
        above = Signal(role, self._symbols.rising, [], [], [])
        below = Signal(role, self._symbols.falling, [], [], [])
        for x, way in beyond_edge(columns, scale):
            signs, height = (above, 1.0) if way > 0 else (below, 0.0)
            signs.x.append(x)
            signs.y.append(height)
        return [above, below]

    def _add(
        self,
        role: str,
        columns: DotColumns,
        glyph: str = _DOTS,
        *,
        scale: Scale | None = None,
    ) -> Signal:
        trace = Signal(role, glyph, *joined(columns, (scale or self._scale).fraction))
        self._signals.append(trace)
        return trace

    def subject(self) -> object:
        """Return all that the rows of `draw` depend on: what compares equal looks equal."""
        data = self._data
        decorations = (data.band, data.target, data.marks, self.shades, self._steps())
        return (
            self._signals,
            self._labels,
            self._right,
            self._scales,
            self.window,
            self._plot_size,
            decorations,
        )

    def point_at(self, rows: list[Text], cursor: int | None) -> list[Text]:
        """Return the rows with the cursor: its line gives way to dots, which take its colour."""
        if cursor is None or not self.window.start <= cursor <= self.window.end:
            return rows
        x = self.left + self.window.column(cursor) // 2
        plot = range(1, len(rows) - 2)  # within the frame; the steps stand below it
        return [crossed(row, x) if y in plot else row for y, row in enumerate(rows)]

    def shaded(self, rows: list[Text]) -> list[Text]:
        """Return the rows with the healthy band as a shade, where there are shades."""
        plot = len(rows) - 3  # within the frame; the steps stand below it
        if not self.shades or plot < 1:
            return rows
        band = rows_in_band(healthy_rows(self._data.band, self._scale, plot * 4), plot)
        last = self.left + self._cells
        return [
            on_band(row, self.left, last) if y - 1 in band else row
            for y, row in enumerate(rows)
        ]

    def draw(self, plotext: Any) -> list[Text]:
        """Return the rows of frame, labels and plot."""
        figure = plotext.figure
        figure.clear.data()
        figure.clear.settings()
        figure.plot_size(*self._plot_size)
        figure.canvas("default")
        self._axes(plotext)
        self._straight_lines(plotext)
        for trace in self._signals:
            if not trace.x:
                continue
            marker = plotext.marker(trace.glyph, pixel=pixel(plotext, trace.role))
            signal = figure.signal(trace.x, trace.y, marker=marker)
            if trace.glyph == _DOTS and trace.joined:
                signal.lines(active=True)
                for start in trace.starts:
                    signal.line(start, active=False)
            figure.draw(signal)
        rows = [
            split(line)
            for line in figure.build().string().split("\n")[: self._plot_size[1]]
        ]
        figure.clear.data()
        target, scale = self._data.target, self._scale
        if target is not None and not scale.lo <= target <= scale.hi:
            # Within the frame; the steps stand below it.
            y = 1 if target > scale.hi else len(rows) - 3
            text = beyond(target, scale, self._cells, self._symbols)
            rows[y] = overwritten(rows[y], self.left, text, "target")
        return rows

    def _axes(self, plotext: Any) -> None:
        figure = plotext.figure
        axis = pixel(plotext, "axis")
        steps = self._steps()
        x = figure.ruler("x", "lower")
        y = figure.ruler("y", "left")
        figure.axes(active=True, pixel=pixel(plotext, "rule"))
        x.lim(0, self._cells * 2 - 1).ticks([*steps], [*steps.values()])
        y.lim(0, 1).ticks(
            [*self._labels],
            [text.rjust(self.left - 1) for text in self._labels.values()],
        )
        x.pixel(axis)
        y.pixel(axis)
        main = self._data.right.main if self._data.right is not None else None
        if main is not None:
            right = figure.ruler("y", "right")
            right.lim(0, 1).ticks([*self._right], [*self._right.values()])
            right.pixel(pixel(plotext, main.role))

    def _steps(self) -> dict[int, str]:
        """Return the labels of the x axis by dot column."""
        axis, window = self._data.axis, self.window
        ticks = window.ticks(12, time=axis.time, zero=axis.zero)
        return {window.column(step): axis.write(step) for step in ticks}

    def _straight_lines(self, plotext: Any) -> None:
        """Draw the lines from side to side: grid, healthy band, target, restarts."""
        line, window, data = plotext.figure.line, self.window, self._data
        nearer: list[float] = []
        # The nearest first: two lines in one row would hide each other, so the farther one gives
        # way.
        for style, role, heights in (
            (LINE_STYLES["target"].large, "target", self._heights([data.target])),
            (
                LINE_STYLES["band"].large,
                "band",
                [] if self.shades else self._heights(data.band),
            ),
            ("dotted", "key", [*self._labels]),
        ):
            free = [height for height in heights if self._is_free(height, nearer)]
            for height in free:
                line(height, orientation=0, style=style, pixel=pixel(plotext, role))
            nearer += free
        style = LINE_STYLES["restart"].large
        dot = pixel(plotext, "restart")
        for mark in data.marks:
            if mark.role == "restart" and window.start <= mark.step <= window.end:
                line(window.column(mark.step), orientation=1, style=style, pixel=dot)

    def _is_free(self, height: float, lines: list[float]) -> bool:
        """Return whether no line is in the row of a height."""
        return all(abs(height - other) * self._plot_size[1] > 1 for other in lines)

    def _heights(self, values: Iterable[float | None]) -> list[float]:
        """Return how high values lie, those that the y axis reaches."""
        scale = self._scale
        return [
            scale.fraction(value)
            for value in values
            if value is not None and scale.lo <= value <= scale.hi
        ]

    def _broken_row(self) -> Text:
        """Return the row that shows where values were not numbers; empty while all are."""
        return self._row(
            _BROKEN,
            dict.fromkeys(self._odd_columns, Glyph(self._symbols.broken, "odd")),
        )

    def _marks_row(self) -> Text:
        """Return the row of breaches, restarts and checkpoints; empty where there are none."""
        return self._row(
            _MARKS,
            axis_marks(self._data.marks, self.window, self._cells, self._symbols),
        )

    def _row(self, name: str, glyphs: Mapping[int, Glyph]) -> Text:
        cells = [(" ", "")] * self._cells
        for x, glyph in glyphs.items():
            cells[x] = (glyph.text, glyph.style)
        return (
            ((name.rjust(self.left - 1) + " ", "axis"), *join(cells)) if glyphs else ()
        )
