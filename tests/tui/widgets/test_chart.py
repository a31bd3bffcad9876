"""The chart as it stands on the screen."""

from __future__ import annotations

from itertools import product
from math import inf, nan

import pytest
from chart_columns import Column
from textual.app import App

from verl_tui.rendering.charts.chart_data import ChartData, ChartLine, Mark, Shade
from verl_tui.rendering.charts.renderer import ChartRenderer
from verl_tui.rendering.text.ascii_table import in_ascii
from verl_tui.rendering.text.piece import text_of
from verl_tui.tui.widgets.chart import Chart

SIZES = [
    *((1, 1), (2, 1), (1, 5), (5, 2), (7, 3), (20, 4), (23, 9), (24, 6), (40, 12)),
    *((80, 1), (80, 2), (200, 50)),
]


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
        return [one.text for one in self.chart.render_lines(self.chart.size.region)]


def rows(data, width=60, height=12, **kwargs):
    drawing = ChartRenderer()
    return [*map(text_of, drawing.rows(data, width, height, **kwargs))]


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
            for role in ("critical", "restart", "checkpoint")
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
        await pilot.pause()
        app.chart.read(1)
        app.chart.read(-1)
        assert "0.2 @ 5" in app.lines[0]
        app.chart.read_end(-1)
        app.chart.read(-1)
        app.chart.read_end(1)
        await pilot.pause()
        assert app.moves == [9, 5, 1, 9]


async def test_the_focus_shows_without_colour():
    app = Screen(Chart(ChartData("kl", lines=(ChartLine(ramp()),))))
    async with app.run_test(size=(60, 12)) as pilot:
        app.screen.set_focus(None)
        await pilot.pause()
        assert not app.lines[0].startswith("▸")
        app.chart.focus()
        await pilot.pause()
        assert app.lines[0].startswith("▸ kl")


# -- large -----------------------------------------------------------------------------------------


def data_of(values, gap=1, **changes):
    points = Column(range(0, len(values) * gap, gap), values)
    validation = ChartLine(
        Column(points.steps[::10], points.values[::10]), "points", "validation"
    )
    marks = (
        Mark(30, "critical"),
        Mark(50, "restart"),
        Mark(-9, "restart"),
        Mark(70, "checkpoint"),
    )
    data = ChartData(
        "actor/loss", "Loss [/red]", lines=(ChartLine(points), validation), marks=marks, band=(0.2, inf)
    )  # fmt: skip
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


async def test_nothing_ends_the_process():
    app = Screen(Chart(grid=True))
    async with app.run_test(size=(80, 24)) as pilot:
        app.chart.focus()
        app.chart.read(-1)
        app.chart.read_end(-1)
        app.chart.read_end(1)
        for (name, values), changes in product(ADVERSARIES.items(), CHANGES):
            app.chart.show(data_of(values, 1000 if changes else 1, **changes))
            app.chart.read(-1)
            await pilot.pause()
            found = app.lines
            assert len(found) == 24, (name, changes)
            assert all(len(line) == 80 for line in found), (name, changes)
            assert "Loss [/red]" in found[0], (name, changes)


async def test_it_stands_on_a_grid_that_gives_way_to_all_else():
    app = Screen(Chart(data_of(WAVE), grid=True))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        ruled = [line for line in app.lines if "┈" in line]
        assert len(ruled) >= 4
        assert all(line.partition("┤")[0].strip() for line in ruled)
        assert any("\u2800" < sign < "\u2900" for line in ruled for sign in line)
