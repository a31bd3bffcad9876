"""TRL's PPO and its RLOO up to TRL 0.21, whose metrics have other names than those of its later
trainers, against their own history.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from log_reading import read_run, values
from producers.answers import check
from producers.test_other_trainers import FINISHES, TRAINERS, pytestmark, python_of

from verl_tui.runs.views.identity import by_metrics

__all__ = ["pytestmark"]
STEPS = 6
SCRIPT = Path(__file__).with_name("trl_ppo.py")
WITHOUT_CRITIC = {"reward", "policy_loss", "entropy"}
WITH_CRITIC = WITHOUT_CRITIC | {"policy_kl", "value_loss", "clip_fraction"}


@pytest.mark.parametrize(
    ("kind", "algorithm", "indicators"),
    [("ppo", "PPO", WITH_CRITIC), ("rloo", "RLOO", WITHOUT_CRITIC)],
)
def test_what_it_logs(kind, algorithm, indicators, tmp_path):
    python = python_of("trl-0.19", TRAINERS["trl-0.19"])
    console = tmp_path / "train.log"
    words = [python, SCRIPT, "out", kind, "--steps", str(STEPS)]
    with console.open("wb") as log:
        subprocess.run(
            words, cwd=tmp_path, stdout=log, stderr=log, timeout=FINISHES, check=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
        )  # fmt: skip
    history = json.loads((tmp_path / "out" / "trainer_state.json").read_text())[
        "log_history"
    ]
    assert len(history) == STEPS
    (events,) = tmp_path.glob("out/runs/*/events.out.tfevents.*")
    for path in (tmp_path, console, events, tmp_path / "out" / "trainer_state.json"):
        run = read_run(path)
        assert set(run.indicators) == indicators
        assert by_metrics(run).value == algorithm
        found = values(run, run.indicators["reward"])
        truth = {
            one["step"]: pytest.approx(one["objective/scores"], rel=1e-5)
            for one in history
        }
        assert found == truth
    assert check(tmp_path)["findings"] == []
