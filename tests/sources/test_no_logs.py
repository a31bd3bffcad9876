"""Files of records that are no training's log: passed over, and said to be what they are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from file_writing import write_file
from log_reading import read_run

from verl_tui.sources.discovery.finder import Finder
from verl_tui.sources.formats.catalog import SINGLE

if TYPE_CHECKING:
    from collections.abc import Iterable

LOG = '{"step": 1, "data": {"loss": 0.5}}\n{"step": 2, "data": {"loss": 0.25}}\n'
OWN = "no log: written by verl-tui itself"
CHAT = "no log: a chat: messages, and no record of a step"
DATA = "no log: a data set or a chat: texts without a step and without a score"
ASKED = [{"role": "user", "content": "2+5?"}, {"role": "assistant", "content": "7"}]


def lines(records: Iterable[dict[str, Any]]) -> str:
    return "".join(f"{json.dumps(record)}\n" for record in records)


def each(*fields: str, **constant: Any) -> str:
    """Return records whose fields differ from one to the next."""
    return lines(
        {**{field: f"{field} {n}" for field in fields}, **constant} for n in range(9)
    )


def things(field: str) -> str:
    return f'no log: results or data: one record for each "{field}", and none of a step'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (lines(ASKED * 4), CHAT),
        (lines({**turn, "step": n, "tokens": 12} for n, turn in enumerate(ASKED)), CHAT),
        (lines({"from": "human", "value": f"q{n}"} for n in range(3)), CHAT),
        (lines({"role": "user", "content": "see verl. and step:1 - a:2"} for _ in "ab"), CHAT),
        (lines({"messages": ASKED, "id": n} for n in range(3)), DATA),
        (each("instruction", "output", input=""), DATA),
        (each("question", "answer"), DATA),
        (each("task", accuracy=0.5, n=100), things("task")),
        (each("prompt", "chosen", "rejected"), things("prompt")),
        (each("text", loss=0.5), things("text")),
        (each("task_id", steps=12, success=True, reward=1.0), things("task_id")),
        (each("model_answer", iteration=3, correct=1), things("model_answer")),
        ('{"version": 1, "program": "verl-tui", "id": "crash", "step": 7}\n', OWN),
        ('{"kind": "verl-tui notifications", "version": 1, "sent": [1.5]}', OWN),
        (lines({"kind": "note", "names": ["a", None]} for _ in range(4)), "no log: a list of texts: no record has a number"),
    ],
)  # fmt: skip
def test_what_is_no_training_is_passed_over_and_said(tmp_path, text, reason):
    other = write_file(tmp_path / "other.jsonl", text)
    discovery = Finder([str(other)]).scan()
    assert discovery.runs == ()
    assert discovery.problems == (f"{other}: is {reason}",)
    (tmp_path / "run.jsonl").write_text(LOG)
    (passed,) = Finder([str(tmp_path)]).scan().passed
    assert (passed.path, passed.reason) == (str(other), reason)
    assert set(read_run(tmp_path).keys) == {"loss"}


@pytest.mark.parametrize(
    "text",
    [
        lines({"time": f"2026-02-11 10:00:{n}", "loss": n / 8} for n in range(10, 14)),
        lines({"phase": "train", "reward": n / 8} for n in range(4)),
        lines({"epoch": n, "note": f"epoch {n}", "loss": 0.5} for n in range(4)),
        lines({"episode": n, "task": f"t{n}", "return": 0.5} for n in range(4)),
        lines({"step": 1, "name": f"metric {n}", "value": n} for n in range(4)),
        lines({"step": 1, "host": f"node-{n}", "loss": n} for n in range(4)),
        lines({"step": n, "response": f"it is {n}", "loss": n} for n in range(4)),
        lines({"loss": f"0.{n}", "reward": f"{n}.5"} for n in range(1, 5)),
    ],
)
def test_what_may_be_a_training_is_read(tmp_path, text):
    path = write_file(tmp_path / "metrics.jsonl", text)
    assert read_run(path).keys


def test_a_record_after_which_others_are_to_come_is_waited_for(tmp_path):
    path = write_file(tmp_path / "history.json", '{\n "note": "a"\n},\n')
    discovery = Finder([str(path)]).scan()
    assert discovery.problems == ()
    assert discovery.waiting == (f"{path}: holds {SINGLE}",)
