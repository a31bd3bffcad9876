"""Y axes without outliers, windows of the past, smoothing, two y axes, and what the cursor reads:
in both widgets.
"""

from __future__ import annotations

from array import array
from math import inf, isfinite, isnan, nan

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from textual.app import App

from verl_tui.rendering.charts import plotext_chart
from verl_tui.rendering.charts.axes import Scale, fill_window
from verl_tui.rendering.charts.cache import ChartCache
from verl_tui.rendering.charts.chart_data import Axis, ChartData, ChartLine, Mark
from verl_tui.rendering.charts.cursor_values import CursorValue, cursor_values, rows_of
from verl_tui.rendering.charts.downsample import Smoothed, usual_range, value_range
from verl_tui.rendering.charts.renderer import ChartRenderer
from verl_tui.rendering.charts.symbols import ASCII, UNICODE
from verl_tui.runs.pyramid import Pyramid
from verl_tui.tui.widgets.chart import Chart
from verl_tui.tui.widgets.zoomed_chart import ZoomedChart

SIZES = [(1, 1), (2, 1), (5, 2), (20, 6), (24, 6), (40, 12), (60, 20), (200, 50)]


class Column:
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
    def __init__(self, chart):
        super().__init__()
        self.chart = chart

    def compose(self):
        yield self.chart

    @property
    def lines(self):
        return [
            "".join(segment.text for segment in strip)
            for strip in self.chart.render_lines(self.chart.size.region)
        ]


def wave(count=400, **spikes):
    values = [0.5 + (i % 40) / 80 for i in range(count)]
    for at, value in spikes.items():
        values[int(at[1:])] = value
    return Column(range(count), values)


def chart_of(points, **changes):
    return ChartData(
        "actor/loss", "loss", lines=(ChartLine(points, label="loss"),)
    )._replace(
        **changes,
    )


def rows(data, width=80, height=16, **more):
    drawing = ChartRenderer(**more)
    return [
        "".join(text for text, _ in row) for row in drawing.rows(data, width, height)
    ]


# -- limits ----------------------------------------------------------------------------------------


def test_a_spike_does_not_set_the_limits():
    points = wave(s100=1000.0, s250=-1000.0)
    low, high = usual_range(points, 0, 399)
    assert 0.3 < low <= 0.5
    assert 0.9 < high < 1.3
    assert usual_range(points, 0, 99) == value_range(points, 0, 99), (
        "without an outlier the limits are the ends"
    )


@pytest.mark.parametrize("count", [8, 9, 20, 100, 5000])
def test_an_even_rise_has_no_outlier(count):
    assert usual_range(Column(range(count), range(count)), 0, count) == (0, count - 1)


def test_of_few_values_none_is_an_outlier():
    assert usual_range(Column(range(7), [0, 0, 0, 0, 0, 0, 99]), 0, 9) == (0, 99)
    assert usual_range(Column([], []), 0, 9) is None


@given(st.lists(st.floats(), max_size=60), st.booleans())
def test_limits_lie_within_the_values(values, positive):
    points = Column(range(len(values)), values)
    whole = value_range(points, 0, 60, positive=positive)
    usual = usual_range(points, 0, 60, positive=positive)
    assert (whole is None) == (usual is None)
    if whole is not None:
        assert whole[0] <= usual[0] <= usual[1] <= whole[1]
        assert all(map(isfinite, usual))


def test_values_above_zero_are_those_between_the_steps_alone():
    points = Column(range(300), [-1.0] * 200 + [0.5] * 50 + [2.0] * 50)
    assert value_range(points, 0, 199, positive=True) is None
    assert value_range(points, 0, 249, positive=True) == (0.5, 0.5)
    assert value_range(points, 0, 299, positive=True) == (0.5, 2.0)


def test_limits_on_a_logarithmic_axis_count_decades():
    points = Column(range(100), [10.0 ** (i % 3) for i in range(99)] + [1e9])
    low, high = usual_range(points, 0, 100, positive=True)
    assert low == 1
    assert 100 < high < 1000


# -- arrows ----------------------------------------------------------------------------------------


def test_the_edge_of_an_axis_is_not_beyond_it():
    assert [
        Scale(0.1, 0.3).beyond(value)
        for value in (0.1, 0.3, 0.1 + 0.2, 0.31, 0.09, 1e308, -1e308)
    ] == [
        *(0, 0, 0),
        *(1, -1, 1, -1),
    ]
    assert [
        Scale(1, 100, log=True).beyond(value) for value in (1, 100, 101, 0.9, 0, -5)
    ] == [
        0,
        0,
        1,
        -1,
        -1,
        -1,
    ]


