"""A large chart drawn by plotext, with frame, grid and rows of marks of its own below.

Plotext takes numbers on trust: a nan ends the whole process, an infinity is an error, and it draws
each point it is given. So it only ever sees dot columns and heights between 0 and 1, computed here,
at most two a dot column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from verl_tui.rendering.charts.alarms import healthy_rows
from verl_tui.rendering.charts.axis_labels import axis_marks, height_labels
from verl_tui.rendering.charts.band_shade import on_band, rows_in_band
from verl_tui.rendering.charts.braille import Glyph, join
from verl_tui.rendering.charts.labels import beyond
from verl_tui.rendering.charts.line_styles import LINE_STYLES
from verl_tui.rendering.charts.plotext_rows import crossed, overwritten, pixel, split
from verl_tui.rendering.charts.plotext_signals import DOTS, SignalCollector
from verl_tui.rendering.charts.ranges import window_of
from verl_tui.rendering.charts.symbols import SYMBOLS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from verl_tui.rendering.charts.axes import Scale
    from verl_tui.rendering.charts.braille import Text
    from verl_tui.rendering.charts.cache import ChartCache
    from verl_tui.rendering.charts.chart_data import ChartData
    from verl_tui.rendering.charts.plotext_signals import Signal

_BROKEN = "nan"
_MARKS = "marks"
_BELOW = 2
"""Rows that these take at most."""


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


class PlotextChart:
    """One drawing by plotext: the geometry, and what is to be drawn."""

    def __init__(
        self,
        data: ChartData,
        scales: tuple[Scale, Scale | None],
        shown: tuple[int, int],
        width: int,
        height: int,
    ) -> None:
        self._data = data
        self._scale = scales[0]
        self._scales = scales
        """The y axes at the left and at the right."""
        self._width = width
        self._height = height
        """Rows of the plot with its frame and the steps below it."""
        ticks = max(2, (height - _BELOW) // 4)
        self._labels, self._right = (height_labels(scale, ticks) for scale in scales)
        self.left = max(len(_MARKS), _widest(self._labels)) + 1
        """Columns to the left of the plot: the labels and the side of the frame."""
        self._cells = width - self.left - 1 - _widest(self._right)
        self.window = window_of(data, shown, self._cells * 2)
        self._signals: list[Signal] = []
        self.shades = False
        """True where the healthy band is a shade instead of lines."""
        self.below: list[Text] = []
        """Rows below the plot for values that are not numbers and for marks; only those with
        content.
        """

    def collect(self, cache: ChartCache) -> None:
        """Gather what is to be drawn, from the farthest to the nearest."""
        size = (self._cells, self._height)
        collector = SignalCollector(self._data, self._scales, self.window, size)
        collector.collect(cache)
        self._signals = collector.signals
        rows = (self._broken_row(collector.odd_columns), self._marks_row())
        self.below = [row for row in rows if row]
        self._height -= len(self.below)

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
            (self._width, self._height),
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
        figure.plot_size(self._width, self._height)
        figure.canvas("default")
        self._axes(plotext)
        self._straight_lines(plotext)
        for signal in self._signals:
            if signal.x:
                _draw_signal(plotext, signal)
        lines = figure.build().string().split("\n")
        rows = [split(line) for line in lines[: self._height]]
        figure.clear.data()
        self._write_target(rows)
        return rows

    def _write_target(self, rows: list[Text]) -> None:
        """Write a target that the y axis does not reach at the edge next to it."""
        target = self._data.target
        scale = self._scale
        if target is None or scale.lo <= target <= scale.hi:
            return
        # Within the frame; the steps stand below it.
        y = 1 if target > scale.hi else len(rows) - 3
        text = beyond(target, scale, self._cells)
        rows[y] = overwritten(rows[y], self.left, text, "target")

    def _axes(self, plotext: Any) -> None:
        figure = plotext.figure
        axis = pixel(plotext, "axis")
        steps = self._steps()
        x = figure.ruler("x", "lower")
        y = figure.ruler("y", "left")
        figure.axes(active=True, pixel=pixel(plotext, "rule"))
        x.lim(0, self._cells * 2 - 1).ticks([*steps], [*steps.values()])
        labels = [text.rjust(self.left - 1) for text in self._labels.values()]
        y.lim(0, 1).ticks([*self._labels], labels)
        x.pixel(axis)
        y.pixel(axis)
        data = self._data.right
        if data is not None and data.main is not None:
            right = figure.ruler("y", "right")
            right.lim(0, 1).ticks([*self._right], [*self._right.values()])
            right.pixel(pixel(plotext, data.main.role))

    def _steps(self) -> dict[int, str]:
        """Return the labels of the x axis by dot column."""
        axis = self._data.axis
        window = self.window
        ticks = window.ticks(12, time=axis.time, zero=axis.zero)
        return {window.column(step): axis.write(step) for step in ticks}

    def _straight_lines(self, plotext: Any) -> None:
        """Draw the lines from side to side: grid, healthy band, target, restarts."""
        line = plotext.figure.line
        window = self.window
        data = self._data
        target = self._heights([data.target])
        band = [] if self.shades else self._heights(data.band)
        grid = [*self._labels]
        nearer: list[float] = []
        # The nearest first: two lines in one row would hide each other, so the farther one gives
        # way.
        for style, role, heights in (
            (LINE_STYLES["target"].large, "target", target),
            (LINE_STYLES["band"].large, "band", band),
            ("dotted", "key", grid),
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
        return all(abs(height - other) * self._height > 1 for other in lines)

    def _heights(self, values: Iterable[float | None]) -> list[float]:
        """Return how high values lie, those that the y axis reaches."""
        scale = self._scale
        return [
            scale.fraction(value)
            for value in values
            if value is not None and scale.lo <= value <= scale.hi
        ]

    def _broken_row(self, cells: set[int]) -> Text:
        """Return the row that shows where values were not numbers; empty while all are."""
        broken = Glyph(SYMBOLS.broken, "odd")
        return self._row(_BROKEN, dict.fromkeys(cells, broken))

    def _marks_row(self) -> Text:
        """Return the row of breaches, restarts and checkpoints; empty where there are none."""
        marks = self._data.marks
        glyphs = axis_marks(marks, self.window, self._cells)
        return self._row(_MARKS, glyphs)

    def _row(self, name: str, glyphs: Mapping[int, Glyph]) -> Text:
        """Return a row below the plot, empty where it has no glyphs."""
        if not glyphs:
            return ()
        cells = [(" ", "")] * self._cells
        for x, glyph in glyphs.items():
            cells[x] = (glyph.text, glyph.style)
        return ((name.rjust(self.left - 1) + " ", "axis"), *join(cells))


def _widest(labels: Mapping[float, str]) -> int:
    """Return the length of the longest label."""
    return max(map(len, labels.values()), default=0)


def _draw_signal(plotext: Any, signal: Signal) -> None:
    """Draw one signal."""
    marker = plotext.marker(signal.glyph, pixel=pixel(plotext, signal.role))
    drawn = plotext.figure.signal(signal.x, signal.y, marker=marker)
    if signal.glyph == DOTS and signal.joined:
        drawn.lines(active=True)
        for start in signal.starts:
            drawn.line(start, active=False)
    plotext.figure.draw(drawn)
