"""Words in charts have the colours of text: those of curves are too weak for it on some grounds."""

from __future__ import annotations

from array import array

import pytest

from verl_tui.rendering.charts.chart_data import ChartData, ChartLine
from verl_tui.rendering.charts.planned_data import with_right
from verl_tui.rendering.charts.renderer import ChartRenderer
from verl_tui.rendering.text.family_colours import FAMILIES
from verl_tui.rendering.text.run_colours import RUNS
from verl_tui.runs.pyramid import Pyramid

HUES = {*FAMILIES, *RUNS, "right"}


class Points:
    """A series of fifty steps."""

    def __init__(self, factor: float) -> None:
        self.steps = array("q", range(50))
        self.values = array("d", [factor * step for step in self.steps])
        self.pyramid = Pyramid(self.steps, self.values)


RUNS_OVER_EACH_OTHER = ChartData(
    "reward",
    lines=(
        ChartLine(Points(1.0), role=RUNS[0], label="first run", sign="A"),
        ChartLine(Points(2.0), role=RUNS[1], label="second run", sign="B"),
    ),
)
ENTROPY = ChartData("entropy", lines=(ChartLine(Points(9.0), role="entropy"),))
LOSS = ENTROPY._replace(key="loss", lines=(ChartLine(Points(1.0), role="loss"),))


@pytest.mark.parametrize("cursor", [None, 30])
@pytest.mark.parametrize("data", [RUNS_OVER_EACH_OTHER, with_right(LOSS, ENTROPY)])
def test_legends_and_axes_are_written_as_text(
    data: ChartData, cursor: int | None
) -> None:
    rows = ChartRenderer().rows(data, 100, 20, cursor=cursor)
    words = [
        (text, role)
        for row in (rows[0], *(row[:1] + row[-1:] for row in rows[1:]))
        for text, role in row
        if sum(sign.isalnum() for sign in text) > 1
    ]
    assert words
    assert not [text for text, role in words if role in HUES]