def test_outliers_are_arrows_at_the_edge_of_the_small_chart():
    points = wave(s100=1000.0, s101=1001.0, s250=-1000.0)
    drawn = rows(chart_of(points, usual_y=True))
    assert drawn[1].count("↑") == 1
    assert drawn[-3].count("↓") == 1
    assert not any(sign in "".join(drawn[2:-3]) for sign in "↑↓")
    whole = rows(chart_of(points))
    assert not any(sign in "".join(whole[1:]) for sign in "↑↓")
    assert whole[1].lstrip().startswith("1.5k┤")


def test_outliers_of_points_and_envelopes_are_arrows_too():
    points = Column(range(100), [0.5] * 98 + [7.0, 0.5])
    line = ChartLine(Column(range(100), [0.4 + i / 1000 for i in range(100)]))
    drawn = rows(
        chart_of(
            points,
            lines=(line, ChartLine(points, "points", "validation")),
            usual_y=True,
        )
    )
    assert "↑" in drawn[1]
    drawn = rows(
        chart_of(points, lines=(line,), envelope=(line.points, points), usual_y=True)
    )
    assert "↑" in drawn[1]
    plain = rows(
        chart_of(
            points,
            lines=(line, ChartLine(points, "points", "validation")),
            usual_y=True,
        ),
        ascii_only=True,
    )
    assert "^" in plain[1]


def test_shading_is_left_out_where_it_would_be_taken_for_the_curve():
    line = ChartLine(Column(range(100), [0.5] * 100))
    wide = Column(range(100), [9.0 + i / 100 for i in range(100)])
    chart = chart_of(line.points, lines=(line,), envelope=(line.points, wide))
    bare = chart_of(line.points, lines=(line,))
    assert rows(chart) != rows(bare)
    assert rows(chart, ascii_only=True) == rows(bare, ascii_only=True)
    assert rows(chart, height=6) == rows(bare, height=6)


def test_points_close_together_leave_the_curve_in_sight():
    line = ChartLine(Column(range(100), [0.5 + i % 2 / 10 for i in range(100)]))
    points = ChartLine(
        Column(range(100), [0.5 + i % 3 / 10 for i in range(100)]),
        "points",
        "validation",
    )
    drawn = "".join(rows(chart_of(line.points, lines=(line, points)), width=60)[1:-2])
    signs = sum(c in "◆◇" for c in drawn)
    assert 8 <= signs <= 60
    assert sum("\u2800" < c <= "\u28ff" for c in drawn) > signs


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=300),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0.0, 0.9]),
)
@example(values=[0.0] * 7 + [2.0], usual=True, log=False, smoothing=0.0)
@example(values=[0.0] * 7 + [-2.0], usual=True, log=False, smoothing=0.0)
def test_no_spike_is_hidden(values, usual, log, smoothing):
    """Whatever the limits, the greatest value is drawn in its column: as dots, or as an arrow."""
    data = chart_of(
        Column(range(len(values)), values),
        usual_y=usual,
        log_y=log,
        smoothing=smoothing,
    )
    drawing = ChartRenderer()
    drawn = ["".join(text for text, _ in row) for row in drawing.rows(data, 60, 12)]
    top = drawing.window.column(values.index(max(values))) // 2 + drawing.left
    assert any(row[top] != " " for row in drawn[1:10])
    scale = drawing.cache.scale(data, 0, len(values) - 1)
    if scale.beyond(max(values)) > 0:
        assert drawn[1][top] == "↑"
    if scale.beyond(min(values)) < 0:
        low = drawing.window.column(values.index(min(values))) // 2 + drawing.left
        assert drawn[9][low] == "↓"


async def test_outliers_are_arrows_at_the_edge_of_the_large_chart():
    points = wave(s100=1000.0, s250=-1000.0)
    app = Screen(ZoomedChart(chart_of(points, usual_y=True)))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        lines = app.lines
        assert [
            number for number, line in enumerate(lines) if "↑" in line[1:] and number
        ] == [2]
        assert sum(line.count("↓") for line in lines[1:]) == 1
        app.chart.show(chart_of(points))
        assert not any(sign in "".join(app.lines[1:]) for sign in "↑↓")


# -- windows of the past ---------------------------------------------------------------------------


@given(st.integers(-(10**6), 10**6), st.integers(0, 10**6), st.integers(1, 500))
def test_a_filled_window_is_full(first, length, columns):
    last = first + length
    window = fill_window(first, last, columns)
    assert window.start == first
    assert window.column(first) == 0
    assert window.column(last) == max(2, columns) - 1 or length == 0
    assert window.end - last < window.per
    places = [window.column(step) for step in range(first, min(last, first + 300) + 1)]
    assert places == sorted(places)
    for column in {*places}:
        step = window.step(column)
        assert window.column(step) == column


