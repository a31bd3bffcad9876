"""How much a curve is smoothed by itself, and that it is said."""

from __future__ import annotations

import random
import re
from math import nan, sin

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_braille import Column

from verl_tui.rendering.charts.chart_data import ChartData, ChartLine
from verl_tui.rendering.charts.noise import WEIGHTS, weight_for
from verl_tui.rendering.charts.renderer import ChartRenderer


def noisy(share: float, count: int = 1000) -> list[float]:
    """Return a rise from 0 to 1 with so much noise."""
    chance = random.Random(7)
    return [i / count + chance.gauss(0, share) for i in range(count)]


@pytest.mark.parametrize(
    ("noise", "weight"), [(0.0, 0.0), (0.01, 0.0), (0.06, 0.6), (0.2, 0.9), (5.0, 0.97)]
)
def test_the_noisier_the_smoother(noise, weight):
    assert weight_for(noisy(noise)) == weight


def test_clean_curves_stay_as_they_are():
    assert weight_for([sin(i / 50) for i in range(1000)]) == 0.0
    assert weight_for([3.0] * 1000) == 0.0
    assert weight_for([float(i == 500) for i in range(1000)]) == 0.0, (
        "a spike is no noise"
    )


def test_short_curves_are_not_smoothed_away():
    assert weight_for(noisy(5.0, 20)) == 0.0
    assert weight_for(noisy(5.0, 100)) == 0.6
    assert weight_for(noisy(5.0, 200)) == 0.9


def test_smoothing_is_said_rather_than_the_unit():
    title = drawn(DATA._replace(label="throughput of tokens", unit="tokens/s/GPU"))[0]
    assert any(text.startswith("~") for text, _ in title)


@given(st.lists(st.floats(), max_size=200))
def test_any_numbers_have_a_weight(values):
    assert weight_for(values) in (0.0, *WEIGHTS)


def drawn(data: ChartData, width: int = 40):
    return ChartRenderer().rows(data, width, 12)


def styles(rows) -> set[str]:
    return {style for row in rows for _, style in row}


DATA = ChartData(
    "kl", lines=(ChartLine(Column(range(1000), noisy(0.5))),), by_noise=True
)


def test_what_is_smoothed_says_so_and_hides_nothing():
    rows = drawn(DATA)
    assert {"line", "raw"} <= styles(rows)
    assert any("0.9" in text and style == "key" for text, style in rows[0])
    assert "raw" not in styles(drawn(DATA._replace(by_noise=False)))


def test_the_title_tells_the_value_as_it_is():
    smooth = drawn(DATA)[0]
    raw = drawn(DATA._replace(by_noise=False))[0]
    values = [
        [text for text, style in row if style == "value"] for row in (smooth, raw)
    ]
    assert values[0] == values[1]


def test_curves_are_smoothed_where_points_are_denser_than_columns():
    assert "raw" in styles(drawn(DATA, 900))
    assert "raw" not in styles(drawn(DATA, 1000))
    zoomed = DATA._replace(first_step=930, last_step=950)
    assert "raw" not in styles(drawn(zoomed))


def runs_over_each_other(**more):
    rough = ChartLine(
        Column(range(1000), noisy(0.5)), role="run-1", sign="A", label="a"
    )
    higher = [value + 3 for value in noisy(0.5)]
    other = ChartLine(Column(range(1000), higher), role="run-2", sign="B", label="b")
    return DATA._replace(lines=(rough, other), **more)


def test_runs_over_each_other_are_smoothed_as_the_shown_one_and_hide_nothing():
    rows = drawn(runs_over_each_other())
    assert {"run-1", "run-1-raw", "run-2", "run-2-raw"} <= styles(rows)
    title = "".join(text for text, _ in rows[0])
    alone = "".join(text for text, _ in drawn(DATA)[0])
    word = re.search(r"smoothed 0\.\d+", alone)
    assert word is not None
    assert word[0] in title
    assert "A a" in title
    assert "B b" in title


def test_two_metrics_with_an_axis_each_are_not_smoothed():
    right = DATA._replace(lines=(DATA.lines[0]._replace(role="right", right=True),))
    assert "raw" not in styles(drawn(DATA._replace(right=right)))


def test_a_new_point_does_not_change_the_smoothing():
    points = Column(range(600), noisy(0.3)[:600])
    data = DATA._replace(lines=(ChartLine(points),))
    drawing = ChartRenderer()
    before = drawing.rows(data, 40, 12)[0][-1]
    points.steps.append(600)
    points.values.append(nan)
    assert drawing.rows(data, 40, 12)[0][-1] == before
