"""TRL while it trains, hangs, fails, is killed and comes back: held against its own history."""

from __future__ import annotations

import csv
import math
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from benchmarks.terminal import Terminal
from log_reading import read_run, values
from producers.answers import PATIENCE, check, critical, later

from verl_tui.runs.views.state import State, state

if TYPE_CHECKING:
    from pathlib import Path

    from producers.conftest import Trained

pytestmark = pytest.mark.producers

AT_ONCE = 3.0
"""Seconds within which the end of a process on this host is on the screen."""
COMES = 120.0
"""Seconds within which something is on the screen on any machine."""


def holds(path: Path, trained: Trained) -> None:
    """Hold each logged value against the trainer's history, at its step; nothing more, nothing
    less.
    """
    run = read_run(path)
    steps = set()
    for record in trained.history:
        if "train_runtime" in record:
            continue
        steps.add(record["step"])
        for key, value in record.items():
            if key == "step" or not isinstance(value, int | float):
                continue
            name = next(
                (
                    one
                    for one in (key, f"train/{key}", key.replace("eval_", "eval/"))
                    if one in run.keys
                ),
                None,
            )
            assert name is not None, f"{key} is not in {run.keys}"
            found = values(run, name)[record["step"]]
            assert found == pytest.approx(value, rel=2e-3, abs=1e-6) or (
                math.isnan(found) and math.isnan(value)
            ), key
    name = "reward" if "reward" in run.keys else "train/reward"
    assert set(values(run, name)) == steps


def test_a_healthy_training_is_read_value_for_value(train):
    trained = train("--steps", 30).finish()
    assert trained.process.returncode == 0
    holds(trained.log, trained)
    holds(trained.directory, trained)
    run = check(trained.directory)
    assert (run["state"], run["step"], run["total_steps"]) == ("finished", 30, 30)
    assert critical(run) == []
    export = trained.directory.parent / "out.csv"
    asked = ("export", "csv", trained.directory, "-o", export)
    subprocess.run([sys.executable, "-m", "verl_tui", *asked], check=True)
    with export.open() as file:
        rows = {int(row["step"]): row for row in csv.DictReader(file)}
    assert set(rows) == set(range(1, 31))


def test_a_sparse_console_behind_a_pipe(train):
    trained = train(
        "--steps", 20, "--log", 5, "--eval", 10, through="tee copy.log"
    ).finish()
    run = read_run(trained.log)
    assert set(values(run, "reward")) == {5, 10, 15, 20}
    assert state(run, trained.log.stat().st_mtime + 10 * PATIENCE) is State.FINISHED


def test_a_training_that_fails_is_a_crash_with_its_cause_and_resumed_it_is_one_run(
    train,
):
    trained = train("--steps", 30, "--raise-at", 15).finish()
    run = check(trained.directory)
    assert (run["state"], run["step"]) == ("crashed", 14)
    (crash,) = (one for one in run["findings"] if one["id"] == "crash")
    assert "RuntimeError: reward endpoint answered 503" in crash["message"]
    trained = train("--steps", 30, "--resume", append=True).finish()
    holds(trained.directory, trained)
    run = check(trained.directory)
    assert (run["state"], run["step"]) == ("finished", 30)


def test_a_hang_is_certain_while_its_process_lives_and_a_kill_is_on_the_screen_at_once(
    train,
):
    trained = train("--steps", 30, "--hang-at", 8)
    terminal = Terminal(
        [sys.executable, "-m", "verl_tui", trained.directory], (140, 45)
    )
    try:
        assert terminal.read(COMES, lambda: terminal.shows("step 7")), terminal.lines
        assert terminal.shows("running")
        now, found = later(trained.directory)
        assert now is State.STALLED
        assert str(trained.process.pid) in " ".join(
            (found["hang"].message, *found["hang"].evidence)
        )
        trained.process.kill()
        trained.process.wait()
        began = time.monotonic()
        assert terminal.read(
            30, lambda: terminal.shows("stopped?") or terminal.shows("crashed")
        ), terminal.lines
        assert not terminal.shows("running"), terminal.lines
        assert time.monotonic() - began < AT_ONCE
    finally:
        terminal.close()
    now, found = later(trained.directory)
    assert now in (State.ENDED, State.CRASHED)
    assert "hang" not in found