@pytest.mark.parametrize("widget", [Chart, ZoomedChart])
async def test_a_zoom_into_the_past_shows_its_steps_from_side_to_side(widget):
    app = Screen(widget(chart_of(wave(1000), first_step=203, last_step=311)))
    async with app.run_test(size=(90, 24)) as pilot:
        await pilot.press("tab", "home")
        window, left = app.chart.plot_area()
        assert window.start == 203
        assert window.column(311) == window.columns - 1
        assert app.chart.cursor == 203
        await pilot.press("end", "right")
        assert app.chart.cursor > 311, "the reader may go on"
        assert left


def test_a_zoom_has_a_y_axis_of_its_own():
    points = wave(1000, s900=50.0)
    drawing = ChartRenderer()
    assert drawing.rows(chart_of(points), 60, 12)
    assert drawing.cache.scale(chart_of(points), 0, 999).hi >= 50
    near = chart_of(points, first_step=100, last_step=200)
    assert drawing.cache.scale(near, 100, 200).hi <= 2


# -- smoothing -------------------------------------------------------------------------------------


def tensorboard(values, weight):
    """Return what TensorBoard draws, as its frontend reckons: `vz_line_chart2/line-chart.ts`,
    resmoothDataset.
    """
    last, count, out = 0.0, 0, []
    for value in values:
        if not isfinite(value):
            out.append(nan)
            continue
        last = last * weight + (1 - weight) * value
        count += 1
        out.append(last / (1 - weight**count))
    return out


