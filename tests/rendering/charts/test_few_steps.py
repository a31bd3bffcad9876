"""The charts of a young run: its few steps take the whole width, and its ticks stay."""

from __future__ import annotations

from array import array

import pytest

from verl_tui.rendering.charts.chart_data import ChartData, ChartLine
from verl_tui.rendering.charts.renderer import ChartRenderer
from verl_tui.runs.pyramid import Pyramid


class Points:
    """A series of so many steps."""

    def __init__(self, first: int, count: int) -> None:
        self.steps = array("q", range(first, first + count))
        self.values = array("d", [float(step % 3) for step in self.steps])
        self.pyramid = Pyramid(self.steps, self.values)


def drawn(first: int, count: int, width: int = 40) -> list[str]:
    data = ChartData("reward", lines=(ChartLine(Points(first, count)),))
    rows = ChartRenderer().rows(data, width, 9)
    return ["".join(text for text, _ in row) for row in rows]


@pytest.mark.parametrize("count", range(2, 9))
def test_few_steps_take_the_whole_width(count: int) -> None:
    assert any(row.endswith("●") for row in drawn(0, count)), (
        "the newest is at the right edge"
    )


@pytest.mark.parametrize("count", range(2, 9))
def test_each_of_few_steps_has_a_tick(count: int) -> None:
    assert drawn(0, count)[-1].split() == [*map(str, range(count))]
