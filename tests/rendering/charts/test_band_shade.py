"""The healthy band behind a plot."""

from __future__ import annotations

from math import inf

import pytest
from test_braille import Column

from verl_tui.rendering.charts.alarms import Healthy
from verl_tui.rendering.charts.band_shade import ON_BAND, on_band, rows_in_band
from verl_tui.rendering.charts.chart_data import ChartData, ChartLine
from verl_tui.rendering.charts.renderer import ChartRenderer


@pytest.mark.parametrize(
    ("healthy", "rows"),
    [
        ((-inf, inf), []),
        ((8, inf), [2, 3, 4]),
        ((9, inf), [2, 3, 4]),
        ((11, inf), [3, 4]),
        ((-inf, 5), [0, 1]),
        ((-inf, 4), [0]),
        ((5, 6), [1]),
        ((20, inf), []),
        ((-inf, -1), []),
    ],
)
def test_rows_are_in_the_band_with_half_of_their_dots(healthy, rows):
    assert [*rows_in_band(Healthy(*healthy), 5)] == rows


def test_a_part_of_a_row_is_shaded():
    row = (("abc", "axis"), ("de", "line"), ("f", "axis"))
    assert on_band(row, 2, 5) == (
        ("ab", "axis"),
        ("c", "axis" + ON_BAND),
        ("de", "line" + ON_BAND),
        ("f", "axis"),
    )


def test_the_band_is_a_shade_where_there_are_backgrounds_and_else_lines():
    points = Column(range(50), [i / 50 for i in range(50)])
    data = ChartData("kl", lines=(ChartLine(points),), band=(None, 0.5))
    drawing = ChartRenderer()
    dotted = drawing.rows(data, 60, 12)
    drawing.shades = True
    shaded = drawing.rows(data, 60, 12)
    assert {style for row in dotted for _, style in row} >= {"band", "line"}
    assert not any(style == "band" for row in shaded for _, style in row)
    on = [
        y
        for y, row in enumerate(shaded)
        if any(style.endswith(ON_BAND) for _, style in row)
    ]
    assert on == [*range(on[0], 10)]
    assert 4 <= len(on) <= 5
    assert all(sum(len(text) for text, _ in row) == 60 for row in shaded[1:])
    without = drawing.rows(data._replace(band=(None, None)), 60, 12)
    assert not any(style.endswith(ON_BAND) for row in without for _, style in row)
