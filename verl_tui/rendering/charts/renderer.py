"""Draws a chart as rows of styled text, below its plot maybe a strip of shades: the share of a
step's values in each of a few ranges. Knows data and size, nothing of the screen.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from itertools import repeat
from math import ceil, floor, log10
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size

from verl_tui.distributions import shares
from verl_tui.rendering.charts.axes import (
    FEW_STEPS,
    Scale,
    Window,
    fill_window,
    fit_scale,
    fit_window,
)
from verl_tui.rendering.charts.chart_data import MARKS, ChartData, Heat
from verl_tui.rendering.charts.downsample import smoothed_by_noise, values_shown
from verl_tui.rendering.charts.paint import paint
from verl_tui.rendering.charts.picture import picture_of
from verl_tui.rendering.charts.title_row import (
    chart_row,
    part_rows,
    sparkline_row,
    title_row,
)
from verl_tui.rendering.text.numbers import axis_texts
from verl_tui.rendering.text.piece import (
    Piece,
    TextRows,
    cells_of,
    fit,
    joined,
    wrapped,
)
from verl_tui.runs.cached import LastResult

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from verl_tui.rendering.charts.x_axes import Axis

_PLOT_FROM = 3
"""Rows from which there is a plot below the title."""
_PARTS = 5
"""Rows of the plot for one row of the metric's parts below it."""
_SHADES_FROM = 6
"""Rows of the plot from which there is room for shades behind the lines."""
_STRIP = 3
"""Rows of the plot for one row of the strip below it, its title among them."""
_AXIS_FROM = 24
"""Narrower charts have no y axis."""
_GUTTER = 6
"""Cells of the numbers of a y axis among others: nearly all fit, and curves stay where they are."""
_APART = 10
"""Cells from one label of the x axis to the next at least."""
_CHECKPOINTS_APART = 3
"""Cells from one checkpoint to the next at least: more of them would be a comb."""