@pytest.mark.parametrize("weight", [0.6, 0.9, 0.97])
@pytest.mark.parametrize("pieces", [[3000], [1, 1, 1, 2000, 5, 992], [50] * 60])
def test_smoothing_is_that_of_tensorboard(weight, pieces):
    values = [((i * 37) % 101) / 10 - 3 for i in range(3000)]
    values[7] = values[1500] = nan
    values[2900] = inf
    points, steps = Column([], []), 0
    smoothed = Smoothed(points, weight)
    for piece in pieces:
        for i in range(steps, steps + piece):
            points.add(i * i, values[i])  # uneven steps count as one each, as there
        steps += piece
        assert smoothed.pyramid.seen == steps
    wanted = tensorboard(values, weight)
    for got, want in zip(smoothed.values, wanted, strict=True):
        assert isnan(got) == isnan(want)
        assert isnan(got) or got == pytest.approx(want, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("weight", [0.6, 0.97])
def test_a_last_value_that_was_replaced_is_smoothed_anew(weight):
    points = Column(range(2000), [i % 7 for i in range(2000)])
    smoothed = Smoothed(points, weight)
    assert smoothed.pyramid.seen == 2000
    points.values[-1] = 100.0
    points.pyramid.rebuild()
    points.add(2000, 5.0)
    assert smoothed.pyramid.seen == 2001
    assert list(smoothed.values) == pytest.approx(
        tensorboard(points.values, weight), rel=1e-12
    )


async def test_the_raw_line_stays_behind_the_smooth_one_in_both_widgets():
    data = chart_of(Column(range(300), [i % 2 for i in range(300)]), smoothing=0.9)
    roles = {role for row in ChartRenderer().rows(data, 80, 16) for _, role in row}
    assert {"raw", "line"} <= roles
    app = Screen(ZoomedChart(data))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        assert {"raw", "line"} <= {role for row in app.chart.rows for _, role in row}


# -- two y axes ------------------------------------------------------------------------------------


def both(points=None, **changes):
    kl = Column(range(400), [0.0001 * (i % 50) for i in range(400)])
    line = ChartLine(kl, role="right", right=True, label="policy KL")
    other = ChartData("actor/ppo_kl", "policy KL", unit="nats", lines=(line,))
    marks = (Mark(30, "breach"), Mark(50, "restart"))
    return chart_of(points or wave(s100=900.0), right=other, marks=marks, **changes)


@pytest.mark.parametrize("ascii_only", [False, True])
@pytest.mark.parametrize(("width", "height"), SIZES)
def test_two_axes_fill_every_size(width, height, ascii_only):
    changed = both(log_y=True, usual_y=True, smoothing=0.6)
    for data in (
        both(),
        changed,
        both(Column([], [])),
        both(first_step=5, last_step=9),
    ):
        drawn = rows(data, width, height, ascii_only=ascii_only)
        assert len(drawn) == height
        assert all(len(row) <= width for row in drawn)


def test_each_line_has_the_axis_of_its_unit():
    drawing = ChartRenderer()
    drawn = ["".join(text for text, _ in row) for row in drawing.rows(both(), 80, 16)]
    assert drawn[1].lstrip().startswith("1k┤")
    assert drawn[1].endswith("├0.005")
    assert "right" in drawn[0]
    assert {"a", "b"} <= {glyph for row in drawn[1:] for glyph in row}


async def test_two_axes_in_the_large_chart():
    app = Screen(ZoomedChart(both(cursor=40)))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        lines = app.lines
        assert any(line.rstrip().endswith(("├0.002", "┼0.002")) for line in lines)
        assert any(line.lstrip().startswith("1k┼") for line in lines)
        assert all(len(line) == 100 for line in lines)
        labelled = dict(app.chart.cursor_values())
        assert labelled["step"] == "40"
        assert labelled["a loss"] == "0.5"
        assert labelled["b policy KL"] == "0.004 nats"


async def test_a_second_axis_comes_and_goes():
    app = Screen(ZoomedChart(both()))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        two = app.lines
        app.chart.show(both()._replace(right=None))
        one = app.lines
        assert not any("0.002" in line for line in one)
        app.chart.show(both())
        assert app.lines == two


# -- readings --------------------------------------------------------------------------------------


def test_everything_in_a_chart_is_read():
    points = wave()
    validation = ChartLine(
        Column([0, 200], [0.25, 0.75]), "points", "validation", "gsm8k"
    )
    data = both(points, envelope=(points, points), smoothing=0.6)
    data = data._replace(lines=(*data.lines, validation))
    labelled = [str(one) for one in cursor_values(data, 210, UNICODE, ChartCache())]
    assert labelled[0] == "step 210"
    assert labelled[1].startswith("a loss 0.625 (smooth 0.")
    assert labelled[2] == "◆ gsm8k 0.75 @ 200"
    assert labelled[3].startswith("b policy KL 0.001 nats (smooth ")
    assert labelled[4] == "min 0.625 max 0.625"
    assert str(cursor_values(data, -5, UNICODE, ChartCache())[1]) == "a loss -"


@given(
    st.lists(st.text(max_size=30), min_size=1, max_size=9),
    st.integers(1, 90),
    st.integers(1, 5),
)
def test_readings_fit(names, width, most):
    rows = rows_of([CursorValue(name.strip(), "1.5") for name in names], width, most)
    assert 1 <= len(rows) <= most


def test_what_does_not_fit_says_so():
    labelled = [CursorValue(f"metric {number}", "0.123") for number in range(9)]
    assert rows_of(labelled, 40, 9)[0] == "metric 0 0.123   metric 1 0.123"
    assert len(rows_of(labelled, 40, 9)) == 5
    short = rows_of(labelled, 40, 2)
    assert len(short) == 2
    assert short[1].endswith(" …")
    assert rows_of(labelled, 6, 1) == ["metr …"] or rows_of(labelled, 6, 1)[0].endswith(
        "…"
    )


def test_names_have_the_room_there_is():
    name = "openai/gsm8k/reward/mean@1"
    labelled = [
        CursorValue("step", "297"),
        CursorValue("reward", "0.7"),
        CursorValue(f"◆ {name}", "0.75 @ 290"),
    ]
    assert rows_of(labelled, 80, 9) == [f"step 297   reward 0.7   ◆ {name} 0.75 @ 290"]
    (row,) = rows_of(labelled, 61, 9)
    assert "0.75 @ 290" in row
    assert "…" in row
    assert len(row) == 61, "cut no shorter than it must be"
    assert len(rows_of(labelled, 40, 9)) == 2


def test_of_a_moment_step_and_time_are_read():
    axis = Axis("time", time=True, exact=lambda second: f"{second}s")
    data = both()._replace(axis=axis)
    assert (
        str(cursor_values(data, 210, UNICODE, ChartCache(), at=7)[0]) == "step 7 · 210s"
    )
    assert str(cursor_values(data, 210, ASCII, ChartCache(), at=7)[0]) == "step 7, 210s"
    assert str(cursor_values(data, 210, UNICODE, ChartCache())[0]) == "210s"


async def test_the_cursor_is_drawn_over_the_large_chart_without_drawing_it_again(
    monkeypatch,
):
    drawn = []
    draw = plotext_chart.PlotextChart.draw
    monkeypatch.setattr(
        plotext_chart.PlotextChart, "draw", lambda *args: drawn.append(1) or draw(*args)
    )
    app = Screen(ZoomedChart(both()))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("tab", "home", "right", "right")
        assert len(drawn) == 1
        assert any("┃" in line for line in app.lines)
        await pilot.press("escape")
        assert not any("┃" in line for line in app.lines)
