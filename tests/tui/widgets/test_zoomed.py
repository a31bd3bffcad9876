"""The large chart."""

from __future__ import annotations

from array import array
from itertools import product
from math import inf, nan

import pytest
from textual.app import App

from verl_tui.rendering.charts.chart_data import ChartData, ChartLine, Mark, Shade
from verl_tui.runs.pyramid import Pyramid
from verl_tui.tui.widgets.chart import Chart


class Column:
    def __init__(self, steps, values):
        self.steps, self.values = array("q", steps), array("d", values)
        self.pyramid = Pyramid(self.steps, self.values)


class Screen(App):
    def __init__(self, chart):
        super().__init__()
        self.chart = chart
        self.moves = []

    def compose(self):
        yield self.chart

    def on_chart_cursor_moved(self, event):
        self.moves.append(event.step)

    @property
    def lines(self):
        return [
            "".join(segment.text for segment in strip)
            for strip in self.chart.render_lines(self.chart.size.region)
        ]


def data_of(values, gap=1, **changes):
    points = Column(range(0, len(values) * gap, gap), values)
    validation = ChartLine(
        Column(points.steps[::10], points.values[::10]), "points", "validation"
    )
    marks = (
        Mark(30, "breach"),
        Mark(50, "restart"),
        Mark(-9, "restart"),
        Mark(70, "checkpoint"),
    )
    data = ChartData(
        "actor/loss",
        "Loss [/red]",
        lines=(ChartLine(points), validation),
        marks=marks,
        band=(0.2, None),
    )
    return data._replace(
        shades=(Shade("min–max", points, points, "envelope", fits=False),), **changes
    )


WAVE = [0.5 + (i % 40) / 80 for i in range(200)]
ADVERSARIES = {
    "nothing": [],
    "one": [0.5],
    "constant": [0.25] * 100,
    "huge": [1e308, -1e308, 1.7e308] * 30,
    "denormal": [5e-324, 0.0, 1e-310] * 30,
    "only nan": [nan] * 50,
    "mixed": [nan, 1.0, inf, -1.0, -inf, 0.0, 1e308, 5e-324] * 20,
    "negative": [-float(i) for i in range(100)],
    "one huge": [*WAVE, 1e300],
}


CHANGES = [
    {},
    {"log_y": True},
    {"smoothing": 0.9},
    {"cursor": 20},
    {"band": (1e308, -1e308)},
]


@pytest.mark.parametrize("name", ADVERSARIES)
async def test_nothing_ends_the_process(name):
    app = Screen(Chart(data_of(ADVERSARIES[name]), grid=True))
    async with app.run_test(size=(80, 24)) as pilot:
        for at, (changes, gap) in enumerate(product(CHANGES, (1, 1000))):
            app.chart.show(data_of(ADVERSARIES[name], gap, **changes))
            # All keys on the first, one on each of the others: a reading is drawn with what changed.
            await pilot.press(
                *(("tab", "left", "home", "end") if not at else ("left",))
            )
            found = app.lines
            assert len(found) == 24, changes
            assert all(len(line) == 80 for line in found), changes
            assert "Loss [/red]" in found[0], changes


async def test_it_stands_on_a_grid_that_gives_way_to_all_else():
    app = Screen(Chart(data_of(WAVE), grid=True))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        ruled = [line for line in app.lines if "┈" in line]
        assert len(ruled) >= 4
        assert all(line.partition("┤")[0].strip() for line in ruled)
        assert any("\u2800" < sign < "\u2900" for line in ruled for sign in line)