class ChartRenderer:
    """Turns data into rows of text, again and again as they grow."""

    def __init__(self) -> None:
        self.window: Window | None = None
        """The x axis of the last drawing, None where it had none."""
        self.left = 0
        """Columns that the y axis of the last drawing took."""
        self.shades = False
        """True where the terminal has backgrounds: the healthy band is then a shade, not lines."""
        self.signs = False
        """True where there are no colours: findings in sparklines are signs."""
        self.grid = False
        """True if a dotted line leads from each number of the y axis through the plot."""
        self._plots = LastResult()
        self._axes: dict[bool, dict[object, Scale]] = {}
        """The y axis at the left, or right, by what it was fitted to."""

    def rows(
        self,
        data: ChartData,
        width: int,
        height: int,
        *,
        cursor: int | None = None,
        focus: bool = False,
    ) -> TextRows:
        """Draw a chart of `width` x `height` cells: a title, the plot, and the axes where they
        fit.
        """
        if width < 1 or height < 1:
            return []
        self.window = None
        shown = data.shown
        if height == 1 and not data.in_row:
            return [chart_row(data, width, cursor, focus=focus, signs=self.signs)]
        if shown is not None and height >= _PLOT_FROM:
            data = smoothed_by_noise(data, shown, width)
        title = title_row(data, width, cursor, focus=focus)
        if shown is None or height == 1:
            return [title, *_sentences(data.empty, width, height - 1)]
        if height < _PLOT_FROM:
            return [title, sparkline_row(data, width, signs=self.signs)]
        return [title, *self._plot(data, shown, width, height - 1, cursor)]

    def _plot(
        self,
        data: ChartData,
        shown: tuple[int, int],
        width: int,
        height: int,
        cursor: int | None,
    ) -> TextRows:
        parts = part_rows(data, width, height // _PARTS, cursor)
        height -= len(parts)
        axes = (height >= 3) + (height >= 6)
        height -= axes
        most = height // _STRIP * (width >= _AXIS_FROM)
        limits, words = heat_limits(data, most)
        height -= len(words) + bool(words)
        if height < _SHADES_FROM:
            data = data._replace(shades=())
        scale, other = self.scale(data, shown), self.scale(data, shown, right=True)
        left: TextRows = [[]] * height
        right = left
        if width >= _AXIS_FROM:
            least = max([_GUTTER * (data.reach is not None), *map(len, words)])
            left = _y_axis(scale, height, data.unit, least)
            unit = next((line.unit for line in data.lines if line.right), "")
            right = _y_axis(other, height, unit, right=True) if other else right
        self.left = cells_of(left[0])
        size = (width - self.left - cells_of(right[0]), height)
        # few steps, and a stretch of the past, take the whole width
        past = data.last_step is not None or shown[1] - shown[0] < FEW_STEPS
        self.window = (fill_window if past else fit_window)(*shown, size[0] * 2)
        picture = picture_of(data, (scale, other), self.window)
        grid = [*row_labels(scale, height)] * self.grid
        plot = self._plots.of(
            (picture, size, cursor, self.shades, grid),
            lambda: paint(picture, size, cursor, shades=self.shades, grid=grid),
        )
        rows = [[*a, *b, *c] for a, b, c in zip(left, plot, right, strict=True)]
        corners = ("└".rjust(self.left)[: self.left], " " * self.left)
        below = _x_axis(data, self.window, size[0], axes)
        rows += [
            [(end, "rule"), *row] for end, row in zip(corners, below, strict=False)
        ]
        rows += heat_rows(data, limits, words, self.window, (self.left, size[0]))
        return rows + parts

    def scale(
        self, data: ChartData, shown: tuple[int, int], *, right: bool = False
    ) -> Scale | None:
        """Return the y axis at the left or the right for the values between two steps, the last one
        while it serves, so that pictures stay still; None without a number.
        """
        reach = values_shown(data, shown, right=right)
        if reach is None:
            return None
        own = [line.points for line in data.lines if line.right is right]
        ends = (data.first_step, data.last_step)
        subject = (data.key, *own[:1], bool(data.shades), data.usual_y, ends)
        before = self._axes.get(right, {}).get(subject)
        scale = fit_scale(*reach, log=data.log_y, previous=before)
        self._axes[right] = {subject: scale}
        return scale


def _sentences(text: str, width: int, rows: int) -> TextRows:
    """Write sentences, a line each, in the middle of `rows` rows, wrapped and cut to fit."""
    lines = [line for one in text.split("\n") for line in wrapped(one, width)]
    if len(lines) > rows > 0:
        lines[rows - 1] = fit(lines[rows - 1] + " " * width, width - 1)
    above = max(0, rows - len(lines)) // 2
    filled = [*[""] * above, *lines, *[""] * rows][:rows]
    centred = (" " * ((width - cell_len(line)) // 2) + line for line in filled)
    return [[(set_cell_size(line, width), "key")] for line in centred]


# -- axes ------------------------------------------------------------------------------------------


def _y_axis(
    scale: Scale | None, height: int, unit: str, least: int = 0, *, right: bool = False
) -> TextRows:
    """Write a y axis, its numbers in at least so many cells."""
    labels = row_labels(scale, height, unit)
    cells = max([least, *map(len, labels.values())])
    tick = ("├", "right") if right else ("┤", "rule")
    rows: TextRows = []
    for y in range(height):
        side = tick if y in labels else ("│", "rule")
        text = labels.get(y, "")
        words = (text.ljust(cells) if right else text.rjust(cells), "axis")
        rows.append([side, words] if right else [words, side])
    return rows


@lru_cache(maxsize=256)  # an axis is kept for many steps
def row_labels(scale: Scale | None, height: int, unit: str = "") -> Mapping[int, str]:
    """Return the numbers of a y axis by row: both ends, round values in between if they do not
    crowd.
    """
    if scale is None:
        return {}
    ends = [scale.hi, scale.lo] if scale.only is None else [scale.only]
    rows = {scale.dot(value, height * 4) // 4: value for value in ends[:height]}
    for value in scale.ticks(max(3, height // 4)) if height >= 5 else []:
        row = scale.dot(value, height * 4) // 4
        if all(abs(row - other) >= 2 for other in rows):
            rows[row] = value
    labels = zip(rows, axis_texts([*rows.values()], unit), strict=True)
    return {row: text for row, text in labels if text}


def _x_axis(data: ChartData, window: Window, width: int, rows: int) -> TextRows:
    """Write the x axis in one or two rows: a rule with ticks and marks, and labels with the name of
    the axis where there is room. In one row the labels leave marks but checkpoints where they are.
    """
    marks = _marks(data, window, width)
    rule = [("─", "rule")] * width
    text = [(" ", "axis")] * width if rows > 1 else rule
    axis, free = data.axis, 0
    for cell, start, label in _labels(axis, window, width, marks if rows < 2 else {}):
        if start >= free:
            free = start + len(label) + 1
            text[start : free - 1] = zip(label, repeat("axis"))
            if rows > 1:
                rule[cell] = ("┬", "rule")
    if rows > 1 and width - free > len(axis.label) + 1:
        text[width - len(axis.label) :] = zip(axis.label, repeat("key"))
    for cell, mark in marks.items():
        rule[cell] = _marked(rule[cell], mark)
    return [joined(rule), joined(text)][:rows]


def _marked(there: Piece, mark: Piece) -> Piece:
    """Return a cell of the x axis with a mark on it: checkpoints leave numbers where they are."""
    if mark[1] != "checkpoint":
        return mark
    sign = "┼" if there[0] == "┬" else mark[0]
    return (sign, mark[1]) if there[1] == "rule" else there


def _marks(data: ChartData, window: Window, width: int) -> dict[int, Piece]:
    """Return the marks by cell, of several in one that which weighs most."""
    weights = [*MARKS]
    marks: dict[int, Piece] = {}
    free = width
    # the newest first, as checkpoints keep apart
    for mark in sorted(
        data.marks, key=lambda mark: (-weights.index(mark.role), -mark.step)
    ):
        cell = window.column(mark.step) // 2
        thinned = mark.role == "checkpoint" and cell > free
        if 0 <= cell < width and not thinned:
            marks[cell] = (MARKS[mark.role][0], mark.role)
            free = cell - _CHECKPOINTS_APART
    return marks


def _labels(
    axis: Axis, window: Window, width: int, marks: Mapping[int, Piece]
) -> Iterator[tuple[int, int, str]]:
    """Yield the labels of the x axis beside marks other than checkpoints: cell of the tick, first
    cell, text.
    """
    taken = {cell for cell in marks if marks[cell][1] != "checkpoint"}
    # Each of few steps has a tick, so that none goes again.
    few = window.end - window.start < FEW_STEPS
    apart = len(axis.write(window.end)) + 2 if few else _APART
    for step in window.ticks(apart, time=axis.time, zero=axis.zero):
        cell, label = window.column(step) // 2, axis.write(step)
        start = max(0, min(cell - len(label) // 2, width - len(label)))
        start = cell + 1 if cell in taken else start
        stop = start + len(label)
        if stop <= width and taken.isdisjoint(range(start, stop)):
            yield min(cell, width - 1), start, label


# -- a strip below a plot --------------------------------------------------------------------------

_LEAST, _MOST = 3, 6
"""Rows of shades."""
_FAR = 20
"""Of so many steps one at each end may lie beyond the limits, else one odd step would stretch
them.
"""
_STEPS = (0.1, 0.2, 0.25, 0.5, 1, 2, 2.5, 5, 10)
"""Distances of limits as shares of a power of ten."""
_SHADES, _SHARES = " ░▒▓█", (1e-9, 0.1, 0.25, 0.5)
"""Shades, and the share from which on each stands in place of the one before."""
_LEGEND = "  ░ few ▒ 10% ▓ 25% █ 50%"


def heat_limits(data: ChartData, rows: int) -> tuple[Sequence[float], Sequence[str]]:
    """Return round values between the ranges of the strip, which has so many rows at most with its
    title, and the words for each range; none where all values are alike, or there are too few rows
    or several curves.
    """
    if data.heat is None or data.lettered or rows <= _LEAST:
        return (), ()
    low, high = _ends(data.heat)
    power = 10.0 ** floor(log10(high - low)) if high > low else 0.0
    for step in (share * power for share in _STEPS if power):
        first, last = floor(low / step) + 1, ceil(high / step)
        if last - first < min(rows - 1, _MOST):
            limits = [float(f"{at * step:.9g}") for at in range(first, last)]
            texts = axis_texts(limits, data.unit)
            # where each range begins, the highest first, and where the lowest one ends
            ends = [*map("≥{}".format, texts[::-1]), *map("<{}".format, texts[:1])]
            return limits, ends
    return (), ()


def _ends(heat: Heat) -> tuple[float, float]:
    """Return the least and the greatest value, but for those of odd steps."""
    lows, highs = map(sorted, zip(*[one[:2] for one in heat.bins], strict=True))
    far = len(lows) // _FAR
    if lows[far] < highs[-1 - far]:
        return lows[far], highs[-1 - far]
    return lows[0], highs[-1]


def heat_rows(
    data: ChartData,
    limits: Sequence[float],
    labels: Sequence[str],
    window: Window,
    cells: tuple[int, int],
) -> TextRows:
    """Return the strip: a row that says what it is of, then its shades behind their limits."""
    heat, shown, (left, width) = data.heat, data.shown, cells
    if not limits or heat is None or shown is None:
        return []
    words = fit(heat.words, width)
    words += _LEGEND * (len(words) + len(_LEGEND) <= width)
    rows: TextRows = [[(" " * left + words, "axis")]]
    columns = [*_columns(heat, limits, window, width, window.column(shown[1]) // 2)]
    for row, label in enumerate(labels, start=1):
        drawn = "".join(
            _SHADES[bisect_right(_SHARES, found[-row])] if found else " "
            for found in columns
        )
        side = fit(label, left - 1).rjust(left - 1)
        rows.append(joined([(side, "axis"), ("│", "rule"), (drawn, data.main.role)]))
    return rows


def _columns(
    heat: Heat, limits: Sequence[float], window: Window, width: int, last: int
) -> Iterator[list[float]]:
    """Yield the shares of each column of cells up to the last one: those of its newest step, else
    of the one before as far as twice what steps usually lie apart; empty where nothing is known.
    """
    places = heat.places
    newest = {
        window.column(at) // 2: of for at, of in zip(places, heat.bins, strict=True)
    }
    apart = (places[-1] - places[0]) // max(1, len(places) - 1)
    reach = window.column(places[0] + apart) - window.column(places[0]) + 1
    found: list[float] = []
    stop = 0
    for cell in range(width):
        if cell in newest:
            found = shares(newest[cell], limits)
            stop = max(cell + 1, min(cell + reach, last + 1))
        yield found if cell < stop else []
