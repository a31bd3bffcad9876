"""Files of samples without steps: evaluations, with their mean and their samples, and no training
that hangs.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from file_writing import write_file
from log_reading import NOW, notes, read_run, read_text, values

from verl_tui.check.data import report
from verl_tui.check.note import note_text
from verl_tui.config import Config
from verl_tui.monitor import load
from verl_tui.runs.views.state import State, is_evaluation, state
from verl_tui.sources.formats.catalog import FORMATS
from verl_tui.sources.formats.tables import sample_records

ASKED = {"role": "user", "content": "q"}
RECORDS: list[dict[str, Any]] = [
    {
        "id": n,
        "reward": n / 4,
        "conversations": [ASKED, {"role": "assistant", "content": f"a{n}"}],
    }
    for n in range(5)
]
LINES = "".join(json.dumps(record) + "\n" for record in RECORDS)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("eval.jsonl", LINES),
        ("eval.json", json.dumps(RECORDS)),
        (
            "eval.json",
            json.dumps({"model": "m", "accuracy": 0.5, "results": RECORDS}, indent=2),
        ),
        (
            "eval.json",
            json.dumps({"model": "m", "tasks": {"math": {"samples": RECORDS}}}),
        ),
        ("eval.json", json.dumps({"tags": ["a", {"by": "b"}], "results": RECORDS})),
        ("eval.json", LINES),
        ("eval.json", LINES.replace("\n", " ")),
        ("eval.jsonl", LINES.replace("reward", "Score")),
    ],
)
def test_an_evaluation_is_shown_as_one(name, text, tmp_path):
    path = write_file(tmp_path / name, text)
    format = next(one for one in FORMATS if one.matches(path, text.encode()))
    assert format.name == "samples"
    run = read_run(tmp_path)
    assert is_evaluation(run)
    assert run.step is None
    assert values(run, "val_samples/score") == {0: 0.5}
    assert values(run, "val_samples/count") == {0: 5.0}
    assert state(run, NOW * 2) is State.FINISHED
    assert (
        notes(run) == "an evaluation of 5 samples, mean score 0.5: they state no step"
    )


def test_words_behind_the_first_sample_cost_that_one_alone(tmp_path):
    (tmp_path / "eval.json").write_text(LINES.replace("\n", " hello\n", 1))
    assert values(read_run(tmp_path), "val_samples/count") == {0: 4.0}


def test_what_check_says_of_one(tmp_path):
    path = write_file(tmp_path / "eval.jsonl", LINES)
    os.utime(path, (NOW - 7200, NOW - 7200))
    monitor = load([str(path)], Config(), NOW)
    assert not monitor.verdicts["eval"].findings
    text = note_text(report(monitor, NOW), monitor, NOW)
    assert text.startswith(
        "eval: an evaluation of 5 samples, mean score 0.5, finished, last record 2h 00m ago"
    )


def test_samples_with_a_step_are_a_trainings(tmp_path):
    line = '{{"step": {}, "prompt": "p", "response": "r", "score": 1.0}}\n'
    run = read_text(tmp_path, "".join(map(line.format, (3, 4))), "s.jsonl")
    assert values(run, "samples/score") == {3: 1.0, 4: 1.0}
    assert not notes(run)


@pytest.mark.parametrize("scores", ["reward", "score"])
def test_a_reward_for_each_token_is_summed(tmp_path, scores):
    """As SkyRL writes examples of its training, and its evaluations."""
    path = tmp_path / "step_7_examples.jsonl"
    parts: list[Any] = [[0, 0, 1.0], [0, None, 0.0], [[0, 0.5], [0, 0, 0]], [0.0, -0.5]]
    record = {"global_step": 7, "input_prompt": "2+5?", "output_response": "It is 7."}
    lines = (json.dumps({**record, scores: one}) + "\n" for one in parts)
    run = read_text(tmp_path, "".join(lines), path.name)
    assert values(run, "samples/score") == {7: 0.25}
    assert values(run, "samples/count") == {7: 4.0}
    assert notes(run) == f"the score of a sample is the sum of its list {scores}"
    monitor = load([str(path)], Config(), NOW)
    text = note_text(report(monitor, NOW), monitor, NOW)
    assert "4 samples of step 7, mean score 0.25" in text


@pytest.mark.parametrize(
    "text",
    [
        '[{"prompt": "p", "response": "r"}]',
        '{"data": [1, 2]}',
        "[1, 2]",
        '{"a": {"prompt": "p"}}',
    ],
)
def test_a_data_set_is_no_evaluation(text):
    assert not sample_records.matches(Path("train.json"), text.encode())
