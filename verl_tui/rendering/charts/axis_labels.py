"""The axes of a chart as rows of styled text."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from verl_tui.rendering.charts.axes import FEW_STEPS
from verl_tui.rendering.charts.braille import Glyph, join
from verl_tui.rendering.charts.symbols import SYMBOLS
from verl_tui.rendering.text.numbers import distinct_texts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from verl_tui.rendering.charts.axes import Scale, Window
    from verl_tui.rendering.charts.braille import Text
    from verl_tui.rendering.charts.chart_data import Axis, ChartData, Mark

_AXIS_FROM = 24
"""Narrower charts have no y axis."""
_APART = 10
"""Cells from one label of the x axis to the next at least."""
_RANK = {"critical": 0, "warning": 1, "info": 2, "restart": 3, "checkpoint": 4}
"""If a column has several marks, the first of these is shown."""


def label_cells(scale: Scale | None, width: int, height: int) -> int:
    """Return how many cells the numbers of a y axis of `height` rows need, in a chart of `width`
    cells.
    """
    if width < _AXIS_FROM:
        return 0
    return max(map(len, _row_labels(scale, height).values()), default=0)


def label_rows(scale: Scale | None, height: int) -> Iterable[int]:
    """Return the rows of a y axis of `height` rows that have a number."""
    return _row_labels(scale, height).keys()


def sides(
    data: ChartData, scales: tuple[Scale | None, Scale | None], width: int, height: int
) -> tuple[list[Text], list[Text]]:
    """Write the y axes at the left and at the right, empty rows where there is none."""
    empty: list[Text] = [()] * height
    if width < _AXIS_FROM:
        return empty, empty
    left = _gutter(scales[0], height, data.gutter)
    main = data.right.main if data.right is not None else None
    if main is None or not scales[1]:
        return left, empty
    return left, _right_gutter(scales[1], height, main.role)


def cells_of(side: Sequence[Text]) -> int:
    """Return how many cells a y axis takes."""
    if not side:
        return 0
    return sum(len(text) for text, _ in side[0])


def _gutter(scale: Scale | None, height: int, least: int) -> list[Text]:
    """Write the y axis of `height` rows: numbers at its ends, and between where there is room; they
    take at least so many cells.
    """
    labels = _row_labels(scale, height)
    width = max([least, *map(len, labels.values())])
    rows: list[Text] = []
    for y in range(height):
        tick = SYMBOLS.side_tick if y in labels else SYMBOLS.side
        rows.append(((labels.get(y, "").rjust(width), "axis"), (tick, "rule")))
    return rows


def _right_gutter(scale: Scale | None, height: int, role: str) -> list[Text]:
    """Write the y axis at the right, its ticks in the colour of its metric."""
    labels = _row_labels(scale, height)
    width = max(map(len, labels.values()), default=0)
    rows: list[Text] = []
    for y in range(height):
        tick = (SYMBOLS.side_right, role) if y in labels else (SYMBOLS.side, "rule")
        rows.append((tick, (labels.get(y, "").ljust(width), "axis")))
    return rows


@lru_cache(maxsize=256)  # an axis is kept for many steps
def _row_labels(scale: Scale | None, height: int) -> Mapping[int, str]:
    """Return the numbers of a y axis by row."""
    rows = tick_rows(scale, height) if scale else {}
    texts = distinct_texts([*rows.values()])
    labels = zip(rows, texts, strict=True)
    return {row: text for row, text in labels if text}


def tick_rows(scale: Scale, height: int) -> dict[int, float]:
    """Return the rows to be labelled and their values: both ends, round values in between if they
    do not crowd.
    """
    if height < 2:
        return {0: scale.hi} if height else {}
    rows = {0: scale.hi, height - 1: scale.lo}
    values = scale.ticks(max(3, height // 4)) if height >= 5 else []
    for value in values:
        row = round((1 - scale.fraction(value)) * (height - 1))
        if all(abs(row - other) >= 2 for other in rows):
            rows[row] = value
    return rows


def axis_rows(
    axis: Axis, window: Window, width: int, rows: int, marks: Mapping[int, Glyph]
) -> list[Text]:
    """Write the x axis in one or two rows of `width` cells: rule with ticks and marks, and steps.

    In one row the steps stand on the rule, beside a mark that is at the same step.
    """
    rule = [(SYMBOLS.rule, "rule")] * width
    text = [(" ", "axis")] * width if rows > 1 else rule
    taken = marks.keys() if rows == 1 else ()
    free = 0
    for cell, start, label in _placed_labels(axis, window, width, taken):
        if rows > 1:
            rule[cell] = (SYMBOLS.tick, "rule")
        text[start : start + len(label)] = [(c, "axis") for c in label]
        free = start + len(label) + 1
    if rows > 1 and width - free > len(axis.label) + 1:
        text[width - len(axis.label) :] = [(c, "key") for c in axis.label]
    for cell, mark in marks.items():
        rule[cell] = (mark.text, mark.style)
    return [join(rule), join(text)][:rows]


def _placed_labels(
    axis: Axis, window: Window, width: int, taken: Collection[int]
) -> Iterator[tuple[int, int, str]]:
    """Yield the labels that fit beside each other and the cells taken: cell of the tick, first cell
    of the label, text.
    """
    free = 0
    # Each of few steps has a tick, so that none goes again.
    few = window.end - window.start < FEW_STEPS
    apart = len(axis.write(window.end)) + 2 if few else _APART
    for step in window.ticks(apart, time=axis.time, zero=axis.zero):
        label = axis.write(step)
        cell = window.column(step) // 2
        size = len(label)
        starts = [max(0, min(cell - size // 2, width - size))]
        if cell in taken:
            starts = [cell + 1, cell - size]
        for start in starts:
            stop = start + size
            covers = any(start <= at < stop for at in taken)
            if free <= start and stop <= width and not covers:
                yield min(cell, width - 1), start, label
                free = stop + 1
                break


def axis_marks(marks: tuple[Mark, ...], window: Window, cells: int) -> dict[int, Glyph]:
    """Return what happened, by cell of the x axis."""
    glyphs = {
        "breach": SYMBOLS.breach,
        "restart": SYMBOLS.restart,
        "checkpoint": SYMBOLS.checkpoint,
    }
    at: dict[int, Mark] = {}
    for mark in marks:
        cell = window.column(mark.step) // 2
        if not 0 <= cell < cells:
            continue
        if cell not in at or _RANK[mark.style] < _RANK[at[cell].style]:
            at[cell] = mark
    return {cell: Glyph(glyphs[mark.role], mark.style) for cell, mark in at.items()}
