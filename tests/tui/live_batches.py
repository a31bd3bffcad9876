"""Steps that arrive while the app is open."""

from __future__ import annotations

from watching import NOW

from verl_tui.records import Batch, MetricRows, SourceStatus


def live_batch(run: str, step: int, reward: float) -> Batch:
    """Return the batch by which a run gets a further step."""
    status = SourceStatus("/more.jsonl", "tutorial JSONL", 5, 1)
    rows = MetricRows(("rollout/reward_mean",), [step], [[reward]], [0], [NOW])
    return Batch(run, status, (rows,), live=True)
