"""The large chart: plotext must see nothing that it cannot take, since a nan ends the process."""

from __future__ import annotations

import sys
from array import array
from itertools import product
from math import inf, isfinite, nan

import pytest
from textual.app import App
from watching import until

from verl_tui.rendering.charts import plotext_chart, plotext_signals
from verl_tui.rendering.charts.chart_data import Alarm, ChartData, ChartLine, Mark
from verl_tui.runs.pyramid import Pyramid
from verl_tui.tui.widgets.zoomed_chart import ZoomedChart


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
    return data._replace(envelope=(points, points), **changes)


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
    app = Screen(ZoomedChart(data_of(ADVERSARIES[name])))
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


async def test_an_envelope_that_says_nothing_is_left_out_and_widens_no_axis():
    mean = Column(range(200), [0.4 + i / 1000 for i in range(200)])
    edges = (
        Column(range(200), [0.0] * 200),
        Column(range(200), [1.0] * 190 + [0.9] * 10),
    )
    bare = ChartData("reward", lines=(ChartLine(mean),))
    async with App().run_test(size=(100, 30)) as pilot:
        await pilot.app.mount(
            mute := ZoomedChart(bare._replace(envelope=edges)),
            without := ZoomedChart(bare),
        )
        assert mute.draw(100, 30) == without.draw(100, 30)
        mute.show(bare._replace(envelope=edges, cursor=50))
        assert str(mute.cursor_values()[-1]) == "min 0 max 1", "it can be read"


async def test_sizes():
    app = Screen(ZoomedChart(data_of(WAVE)))
    async with app.run_test(size=(80, 24)) as pilot:
        for size in ((1, 1), (5, 2), (20, 6), (30, 10), (31, 11), (80, 24), (200, 50)):
            await pilot.resize_terminal(*size)
            await until(pilot, lambda chart=app.chart, to=size: chart.size == to)
            assert len(app.lines) == size[1]
            assert {len(line) for line in app.lines} == {size[0]}
            assert "\x1b" not in "".join(app.lines)


async def test_plotext_sees_few_points_and_only_finite_ones(monkeypatch):
    seen = []
    trace = plotext_signals.Signal

    def noted(role, glyph, x, y, starts):
        seen.append(found := trace(role, glyph, x, y, starts))
        return found

    monkeypatch.setattr(plotext_signals, "Signal", noted)
    values = [nan if i % 97 == 0 else (i % 1000) * (-1) ** i for i in range(50_000)]
    app = Screen(ZoomedChart(data_of(values)))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
    assert any(found.x for found in seen)
    for found in seen:
        assert len(found.x) == len(found.y) <= 400
        assert all(isfinite(y) and 0 <= y <= 1 for y in found.y)


async def test_what_is_no_number_has_its_own_row():
    values = WAVE[:]
    values[100] = nan
    app = Screen(ZoomedChart(data_of(values)))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        broken = next(line for line in app.lines if line.lstrip().startswith("nan"))
        assert broken.count("✗") >= 1


async def test_marks_stand_below_what_they_mark():
    app = Screen(ZoomedChart(data_of(WAVE, cursor=50)))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        marks = next(line for line in app.lines if line.startswith("marks"))
        assert [marks.count(glyph) for glyph in "▲↻■"] == [1, 1, 1]
        # where no grid line crosses it
        cursor = {line.index("┃") for line in app.lines if "┃" in line}
        assert cursor == {marks.index("↻")}
        assert "@ 50" in app.lines[0]


@pytest.mark.parametrize(("target", "row", "sign"), [(9.0, 2, "↑9"), (-9.0, -4, "↓-9")])
async def test_a_target_out_of_reach_is_pointed_at(target, row, sign):
    app = Screen(
        ZoomedChart(
            data_of(
                WAVE, target=target, notes=(f"target {target:g} reached at step 7",)
            )
        )
    )
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        assert sign in app.lines[row]
        assert f"target {target:g} reached at step 7" in app.lines[0]
        assert all(len(line) == 100 for line in app.lines)


async def test_a_target_within_reach_is_a_line():
    app = Screen(ZoomedChart(data_of(WAVE, target=1.2)))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        assert any(line.startswith("  1.2┼") and "┈┈" not in line for line in app.lines)
        assert "↑" not in "".join(app.lines[1:])


async def test_the_cursor_moves_by_keys():
    app = Screen(ZoomedChart(data_of(WAVE)))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("tab", "end", "left", "right", "home")
        assert app.moves == [199, 197, 199, 0]


async def test_an_unchanged_picture_is_not_drawn_twice(monkeypatch):
    drawn = []
    draw = plotext_chart.PlotextChart.draw
    monkeypatch.setattr(
        plotext_chart.PlotextChart, "draw", lambda *args: drawn.append(1) or draw(*args)
    )
    data = data_of(WAVE)
    app = Screen(ZoomedChart(data))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        before = len(drawn)
        app.chart.show(data._replace())
        assert len(drawn) == before == 1


async def test_without_plotext_there_is_a_chart_all_the_same(monkeypatch):
    monkeypatch.setitem(sys.modules, "plotext", None)
    app = Screen(ZoomedChart(data_of(WAVE)))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        assert "└" in app.lines[-2]
        assert "┌" not in "".join(app.lines)


async def test_ascii():
    app = Screen(ZoomedChart(data_of(WAVE), ascii_only=True))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        assert "".join(app.lines).isascii()


async def test_the_dot_at_the_end_has_the_colour_of_a_finding_that_holds():
    values = [*[0.5] * 50, *[0.1] * 50]
    app = Screen(ZoomedChart())
    async with app.run_test(size=(80, 24)) as pilot:
        for alarms, role in (
            ((), "line"),
            ((Alarm(2, 50),), "critical"),
            ((Alarm(2, 50, 90),), "line"),
        ):
            app.chart.show(data_of(values, alarms=alarms))
            await pilot.pause()
            rows = app.chart.render_lines(app.chart.size.region)
            (dot,) = [piece for row in rows for piece in row if "●" in piece.text]
            assert dot.style.color == app.chart.role_style(role).color, alarms
