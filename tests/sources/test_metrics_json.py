"""JSON that is no JSON lines: step records in a list, below a name, or over several lines each;
followed though it is written anew.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from file_writing import write_file
from log_reading import Followed, notes, read_run, read_text, values

from verl_tui.records import Restart, Unreadable
from verl_tui.sources.discovery.finder import Finder
from verl_tui.sources.formats import metrics_json
from verl_tui.sources.source import FileSource

STEPS = [*range(2, 14, 2)]
RECORDS: list[dict[str, Any]] = [
    {"step": step, "loss": step / 16, "reward": {"total": step / 8, "format": 1.0}}
    for step in STEPS
]
LOSS = {step: step / 16 for step in STEPS}
LOGGED = [{"step": one["step"], "data": {"loss": one["loss"]}} for one in RECORDS]
TEXTS = {
    "a list": json.dumps(RECORDS, indent=2),
    "a list on one line": json.dumps(RECORDS),
    "below a name": json.dumps(
        {"config": {"lr": [1, 2]}, "history": RECORDS}, indent=4
    ),
    "below a trainer's name": json.dumps({"log_history": RECORDS}),
    "lines of verl in a list": json.dumps(LOGGED),
    "records over several lines": "\n".join(
        json.dumps(one, indent=2) for one in RECORDS
    ),
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("name", ["history.json", "metrics.jsonl", "train.log"])
@pytest.mark.parametrize("named", [True, False])
def test_any_form_is_read(tmp_path, name, text, named):
    path = write_file(tmp_path / name, text)
    run = read_run(path if named else tmp_path)
    assert values(run, "loss") == LOSS
    if "total" in text:
        assert values(run, "reward/total") == {step: step / 8 for step in STEPS}
    (status,) = (one.status for one in run.sources.values() if one.status.records)
    assert status.format == metrics_json.name
    assert status.unreadable == 0
    assert ("has no end" in (status.note or "")) is text.endswith(",\n")


def test_metrics_of_trainings_without_a_step_are_counted(tmp_path):
    text = json.dumps([{"loss": 0.5, "val_loss": 1.0}, {"loss": 0.25}])
    run = read_text(tmp_path, text, "history.json")
    assert values(run, "loss") == {1: 0.5, 2: 0.25}
    assert "counted in the order of the file" in notes(run)


def test_a_document_that_is_written_anew_is_followed(tmp_path):
    path = tmp_path / "history.json"
    log = Followed(FileSource(path, metrics_json))
    records = []
    for known, step in enumerate(STEPS, 1):
        whole = json.dumps(RECORDS[:known], indent=2)
        for text in (whole[:-9], whole):
            path.write_text(text)
            records += log.read()
        assert log.run.step == step
    assert values(log.run, "loss") == LOSS
    assert not [one for one in records if isinstance(one, Restart | Unreadable)]
    path.write_text(json.dumps([{**RECORDS[0], "loss": 9.0}]))
    assert isinstance(log.read()[0], Restart)


@pytest.mark.parametrize(
    "text",
    [
        '{\n "max_steps": 80,\n "epoch": 1,\n "learning_rate": 1e-6\n}',
        '{\n "lr": [1e-6, 1e-5],\n "batch_size": [8, 16]\n}',
        '{\n "step": [1, 2, 3],\n "loss": [0.5, 0.25, 0.125]\n}',
        '{\n "1": {"loss": 0.5},\n "2": {"loss": 0.25}\n}',
        '{"results": {"gsm8k": {"acc": 0.5, "alias": "gsm8k"}},\n "n-shot": {"gsm8k": 5}}',
        '[{"id": 1, "text": "a"}, {"id": 2, "text": "b"}]',
        "[1, 2, 3]",
        '{\n "trajectories": [{"reward": 1, "num_steps": 3, "steps": [{"reward": 1}]}]\n}',
    ],
)
def test_a_document_of_something_else_is_said_to_be_one(tmp_path, text):
    assert not metrics_json.matches(Path("a.json"), text.encode())
    path = write_file(tmp_path / "a.json", text)
    discovery = Finder([str(path)]).scan()
    assert discovery.runs == ()
    assert discovery.problems == (
        f"{path}: is no log: a JSON document without a list of step records",
    )
    assert Finder([str(tmp_path)]).scan().runs == ()
