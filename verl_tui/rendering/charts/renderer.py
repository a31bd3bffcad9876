"""Draws a chart as rows of styled text; knows data and size, nothing of the screen."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from verl_tui.rendering.charts.axes import FEW_STEPS, fill_window, fit_window
from verl_tui.rendering.charts.downsample import ChartCache
from verl_tui.rendering.charts.paint import join, paint
from verl_tui.rendering.charts.picture import picture_of
from verl_tui.rendering.charts.symbols import RANKS, SYMBOLS, sentences
from verl_tui.rendering.charts.title_row import chart_row, sparkline_row, title_row
from verl_tui.rendering.last_result import LastResult
from verl_tui.rendering.text.numbers import distinct_texts
from verl_tui.rendering.text.piece import cells_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from verl_tui.rendering.charts.axes import Scale, Window
    from verl_tui.rendering.charts.chart_data import Axis, ChartData
    from verl_tui.rendering.charts.symbols import Text
    from verl_tui.rendering.text.piece import Piece

_PLOT_FROM = 3
"""Rows from which on there is a plot below the title."""
_SHADES_FROM = 6
"""Rows of the plot from which on there is room for shades behind the lines."""
_AXIS_FROM = 24
"""Narrower charts have no y axis."""
_GUTTER = 6
"""Cells of the numbers of a y axis among others: nearly all fit, and curves stay where they are."""
_APART = 10
"""Cells from one label of the x axis to the next at least."""


class ChartRenderer:
    """Turns data into rows of text, again and again as they grow."""

    def __init__(self) -> None:
        self.window: Window | None = None
        """The x axis of the last drawing, None where it had none."""
        self.left = 0
        """Columns that the y axis of the last drawing took."""
        self.cache = ChartCache()
        self.shades = False
        """True where the terminal has backgrounds: the healthy band is then a shade, not lines."""
        self.grid = False
        """True if a dotted line leads from each number of the y axis through the plot."""
        self._plots: LastResult[list[Text]] = LastResult()

    def rows(
        self,
        data: ChartData,
        width: int,
        height: int,
        *,
        cursor: int | None = None,
        focus: bool = False,
    ) -> list[Text]:
        """Draw a chart of `width` x `height` cells: a title, the plot, and the axes where they
        fit.
        """
        if width < 1 or height < 1:
            return []
        self.window = None
        shown = data.shown
        if height == 1 and not data.in_row:
            return [chart_row(data, width, cursor, focus=focus)]
        if shown is not None and height >= _PLOT_FROM:
            data = self.cache.smoothed_by_noise(data, shown, width)
        title = title_row(data, width, cursor, focus=focus)
        if shown is None or height == 1:
            return [title, *sentences(data.empty, width, height - 1)]
        if height < _PLOT_FROM:
            return [title, sparkline_row(data, width)]
        return [title, *self._plot(data, shown, width, height - 1, cursor)]

    def _plot(
        self,
        data: ChartData,
        shown: tuple[int, int],
        width: int,
        height: int,
        cursor: int | None,
    ) -> list[Text]:
        axes = (height >= 3) + (height >= 6)
        height -= axes
        if height < _SHADES_FROM:
            data = data._replace(shades=())
        scale = self.cache.scale(data, *shown)
        other = self.cache.scale(data, *shown, right=True)
        left, right = _left(data, scale, width, height), _right(other, width, height)
        self.left = cells_of(left[0])
        size = (width - self.left - cells_of(right[0]), height)
        # few steps, and a stretch of the past, take the whole width
        past = data.last_step is not None or shown[1] - shown[0] < FEW_STEPS
        self.window = (fill_window if past else fit_window)(*shown, size[0] * 2)
        picture = picture_of(data, (scale, other), self.window, self.cache)
        self.cache.forget_unused()
        grid = [*row_labels(scale, height)] if self.grid else []
        plot = self._plots.of(
            (picture, size, cursor, self.shades, grid),
            lambda: paint(picture, size, cursor, shades=self.shades, grid=grid),
        )
        below = _below(data, self.window, size[0], axes)
        corners = (SYMBOLS.corner.rjust(self.left)[: self.left], " " * self.left)
        return [
            *(a + b + c for a, b, c in zip(left, plot, right, strict=True)),
            *(((end, "rule"), *row) for end, row in zip(corners, below, strict=False)),
        ]


# -- y axes ----------------------------------------------------------------------------------------


def _left(data: ChartData, scale: Scale | None, width: int, height: int) -> list[Text]:
    """Write the y axis at the left, empty rows where there is no room for it."""
    if width < _AXIS_FROM:
        return [()] * height
    labels = row_labels(scale, height)
    kept = _GUTTER if data.reach is not None else 0
    cells = max([kept, *map(len, labels.values())])
    ticks = dict.fromkeys(labels, SYMBOLS.side_tick)
    return [
        ((labels.get(y, "").rjust(cells), "axis"), (ticks.get(y, SYMBOLS.side), "rule"))
        for y in range(height)
    ]


def _right(scale: Scale | None, width: int, height: int) -> list[Text]:
    """Write the y axis at the right, empty rows where there is none."""
    if scale is None or width < _AXIS_FROM:
        return [()] * height
    labels = row_labels(scale, height)
    cells = max(map(len, labels.values()), default=0)
    ticks = dict.fromkeys(labels, (SYMBOLS.side_right, "right"))
    return [
        (ticks.get(y, (SYMBOLS.side, "rule")), (labels.get(y, "").ljust(cells), "axis"))
        for y in range(height)
    ]


@lru_cache(maxsize=256)  # an axis is kept for many steps
def row_labels(scale: Scale | None, height: int) -> Mapping[int, str]:
    """Return the numbers of a y axis by row: both ends, round values in between if they do not
    crowd.
    """
    if scale is None or not height:
        return {}
    rows = {0: scale.hi} if height < 2 else {0: scale.hi, height - 1: scale.lo}
    for value in scale.ticks(max(3, height // 4)) if height >= 5 else []:
        row = round((1 - scale.fraction(value)) * (height - 1))
        if all(abs(row - other) >= 2 for other in rows):
            rows[row] = value
    labels = zip(rows, distinct_texts([*rows.values()]), strict=True)
    return {row: text for row, text in labels if text}


# -- the x axis ------------------------------------------------------------------------------------


def _below(data: ChartData, window: Window, width: int, rows: int) -> list[Text]:
    """Write the x axis in one or two rows: a rule with ticks and marks, and labels with the name of
    the axis where there is room.
    """
    marks = _marks(data, window, width)
    rule = [(SYMBOLS.rule, "rule")] * width
    text = [(" ", "axis")] * width if rows > 1 else rule
    free = 0
    labels = step_labels(data.axis, window, width, marks if rows == 1 else {})
    for cell, start, label in labels:
        if rows > 1:
            rule[cell] = (SYMBOLS.tick, "rule")
        text[start : start + len(label)] = [(c, "axis") for c in label]
        free = start + len(label)
    name = data.axis.label
    if rows > 1 and width - free > len(name) + 2:
        text[width - len(name) :] = [(c, "key") for c in name]
    for cell, mark in marks.items():
        rule[cell] = mark
    return [join(rule), join(text)][:rows]


def step_labels(
    axis: Axis, window: Window, width: int, taken: Mapping[int, object]
) -> Iterator[tuple[int, int, str]]:
    """Yield the labels that fit beside each other and the cells taken by marks: cell of the tick,
    first cell, text.
    """
    # Each of few steps has a tick, so that none goes again.
    few = window.end - window.start < FEW_STEPS
    apart = len(axis.write(window.end)) + 2 if few else _APART
    free = 0
    for step in window.ticks(apart, time=axis.time, zero=axis.zero):
        cell, label = window.column(step) // 2, axis.write(step)
        size = len(label)
        starts = [max(0, min(cell - size // 2, width - size))]
        if cell in taken:
            starts = [cell + 1, cell - size]
        for start in starts:
            stop = start + size
            if (
                free <= start
                and stop <= width
                and taken.keys().isdisjoint(range(start, stop))
            ):
                yield min(cell, width - 1), start, label
                free = stop + 1
                break


def _marks(data: ChartData, window: Window, cells: int) -> dict[int, Piece]:
    """Return what happened, by cell of the x axis; of several marks the one that weighs most."""
    found: dict[int, Piece] = {}
    for mark in sorted(data.marks, key=lambda mark: -RANKS.index(mark.style)):
        cell = window.column(mark.step) // 2
        if 0 <= cell < cells:
            found[cell] = (getattr(SYMBOLS, mark.role), mark.style)
    return found
