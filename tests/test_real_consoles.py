"""Consoles of real trainers, each alone, held against the history that the trainer itself kept.

Without them these tests skip.
"""

from __future__ import annotations

import json
import math
from functools import cache
from typing import TYPE_CHECKING

import pytest
from log_reading import LOGS, MADE, read_run, values

if TYPE_CHECKING:
    from pathlib import Path

JOY = "JOY-SWang__R1-AQA-Omni/wandb"
_LOSSES = ("loss", "eval_loss")

Losses = dict[str, dict[int, float]]
read = cache(read_run)
"""Each file is read once for all tests: none changes its run."""


def kept_by_the_trainer(path: Path) -> Losses:
    """Return the losses of a `trainer_state.json` by step."""
    history = json.loads(path.read_text())["log_history"]
    late = 1 if "lf93_ppo" in path.parts else 0  # its other files count from 1
    return {
        key: {entry["step"] + late: entry[key] for entry in history if key in entry}
        for key in _LOSSES
    }


def kept_by_swift(path: Path) -> Losses:
    """Return the losses of a `logging.jsonl` by step; of a resumed training its last word."""
    found = {}
    for entry in map(json.loads, path.read_text().splitlines()):
        if {"global_step/max_steps", "loss"} <= entry.keys():
            found[int(entry["global_step/max_steps"].split("/")[0])] = entry["loss"]
    return {"loss": found}


def kept_by_llamafactory(path: Path) -> Losses:
    """Return the losses of a `trainer_log.jsonl` by step."""
    entries = map(json.loads, path.read_text().splitlines())
    stated = [entry for entry in entries if "loss" in entry]
    return {"loss": {entry["current_steps"]: entry["loss"] for entry in stated}}


def same(shown: dict[int, float], truth: dict[int, float]) -> bool:
    """Tell whether a console shows what its trainer kept; it prints four digits."""
    return list(shown) == sorted(truth) and all(
        math.isclose(shown[step], truth[step], rel_tol=6e-4, abs_tol=5.1e-5)
        for step in truth
    )


def hold(console: Path, truth: Losses, records: int) -> None:
    """Hold a console against a trainer's history, record by record and step by step."""
    run = read(console)
    assert sum(map(len, truth.values())) == records
    for key in _LOSSES:
        shown = values(run, key) if key in run.keys else {}
        assert same(shown, truth.get(key, {})), key
    assert all(step <= (run.total_steps or step) for step in values(run, "loss"))


@pytest.mark.parametrize(
    ("name", "state", "records"),
    [
        ("t014_log1", "trainer_state.json", 300),
        ("t019_log1", "trainer_state.json", 300),
        ("t019_unbuf", "trainer_state.json", 100),
        ("t019_eval", "trainer_state.json", 25),
        ("t019_resume", "trainer_state.json", 160),
        ("lf_dpo", "trainer_state.json", 200),
        ("lf_kto", "trainer_state.json", 12),
        ("lf93_ppo", "trainer_state.json", 100),
        ("swift_log1", "v0-20261122-104659/logging.jsonl", 123),
        ("swift_raise", "v0-20261122-104912/logging.jsonl", 31),
        ("swift_resume", "logging.jsonl", 80),
        ("lf_dpo_raise", "trainer_log.jsonl", 47),
    ],
)
def test_every_record_of_a_console_is_at_its_step(name, state, records):
    path = MADE / name / "out" / state
    if not path.is_file():
        pytest.skip(f"no {path}: set VERL_TUI_LOGS")
    keepers = {
        "logging.jsonl": kept_by_swift,
        "trainer_log.jsonl": kept_by_llamafactory,
        "trainer_state.json": kept_by_the_trainer,
    }
    hold(MADE / name / "train.log", keepers[path.name](path), records)


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("t014_eval", range(5, 21, 5)),
        ("t019_raise", range(1, 42)),
        ("t116_rloo_raise", range(5, 61, 5)),
        ("t116_trackio_live", range(1, 45)),
    ],
)
def test_consoles_of_trainings_that_kept_no_history(name, steps):
    path = MADE / name / "train.log"
    if not path.is_file():
        pytest.skip(f"no {path}: set VERL_TUI_LOGS")
    run = read(path)
    assert list(values(run, "loss")) == list(steps)
    assert run.restarts == []


@pytest.mark.parametrize(
    ("name", "step"),
    [("t019_resume", 101), ("swift_resume", 41), ("verl061_resume", 10)],
)
@pytest.mark.parametrize("alone", [True, False])
def test_a_training_that_was_resumed_is_a_restart_once(name, step, alone):
    path = MADE / name
    if not path.is_dir():
        pytest.skip(f"no {path}: set VERL_TUI_LOGS")
    run = read(path / "train.log" if alone else path)
    assert [mark.step for mark in run.restarts] == [step]


@pytest.mark.parametrize(
    ("folder", "records"),
    [("run-20250606_130916-td8fx8t1", 15), ("run-20250612_081149-e845csgm", 103)],
)
def test_a_console_that_wandb_kept_has_every_record_at_its_step(folder, records):
    """Its bars are rarer than its dicts, and stand before dicts of earlier steps."""
    directory = LOGS / JOY / folder
    if not directory.is_dir():
        pytest.skip(f"no {directory}: set VERL_TUI_LOGS")
    (wandb,) = directory.glob("*.wandb")
    shown = values(read(directory / "files" / "output.log"), "loss")
    truth = values(read(wandb), "train/loss")
    assert list(shown) == list(range(1, records + 1))
    # The file of the second one ends inside a record.
    assert {step: shown[step] for step in truth} == truth
    assert len(truth) >= records - 1
    assert list(values(read(directory), "loss")) == list(range(1, records + 1))


@pytest.mark.parametrize(
    "name", ["t019_eval", "t019_resume", "t019_log1", "lf_dpo", "lf_kto"]
)
def test_no_file_of_a_run_adds_a_step_to_the_trainers_own_history(name):
    """The console, the trainer's files and its event file are one run, each metric under one
    name.
    """
    path = MADE / name / "out" / "trainer_state.json"
    if not path.is_file():
        pytest.skip(f"no {path}: set VERL_TUI_LOGS")
    run = read(MADE / name)
    truth = kept_by_the_trainer(path)
    for key, spelled in (("loss", "train/loss"), ("eval_loss", "eval/loss")):
        for one in (key, spelled) if truth[key] else ():
            assert same(values(run, one), truth[key]), one
    assert not {"loss", "train/loss"} <= set(run.keys)
