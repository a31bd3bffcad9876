"""The axes of a chart as rows of styled text."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from verl_tui.rendering.charts.axes import FEW_STEPS
from verl_tui.rendering.charts.braille import Glyph, join
from verl_tui.rendering.charts.symbols import SYMBOLS
from verl_tui.rendering.text.numbers import distinct_texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from verl_tui.rendering.charts.axes import Scale, Window
    from verl_tui.rendering.charts.braille import Text
    from verl_tui.rendering.charts.chart_data import Axis, ChartData, Mark

_AXIS_FROM = 24
"""Narrower charts have no y axis."""
_APART = 10
"""Cells from one label of the x axis to the next at least."""
_RANK = {"critical": 0, "warning": 1, "info": 2, "restart": 3, "checkpoint": 4}
"""If a column has several marks, the first of these is shown."""


def sides(
    data: ChartData, scales: tuple[Scale | None, Scale | None], width: int, height: int
) -> tuple[list[Text], list[Text]]:
    """Write the y axes at the left and at the right, empty rows where there is none."""
    if width < _AXIS_FROM:
        return [()] * height, [()] * height
    labels = row_labels(scales[0], height)
    cells = max([data.gutter, *map(len, labels.values())])
    left: list[Text] = []
    for y in range(height):
        tick = SYMBOLS.side_tick if y in labels else SYMBOLS.side
        left.append(((labels.get(y, "").rjust(cells), "axis"), (tick, "rule")))
    if data.right is None or data.right.main is None or scales[1] is None:
        return left, [()] * height
    role = data.right.main.role
    labels = row_labels(scales[1], height)
    cells = max(map(len, labels.values()), default=0)
    right: list[Text] = []
    for y in range(height):
        of = (SYMBOLS.side_right, role) if y in labels else (SYMBOLS.side, "rule")
        right.append((of, (labels.get(y, "").ljust(cells), "axis")))
    return left, right


def cells_of(side: Sequence[Text]) -> int:
    """Return how many cells a y axis takes."""
    return sum(len(text) for row in side[:1] for text, _ in row)


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


def axis_rows(
    labels: Iterable[tuple[int, int, str]],
    name: str,
    size: tuple[int, int],
    left: int,
    marks: Mapping[int, Glyph],
) -> list[Text]:
    """Write the x axis in one or two rows, below the left corner of a plot: rule with ticks and
    marks, and labels.

    Args:
        labels: Cell of the tick, first cell of the label, and its text.
        name: What the axis is of, written where there is room.
        size: Cells and rows.
        left: Cells of the y axis.
        marks: What happened, by cell.
    """
    width, rows = size
    rule = [(SYMBOLS.rule, "rule")] * width
    text = [(" ", "axis")] * width if rows > 1 else rule
    free = 0
    for cell, start, label in labels:
        if rows > 1:
            rule[cell] = (SYMBOLS.tick, "rule")
        text[start : start + len(label)] = [(c, "axis") for c in label]
        free = start + len(label)
    if rows > 1 and width - free > len(name) + 2:
        text[width - len(name) :] = [(c, "key") for c in name]
    for cell, mark in marks.items():
        rule[cell] = (mark.text, mark.style)
    corners = (SYMBOLS.corner.rjust(left)[:left], " " * left)
    written = zip(corners, (rule, text), strict=True)
    return [((corner, "rule"), *join(row)) for corner, row in written][:rows]


def step_labels(
    axis: Axis, window: Window, width: int, taken: AbstractSet[int]
) -> Iterator[tuple[int, int, str]]:
    """Yield the labels that fit beside each other and the cells taken by marks."""
    # Each of few steps has a tick, so that none goes again.
    few = window.end - window.start < FEW_STEPS
    apart = len(axis.write(window.end)) + 2 if few else _APART
    steps = window.ticks(apart, time=axis.time, zero=axis.zero)
    labels = ((window.column(step) // 2, axis.write(step)) for step in steps)
    return placed(labels, width, taken)


def placed(
    labels: Iterable[tuple[int, str]], width: int, taken: AbstractSet[int] = frozenset()
) -> Iterator[tuple[int, int, str]]:
    """Yield the labels that fit beside each other: cell of the tick, first cell, text."""
    free = 0
    for cell, label in labels:
        size = len(label)
        starts = [max(0, min(cell - size // 2, width - size))]
        if cell in taken:
            starts = [cell + 1, cell - size]
        for start in starts:
            stop = start + size
            if free <= start and stop <= width and taken.isdisjoint(range(start, stop)):
                yield min(cell, width - 1), start, label
                free = stop + 1
                break


def axis_marks(marks: Iterable[Mark], window: Window, cells: int) -> dict[int, Glyph]:
    """Return what happened, by cell of the x axis."""
    found: dict[int, Glyph] = {}
    for mark in sorted(marks, key=lambda mark: -_RANK[mark.style]):
        cell = window.column(mark.step) // 2
        if 0 <= cell < cells:
            found[cell] = Glyph(getattr(SYMBOLS, mark.role), mark.style)
    return found
