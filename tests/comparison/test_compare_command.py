"""`verl-tui compare` on files: all forms, the baseline, and what cannot be compared."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import TYPE_CHECKING

import pytest
from compared_runs import KL, REWARD, VALIDATION, noise
from jsonl import write_jsonl

if TYPE_CHECKING:
    from pathlib import Path


def write(
    folder: Path, name: str, centre: float, *, lr: float = 1e-6, seed: int = 1
) -> Path:
    """Write the log and the settings of a run of 40 steps."""
    run = folder / name
    rewards = noise(centre, seed + round(centre * 100))
    lines = (
        {"step": step, "data": {REWARD: reward, KL: 0.01, VALIDATION: reward}}
        for step, reward in enumerate(rewards, 1)
    )
    write_jsonl(run / "train.jsonl", lines)
    (run / "config.yaml").write_text(
        f"data:\n  seed: {seed}\n  train_batch_size: 64\nactor_rollout_ref:\n  actor:\n"
        f"    ppo_mini_batch_size: 16\n    optim:\n      lr: {lr}\n"
    )
    return run


@pytest.fixture
def runs(tmp_path):
    """Return a folder with two seeds of two kinds of runs."""
    for seed in (1, 2):
        write(tmp_path / "runs", f"low-seed{seed}", 0.4, seed=seed)
        write(tmp_path / "runs", f"high-seed{seed}", 0.7, lr=5e-6, seed=seed)
    return tmp_path / "runs"


def test_the_table_names_what_differs_and_what_is_better(runs, asked):
    shown = asked("compare", runs, "--baseline", "low-seed1", code=0).out
    assert "baseline: low (2 runs)" in shown
    assert re.search(r"^  final reward +high .*2 and 2 seeds  better$", shown, re.M)
    assert "learning rate" in shown
    assert "2 groups of runs: too few for rank correlations" in shown


def test_as_data(runs, asked):
    baseline = ["--baseline", str(runs / "high-seed2")]
    found = json.loads(asked("compare", runs, "--json", *baseline, code=0).out)
    assert (found["version"], found["baseline"], found["last"]) == (1, "high", 10)
    assert found["runs"][0]["name"] == "high-seed2"
    assert {one["verdict"] for one in found["differences"]} <= {
        *("better", "worse", "higher", "lower", "no clear difference", None)
    }
    assert found["groups"][1]["figures"]["final_reward"]["n"] == 2


def test_as_a_table_of_a_row_a_run(runs, asked):
    table = asked("compare", runs, "--csv", code=0).out
    rows = list(csv.DictReader(io.StringIO(table)))
    names = ["high-seed1", "high-seed2", "low-seed1", "low-seed2"]
    assert sorted(row["run"] for row in rows) == names
    assert {row["setting:learning rate"] for row in rows} == {"1e-06", "5e-06"}
    assert all(row["final_reward_n"] == "10" for row in rows)


def test_as_markdown(runs, asked):
    shown = asked("compare", runs, "--md", "--last", "5", code=0).out
    assert "means of the last 5 logged values" in shown
    tables = [line for line in shown.splitlines() if line.startswith("|")]
    assert "| --- |" in shown
    assert len(tables) > 15


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["--baseline", "nobody"], 64, "nobody is none of the runs"),
        (["--baseline", "seed1"], 64, "name one of them in full"),
        (["--last", "0"], 64, "--last: 0 is"),
        (["--md", "--csv"], 64, "not allowed with argument"),
        (["--where", "reward >"], 64, "--where: unfinished"),
        (["--where", "rewrd > 1"], 64, "no run has rewrd, alike: reward"),
        (["--columns", "reward, kl_coeff"], 64, "no run has kl_coeff"),
        (["--sort", "rewrd"], 64, "no run has rewrd, alike: reward"),
        (["--where", "reward > 5"], 3, "0 of 4 runs match"),
    ],
)
def test_what_makes_no_sense_or_no_run_has_is_said(runs, words, code, sentence, asked):
    assert sentence in asked("compare", runs, *words, code=code).err


def test_columns_conditions_and_an_order_are_asked_for(runs, asked):
    words = ["--columns", "best reward, lr", "--where", "lr < 1e-3 and not seed2"]
    command = ["compare", str(runs), *words, "--sort", "best reward"]
    _, shown, said = asked(*command, code=0)
    assert "2 of 4 runs match\n" in said
    lines = shown.splitlines()
    table = [line.split() for line in lines[lines.index("columns") + 1 :]][:3]
    assert table[0] == ["run", "best", "reward", "lr"]
    assert [(row[0], row[2]) for row in table[1:]] == [
        ("high-seed1", "5e-06"),
        ("low-seed1", "1e-06"),
    ]
    assert "baseline: high-seed1" in shown, "the first in this order"
    found = json.loads(asked(*command[:-2], "--sort=-lr", "--json", code=0).out)
    columns = found["columns"]
    assert list(columns) == ["low-seed1", "high-seed1"]
    assert columns["high-seed1"]["lr"] == 5e-6
    rows = list(csv.DictReader(io.StringIO(asked(*command, "--csv", code=0).out)))
    assert [row["column:lr"] for row in rows] == ["5e-06", "1e-06"]
