"""What is said of logs that strangers wrote: home-made names, other trainers' names, few points, the
first steps.
"""

from __future__ import annotations

import json
import math
import os
from typing import TYPE_CHECKING, Any

import pytest

from verl_tui.check.data import report
from verl_tui.config import Config
from verl_tui.monitor import load

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

NOW = 1_790_000_000.0
Row = dict[str, Any]


def found(rows: Sequence[Row], directory: Path) -> dict[str, str]:
    """Return the findings on a log of these rows, and their severities."""
    return {
        finding["id"]: finding["severity"]
        for finding in checked(rows, directory)["findings"]
    }


def checked(rows: Sequence[Row], directory: Path) -> dict[str, Any]:
    """Return what `check --json` says of the run."""
    path = directory / "run_7" / "log.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    os.utime(path, (NOW - 5, NOW - 5))
    (run,) = report(load([str(path.parent)], Config(), NOW), NOW)["runs"]
    return dict(run)


def ripple(i: int, size: float) -> float:
    """Return a repeatable noise."""
    return size * math.sin(2.4 * i)


def trl(i: int, **changed: float) -> Row:
    """Return a step of a healthy run in TRL's names."""
    return {
        "step": i, "reward": 0.3 + 0.002 * i + ripple(i, 0.02), "reward_std": 0.4, "kl": 0.001 * i,
        "entropy": 0.6 + ripple(i, 0.02), "grad_norm": 0.512345 + ripple(i, 0.05), "loss": ripple(i, 0.01),
        "learning_rate": 1.234567e-6, "completions/mean_length": 200 + ripple(i, 5), "frac_reward_zero_std": 0.1,
        **changed,
    }  # fmt: skip


def home_made(i: int) -> Row:
    loss, kl = (4.2, 105.0) if i >= 25 else (0.02, 0.001 * i)
    reward = {"mean_reward": 0.7 + ripple(i, 0.03), "std_reward": 0.1}
    return {"step": i, "loss": loss, "mean_kl": kl, **reward}


def nemo(i: int) -> Row:
    kls = {
        "policy_kl_error": 22_015.0 if i > 20 else 0.01,
        "gen_kl_error": 0.0005,
        "kl_penalty": 0.001 * i,
    }
    figures = {
        "reward": 0.4 + 0.001 * i,
        **kls,
        "approx_entropy": 0.5,
        "grad_norm": 0.4,
    }
    return {"step": i, **{f"train/{key}": value for key, value in figures.items()}}


def openrlhf(i: int) -> Row:
    kls = {"kl": 0.002 * i, "logprobs_diff": 0.3, "ppo_kl": 0.001}
    figures = {
        "reward": 0.4 + 0.001 * i,
        **kls,
        "entropy_loss": 0.5,
        "actor_grad_norm": 0.4,
    }
    return {"step": i, **{f"train/{key}": value for key, value in figures.items()}}


def own_reward_mean(i: int) -> Row:
    reward = {"reward_mean": 0.3 + 0.001 * i + ripple(i, 0.03), "reward_std": 0.4}
    return {
        "step": i,
        **reward,
        "policy_loss": 0.03 + ripple(i, 0.01),
        "kl": 0.0003 * i,
    }


def saturated(i: int) -> Row:
    """Every part comes to its top: 4 and 1.25 and 2."""
    parts = {
        "rewards/right/mean": -1.0 if i < 30 else 4.0,
        "rewards/tags/mean": 1.0 if i % 7 == 3 and i < 40 else 1.25,
        "rewards/exact/mean": 1.0 if i < 20 else 2.0,
    }
    return trl(i, reward=sum(parts.values()), **parts)


def format_alone(i: int) -> Row:
    well_formed = min(1.0, 0.2 + 0.1 * i)
    parts = {"rewards/format/mean": well_formed, "rewards/accuracy/mean": 0.0}
    return trl(i, reward=well_formed, reward_std=0.0, **parts)


def no_penalty(i: int) -> Row:
    parts = {"rewards/format/mean": 1.0, "rewards/soft_overlong_punishment/mean": 0.0}
    return trl(i, reward=1.0, **parts)


def dead(i: int) -> Row:
    """One answer for all prompts from step 2 on: half of them are right."""
    gone = {"entropy": 0.0, "grad_norm": 0.0, "kl": 4.1, "frac_reward_zero_std": 1.0}
    return trl(i) if i == 1 else trl(i, reward=0.5, reward_std=0.0, **gone)


def dead_at_once(i: int) -> Row:
    return {**dead(2), "step": 10 * i}


def half_way(i: int) -> Row:
    """All answers to a prompt are alike from step 40 on, at half of the scale."""
    std, alike = (0.0, 1.0) if i > 40 else (0.3, 0.2)
    reward = min(0.5, 0.05 + 0.0112 * i)
    return trl(i, reward=reward, reward_std=std, frac_reward_zero_std=alike)


def self_play(i: int) -> Row:
    return trl(i, reward=0.0, reward_std=1.0)


