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
from file_writing import write_file as write
from log_reading import Followed, drain, read_run, values

from verl_tui.records import MetricRows, Restart, Unreadable
from verl_tui.sources.formats.metrics_json import trainer_state
from verl_tui.sources.source import FileSource

NAME = "trainer_state.json"


def text(last: int, shift: float = 0.0) -> bytes:
    """Return a trainer's state after so many steps, one of four an evaluation too."""
    history: list[dict[str, Any]] = []
    for step in range(1, last + 1):
        at = {"epoch": step / 100, "step": step}
        history.append({**at, "loss": step / 8 + shift, "reward": step / 4, "kl": 0.5})
        if step % 4 == 0:
            history.append({**at, "eval_loss": 0.25, "eval_runtime": 1.5})
    document = {
        "best_metric": 0.25, "best_model_checkpoint": "/home/me/out/checkpoint-4", "global_step": last,
        "log_history": history, "logging_steps": 1, "max_steps": 20, "num_train_epochs": 2, "trial_name": None,
    }  # fmt: skip
    return (json.dumps(document, indent=2, sort_keys=True) + "\n").encode()


def steps(records: list[Any]) -> list[int]:
    return sorted(at for rows in records if isinstance(rows, MetricRows) for at in rows.steps)  # fmt: skip


def restarts(records: list[Any]) -> list[Restart]:
    return [record for record in records if isinstance(record, Restart)]


@pytest.mark.parametrize(
    ("name", "head", "fits"),
    [
        (NAME, text(8), True),
        ("state.json", text(8)[:700], True),
        ("state.jsonl", text(8), False),
        ("a.json", b'{"log_history": 1}', False),
        ("a.json", b'["log_history", "global_step"]', False),
        ("a.json", b"", False),
    ],
)
def test_what_is_recognised(name, head, fits):
    assert trainer_state.matches(Path(name), head) is fits


def test_what_it_says(tmp_path):
    run = read_run(write(tmp_path / NAME, text(8)))
    assert values(run, "reward") == {step: step / 4 for step in range(1, 9)}
    assert values(run, "eval_loss") == {4: 0.25, 8: 0.25}
    assert values(run, "epoch")[8] == 0.08
    assert (run.step, run.total_steps, run.restarts, run.unreadable) == (8, 20, [], 0)
    assert run.settings["num_train_epochs"] == 2
    assert run.called_best == ["/home/me/out/checkpoint-4"]
    assert run.checkpoints == {4: "/home/me/out/checkpoint-4"}
    assert (run.dialect, run.outcome) == ("other", None)


def test_values_that_are_none(tmp_path):
    history = [
        {"step": 1, "loss": math.nan, "reward": None, "name": "x", "on": True},
        {"step": 2, "loss": -math.inf},
        {"loss": 1.0},
        7,
        {"step": "3.5", "loss": 1.0},
    ]
    document = json.dumps({"global_step": 2, "log_history": history})
    run = read_run(write(tmp_path / NAME, document.encode()))
    assert set(run.keys) == {"loss", "on", "reward"}
    assert repr(values(run, "loss")) == "{1: nan, 2: -inf}"
    assert math.isnan(values(run, "reward")[1]), "null is what turned NaN"
    assert (run.unreadable, run.total_steps) == (1, None)


def test_a_document_written_anew_tells_only_what_is_new(tmp_path):
    path = write(tmp_path / NAME, text(8))
    log = Followed(FileSource(path, trainer_state))
    log.read()
    write(path, text(12))
    assert steps(log.read()) == [9, 10, 11, 12, 12]
    os.utime(path, (1, 1))
    assert steps(log.read()) == []
    assert log.run.restarts == []
    assert values(log.run, "loss") == {step: step / 8 for step in range(1, 13)}
    write(path, text(10, shift=1.0))
    assert restarts(log.read())
    assert [mark.step for mark in log.run.restarts] == [1]
    assert values(log.run, "loss")[10] == 10 / 8 + 1.0


@pytest.mark.parametrize(
    "data",
    [
        b"{}\n",
        b'{"log_history": {}}',
        b'{"log_history": [[[]]]}',
        b'{"log_history": null}',
    ],
)
def test_no_history(tmp_path, data):
    records = drain(FileSource(write(tmp_path / NAME, data), trainer_state))
    said = (one for one in records if isinstance(one, MetricRows | Unreadable))
    assert [type(record) for record in said] == [Unreadable]


def test_of_checkpoints_the_newest_is_read(tmp_path):
    home = tmp_path / "my_run"
    for step in (4, 12):
        write(home / f"checkpoint-{step}" / NAME, text(step))
    write(home / "checkpoint-12" / "log.jsonl", b'{"step": 1, "a": 1}\n')
    (home / "checkpoint-16").mkdir()
    run = read_run(home)
    assert run.name == "my_run"
    assert list(values(run, "loss")) == list(range(1, 13))
    assert "a" not in run.keys


def test_a_checkpoint_that_makes_way_for_a_newer_one(tmp_path):
    old = write(tmp_path / "checkpoint-4" / NAME, text(4))
    source = FileSource(tmp_path / "checkpoint-*" / NAME, trainer_state)
    assert steps(drain(source))
    new = write(tmp_path / "checkpoint-8" / NAME, text(8))
    old.unlink()
    found = drain(source)
    assert steps(found) == [5, 6, 7, 8, 8]
    assert not restarts(found)
    new.unlink()
    assert drain(source) == []
    assert source.status().problem == "no such file or directory"
