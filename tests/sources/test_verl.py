"""verl's own `Tracking` class as the producer: what it writes is what we read. Skips where verl is
not installed.

verl is not among the test requirements: its dependencies are several GB. What `Tracking` needs is
`pip install torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu`, `pip install --no-deps
verl` and `pip install hydra-core omegaconf ray tensordict transformers tensorboard wandb`.
"""

from __future__ import annotations

import math
import os
import struct
import subprocess
import sys
from importlib.util import find_spec

import pytest
from log_reading import read_run, values

from verl_tui.runs.time.step_clocks import clocks

PRODUCER = """
import numpy as np
from verl.utils.tracking import Tracking
tracking = Tracking("proj", "exp", default_backend=["console", "file", *EXTRA],
                    config={"trainer": {"total_epochs": 1}, "algorithm": {"adv_estimator": "grpo"}})
tracking.log({"val-core/openai/gsm8k/acc/mean@1": np.float64(0.25), "val-aux/num_turns/min": np.int32(2)}, step=0)
for step in range(1, 6):
    tracking.log(
        {
            "critic/score/mean": np.float64(step / 10), "actor/lr": 1e-6, "actor/pg_loss": -0.01 * step,
            "actor/grad_norm": float("nan") if step == 3 else 0.5, "training/global_step": step,
            "response_length/mean": np.float32(200.5), "flag": True, **WORDS,
            "actor/kl_loss": float("inf") if step == 4 else 0.001,
        },
        step=step,
    )
"""


def produce(path, extra, words):
    """Have verl write five steps with the console, its file logger and these further backends."""
    environment = {
        **os.environ,
        "VERL_FILE_LOGGER_ROOT": str(path),
        "PYTHONWARNINGS": "ignore",
        "WANDB_MODE": "offline",
    }
    program = f"EXTRA, WORDS = {extra!r}, {words!r}\n{PRODUCER}"
    made = subprocess.run(
        [sys.executable, "-c", program],
        cwd=path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    (path / "train.log").write_text(made.stdout)


@pytest.mark.skipif(find_spec("verl") is None, reason="verl is not installed")
def test_what_verl_writes_is_what_we_read(tmp_path):
    produce(tmp_path, [], {"mode": "schedule"})
    console = read_run(tmp_path / "train.log")
    file = read_run(tmp_path / "proj" / "exp.jsonl")
    for run in (console, file):
        assert values(run, "critic/score/mean") == {n: n / 10 for n in range(1, 6)}
        assert values(run, "val-core/openai/gsm8k/acc/mean@1") == {0: 0.25}
        assert values(run, "actor/lr") == dict.fromkeys(range(1, 6), 1e-6)
        assert values(run, "response_length/mean") == dict.fromkeys(range(1, 6), 200.5)
        assert values(run, "flag") == dict.fromkeys(range(1, 6), 1.0)
        assert math.isnan(values(run, "actor/grad_norm")[3])
        assert "mode" not in run.keys
        assert run.unreadable == 0
    assert values(console, "actor/kl_loss")[4] == math.inf
    assert math.isnan(values(file, "actor/kl_loss")[4]), (
        "verl's file logger writes infinity as null"
    )
    together = read_run(tmp_path)
    assert math.isnan(values(together, "actor/kl_loss")[4]), (
        "of two sources the file logger holds"
    )
    assert together.step == 5


def rounded(number):
    """Return a number as an event file holds it: in 32 bits."""
    return struct.unpack("<f", struct.pack("<f", number))[0]


@pytest.mark.skipif(
    any(find_spec(name) is None for name in ("verl", "wandb", "tensorboard")),
    reason="verl is not installed",
)
def test_all_that_verl_leaves_on_disk_is_one_run(tmp_path):
    produce(tmp_path, ["tensorboard", "wandb"], {})
    (kept,) = (tmp_path / "wandb").glob("offline-run-*")
    events = read_run(tmp_path / "tensorboard_log")
    wandb = read_run(*kept.glob("*.wandb"))
    assert values(events, "critic/score/mean") == {
        n: rounded(n / 10) for n in range(1, 6)
    }
    assert values(events, "val-core/openai/gsm8k/acc/mean@1") == {0: 0.25}
    assert values(events, "actor/kl_loss")[4] == math.inf
    assert values(wandb, "critic/score/mean") == {n: n / 10 for n in range(1, 6)}
    assert values(wandb, "val-core/openai/gsm8k/acc/mean@1") == {0: 0.25}
    assert math.isnan(values(wandb, "actor/grad_norm")[3])
    assert wandb.settings["algorithm.adv_estimator"] == "grpo"
    together = read_run(tmp_path)
    formats = {state.status.format for state in together.sources.values()}
    assert {"console", "verl file logger", "tensorboard events", "W&B run"} <= formats
    assert values(together, "critic/score/mean") == {n: n / 10 for n in range(1, 6)}, (
        "the file logger holds"
    )
    assert together.restarts == []
    assert together.step == 5
    assert together.unreadable == 0
    assert len(clocks(together)[0]) >= 5, "times come from the sources that have them"
