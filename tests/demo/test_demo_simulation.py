"""The simulation: history, live steps, the end, and the same bytes for the same seed."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pytest

from verl_tui.demo import Simulation, curves
from verl_tui.demo.simulation import SUSPENSE

if TYPE_CHECKING:
    from pathlib import Path

NOW = 1_790_000_000.0


class Clock:
    """A clock that moves only when told to."""

    def __init__(self) -> None:
        self.time = NOW

    def __call__(self) -> float:
        return self.time


def fingerprints(directory: Path) -> dict[str, str]:
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


def steps(directory: Path, run: str) -> list[int]:
    content = (directory / run / "verl_logs.jsonl").read_bytes()
    return [
        record["step"]
        for line in content.splitlines()
        if (record := json.loads(line))["scope"] == "rollout"
    ]


def grpo_steps(directory: Path) -> list[int]:
    content = (
        directory / "run_grpo_gsm8k" / "verl_examples" / "run_grpo_gsm8k.jsonl"
    ).read_bytes()
    return [json.loads(line)["step"] for line in content.splitlines()]


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_history_leaves_the_cliff_ahead_which_comes_within_half_a_minute(
    tmp_path: Path, clock: Clock
) -> None:
    simulation = Simulation(tmp_path, 7, clock)
    simulation.prepare()
    assert grpo_steps(tmp_path) == list(range(121))
    assert steps(tmp_path, "run_ppo_tutorial") == list(range(1, 121))
    assert (
        steps(tmp_path, "run_ppo_collapse")[-1]
        == curves.COLLAPSE_STEP - SUSPENSE * curves.COLLAPSE_INTERVAL
    )
    assert not simulation.finished
    for _ in range(SUSPENSE):
        clock.time += 1
        simulation.advance()
    assert 20 <= SUSPENSE <= 30
    assert steps(tmp_path, "run_ppo_collapse")[-1] == curves.COLLAPSE_STEP


def test_history_and_live_steps_are_the_same_bytes(tmp_path: Path) -> None:
    whole, live = Clock(), Clock()
    Simulation(tmp_path / "whole", 7, whole).prepare(30)
    simulation = Simulation(tmp_path / "live", 7, live)
    live.time -= 10
    simulation.prepare(20)
    for _ in range(10):
        live.time += 1
        simulation.advance()
    assert fingerprints(tmp_path / "whole") == fingerprints(tmp_path / "live")


def test_everything_at_once_ends_with_the_markers(tmp_path: Path, clock: Clock) -> None:
    simulation = Simulation(tmp_path, 7, clock)
    simulation.write_all()
    assert simulation.finished
    assert (
        b"Final validation metrics: {"
        in (tmp_path / "run_grpo_gsm8k" / "train.log").read_bytes()
    )
    for run in ("run_ppo_tutorial", "run_ppo_collapse"):
        last = (tmp_path / run / "verl_logs.jsonl").read_bytes().splitlines()[-1]
        assert b'"message":"training finished"' in last
    before = fingerprints(tmp_path)
    assert not simulation.advance()
    assert fingerprints(tmp_path) == before
