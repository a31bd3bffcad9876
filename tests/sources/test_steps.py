"""Steps under every trainer's name, and records that state none: counted, and said so; one of several
ranks is read.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from log_reading import notes, read_text, values

from verl_tui.sources.fields.jsonl import is_name
from verl_tui.sources.formats.catalog import FORMATS

if TYPE_CHECKING:
    from verl_tui.runs.run import Run

COUNTED = "{} records without a step: counted in the order of the file"


def of(home: Path, *records: dict[str, Any]) -> Run:
    """Return the run of a file of records."""
    lines = "".join(json.dumps(record) + "\n" for record in records)
    return read_text(home, lines, "metrics.jsonl")


@pytest.mark.parametrize(
    "name",
    ["step", "global_step", "global_steps", "current_steps", "iteration", "iter", "update", "optimizer_step", "_step",
     "train/global_step", "trainer/global_step", "training/step", "num_steps", "Iteration", "train-step"],
)  # fmt: skip
def test_a_step_by_any_name(name, tmp_path):
    losses = {10 * n: 1.0 / n for n in range(1, 6)}
    run = of(tmp_path, *({name: step, "loss": loss} for step, loss in losses.items()))
    assert values(run, "loss") == losses
    assert not notes(run)
    rows = "".join(f"{step},{loss!r}\n" for step, loss in losses.items())
    table = read_text(tmp_path / "csv", f"{name},loss\n{rows}", "metrics.csv")
    assert values(table, "loss") == losses


@pytest.mark.parametrize(
    ("record", "step", "total"),
    [
        ({"loss": 0.5, "global_step/max_steps": "10/438"}, 10, 438),
        ({"loss": 0.5, "iteration": 3, "total_iterations": 30}, 3, 30),
    ],
)
def test_a_step_with_its_total(record, step, total, tmp_path):
    run = of(tmp_path, record)
    assert (values(run, "loss"), run.total_steps) == ({step: 0.5}, total)
    assert set(run.keys) == {"loss"}


def test_records_without_any_step_are_counted_and_said_to_be(tmp_path):
    records = [{"epoch": n / 10, "loss": 1.0 / n} for n in range(1, 5)]
    records.insert(2, {"epoch": 0.2, "eval_loss": 2.0})
    run = of(tmp_path / "a", *records)
    assert values(run, "loss") == {n: 1.0 / n for n in range(1, 5)}
    assert values(run, "eval_loss") == {2: 2.0}, "it is of the step that it follows"
    assert notes(run) == COUNTED.format(5)
    run = of(tmp_path / "b", *({"loss": float(n), "reward": 0.5} for n in range(4)))
    assert values(run, "loss") == {1: 0.0, 2: 1.0, 3: 2.0, 4: 3.0}
    table = read_text(tmp_path / "c", "loss,reward\n0.0,0.5\n1.0,0.5\n", "m.csv")
    assert values(table, "loss") == {1: 0.0, 2: 1.0}
    assert notes(table) == COUNTED.format(2)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("args.json", '{"max_steps": 80, "num_train_epochs": 3.0, "steps": 5, "epoch": 1}'),
        ("tasks.jsonl", '{"id": 5, "difficulty": 0.5}\n{"id": 6, "difficulty": 0.7}\n'),
        ("words.jsonl", '{"step": "first, add", "id": 1}\n'),
    ],
)  # fmt: skip
def test_what_is_no_log_of_metrics(name, text):
    assert not any(format.matches(Path(name), text.encode()) for format in FORMATS)


# -- ranks -----------------------------------------------------------------------------------------


def test_one_of_several_ranks_is_read_and_the_others_are_said(tmp_path):
    order = ((1, 0), (1, 1), (2, 0), (1, 2), (3, 0), (2, 1))
    records = (
        {"step": step, "rank": rank, "loss": step + rank, "pid": 4000 + rank}
        for step, rank in order
    )
    run = of(tmp_path, *records)
    assert values(run, "loss") == {1: 1.0, 2: 2.0, 3: 3.0}
    assert (set(run.keys), list(run.restarts)) == ({"loss"}, [])
    assert notes(run) == "only rank 0 is read: 3 records of others are not"


def test_one_ranks_file_alone_may_start_anew(tmp_path):
    steps = (1, 2, 3, 2, 3)
    run = of(tmp_path, *({"step": at, "rank": 3, "loss": float(at)} for at in steps))
    assert (values(run, "loss"), notes(run)) == ({1: 1.0, 2: 2.0, 3: 3.0}, "")
    assert [mark.step for mark in run.restarts] == [2]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("gpu_id rank local_rank node_rank pid seed data/seed batch_idx run_id port dp_rank", True),
        ("effective_rank mean_rank loss epoch grad_norm invalid grid import speed kl_valid", False),
    ],
)  # fmt: skip
def test_what_names_something_and_what_measures(names, expected):
    assert {is_name(name) for name in names.split()} == {expected}
