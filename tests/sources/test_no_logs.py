"""Files of records that are no training's log: passed over, and said to be what they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from log_reading import read_run, values

from verl_tui.cli import main
from verl_tui.sources.discovery.finder import Finder

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
        (lines({"idx": n, "choices": ["a", "b"], "answer": 1} for n in range(9)), things("idx")),
        ('{"version": 1, "program": "verl-tui", "id": "crash", "step": 7}\n', OWN),
        ('{"kind": "verl-tui notifications", "version": 1, "sent": [1.5]}', OWN),
        (lines({"kind": "note", "names": ["a", None]} for _ in range(4)), "no log: a list of texts: no record has a number"),
    ],
)  # fmt: skip
def test_what_is_no_training_is_passed_over_and_said(
    tmp_path: Path, text: str, reason: str
) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text(text)
    discovery = Finder([str(other)]).scan()
    assert discovery.runs == ()
    assert discovery.problems == (f"{other}: is {reason}",)
    (tmp_path / "run.jsonl").write_text(LOG)
    (passed,) = Finder([str(tmp_path)]).scan().passed
    assert (passed.path, passed.reason) == (str(other), reason)
    assert set(read_run(tmp_path).keys) == {"loss"}


def test_one_record_that_may_become_anything_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"model": "m", "benchmark": "gsm8k", "value": 0.5}\n')
    discovery = Finder([str(path)]).scan()
    assert (discovery.runs, discovery.problems) == ((), ())
    assert discovery.waiting == (
        f"{path}: holds a single record without a step so far",
    )


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
def test_what_may_be_a_training_is_read(tmp_path: Path, text: str) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text(text)
    assert read_run(path).keys


@pytest.mark.parametrize(
    "words",
    [
        "get state RUN --json",
        "get findings RUN --json",
        "get metrics RUN --json",
        "get samples RUN --json",
        "get log RUN --json",
        "check RUN --json",
        "compare RUN --json",
        "doctor RUN --json",
        "report RUN -o OUT",
    ],
)
def test_what_we_write_is_no_run(
    tmp_path: Path, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    (run / "rollouts").mkdir(parents=True)
    (run / "run.jsonl").write_text(LOG)
    (run / "rollouts" / "1.jsonl").write_text(
        '{"input": "q", "output": "a", "score": 1}\n'
    )
    before = read_run(run)
    out = run / "answer.json"
    paths = {"RUN": str(run), "OUT": str(out)}
    main([paths.get(word, word) for word in words.split()])
    said = capsys.readouterr().out
    for path in (out, run / "answer.jsonl"):
        if not out.exists():
            path.write_text(said)
        text = out.read_text() * (2 if path.suffix == ".jsonl" else 1)
        path.write_text(text)
        discovery = Finder([str(run)]).scan()
        assert {(Path(one.path).suffix, one.reason) for one in discovery.passed} >= {
            (path.suffix, OWN)
        }
        assert Finder([str(path)]).scan().runs == ()
    after = read_run(run)
    assert (after.keys, len(after.sources)) == (before.keys, len(before.sources))


def test_what_we_export_is_no_second_run(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.jsonl").write_text(LOG)
    main(["export", "csv", str(tmp_path), "-o", str(tmp_path / "out")])
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"a.csv", "b.csv"}
    runs = Finder([str(tmp_path)]).scan().runs
    assert {run.name for run in runs} == {"a", "b"}
    alone = read_run(tmp_path / "out" / "a.csv")
    assert values(alone, "loss") == {1: 0.5, 2: 0.25}
