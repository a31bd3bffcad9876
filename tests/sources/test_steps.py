"""Steps under every trainer's name, and records that state none: counted, and said so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from log_reading import read_run, values

from verl_tui.sources.formats.catalog import FORMATS


def written(path: Path, records: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.mark.parametrize(
    "name",
    ["step", "global_step", "global_steps", "current_steps", "iteration", "iter", "update", "optimizer_step", "_step",
     "train/global_step", "trainer/global_step", "training/step", "num_steps", "Iteration", "train-step"],
)  # fmt: skip
def test_a_step_by_any_name(name: str, tmp_path: Path) -> None:
    records = [{name: 10 * n, "loss": 1.0 / n} for n in range(1, 6)]
    run = read_run(written(tmp_path / "metrics.jsonl", records))
    assert values(run, "loss") == {10 * n: 1.0 / n for n in range(1, 6)}
    assert [state.status.note for state in run.sources.values()] == [None] * len(
        run.sources
    )
    path = tmp_path / "csv" / "metrics.csv"
    path.parent.mkdir()
    path.write_text(
        f"{name},loss\n" + "".join(f"{10 * n},{1.0 / n!r}\n" for n in range(1, 6))
    )
    assert values(read_run(path.parent), "loss") == values(run, "loss")


def test_a_step_with_its_total(tmp_path: Path) -> None:
    pair = read_run(
        written(
            tmp_path / "a.jsonl", [{"loss": 0.5, "global_step/max_steps": "10/438"}]
        )
    )
    assert (values(pair, "loss"), pair.total_steps) == ({10: 0.5}, 438)
    total = read_run(
        written(
            tmp_path / "b.jsonl",
            [{"loss": 0.5, "iteration": 3, "total_iterations": 30}],
        )
    )
    assert (values(total, "loss"), total.total_steps) == ({3: 0.5}, 30)
    assert set(total.keys) == {"loss"}


def test_records_with_nothing_but_an_epoch_are_counted_and_said_to_be(
    tmp_path: Path,
) -> None:
    records = [{"epoch": n / 10, "loss": 1.0 / n} for n in range(1, 5)]
    records.insert(2, {"epoch": 0.2, "eval_loss": 2.0})
    run = read_run(written(tmp_path / "metrics.jsonl", records))
    assert values(run, "loss") == {n: 1.0 / n for n in range(1, 5)}
    assert values(run, "eval_loss") == {2: 2.0}, (
        "an evaluation is of the step that it follows"
    )
    notes = {state.status.note for state in run.sources.values()} - {None}
    assert notes == {"5 records without a step: counted in the order of the file"}


def test_records_without_any_step_are_not_put_on_one(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    records = [{"loss": float(n), "reward": 0.5} for n in range(4)]
    written(tmp_path / "run" / "metrics.jsonl", records)
    run = read_run(tmp_path / "run")
    assert values(run, "loss") == {1: 0.0, 2: 1.0, 3: 2.0, 4: 3.0}
    (tmp_path / "csv").mkdir()
    (tmp_path / "csv" / "m.csv").write_text("loss,reward\n0.0,0.5\n1.0,0.5\n")
    table = read_run(tmp_path / "csv")
    assert values(table, "loss") == {1: 0.0, 2: 1.0}
    assert "2 records without a step: counted in the order of the file" in [
        state.status.note for state in table.sources.values()
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "args.json",
            '{"max_steps": 80, "num_train_epochs": 3.0, "steps": 5, "epoch": 1}',
        ),
        ("tasks.jsonl", '{"id": 5, "difficulty": 0.5}\n{"id": 6, "difficulty": 0.7}\n'),
        ("words.jsonl", '{"step": "first, add", "id": 1}\n'),
    ],
)
def test_what_is_no_log_of_metrics(name: str, text: str) -> None:
    assert not any(format.matches(Path(name), text.encode()) for format in FORMATS)
