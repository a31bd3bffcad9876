"""What needs no chart is a row below the charts: constants, single points, counters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from run_views import NOW, make_run, make_view

from verl_tui.records import Batch, MetricRows, SourceStatus
from verl_tui.rendering.charts.page import ChartFilter, ChartPage, list_charts
from verl_tui.rendering.charts.plan import ChartLook, PlannedChart
from verl_tui.rendering.charts.planned_data import chart_data
from verl_tui.rendering.charts.renderer import ChartRenderer

if TYPE_CHECKING:
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.runs.run import Run

LR, ENTROPY, CLIP = "actor/lr", "actor/entropy", "actor/pg_clipfrac"


def run_of(name: str = "grpo", lr: float = 1e-6, steps: int = 20) -> Run:
    columns = {
        LR: [lr] * steps,
        CLIP: [0.0] * steps,
        ENTROPY: [0.1 * (n % 5) for n in range(steps)],
    }
    return make_run(name, steps=steps, columns=columns)


def view_of(*runs: Run, charts: tuple[str, ...] = (), **more: object) -> View:
    view = make_view(*runs, **more)
    view.monitor.config = type("Config", (), {"charts": charts, "targets": {}})()
    return view


def listed(
    view: View, text: str = "", revealed: str | None = None
) -> list[tuple[str, bool]]:
    found = list_charts(view, ChartFilter(text), revealed)
    return [(one.key, one.in_row) for one in found]


REWARD = ("critic/score/mean", False)


def test_what_is_constant_comes_last() -> None:
    assert listed(view_of(run_of())) == [
        REWARD,
        (ENTROPY, False),
        (CLIP, True),
        (LR, True),
    ]


FLOS, EPOCH = "total_flos", "train/epoch"


def run_with_counters(flos: float = 1e9) -> Run:
    """Return a run with a metric that has been logged once, and with one that only counts."""
    run = run_of()
    status = SourceStatus("/logs/end", "trainer state")
    end = MetricRows((FLOS, "train_loss"), [20], [[flos], [0.3]], [21], [NOW])
    epochs = MetricRows((EPOCH,), [1, 2, 3], [[0.1, 0.2, 0.3]], [22, 23, 24], [NOW] * 3)
    run.apply(Batch("grpo", status, (end, epochs)), NOW)
    return run


def test_single_points_and_counters_are_rows() -> None:
    run = run_with_counters()
    charts = dict(listed(view_of(run)))
    assert [charts[key] for key in ("train_loss", FLOS, EPOCH)] == [True] * 3
    assert not dict(listed(view_of(run, loading=True)))["train_loss"], (
        "more may come at once"
    )
    assert not dict(listed(view_of(run, pins=(EPOCH,))))[EPOCH]
    assert listed(view_of(run), "epoch") == [(EPOCH, False)], "it was asked for"


@pytest.mark.parametrize(
    ("width", "said"),
    [
        (60, "constant since step 1"),
        (40, "constant since 1"),
        (36, "constant"),
        (20, "1e-06"),
    ],
)
def test_a_row_says_the_value_and_since_when(width: int, said: str) -> None:
    view = view_of(run_of())
    (chart,) = (one for one in list_charts(view, ChartFilter()) if one.key == LR)
    (row,) = ChartRenderer().rows(chart_data(chart, view, ChartLook()), width, 1)
    text = "".join(part for part, _ in row)
    assert text.startswith("learning rate  1e-06")
    assert said in text
    assert len(text) <= width


CHARTS = tuple(PlannedChart(f"key/{number}", f"label {number}") for number in range(30))
CONSTANT = tuple(one._replace(key=f"constant/{one.key}", in_row=True) for one in CHARTS)


@given(
    st.integers(1, 200),
    st.integers(1, 60),
    st.integers(0, 30),
    st.integers(0, 30),
    st.data(),
)
def test_every_chart_is_on_one_page_and_all_fit(
    width: int, height: int, varying: int, constant: int, data: st.DataObject
) -> None:
    charts = CHARTS[:varying] + CONSTANT[:constant]
    page = ChartPage(charts).fitted(width, height, None)
    seen = []
    for _ in page.starts:
        seen += page.charts
        assert len(page.charts) <= page.slots
        tiles = page.tiles(width, height)
        assert len(tiles) == max(1, len(page.charts))
        for chart, tile in zip(page.charts, tiles, strict=False):
            least = 6 if width >= 48 and height >= 6 else 1
            assert tile.height == 1 if chart.in_row else tile.height >= least
            assert tile.x + tile.width <= width
            assert tile.y + tile.height <= height
        cells = [
            (tile.x, y) for tile in tiles for y in range(tile.y, tile.y + tile.height)
        ]
        assert len(cells) == len(set(cells)), "no two in one place"
        page = page.turned(1)
    assert seen == [*charts]
    if charts:
        wanted = data.draw(st.sampled_from(charts))
        assert wanted in page.fitted(width, height, wanted.key).charts
