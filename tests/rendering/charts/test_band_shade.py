"""The healthy band behind a plot."""

from __future__ import annotations

from chart_columns import Column

from verl_tui.rendering.charts.chart_data import ChartData, ChartLine
from verl_tui.rendering.charts.renderer import ChartRenderer


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
        if any(style.endswith("+healthy") for _, style in row)
    ]
    assert on == [*range(on[0], 10)]
    assert 4 <= len(on) <= 5
    assert all(sum(len(text) for text, _ in row) == 60 for row in shaded[1:])
    without = drawing.rows(data._replace(band=(None, None)), 60, 12)
    assert not any(style.endswith("+healthy") for row in without for _, style in row)
