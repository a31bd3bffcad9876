"""What plotext is to draw of a chart: for each curve and sign, dot columns and heights."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.rendering.charts.alarms import alarmed_polylines
from verl_tui.rendering.charts.best_value import best_in
from verl_tui.rendering.charts.braille import fill_gaps
from verl_tui.rendering.charts.chart_data import ALARM_ROLES
from verl_tui.rendering.charts.downsample import beyond_edge
from verl_tui.rendering.charts.joined_points import joined
from verl_tui.rendering.charts.line_signs import layered, stamps
from verl_tui.rendering.charts.roles import HUES
from verl_tui.rendering.charts.symbols import SYMBOLS
from verl_tui.rendering.text.hues import BEHIND

if TYPE_CHECKING:
    from verl_tui.rendering.charts.axes import Scale, Window
    from verl_tui.rendering.charts.braille import DotSpan
    from verl_tui.rendering.charts.cache import ChartCache
    from verl_tui.rendering.charts.chart_data import ChartData, ChartLine, Points
    from verl_tui.rendering.charts.downsample import DotColumns

DOTS = "braille"
"""Name of plotext's finest marker."""
_APART = 4
"""Dots from one to the next in the shade of nearly all values; half as many in that of the middle
half.
"""


class Signal(NamedTuple):
    """One signal for plotext: dot columns, heights 0 .. 1, and where a new stretch begins."""

    role: str
    glyph: str
    x: list[int] | list[float]
    y: list[float]
    starts: list[int]
    joined: bool = True
    """True if a line goes through the points."""