def self_play_in_verls_names(i: int) -> Row:
    scores = {
        "critic/score/mean": ripple(i, 0.02),
        "critic/score/max": 1.0,
        "critic/score/min": -1.0,
    }
    data = {**scores, "actor/kl_loss": 0.0001 * i, "actor/grad_norm": 0.512345}
    return {"step": i, "data": data}


def decayed(i: int) -> Row:
    return trl(i, learning_rate=max(0.0, 1e-6 * (1 - i / 170)))


def shared_host(i: int) -> Row:
    """Work on devices 1 and 2; others hold memory on 0 and 3, and 4 is empty."""
    devices = ((0.0, 40.0), (88.0, 60.0), (85.0, 60.0), (2.0, 90.0), (0.0, 0.4))
    figures = {}
    for device, (busy, held) in enumerate(devices):
        figures[f"system/gpu.{device}.gpu"] = busy
        figures[f"system/gpu.{device}.memoryAllocated"] = held
    return trl(i, **figures)


def idle_host(i: int) -> Row:
    return trl(i, **{"system/gpu.0.gpu": 20.0 + ripple(i, 5), "system/gpu.1.gpu": 22.0})


def switched_off(i: int) -> Row:
    return trl(i, kl=0.0, learning_rate=1e-6 if i < 100 else 0.0)


CRITICAL = {"policy-collapse": "critical"}


@pytest.mark.parametrize(
    ("row", "steps", "expected"),
    [
        (home_made, 30, CRITICAL),  # by its KL alone, soon after
        (home_made, 60, CRITICAL),
        (nemo, 60, {}),
        (openrlhf, 60, {}),
        (own_reward_mean, 200, {}),
        (format_alone, 33, {"component-imbalance": "warning"}),
        (dead, 30, {"entropy-collapse": "critical", "dead-groups": "warning"}),
        (dead_at_once, 25, {"entropy-collapse": "critical", "dead-groups": "warning"}),
        (half_way, 120, {"dead-groups": "warning"}),
        (switched_off, 200, {"nothing-learns": "warning"}),
        (shared_host, 60, {}),
        (idle_host, 60, {"gpu-idle": "warning"}),
    ],
)
def test_what_is_found(row, steps, expected, tmp_path):
    judged = found([row(i) for i in range(1, steps + 1)], tmp_path)
    assert expected.items() <= judged.items(), judged
    if not expected:
        assert not judged


@pytest.mark.parametrize(
    ("row", "steps", "id"),
    [
        (saturated, 300, "component-imbalance"),
        (no_penalty, 40, "component-imbalance"),
        (self_play, 200, "nothing-learns"),
        (self_play_in_verls_names, 200, "nothing-learns"),
        (decayed, 200, "nothing-learns"),
    ],
)
def test_what_is_not_found(row, steps, id, tmp_path):
    assert id not in found([row(i) for i in range(1, steps + 1)], tmp_path)


def test_the_engine_is_no_policy(tmp_path):
    known = checked([nemo(i) for i in range(1, 60)], tmp_path)["indicators"]
    assert "policy_kl" not in known
    assert known["engine_mismatch"]["key"] == "train/gen_kl_error"
    known = checked([openrlhf(i) for i in range(1, 60)], tmp_path)["indicators"]
    assert "engine_mismatch" not in known


# -- Few points, and the first ones ----------------------------------------------------------------


def collapse(i: int, onset: int, dialect: str) -> Row:
    """Return a point of a run whose reward is down to a tenth from a point on, far from the
    reference.
    """
    well = i < onset
    reward = 0.9 - 0.4 * math.exp(-0.5 * i) + ripple(i, 0.01) if well else 0.08
    kl = 0.004 + 0.004 * i if well else 1.9 + ripple(i, 0.1)
    if dialect == "tutorial":
        figures = {"reward_mean": 3 * reward, "kl_div": kl if well else 0.4}
        return {"scope": "rollout", "step": i, **figures}
    if dialect == "verl":
        return {"step": i, "data": {"critic/score/mean": reward, "actor/kl_loss": kl}}
    return trl(i, reward=reward, kl=kl)


@pytest.mark.parametrize("dialect", ["tutorial", "verl", "other"])
@pytest.mark.parametrize("onset", [2, 3, 6, 10])
def test_a_collapse_in_the_first_steps(dialect, onset, tmp_path):
    rows = [collapse(i, onset, dialect) for i in range(1, 41)]
    assert CRITICAL.items() <= found(rows, tmp_path).items()


def test_one_bad_point_of_many_is_no_collapse(tmp_path):
    rows = [collapse(i, 99, "other") for i in range(1, 60)]
    rows[30] |= {"reward": 0.05, "kl": 9.0}
    assert "policy-collapse" not in found(rows[:31], tmp_path)
    assert "policy-collapse" not in found(rows, tmp_path)


def test_the_memory_of_single_devices_is_not_called_missing(tmp_path):
    rows = [trl(i) | {"system/gpu.0.memoryAllocatedBytes": 7e10} for i in range(1, 30)]
    reasons = {
        one["id"]: one["reason"] for one in checked(rows, tmp_path)["not_judged"]
    }
    assert reasons["gpu-memory-high"] == (
        "the log has the memory of single devices alone"
    )
