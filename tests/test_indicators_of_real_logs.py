"""Which keys of real logs are which indicators."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from functools import cache

import pytest
from log_reading import LOGS

from verl_tui.indicators import dialect, resolve
from verl_tui.metrics import describe, family

_STEP = re.compile(r"(?<![\w:])step:\d+ - (.+)")
_PIECE = re.compile(r"([^\s:]+):(?:np\.\w+\()?(?:[-+]?\d|nan|inf)")
_WANDB = re.compile(rb"(?<![\w/])train/(?:rewards/)?[a-z]+(?:_[a-z]+)*(?![\w/])")


@cache
def keys_of(name: str) -> frozenset[str]:
    """Return the metric keys of one real log, by the simplest means that do for its format."""
    if not LOGS.is_dir():
        pytest.skip(f"no real logs at {LOGS} (set VERL_TUI_LOGS)")
    path = next(LOGS.glob(name))
    if path.suffix == ".csv":
        with path.open(encoding="utf-8") as file:
            return frozenset(next(csv.reader(file))) - {"step"}
    if path.suffix == ".wandb":
        found = Counter(
            match[0].decode() for match in _WANDB.finditer(path.read_bytes())
        )
        # Records are cut at block borders, and so are some names.
        return frozenset(key for key, count in found.items() if count > 2)
    text = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix == ".json":
        rows = json.loads(text)["log_history"]
        return frozenset(key for row in rows for key in row) - {"step"}
    if path.suffix == ".jsonl":
        rows = [json.loads(line)["data"] for line in text.splitlines()]
        return frozenset(key for row in rows for key in row)
    pieces = (piece for line in _STEP.findall(text) for piece in line.split(" - "))
    return frozenset(match[1] for piece in pieces if (match := _PIECE.match(piece)))


AGENT = "HappynessI__verl-for-AgentGym"
DAPO = f"{AGENT}/results/training/babyai/dapo/*.csv"
QWEN = "diqiuzhuanzhuan__verldata/run_logs/*.log"
LOGIC = "zhiyuanhubj__logic-rl-formula/wandb/*/files/output.log"
SFT = f"{AGENT}/Verl-Data/outputs/textcraft_sft/logs/*.log"
OMNI = "JOY-SWang__R1-AQA-Omni/wandb/run-20250612_083819-asc2sncx/*.wandb"
REAL = [
    (QWEN, "verl", 57),
    (f"{AGENT}/Verl-Data/outputs/webshop_grpo_test/logs/*.log", "verl", 75),
    (SFT, "verl", 4),
    (DAPO, "verl", 77),
    ("HanlinDu__verl/*.jsonl", "verl", 140),
    (LOGIC, "verl", 49),
    ("made-with-verl-0.9.1/run_7/proj/exp.jsonl", "verl", 8),
    ("made-with-verl-0.9.1/run_7/train.log", "verl", 8),
    ("IMJONEZZ__UnslothGRPO/outputs/checkpoint-250/trainer_state.json", "other", 13),
    (OMNI, "other", 10),
]


@pytest.mark.parametrize(("name", "whose", "at_least"), REAL)
def test_real_logs_are_understood(name, whose, at_least):
    keys = keys_of(name)
    assert len(keys) >= at_least
    assert dialect(keys) == whose
    for key in keys:
        metric = describe(key)
        family(key)
        assert metric.key == key
        # One run is of a fork that adds its own; they are kept under their own names.
        assert metric.group != "other" or key.startswith(("resize/", "group_")), key


RESOLVED = {
    QWEN: """
        reward=critic/score/mean policy_loss=actor/pg_loss entropy=actor/entropy grad_norm=actor/grad_norm
        response_length=response_length/mean truncated_share=response_length/clip_ratio
        throughput=perf/throughput step_time=timing_s/step generation_time=timing_s/gen
        validation=val-core/DigitalLearningGmbH/MATH-lighteval/reward/mean@1
        engine_mismatch=training/rollout_probs_diff_mean
    """,
    DAPO: """
        reward=critic_score_mean policy_kl=actor_ppo_kl policy_loss=actor_pg_loss entropy=actor_entropy
        clip_fraction=actor_pg_clipfrac grad_norm=actor_grad_norm response_length=response_length_mean
        truncated_share=response_length_clip_ratio throughput=perf_throughput step_time=timing_s_step
        generation_time=timing_s_gen
    """,
    LOGIC: """
        reward=critic/score/mean policy_kl=actor/ppo_kl reference_kl=actor/kl_loss policy_loss=actor/pg_loss
        entropy=actor/entropy_loss clip_fraction=actor/pg_clipfrac grad_norm=actor/grad_norm
        response_length=response_length/mean truncated_share=response_length/clip_ratio
        step_time=timing_s/step generation_time=timing_s/gen validation=val/test_score/logic_assignment
    """,
    SFT: "step_time=train/time(s)",
    OMNI: """
        reward=train/reward reward_std=train/reward_std reference_kl=train/kl policy_loss=train/loss
        grad_norm=train/grad_norm response_length=train/completion_length
    """,
}


@pytest.mark.parametrize("name", RESOLVED)
def test_real_logs_resolve(name):
    expected = dict(one.split("=") for one in RESOLVED[name].split())
    assert resolve(keys_of(name)) == expected
