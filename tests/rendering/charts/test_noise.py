"""How much a curve is smoothed by itself, and that it is said."""

from __future__ import annotations

import random

import pytest
from chart_columns import Column

from verl_tui.rendering.charts.chart_data import ChartData, ChartLine
from verl_tui.rendering.charts.downsample import weight_for
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
