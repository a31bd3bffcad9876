"""The simulation: history, live steps, the end, and the same bytes for the same seed."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pytest

from verl_tui.config import Config
from verl_tui.demo import curves
from verl_tui.demo.simulation import HISTORY, Simulation
from verl_tui.monitor import load

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


def scores(directory: Path, run: str) -> dict[int, float]:
    content = (directory / run / "verl_examples" / f"{run}.jsonl").read_bytes()
    records = map(json.loads, content.splitlines())
    return {
        one["step"]: one["data"]["critic/score/mean"] for one in records if one["step"]
    }


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_history_leaves_the_cliff_ahead_which_comes_within_half_a_minute(
    tmp_path: Path, clock: Clock
) -> None:
    simulation = Simulation(tmp_path, 7, clock)
    simulation.prepare()
    assert list(scores(tmp_path, "run_grpo_gsm8k")) == list(range(1, HISTORY + 1))
    assert not simulation.finished
    for _ in range(30):
        clock.time += 1
        simulation.advance()
    found = scores(tmp_path, "run_grpo_high_lr")
    edge = curves.COLLAPSE_STEP
    assert min(found[step] for step in range(edge - 20, edge)) > 0.3
    assert found[edge + 3] < 0.2
    assert min(scores(tmp_path, "run_grpo_gsm8k").values()) > 0.2


@pytest.mark.parametrize("seed", [7, 2024])
def test_one_run_is_healthy_and_the_other_one_collapses(
    tmp_path: Path, clock: Clock, seed: int
) -> None:
    Simulation(tmp_path, seed, clock).prepare(curves.STEPS)
    monitor = load([str(tmp_path)], Config(), NOW)
    assert not monitor.verdicts["run_grpo_gsm8k"].findings
    (found,) = monitor.verdicts["run_grpo_high_lr"].primary
    assert (found.id, found.since_step) == ("policy-collapse", curves.COLLAPSE_STEP)


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
    simulation.prepare(curves.STEPS)
    assert simulation.finished
    for run in ("run_grpo_gsm8k", "run_grpo_high_lr"):
        content = (tmp_path / run / "train.log").read_bytes()
        assert b"Final validation metrics: {" in content
    before = fingerprints(tmp_path)
    assert not simulation.advance()
    assert fingerprints(tmp_path) == before
