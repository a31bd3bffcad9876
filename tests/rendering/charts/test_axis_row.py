"""An x axis of one row: steps and marks share it."""

from __future__ import annotations

from verl_tui.rendering.charts.axes import Window
from verl_tui.rendering.charts.axis_labels import axis_rows
from verl_tui.rendering.charts.braille import Glyph
from verl_tui.rendering.charts.chart_data import STEPS
from verl_tui.rendering.charts.symbols import UNICODE

WINDOW = Window(start=0, per=1, stretch=2, columns=80)
"""Forty steps, one to a cell."""


def written(*marked: int) -> str:
    marks = {cell: Glyph(UNICODE.checkpoint, "checkpoint") for cell in marked}
    (row,) = axis_rows(STEPS, WINDOW, 40, 1, marks, UNICODE)
    return "".join(text for text, _ in row)


def test_steps_stand_on_the_rule() -> None:
    assert [written().index(step) for step in ("0", "10", "20", "30")] == [0, 9, 19, 29]


def test_a_step_stands_beside_the_mark_at_it() -> None:
    assert written(10, 20).count("■") == 2
    assert "■10─" in written(10)
    assert "■20─" in written(20)
    assert "─10─" in written(13), "and where it was beside one at another step"
    assert "10■" in written(10, 12), "before it where there is another behind it"
