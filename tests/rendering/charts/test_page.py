"""The page of charts: how many fit, which they are, and what its caption says."""

from __future__ import annotations

from run_views import NOW

from verl_tui.records import Batch, MetricRows, SourceStatus
from verl_tui.rendering.charts.plan import plan_charts
from verl_tui.runs.run import Run


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
