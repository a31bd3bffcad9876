"""The PPO runs: bytes as the tutorials print them."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from verl_tui.demo import curves
from verl_tui.demo.tutorial import TutorialRun

if TYPE_CHECKING:
    from pathlib import Path

START = 1_790_000_000.0
LINE = re.compile(
    r'\{"timestamp":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}","level":"(INFO|DEBUG)","scope":"[a-z]+"(,"\w+":.+)*\}'
)
FIELDS = {
    "rollout": {"step", "reward_mean", "reward_std", "kl_div", "response_length_mean"},
    "ppo": {"step", "policy_loss", "value_loss", "entropy", "clip_ratio", "grad_norm"},
    "reward": {"step", "reward", "tps"},
    "kl": {"step", "divergence"},
    "system": {"gpu_util", "memory_util"},
    "sample": {"step", "prompt", "response", "reward"},
    "train": {"epoch", "step", "global_step", "elapsed_time"},
}


def write(run: TutorialRun) -> list[dict[str, Any]]:
    run.start(START)
    for tick in range(1, run.total + 1):
        run.write(tick, START + tick)
    run.finish(START + run.total)
    return [
        json.loads(line)
        for line in (run.directory / "verl_logs.jsonl").read_bytes().splitlines()
    ]


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    return write(TutorialRun(tmp_path_factory.mktemp("healthy"), 7))


@pytest.fixture(scope="module")
def collapse(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    return write(TutorialRun(tmp_path_factory.mktemp("collapse"), 7, collapsing=True))


def test_each_line_has_the_tutorials_shape(tmp_path: Path) -> None:
    write(TutorialRun(tmp_path, 7))
    content = (tmp_path / "verl_logs.jsonl").read_text(encoding="utf-8")
    assert content.endswith("\n")
    assert all(LINE.fullmatch(line) for line in content.splitlines())


def test_scopes_carry_their_fields(healthy: list[dict[str, Any]]) -> None:
    data = [
        record
        for record in healthy
        if record["level"] == "INFO" and "message" not in record
    ]
    assert {record["scope"] for record in data} == set(FIELDS)
    assert all(FIELDS[record["scope"]] <= set(record) for record in data)


def test_collapse_is_written_at_its_step(collapse: list[dict[str, Any]]) -> None:
    rewards = {
        record["step"]: record["reward_mean"]
        for record in collapse
        if record["scope"] == "rollout"
    }
    assert rewards[curves.COLLAPSE_STEP - curves.COLLAPSE_INTERVAL] > 2.8
    assert rewards[curves.COLLAPSE_STEP] < 2.2
    assert rewards[curves.COLLAPSE_STEP + 4 * curves.COLLAPSE_INTERVAL] < 0.4


def test_samples_turn_into_repetition(collapse: list[dict[str, Any]]) -> None:
    samples = [record for record in collapse if record["scope"] == "sample"]
    early = [
        record["response"] for record in samples if record["step"] < curves.DRIFT_STEP
    ]
    late = [
        record["response"]
        for record in samples
        if record["step"] > curves.COLLAPSE_STEP + 500
    ]
    assert max(map(repetition, early)) < 0.1
    assert min(map(repetition, late)) > 0.8
    assert any("这个这个问题这个" in response for response in late)
    assert any("aaaaa bbbbb ccccc" in response for response in late)


def repetition(text: str, size: int = 12) -> float:
    """Return the share of character windows that were seen before."""
    windows = Counter(
        text[place : place + size] for place in range(max(1, len(text) - size + 1))
    )
    return 1 - len(windows) / windows.total()
