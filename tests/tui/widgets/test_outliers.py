"""Y axes without outliers, windows of the past, smoothing, two y axes, and what the cursor reads:
in both widgets.
"""

from __future__ import annotations

from math import inf, isfinite, isnan, nan

import pytest
from chart_columns import Column
from hypothesis import example, given
from hypothesis import strategies as st

from verl_tui.rendering.charts.chart_data import ChartData, ChartLine
from verl_tui.rendering.charts.downsample import Smoothed, value_range
from verl_tui.rendering.charts.renderer import ChartRenderer
from verl_tui.rendering.text.piece import text_of


def wave(count=400, **spikes):
    values = [0.5 + (i % 40) / 80 for i in range(count)]
    for at, value in spikes.items():
        values[int(at[1:])] = value
    return Column(range(count), values)


def chart_of(points, **changes):
    return ChartData(
        "actor/loss", "loss", lines=(ChartLine(points, label="loss"),)
    )._replace(**changes)


def rows(data, width=80, height=16, **more):
    drawing = ChartRenderer(**more)
    return [*map(text_of, drawing.rows(data, width, height))]


# -- limits ----------------------------------------------------------------------------------------


def test_a_spike_does_not_set_the_limits():
    points = wave(s100=1000.0, s250=-1000.0)
    low, high = value_range(points, 0, 399, usual=True)
    assert 0.3 < low <= 0.5
    assert 0.9 < high < 1.3
    assert value_range(points, 0, 99, usual=True) == value_range(points, 0, 99), (
        "without an outlier the limits are the ends"
    )


# -- arrows ----------------------------------------------------------------------------------------


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
    drawn = [*map(text_of, drawing.rows(data, 60, 12))]
    top = drawing.window.column(values.index(max(values))) // 2 + drawing.left
    assert any(row[top] != " " for row in drawn[1:10])
    scale = drawing.scale(data, (0, len(values) - 1))
    if scale.beyond(max(values)) > 0:
        assert drawn[1][top] == "↑"
    if scale.beyond(min(values)) < 0:
        low = drawing.window.column(values.index(min(values))) // 2 + drawing.left
        assert drawn[9][low] == "↓"


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
        smoothed.catch_up(points)
        assert len(smoothed.values) == steps
    wanted = tensorboard(values, weight)
    for got, want in zip(smoothed.values, wanted, strict=True):
        assert isnan(got) == isnan(want)
        assert isnan(got) or got == pytest.approx(want, rel=1e-12, abs=1e-12)
