"""The page of charts: which they are, how many fit, and what needs no chart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st
from run_views import NOW, make_run, make_view

from verl_tui.records import Batch, MetricRows, SourceStatus
from verl_tui.rendering.charts.page import ChartFilter, ChartPage, list_charts
from verl_tui.rendering.charts.plan import PlannedChart, plan_charts
from verl_tui.runs.run import Run

if TYPE_CHECKING:
    from verl_tui.rendering.session.snapshot import View


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


def trained_on(*keys: str) -> Run:
    """Return a run of a few steps with these metrics."""
    run = Run("any")
    rows = MetricRows(keys, [1, 2], [[2.0, 1.0]] * len(keys), [0, 1])
    run.apply(Batch("any", SourceStatus("log", "test"), (rows,)), NOW)
    return run


def test_where_there_are_no_rewards_the_loss_comes_first() -> None:
    tuned = trained_on("train/lr", "train/loss", "timing_s/step", "val/loss")
    assert [one.key for one in plan_charts(tuned, ())][:2] == ["train/loss", "val/loss"]
    preferences = trained_on("grad_norm", "rewards/chosen", "loss")
    assert plan_charts(preferences, ())[0].key == "loss"
    rewarded = trained_on("loss", "kl", "reward")
    assert plan_charts(rewarded, ())[0].key == "reward"
    assert plan_charts(tuned, ("timing_s/step",))[0].key == "timing_s/step"