class SignalCollector:
    """Gathers the signals of one chart, from the farthest to the nearest."""

    def __init__(
        self,
        data: ChartData,
        scales: tuple[Scale, Scale | None],
        window: Window,
        size: tuple[int, int],
    ) -> None:
        self._data = data
        self._scale = scales[0]
        self._scales = scales
        """The y axes at the left and at the right."""
        self._window = window
        self._cells, self._rows = size
        """Width and height of the plot."""
        self.signals: list[Signal] = []
        self.odd_columns: set[int] = set()
        """Cells with values that are not numbers."""

    def collect(self, cache: ChartCache) -> None:
        """Gather all there is to draw."""
        data = self._data
        arrows: list[Signal] = []
        if data.envelope:
            arrows += self._envelope(data.envelope, cache)
        if data.spread:
            self._spread(data.spread, cache)
        letters: list[Signal] = []
        lines = layered(data)
        for line, sign in sorted(lines, key=lambda pair: pair[0].kind == "line"):
            columns = cache.columns(line.points, self._window)
            self._note_odd(columns)
            scale = self._scales[line.right]
            if scale is None:
                continue
            arrows += self._arrows(line.role, columns, scale)
            if line.kind == "points":
                dots = self._add(line.role, columns, scale)
                letters.append(dots._replace(glyph=sign))
            else:
                drawn = self._line(line, columns, scale, cache)
                letters += self._letters(line, sign, drawn)
        self.signals += letters + arrows + self._best()

    def _note_odd(self, columns: DotColumns) -> None:
        """Note the cells in which values are not numbers."""
        for x, odd in enumerate(columns.odds):
            if odd:
                self.odd_columns.add(x // 2)

    def _envelope(
        self, edges: tuple[Points, Points], cache: ChartCache
    ) -> list[Signal]:
        """Draw the least and the greatest; return the signs of what lies beyond the y axis."""
        low, high = (cache.columns(points, self._window) for points in edges)
        self._add("envelope", low._replace(highs=low.lows), self._scale)
        self._add("envelope", high._replace(lows=high.highs), self._scale)
        whole = low._replace(highs=high.highs)
        return self._arrows("envelope", whole, self._scale)

    def _line(
        self, line: ChartLine, columns: DotColumns, scale: Scale, cache: ChartCache
    ) -> Signal:
        """Draw a line, smoothed in front of its values where that is wanted."""
        smoothing = self._data.smoothing
        if 0 < smoothing < 1:
            if self._data.by_noise or not line.sign or line is self._data.main:
                faint = line.role + BEHIND if line.role in HUES else "raw"
                behind = self._add(faint, columns, scale)
                self._alarms(line, behind)
            smoothed = cache.smoothed(line.points, smoothing)
            average = cache.columns(smoothed, self._window)
            columns = average._replace(odds=columns.odds)
        glyph = SYMBOLS.single if len(line.points.steps) == 1 else DOTS
        drawn = self._add(line.role, columns, scale, glyph)
        self._alarms(line, drawn)
        return drawn

    def _alarms(self, line: ChartLine, drawn: Signal) -> None:
        """Draw over a curve the parts of it that findings are about."""
        if line is not self._data.main or not self._data.alarms:
            return
        low, high = (
            None if edge is None else self._scale.fraction(edge)
            for edge in self._data.band
        )
        curve = (drawn.x, drawn.y, drawn.starts)
        ending = "" if drawn.role == line.role else BEHIND
        for part in alarmed_polylines(
            curve, self._data.alarms, self._window, (low, high)
        ):
            role = part.role + ending
            signal = Signal(role, drawn.glyph, part.x, part.y, part.starts)
            self.signals.append(signal)

    def _letters(self, line: ChartLine, sign: str, drawn: Signal) -> list[Signal]:
        """Return the letters that stand on a line and at its end, or a dot that can be seen."""
        if drawn.x and not sign and line.kind == "line":
            return [self._end_dot(line, drawn)]
        at = self._stamped(line, drawn.x)
        if drawn.x and sign:
            at.append(len(drawn.x) - 1)
        if not at:
            return []
        x = [drawn.x[i] for i in at]
        y = [drawn.y[i] for i in at]
        return [Signal(line.role, sign, x, y, [])]

    def _end_dot(self, line: ChartLine, drawn: Signal) -> Signal:
        """Return the dot at the end of the present segment of the run."""
        end = len(drawn.x) - 1
        if self._data.end is not None and line is self._data.main:
            last = self._window.column(self._data.end)
            end = max(0, bisect_right(drawn.x, last) - 1)
        role = self._role_at_end(line, drawn)
        return Signal(role, SYMBOLS.single, [drawn.x[end]], [drawn.y[end]], [])

    def _role_at_end(self, line: ChartLine, drawn: Signal) -> str:
        """Return the role that colours the end of a line: that of a finding about it, if any."""
        if line is not self._data.main:
            return line.role
        end = (drawn.x[-1], drawn.y[-1])
        for signal in reversed(self.signals):
            is_alarm = signal.role in ALARM_ROLES and signal.x
            if is_alarm and (signal.x[-1], signal.y[-1]) == end:
                return signal.role
        return line.role

    def _stamped(self, line: ChartLine, x: list[int] | list[float]) -> list[int]:
        """Return the first points in the dot columns at which a letter stands on a line."""
        stamped = {cell * 2 for cell in stamps(line.sign, self._cells)}
        found: list[int] = []
        before: float = -1
        for i, column in enumerate(x):
            if column in stamped and column != before:
                found.append(i)
            before = column
        return found

    def _best(self) -> list[Signal]:
        """Return the sign of the best value, where it is in the window and on the y axis."""
        data = self._data
        found = best_in(data, self._window, self._scale)
        if data.main is None or found is None:
            return []
        step, value = found
        x = self._window.column(step)
        y = self._scale.fraction(value)
        return [Signal(data.main.role, SYMBOLS.best, [x], [y], [])]

    def _spread(self, quantiles: tuple[Points, ...], cache: ChartCache) -> None:
        """Shade what lies between the quantiles of a distribution, and draw the median where the
        line is not that.
        """
        least, lower, middle, upper, most = (
            cache.columns(points, self._window) for points in quantiles
        )
        self._shade("envelope", least, most, _APART)
        self._shade("quartiles", lower, upper, _APART // 2)
        main = self._data.main
        median = quantiles[2]
        if main is None or main.points.pyramid is not median.pyramid:
            self._add("quartiles", middle, self._scale)

    def _shade(self, role: str, low: DotColumns, high: DotColumns, apart: int) -> None:
        """Fill a band with dots so far apart."""
        dots = self._rows * 4
        fraction = self._scale.fraction
        spans: list[DotSpan | None] = []
        for least, most in zip(low.lows, high.highs, strict=True):
            if least is None or most is None:
                spans.append(None)
            else:
                spans.append((int(fraction(least) * dots), int(fraction(most) * dots)))
        shade = Signal(role, DOTS, [], [], [], joined=False)
        for x, span in enumerate(fill_gaps(spans)):
            if span is None or x & 1:
                continue
            bottom, top = span
            # Counted from the corner, so that the dots of all columns form one pattern.
            first = bottom + -(x + bottom) % apart
            heights = range(max(0, first), min(top, dots) + 1, apart)
            shade.x.extend([x] * len(heights))
            shade.y.extend(y / dots for y in heights)
        self.signals.append(shade)

    def _arrows(self, role: str, columns: DotColumns, scale: Scale) -> list[Signal]:
        """Return the signs of what lies beyond the y axis, at its edge."""
        above = Signal(role, SYMBOLS.rising, [], [], [])
        below = Signal(role, SYMBOLS.falling, [], [], [])
        for x, way in beyond_edge(columns, scale):
            signal = above if way > 0 else below
            signal.x.append(x)
            signal.y.append(1.0 if way > 0 else 0.0)
        return [above, below]

    def _add(
        self, role: str, columns: DotColumns, scale: Scale, glyph: str = DOTS
    ) -> Signal:
        """Draw a curve through dot columns."""
        signal = Signal(role, glyph, *joined(columns, scale.fraction))
        self.signals.append(signal)
        return signal
