"""Charts below each other line up: one x axis, and numbers of one width at their left."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from run_views import make_run, make_view
from test_braille import Column

from verl_tui.rendering.charts.alignment import Gutters, on_one_axis, with_short_names
from verl_tui.rendering.charts.chart_data import ChartData, ChartLine
from verl_tui.rendering.charts.chart_row import sparkline_row
from verl_tui.rendering.charts.page import ChartFilter, ChartPage, list_charts
from verl_tui.rendering.charts.plan import ChartLook
from verl_tui.rendering.charts.planned_data import chart_data
from verl_tui.rendering.charts.ranges import shown_reach
from verl_tui.rendering.charts.renderer import ChartRenderer
from verl_tui.rendering.charts.symbols import UNICODE
from verl_tui.rendering.charts.zoom_window import ZoomSpan


def chart(steps: list[int], scale: float = 1.0, key: str = "m") -> ChartData:
    """Return a chart of a metric that rises."""
    values = [scale * n for n in range(len(steps))]
    return ChartData(key, lines=(ChartLine(Column(steps, values)),))


DENSE = chart([*range(1, 201)])
SPARSE = chart([0, 50, 100, 150], 1e-5)


def axis_columns(data: ChartData, width: int = 60, height: int = 8) -> list[int]:
    """Return the columns of the screen at which an x axis has its ticks."""
    rows = ChartRenderer().rows(data, width, height)
    rule = "".join(text for text, _ in rows[-2])
    return [at for at, sign in enumerate(rule) if sign in "└┬"]


def lined_up(*charts: ChartData, width: int = 60, height: int = 8) -> list[ChartData]:
    """Return charts of one column with axes that line up."""
    aligned = on_one_axis(charts)
    needed = [(0, ChartRenderer().label_cells(one, width, height)) for one in aligned]
    return [one._replace(gutter=Gutters().of(None, needed)[0]) for one in aligned]


def test_ticks_of_charts_below_each_other_stand_in_the_same_columns() -> None:
    apart = axis_columns(DENSE), axis_columns(SPARSE)
    assert apart[0] != apart[1]
    dense, sparse = lined_up(DENSE, SPARSE)
    assert axis_columns(dense) == axis_columns(sparse)
    assert dense.gutter == len("3e-05")


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
    aligned = lined_up(*charts, width=width, height=height)
    whole = min(one[0] for one in series), max(one[-1] for one in series)
    drawings = [ChartRenderer() for _ in aligned]
    for drawing, one in zip(drawings, aligned, strict=True):
        assert shown_reach(one) == whole
        drawing.rows(one, width, height)
    assert len({(drawing.left, drawing.window) for drawing in drawings}) == 1


def test_steps_far_off_squeeze_no_other_chart() -> None:
    charts = [chart([*range(1, 101)], key=f"m{n}") for n in range(3)]
    far = chart([*range(1, 2_000_001, 50_000)], key="env")
    early = chart([0], key="val")
    *near, other = on_one_axis([*charts, early, far])
    assert {shown_reach(one) for one in near} == {(0, 100)}
    assert shown_reach(other) == (1, 1_950_001)
    assert other.notes[0] == "steps 1 to 1950001"
    assert not any(one.notes for one in near)


def test_a_few_points_are_not_squeezed_by_a_long_curve() -> None:
    scores = [chart([0, 100], key=f"val{n}") for n in range(4)]
    shared = on_one_axis([*scores, chart([*range(5000)], key="loss")])
    assert {shown_reach(one) for one in shared} == {(0, 4999)}


def test_a_zoom_stays_what_it_is() -> None:
    zoomed = DENSE._replace(first_step=20, last_step=80)
    (one, other) = on_one_axis([zoomed, SPARSE._replace(first_step=20, last_step=80)])
    assert shown_reach(one) == shown_reach(other) == (20, 80)
    (one, other) = on_one_axis(
        [DENSE._replace(first_step=20), SPARSE._replace(first_step=20)]
    )
    assert shown_reach(one) == shown_reach(other) == (20, 200), (
        "it follows the newest step"
    )


def test_a_chart_without_a_point_has_no_axis() -> None:
    empty = ChartData("none")
    assert [shown_reach(one) for one in on_one_axis([empty, DENSE])] == [None, (1, 200)]
    assert on_one_axis([empty]) == [empty]
    assert on_one_axis([]) == []


def test_a_new_step_moves_no_tick() -> None:
    columns = []
    for last in (201, 202, 207):
        grown = chart([*range(1, last + 1)])
        columns.append(axis_columns(lined_up(grown, SPARSE)[1]))
    assert columns == [columns[0]] * 3


def test_a_column_only_gets_wider() -> None:
    gutters = Gutters()
    assert gutters.of("run", [(0, 3), (1, 5), (0, 4)]) == {0: 4, 1: 5}
    assert gutters.of("run", [(0, 2), (1, 6)]) == {0: 4, 1: 6}
    assert gutters.of("another", [(0, 2)]) == {0: 2}


@pytest.mark.parametrize("span", [None, ZoomSpan(30, 60)])
def test_the_charts_of_a_run_show_the_same_steps(span: ZoomSpan | None) -> None:
    names = ("actor/ppo_kl", "actor/entropy", "timing_s/gen")
    run = make_run(
        steps=120, columns={key: [0.1 + n % 7 for n in range(120)] for key in names}
    )
    view = make_view(run)
    view.monitor.config = type("Config", (), {"charts": (), "targets": {}})()
    page = ChartPage(list_charts(view, ChartFilter())).fitted(120, 30, None)
    data = on_one_axis(
        [chart_data(plan, view, ChartLook(span=span)) for plan in page.charts]
    )
    assert len(data) == 4
    assert len({shown_reach(one) for one in data}) == 1


def test_sparklines_below_each_other_are_as_long_and_over_the_same_steps() -> None:
    dense, sparse, late = on_one_axis([DENSE, SPARSE, chart([150, 175, 200])])
    rows = [
        "".join(text for text, _ in sparkline_row(one, 40, UNICODE))
        for one in (dense, sparse, late)
    ]
    ends = [len(row.rstrip()) for row in rows]
    assert ends[0] == ends[2] == 26, "eight steps a column"
    assert " " not in rows[1][: 150 // 8], "between points the last one is repeated"
    assert rows[1].rstrip() == rows[1][: 200 // 8 + 1]
    assert rows[2][: 150 // 8].strip() == ""


def test_names_in_rows_differ() -> None:
    charts = [
        DENSE._replace(key=f"perf/{end}", label="step time") for end in ("step", "wall")
    ]
    charts += [DENSE._replace(key="other", label="entropy")]
    named = with_short_names(charts, [38, 39, 38], ascii_only=False)
    assert [one.short for one in named] == ["perf/step", "perf/wall", "entropy"]
    assert with_short_names([], [], ascii_only=False) == []
