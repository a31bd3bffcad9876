"""`trainer_state.json`: values, steps of training and evaluation, rewriting without restarts, whole
or not.
"""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest
from log_reading import NOW, drain, read_run, values

from verl_tui.records import Batch, MetricRows, Restart, Unreadable
from verl_tui.runs.run import Run
from verl_tui.sources.formats.metrics_json import trainer_state
from verl_tui.sources.source import FileSource


def document(last: int, *, ends: bool = False, shift: float = 0.0) -> dict[str, Any]:
    """Return a trainer's state after so many steps, one of four an evaluation too."""
    history: list[dict[str, Any]] = []
    for step in range(1, last + 1):
        history.append(
            {
                "epoch": step / 100,
                "loss": step / 8 + shift,
                "reward": step / 4,
                "kl": 0.5,
                "step": step,
            }
        )
        if step % 4 == 0:
            history.append(
                {
                    "epoch": step / 100,
                    "eval_loss": 0.25,
                    "eval_runtime": 1.5,
                    "step": step,
                }
            )
    if ends:
        history.append(
            {
                "epoch": last / 100,
                "train_loss": 0.5,
                "train_runtime": 91.5,
                "step": last,
            }
        )
    return {
        "best_metric": 0.25,
        "best_model_checkpoint": "/home/me/out/checkpoint-4",
        "global_step": last,
        "log_history": history,
        "logging_steps": 1,
        "max_steps": 20,
        "num_train_epochs": 2,
        "save_steps": 4,
        "trial_name": None,
    }


def text(*args: Any, **options: Any) -> bytes:
    return (
        json.dumps(document(*args, **options), indent=2, sort_keys=True) + "\n"
    ).encode()


def write(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("name", "head", "fits"),
    [
        ("trainer_state.json", text(8), True),
        ("state.json", text(8)[:700], True),
        ("state.jsonl", text(8), False),
        ("a.json", b'{"log_history": 1}', False),
        ("a.json", b'["log_history", "global_step"]', False),
        ("a.json", b"", False),
    ],
)
def test_what_is_recognised(name: str, head: bytes, fits: bool) -> None:
    assert trainer_state.matches(Path(name), head) is fits


def test_what_it_says(tmp_path: Path) -> None:
    path = write(tmp_path / "trainer_state.json", text(8))
    run = read_run(path)
    assert values(run, "reward") == {step: step / 4 for step in range(1, 9)}
    assert values(run, "eval_loss") == {4: 0.25, 8: 0.25}
    assert values(run, "epoch")[8] == 0.08
    assert (run.step, run.total_steps, run.restarts, run.unreadable) == (8, 20, [], 0)
    assert run.settings["num_train_epochs"] == 2
    assert run.called_best == ["/home/me/out/checkpoint-4"]
    assert run.checkpoints == {4: "/home/me/out/checkpoint-4"}
    assert run.dialect == "other"
    assert run.outcome is None


def test_values_that_are_none(tmp_path: Path) -> None:
    history = [
        {"step": 1, "loss": math.nan, "reward": None, "name": "x", "on": True},
        {"step": 2, "loss": -math.inf},
        {"loss": 1.0},
        7,
        {"step": "3.5", "loss": 1.0},
    ]
    path = write(
        tmp_path / "trainer_state.json",
        json.dumps({"global_step": 2, "log_history": history}).encode(),
    )
    run = read_run(path)
    assert set(run.keys) == {"loss", "on", "reward"}
    assert math.isnan(values(run, "loss")[1])
    assert math.isnan(values(run, "reward")[1]), (
        "transformers 5 writes null for what turned NaN"
    )
    assert values(run, "loss")[2] == -math.inf
    assert run.unreadable == 1
    assert run.total_steps is None


def test_a_document_written_anew_tells_only_what_is_new(tmp_path: Path) -> None:
    path = write(tmp_path / "trainer_state.json", text(8))
    source = FileSource(path, trainer_state)
    run = Run("r")

    def read() -> list[Any]:
        found = drain(source)
        run.apply(Batch("r", source.status(), tuple(found)), NOW)
        return found

    read()
    write(path, text(12))
    assert sorted(
        step for rows in read() if isinstance(rows, MetricRows) for step in rows.steps
    ) == [
        9,
        10,
        11,
        12,
        12,
    ]
    os.utime(path, (1, 1))
    assert not [record for record in read() if isinstance(record, MetricRows)]
    assert run.restarts == []
    assert values(run, "loss") == {step: step / 8 for step in range(1, 13)}
    write(path, text(10, shift=1.0))
    assert [record for record in read() if isinstance(record, Restart)]
    assert [mark.step for mark in run.restarts] == [1]
    assert values(run, "loss")[10] == 10 / 8 + 1.0


@pytest.mark.parametrize(
    "data",
    [
        b"{}\n",
        b'{"log_history": {}}',
        b'{"log_history": [[[]]]}',
        b'{"log_history": null}',
    ],
)
def test_no_history(tmp_path: Path, data: bytes) -> None:
    source = FileSource(write(tmp_path / "trainer_state.json", data), trainer_state)
    assert [
        type(record)
        for record in drain(source)
        if isinstance(record, MetricRows | Unreadable)
    ] == [Unreadable]


def test_of_checkpoints_the_newest_is_read(tmp_path: Path) -> None:
    run_directory = tmp_path / "my_run"
    write(run_directory / "checkpoint-4" / "trainer_state.json", text(4))
    write(run_directory / "checkpoint-12" / "trainer_state.json", text(12))
    write(run_directory / "checkpoint-12" / "log.jsonl", b'{"step": 1, "a": 1}\n')
    (run_directory / "checkpoint-16").mkdir()
    run = read_run(run_directory)
    assert run.name == "my_run"
    assert list(values(run, "loss")) == list(range(1, 13))
    assert "a" not in run.keys


def test_a_checkpoint_that_makes_way_for_a_newer_one(tmp_path: Path) -> None:
    old = write(tmp_path / "checkpoint-4" / "trainer_state.json", text(4))
    source = FileSource(tmp_path / "checkpoint-*" / "trainer_state.json", trainer_state)
    assert [record for record in drain(source) if isinstance(record, MetricRows)]
    write(tmp_path / "checkpoint-8" / "trainer_state.json", text(8))
    old.unlink()
    found = drain(source)
    assert sorted(
        step for rows in found if isinstance(rows, MetricRows) for step in rows.steps
    ) == [
        5,
        6,
        7,
        8,
        8,
    ]
    assert not [record for record in found if isinstance(record, Restart)]
    (tmp_path / "checkpoint-8" / "trainer_state.json").unlink()
    assert drain(source) == []
    assert source.status().problem == "no such file or directory"
