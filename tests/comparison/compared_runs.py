"""Runs for comparisons, made of values and settings."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from verl_tui.comparison.compare import Comparison, compare
from verl_tui.health.guide_settings import load_guide
from verl_tui.records import Batch, MetricRows, Settings, SourceStatus
from verl_tui.runs.run import Run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NOW = 1_790_000_000.0
REWARD, KL, LENGTH = "critic/score/mean", "actor/ppo_kl", "response_length/mean"
VALIDATION = "val-core/gsm8k/acc/mean@1"
LR, SEED = "actor_rollout_ref.actor.optim.lr", "data.seed"
BATCH, MODEL = "data.train_batch_size", "actor_rollout_ref.model.path"


def run_of(
    name: str,
    rewards: Sequence[float],
    said: Mapping[str, Any] | None = None,
    more: Mapping[str, float | Sequence[float]] | None = None,
    key: str = REWARD,
) -> Run:
    """Return a run of 30 s a step; `more` are further metrics, one value stands for all steps."""
    run, count = Run(name), len(rewards)
    columns = {key: list(rewards)} if count else {}
    for other, values in (more or {}).items():
        columns[other] = [values] * count if isinstance(values, float) else list(values)
    times = [NOW - (count - at) * 30.0 for at in range(1, count + 1)]
    rows = MetricRows(
        tuple(columns), range(1, count + 1), list(columns.values()), range(count), times
    )
    records = (*([rows] if count else []), Settings(dict(said or {}), "console"))
    run.apply(
        Batch(name, SourceStatus(name, "verl console", modified=NOW), records), NOW
    )
    return run


def recipe(**other: Any) -> dict[str, Any]:
    """Return settings that are enough to know how a run trains."""
    return {LR: 1e-6, BATCH: 256, MODEL: "Qwen/Qwen3-8B", SEED: 1, **other}


def noise(centre: float, seed: int, count: int = 40, by: float = 0.02) -> list[float]:
    """Return values around a centre, always the same for a seed."""
    rng = random.Random(seed)
    return [centre + rng.gauss(0, by) for _ in range(count)]


def comparison(*runs: Run, **how: Any) -> Comparison:
    """Return the comparison of runs, the first one the baseline."""
    return compare(runs, {}, load_guide(), NOW, **how)
