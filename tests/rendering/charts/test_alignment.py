"""Charts below each other line up: one x axis, and numbers of one width at their left."""

from __future__ import annotations

from chart_columns import Column
from hypothesis import given
from hypothesis import strategies as st

from verl_tui.rendering.charts.chart_data import ChartData, ChartLine, lined_up
from verl_tui.rendering.charts.renderer import ChartRenderer


def chart(steps: list[int], scale: float = 1.0, key: str = "m") -> ChartData:
    """Return a chart of a metric that rises."""
    values = [scale * n for n in range(len(steps))]
    return ChartData(key, lines=(ChartLine(Column(steps, values)),))


@given(
    st.lists(
        st.lists(st.integers(0, 5000), min_size=1, max_size=40, unique=True).map(
            lambda steps: sorted({*steps, 0, 5000} if len(steps) > 5 else steps)
        ),
        min_size=1,
        max_size=5,
    ),
    st.integers(24, 100),
    st.integers(6, 20),
)
def test_all_charts_show_what_any_of_them_shows(
    series: list[list[int]], width: int, height: int
) -> None:
    charts = [chart(steps, 10.0**n) for n, steps in enumerate(series)]
    aligned = lined_up(charts)
    whole = min(one[0] for one in series), max(one[-1] for one in series)
    drawings = [ChartRenderer() for _ in aligned]
    for drawing, one in zip(drawings, aligned, strict=True):
        assert one.shown == whole
        drawing.rows(one, width, height)
    assert len({(drawing.left, drawing.window) for drawing in drawings}) == 1
