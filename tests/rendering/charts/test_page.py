"""The page of charts: how many fit, which they are, and what its caption says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from run_views import NOW, make_run

from verl_tui.config import Config
from verl_tui.monitor import Monitor
from verl_tui.records import Batch, MetricRows, SourceStatus
from verl_tui.rendering.charts.page import ChartFilter, ChartPage, PageContent
from verl_tui.rendering.charts.plan import ChartLook, PlannedChart, plan_charts
from verl_tui.rendering.session.snapshot import View
from verl_tui.runs.run import Run

CHARTS = tuple(PlannedChart(f"key/{number}", f"label {number}") for number in range(30))


@pytest.mark.parametrize(
    ("size", "count", "grid"),
    [
        ((118, 38), 7, (3, 7)),
        ((118, 38), 30, (3, 15)),
        ((76, 12), 30, (2, 4)),
        ((38, 3), 30, (1, 3)),
        ((120, 3), 30, (3, 9)),
        ((0, 0), 30, (1, 1)),
        ((118, 38), 0, (1, 1)),
    ],
)
def test_as_many_charts_as_fit(
    size: tuple[int, int], count: int, grid: tuple[int, int]
) -> None:
    assert ChartPage(CHARTS[:count]).fitted(*size, None).grid == grid


@given(st.integers(0, 200), st.integers(0, 60), st.integers(0, 29), st.integers(0, 40))
def test_a_revealed_metric_is_on_the_page_at_every_size(
    width: int, height: int, revealed: int, first: int
) -> None:
    page = ChartPage(CHARTS, first).fitted(width, height, CHARTS[revealed].key)
    slot = page.slot(CHARTS[revealed].key)
    assert slot is not None
    assert page.charts[slot] is CHARTS[revealed]
    assert page.fitted(width, height, None) == page


@given(
    st.integers(0, 200),
    st.integers(0, 60),
    st.lists(st.sampled_from([-1, 1]), max_size=60),
)
def test_pages_turn_within_the_list(width: int, height: int, ways: list[int]) -> None:
    page = ChartPage(CHARTS).fitted(width, height, None)
    for way in ways:
        page = page.turned(way)
        assert page.charts
        assert page.first % page.slots == 0


def test_the_clock_changes_the_page_only_where_it_says_how_old_files_are() -> None:
    def content(run: Run, now: float) -> PageContent:
        return PageContent.of(
            View(Monitor(Config()), run, now), ChartLook(), ChartFilter()
        )

    events = SourceStatus(
        "events.out", "TensorBoard events", size=9, bytes_read=9, modified=NOW
    )
    fresh = Run("fresh")
    fresh.apply(Batch("fresh", events), NOW)
    assert "written just now" in content(fresh, NOW).instead
    assert "written 2m ago" in content(fresh, NOW + 120).instead
    under_way = make_run()
    assert content(under_way, NOW) == content(under_way, NOW + 120)


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
