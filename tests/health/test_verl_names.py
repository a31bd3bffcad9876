"""The same training under TRL's names and under verl's: the same findings at the same steps."""

from __future__ import annotations

import json
import math
import random
from typing import TYPE_CHECKING

import pytest
from scenarios.verl_names import FORMS, history, under_verl_names, write

from verl_tui.config import Config
from verl_tui.monitor import load

if TYPE_CHECKING:
    from pathlib import Path

NOW = 1_790_000_000.0


def figures(step: int, **changed: float | None) -> dict[str, float | None]:
    """Return one record of a TRL run, which learns nothing."""
    chance = random.Random(step)
    return {
        "step": step,
        "epoch": step / 300,
        "loss": chance.gauss(0.0, 0.01),
        "reward": 0.4 + chance.gauss(0.0, 0.03),
        "reward_std": 0.2,
        "rewards/exact/mean": 0.4,
        "rewards/exact/std": 0.2,
        "frac_reward_zero_std": 0.25,
        "kl": 0.02 + chance.gauss(0.0, 0.002),
        "entropy": 1.2 + chance.gauss(0.0, 0.03),
        "grad_norm": 0.4 + chance.gauss(0.0, 0.05),
        "learning_rate": 1e-5,
        "clip_ratio/region_mean": 0.01,
        "completions/mean_length": 40.0 + chance.gauss(0.0, 1.0),
        "completions/max_length": 64.0,
        "completions/min_length": 3.0,
        "completions/clipped_ratio": 0.02,
        "num_tokens": 4000.0 * step,
        "step_time": 2.0 + chance.gauss(0.0, 0.05),
        **changed,
    }


def sick(step: int) -> dict[str, float | None]:
    """Return one record of a run in which several things go wrong one after the other."""
    changed: dict[str, float | None] = {}
    if step >= 60:
        changed["completions/clipped_ratio"] = 0.4
    if step >= 90:
        changed["kl"] = 0.02 + 0.03 * (step - 90)
    if step == 120:
        changed["grad_norm"] = 80.0
    if 150 <= step < 155:
        changed |= {"reward": math.nan, "loss": math.nan}
    if step >= 170:
        changed["clip_ratio/region_mean"] = 0.7
    if step >= 200:
        changed["reward"] = 0.0
    return figures(step, **changed)


def trainer_state(folder: Path) -> Path:
    path = folder / "trainer_state.json"
    path.parent.mkdir()
    log = [
        *(sick(step) for step in range(1, 241)),
        {"step": 240, "train_runtime": 480.0, "train_loss": 0.0},
    ]
    path.write_text(
        json.dumps({"log_history": log, "global_step": 240, "max_steps": 240}),
        encoding="utf-8",
    )
    return path


def episodes(path: Path) -> list[tuple[str, int | None, int | None, int | None]]:
    (verdict,) = load([str(path)], Config(), NOW).verdicts.values()
    return sorted(
        (one.id, one.since_step, one.raised_step, one.cleared_step)
        for one in verdict.history
    )


@pytest.mark.parametrize("form", FORMS)
def test_a_run_gets_the_same_findings_under_verl_s_names(
    form: str, tmp_path: Path
) -> None:
    state = trainer_state(tmp_path / "trl")
    renamed = write(under_verl_names(history(state)), tmp_path / form, form)
    reported = episodes(state)
    assert {
        "truncation",
        "grad-norm-spike",
        "not-finite",
        "clip-saturation",
        "reward-zero",
    } <= {one[0] for one in reported}
    assert episodes(renamed) == reported


def test_rows_under_verl_s_names() -> None:
    first, second = under_verl_names(
        [figures(1), figures(2, reward=None, frac_reward_zero_std=1.0)]
    )
    assert (first.step, second.step) == (1, 2)
    assert first.values["critic/score/mean"] == figures(1)["reward"]
    assert first.values["reward_extra/exact/mean"] == 0.4
    assert (
        first.values["critic/advantages/max"]
        > 0
        == second.values["critic/advantages/max"]
    )
    assert second.values["perf/total_num_tokens"] == 4000.0, (
        "TRL counts from the beginning, verl by step"
    )
    assert math.isnan(second.values["critic/score/mean"])
    assert "reward_std" not in first.values
