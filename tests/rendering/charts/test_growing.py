"""A chart that is drawn again as its series grows."""

from __future__ import annotations

import random
from array import array
from math import nan

import pytest

from verl_tui.rendering.charts.chart_data import Alarm, ChartData, ChartLine, Mark
from verl_tui.rendering.charts.renderer import ChartRenderer
from verl_tui.runs.pyramid import Pyramid

SIZE = (40, 10)


class Growing:
    """A series that grows."""

    def __init__(self, *values: float) -> None:
        self.steps, self.values = array("q"), array("d")
        self.pyramid = Pyramid(self.steps, self.values)
        for value in values:
            self.append(value)

    def append(self, value: float) -> None:
        self.steps.append(len(self.steps))
        self.values.append(value)
        self.pyramid.catch_up()


def chart(points: Growing, **options: object) -> ChartData:
    alarms = (Alarm(1, 5, 20), Alarm(2, 60))
    line = ChartLine(points, role="kl", alarms=alarms)
    return ChartData("kl", lines=(line,), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"by_noise": True},
        {
            "smoothing": 0.9,
            "band": (0.2, 0.6),
        },
        {"band": (None, 0.9), "marks": (Mark(7, "restart"),), "best": "highest"},
        {"target": 0.5, "cursor": 30, "log_y": True},
    ],
)
def test_it_looks_as_if_it_had_been_drawn_for_the_first_time(
    options: dict[str, object],
) -> None:
    chance = random.Random(1)
    points = Growing(0.01, 1.0)
    renderer = ChartRenderer()
    renderer.shades = True
    for _ in range(150):
        points.append(nan if chance.random() < 0.02 else chance.uniform(0.02, 0.9))
        fresh = ChartRenderer()
        fresh.shades = True
        data = chart(points, **options)
        drawn = renderer.rows(data, *SIZE, cursor=data.cursor)
        assert drawn == fresh.rows(data, *SIZE, cursor=data.cursor)
