"""What is said of a series: its trend, whether two share a y axis, its newest and best."""

from __future__ import annotations

import math

import pytest
from chart_columns import Column
from run_views import make_run

from verl_tui.rendering.charts.chart_data import ChartData, ChartLine
from verl_tui.rendering.charts.downsample import trend
from verl_tui.rendering.charts.plan import newest_and_best, on_one_scale
from verl_tui.rendering.charts.title_row import chart_row
from verl_tui.rendering.text.piece import text_of

NOISY_RISE = [0.0] * 12 + [0.04, 0.1, 0.0, 0.12, 0.25, 0.17, 0.26, 0.17, 0.17, 0.21]
CREEPING = [0.03 + 0.0002 * at for at in range(40)]


@pytest.mark.parametrize(
    ("values", "drawn", "way"),
    [
        (CREEPING, None, 1),
        (CREEPING, (0.0, 0.05), 1),
        pytest.param(CREEPING, (0.0, 4.7), 0, id="too little to be seen"),
        ([4.7 - value for value in CREEPING], (0.0, 4.7), 0),
        pytest.param([0.7] * 34 + [0.1] * 6, None, -1, id="a collapse at the end"),
        pytest.param([0.7] * 39 + [0.1], None, 0, id="one value turns nothing"),
        pytest.param([0.0] * 15 + [0.2] * 9 + [0.0] * 6, None, -1, id="rose, and fell to 0"),
        pytest.param([*range(30), *range(29, 19, -1)], None, -1, id="falls from its peak"),
        pytest.param([*range(8), 7, 6.5, 6, 5.5], None, 0, id="a peak of few values"),
        pytest.param([*range(9), 7, 6, 5, 4, 3], None, -1, id="falls, of few values"),
        pytest.param([0.9] * 10 + [0.2, 0.3, 0.4, 0.5, 0.6, 0.7], None, 1, id="recovers"),
        pytest.param(NOISY_RISE, None, 0, id="level, then a noisy rise: no fall"),
        pytest.param([120.0, 122.0] * 14 + [180.0] * 7 + [177.0] * 5, (0.0, 1400.0), 1, id="a step up, held"),
        pytest.param([0.1, 0.2, 0.3], None, None, id="too few"),
    ],
)  # fmt: skip
def test_an_arrow_says_where_the_last_values_go(values, drawn, way):
    assert trend([float(one) for one in values], drawn) == way


SCORE = "val-core/math/acc/mean@1"


def column(values):
    return Column(range(len(values)), values)


@pytest.mark.parametrize(
    ("reward", "score", "together"),
    [
        ([0.1, 0.7], [0.6, 0.65], True),
        ([-1.0, 1.0], [0.0, 0.4], True),
        ([0.02, 0.05], [0.3, 0.5], True),
        ([0.0001, 0.001], [0.3, 0.5], False),
        ([-5.0, 5.0], [0.0, 1.0], False),
        ([0.0, 0.9], [20.0, 70.0], False),
        ([-400.0, -150.0], [-380.0, -200.0], True),
        ([0.0, 2.0], [0.2, 0.9], True),
        ([0.0, 0.0], [0.2, 0.9], True),
        ([math.nan], [0.2], True),
        ([], [], True),
        ([math.inf, 0.5], [0.2], True),
    ],
)
def test_what_is_of_about_the_same_size_shares_an_axis(reward, score, *, together):
    assert on_one_scale(column(reward), column(score)) is together
    assert on_one_scale(column(score), column(reward)) is together


def scored(values, **more):
    return make_run(steps=len(values), columns={SCORE: values, **more})


def test_newest_and_best_are_reported_with_the_best_ones_step():
    assert newest_and_best(scored([0.2, 0.706, 0.697])) == "val 0.697, best 0.706 @2"
    assert newest_and_best(scored([0.2, 0.706])) == "val 0.706, best so far"
    assert newest_and_best(scored([0.2])) == "val 0.2"
    assert newest_and_best(make_run(steps=3)) == ""


def test_a_row_has_the_whole_name_and_in_forty_cells_the_score():
    lines = (ChartLine(column([0.1, 0.9] * 9)), ChartLine(column([0.4, 0.5]), "points"))
    data = ChartData("r", label="response length", lines=lines, beside="val 0.499")
    for width, score in ((38, False), (40, True), (60, True)):
        row = text_of(chart_row(data, width, None))
        assert row.startswith("response length "), row
        assert ("val 0.499" in row) is score, row
        assert len(row) == width
