"""verl's own `Tracking` class as the producer: what it writes is what we read. Skips where verl is not installed."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from importlib.util import find_spec

import pytest
from log_reading import read_run, values

PRODUCER = """
import numpy as np
from verl.utils.tracking import Tracking
tracking = Tracking("proj", "exp", default_backend=["console", "file"], config={"trainer": {"total_epochs": 1}})
tracking.log({"val-core/openai/gsm8k/acc/mean@1": np.float64(0.25), "val-aux/num_turns/min": np.int32(2)}, step=0)
for step in range(1, 6):
    tracking.log(
        {
            "critic/score/mean": np.float64(step / 10), "actor/lr": 1e-6, "actor/pg_loss": -0.01 * step,
            "actor/grad_norm": float("nan") if step == 3 else 0.5, "training/global_step": step,
            "response_length/mean": np.float32(200.5), "flag": True, "mode": "schedule",
            "actor/kl_loss": float("inf") if step == 4 else 0.001,
        },
        step=step,
    )
"""


@pytest.mark.skipif(find_spec("verl") is None, reason="verl is not installed")
def test_what_verl_writes_is_what_we_read(tmp_path):
    environment = {**os.environ, "VERL_FILE_LOGGER_ROOT": str(tmp_path), "PYTHONWARNINGS": "ignore"}
    made = subprocess.run(
        [sys.executable, "-c", PRODUCER], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    (tmp_path / "train.log").write_text(made.stdout)
    console, file = read_run(tmp_path / "train.log"), read_run(tmp_path / "proj" / "exp.jsonl")
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
    assert math.isnan(values(file, "actor/kl_loss")[4]), "verl's file logger writes infinity as null"
    together = read_run(tmp_path)
    assert math.isnan(values(together, "actor/kl_loss")[4]), "of two sources the file logger holds"
    assert together.step == 5
