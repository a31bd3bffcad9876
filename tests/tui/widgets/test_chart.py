"""The chart as it stands on the screen."""

from __future__ import annotations

from array import array
from math import inf, nan

import pytest
from textual.app import App

from verl_tui.rendering.charts.chart_data import ChartData, ChartLine, Mark, Shade
from verl_tui.rendering.charts.renderer import ChartRenderer
from verl_tui.rendering.text.ascii_table import in_ascii
from verl_tui.runs.pyramid import Pyramid
from verl_tui.tui.widgets.chart import Chart

SIZES = [
    (1, 1),
    (2, 1),
    (1, 5),
    (5, 2),
    (7, 3),
    (20, 4),
    (23, 9),
    (24, 6),
    (40, 12),
    (80, 1),
    (80, 2),
    (200, 50),
]


class Column:
    """A series as a chart wants it."""

    def __init__(self, steps, values):
        self.steps, self.values = array("q", steps), array("d", values)
        self._pyramid = Pyramid(self.steps, self.values)

    def add(self, step, value):
        self.steps.append(step)
        self.values.append(value)

    @property
    def pyramid(self):
        self._pyramid.catch_up()
        return self._pyramid


class Screen(App):
    ENABLE_COMMAND_PALETTE = False

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


def rows(data, width=60, height=12, **kwargs):
    drawing = ChartRenderer()
    return [
        "".join(text for text, _ in row)
        for row in drawing.rows(data, width, height, **kwargs)
    ]


def ramp(count=200):
    return Column(range(count), [i / count for i in range(count)])


def everything(points):
    return ChartData(
        "critic/rewards/mean",
        "Reward [/red] 漢字\n",
        unit="s",
        lines=(
            ChartLine(points, label="first"),
            ChartLine(points, role="line-2", label="second"),
            ChartLine(points, "points", "validation"),
            ChartLine(points, "points", "line-9", "more"),
        ),
        shades=(Shade("min–max", points, points, "envelope", fits=False),),
        band=(-0.5, 0.7),
        marks=tuple(
            Mark(step, role)
            for step in (-5, 3, 70, 10**9)
            for role in ("breach", "restart", "checkpoint")
        ),
        cursor=20,
    )


@pytest.mark.parametrize(
    "points", [Column([], []), Column([3], [1]), ramp(), Column(range(9), [nan] * 9)]
)
def test_every_size_is_filled_exactly(points):
    from rich.cells import cell_len

    for data in (
        everything(points),
        everything(points)._replace(smoothing=0.9, log_y=True),
    ):
        for width, height in SIZES:
            drawn = rows(data, width, height, focus=True)
            assert len(drawn) == height
            assert all(cell_len(row) <= width for row in drawn)
            assert all(in_ascii(row).isascii() for row in drawn)


def test_values_that_are_no_numbers_are_marked():
    values = [i / 200 for i in range(200)]
    values[100], values[199] = nan, -inf
    points = Column(range(200), values)
    drawn = rows(ChartData("kl", lines=(ChartLine(points),)))
    assert drawn[-3].count("✗") == 2
    assert "-inf" in drawn[0]
    assert any(
        "✗" in row
        for row in rows(
            ChartData("kl", lines=(ChartLine(Column(range(5), [nan] * 5)),))
        )
    )


async def test_the_cursor_reads_values_point_by_point():
    app = Screen(
        Chart(ChartData("kl", lines=(ChartLine(Column([1, 5, 9], [0.1, 0.2, 0.3])),)))
    )
    async with app.run_test(size=(60, 12)) as pilot:
        await pilot.press("tab", "right", "left")
        assert "0.2 @ 5" in app.lines[0]
        await pilot.press("home", "left", "end", "escape", "escape")
        assert app.moves == [9, 5, 1, 9, None]
        assert "@" not in app.lines[0]


async def test_the_focus_shows_without_colour():
    app = Screen(Chart(ChartData("kl", lines=(ChartLine(ramp()),))))
    async with app.run_test(size=(60, 12)) as pilot:
        app.screen.set_focus(None)
        await pilot.pause()
        assert not app.lines[0].startswith("▸")
        app.chart.focus()
        await pilot.pause()
        assert app.lines[0].startswith("▸ kl")
