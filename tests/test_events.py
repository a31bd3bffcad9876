"""What happens to runs, told in lines of JSON: what is told of logs that grow, that no line is too
long for a model whatever a log wrote, and how it ends.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from math import ceil
from typing import TYPE_CHECKING, Any

import pytest
from file_writing import write_file
from log_reading import MADE

from verl_tui.config import Config
from verl_tui.guard import ABSENT, LONGEST, Events, bounded
from verl_tui.monitor import Monitor
from verl_tui.sources.feed import Feed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

NOW = 1_900_000_000.0
DEADLINE = 60
WATCH = [sys.executable, "-m", "verl_tui", "watch", "--events"]
FIELDS = {"version", "time", "event", "run", "run_id", "state", "step", "next"}
TOKENS = 2000


class Told:
    """What is told of a log that grows, by a clock that the test moves on."""

    def __init__(self, path: Path, *more: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path, self.now = path, NOW
        monitor = Monitor(Config())
        self.events, self.feed = Events(monitor), Feed([str(path.parent), *more])

    def add(self, text: str | bytes = b"", after: float = 30.0) -> list[dict[str, Any]]:
        """Append to the log, and return what is told then."""
        with self.path.open("ab") as file:
            file.write(text.encode() if isinstance(text, str) else text)
        self.now += after
        os.utime(self.path, (self.now, self.now))
        return self.look()

    def look(self) -> list[dict[str, Any]]:
        monitor, live = self.events.monitor, bool(self.events.monitor.runs)
        monitor.apply(self.feed.scan(), self.now)
        for batch in (*self.feed.read(), *self.feed.update_writers(self.now)):
            monitor.apply(batch._replace(live=live), self.now)
        told = [bounded(one) for one in self.events.tick(self.now)]
        for one in told:
            line = json.dumps(one, allow_nan=False)
            assert len(line) <= LONGEST
            assert ceil(len(line) / 2) <= TOKENS, "two bytes a token: on the safe side"
            assert one.keys() >= FIELDS
        return told

    def play(self, log: Path, looks: int = 25) -> Iterator[dict[str, Any]]:
        """Append the lines of a real log, and yield what is told."""
        lines = log.read_bytes().splitlines(keepends=True)
        each = max(1, len(lines) // looks)
        for at in range(0, len(lines), each):
            yield from self.add(b"".join(lines[at : at + each]))


def kinds(told: Sequence[dict[str, Any]]) -> list[str]:
    return [one["event"] for one in told]


def step(number: int, **values: float) -> str:
    data = {"critic/score/mean": 0.5, "actor/ppo_kl": 0.03, **values}
    return json.dumps({"step": number, "data": data}) + "\n"


def steps(first: int, last: int, **values: float) -> str:
    return "".join(step(at, **values) for at in range(first, last + 1))


@pytest.fixture
def told(tmp_path):
    """A log of 20 healthy steps that this process holds open, as a trainer does."""
    log = Told(tmp_path / "run" / "log.jsonl")
    with log.path.open("ab"):
        assert kinds(log.add(steps(1, 20))) == ["start"]
        yield log


def test_a_finding_is_told_once_with_its_evidence_and_when_it_is_over(told):
    assert told.add(step(21)) == []
    (first,) = told.add(steps(22, 40, **{"actor/ppo_kl": 0.15}))
    assert (first["event"], first["finding"]) == ("finding", "kl-high")
    assert (first["severity"], first["key"]) == ("warning", "actor/ppo_kl")
    assert (first["since_step"], first["follows"]) == (22, None)
    assert first["repeated"] is False
    assert first["evidence"]
    assert first["next"]
    assert told.look() == []
    (over,) = told.add(steps(41, 80))
    assert (over["event"], over["finding"], over["since_step"]) == (
        "cleared", "kl-high", 22,
    )  # fmt: skip
    (again,) = told.add(steps(81, 99, **{"actor/ppo_kl": 0.15}))
    assert (again["finding"], again["repeated"]) == ("kl-high", True)
    worse = told.add(steps(100, 110, **{"actor/ppo_kl": 0.5}))
    assert worse[0]["finding"] == "circuit-breaker-kl"
    (kl,) = (one for one in worse if one["finding"] == "kl-high")
    assert kl["follows"] == "circuit-breaker-kl", "it is told that it has a cause now"
    assert kl["next"] == worse[0]["next"]


def test_a_new_best_by_validation_at_most_once_a_minute(told):
    (one,) = told.add(step(21, **{"critic/score/mean": 0.6}))
    assert (one["event"], one["metric"], one["best_step"], one["value"]) == (
        "best", "reward", 21, 0.6,
    )  # fmt: skip
    val = "val-core/gsm8k/acc/mean@1"
    assert told.add(step(22, **{val: 0.1}), 60) == [], "the first is better than none"
    (one,) = told.add(step(23, **{val: 0.2}), 60)
    assert (one["metric"], one["key"], one["value"]) == ("validation", val, 0.2)
    assert told.add(step(24, **{val: 0.3})) == []
    assert told.add(step(25, **{val: 0.25}), 29) == []
    (one,) = told.add(step(26), 1)
    assert (one["best_step"], one["value"], one["checkpoint"]) == (24, 0.3, None)
    assert told.add(step(27, **{val: 0.4}), 1) == []
    told.now += 10**6
    assert kinds(told.look()) == ["state", "best", "end"], "none is lost at the end"


def test_a_restart_says_from_where_to_where(tmp_path):
    told = Told(tmp_path / "run" / "log.jsonl")
    told.add(steps(1, 20))
    (mark,) = (one for one in told.add(steps(9, 10)) if one["event"] == "restart")
    assert (mark["from_step"], mark["to_step"], mark["step"]) == (20, 9, 10)
    assert "restart" not in kinds(told.add(steps(11, 30)))
    later = Told(told.path)
    assert "restart" not in kinds(later.add(step(31))), "what was there is no news"


def test_a_run_whose_files_vanish_ends(told):
    shutil.rmtree(told.path.parent)
    for _ in range(ABSENT):
        assert told.look() == [], "a log that is rotated is away for a moment"
    (end,) = told.look()
    assert (end["event"], end["state"], told.events.done) == ("end", "unknown", True)
    assert "deleted" in end["next"]
    told.path.parent.mkdir()
    assert "end" not in kinds(told.add(steps(1, 21)))
    assert not told.events.done


def test_notes_beside_a_run_keep_nobody_waiting(tmp_path):
    notes = write_file(tmp_path / "notes.log", "remember the milk\n")
    os.utime(notes, (1e9, 1e9))
    told = Told(tmp_path / "runs" / "log.jsonl", str(notes))
    found = told.add(steps(1, 20))
    assert "no training" in {one["state"] for one in found}
    told.now += 10**6
    assert kinds(told.look())[-1] == "end"
    assert told.events.done


@pytest.mark.parametrize(
    ("name", "expected", "critical"),
    [
        ("verl061_collapse", {"policy-collapse", "entropy-collapse"}, True),
        ("verl091_healthy", {"truncation"}, False),
    ],
)
def test_real_runs_are_told_in_few_lines(tmp_path, name, expected, critical):
    log = MADE / name / "train.log"
    if not log.is_file():
        pytest.skip(f"no {log}")
    told = Told(tmp_path / name / "train.log")
    lines = list(told.play(log))
    told.now += 10**6
    lines += told.look()
    assert kinds(lines)[0] == "start"
    assert kinds(lines)[-1] == "end"
    found = [one for one in lines if one["event"] == "finding"]
    assert {one["finding"] for one in found} >= expected
    assert len(lines) < 70
    assert told.events.done
    assert bool(told.events.critical) is critical


SECRET = "sk-proj-" + "aB3" * 16
HOSTILE = [
    "\N{FIRE}" * 100_000,
    "\x1b[2J\x1b]0;title\x07" * 20_000,
    "\u202e\u4f60\u597d" * 30_000,
    f"api_key={SECRET} " * 5_000,
    '"\\' * 50_000,
]


@pytest.mark.parametrize("text", HOSTILE, ids=["emoji", "escapes", "bidi", "keys", "quotes"])  # fmt: skip
def test_no_event_is_long_or_tells_a_secret_whatever_a_log_wrote(tmp_path, text):
    name = text.translate({0: "_", ord("/"): "_"})[:40]
    told = Told(tmp_path / name / "train.log")
    metric = f"critic/rewards/{text[:2000].replace(' ', '')}/mean"
    lines = [
        f"(TaskRunner pid=1) step:{at} - critic/score/mean:0.5 - actor/ppo_kl:{kl}"
        f" - {metric}:nan - actor/grad_norm:nan"
        for at, kl in enumerate([0.02] * 20 + [0.5] * 10, 1)
    ]
    trouble = ["Traceback (most recent call last):", f"RuntimeError: {text}"]
    found = told.add("\n".join([*lines, *trouble, ""]))
    told.now += 10**6
    found += told.look()
    assert "finding" in kinds(found)
    assert kinds(found)[-1] == "end"
    written = "\n".join(map(json.dumps, found))
    assert written.isascii()
    for foreign in (SECRET, "\\u001b", "\\u202e"):
        assert foreign not in written


def test_the_command_needs_no_terminal_and_its_code_tells_how_it_ended(
    tmp_path, monkeypatch, asked
):
    monkeypatch.setattr("signal.signal", lambda *_: None)  # those of the tests stay
    for name, kl, code in (("healthy", 0.03, 0), ("broken", 0.4, 2)):
        log = tmp_path / name / "log.jsonl"
        write_file(log, steps(1, 20) + steps(21, 40, **{"actor/ppo_kl": kl}))
        os.utime(log, (1e9, 1e9))
        _, out, err = asked("watch", "--events", log, code=code)
        assert err == ""
        told = [json.loads(line) for line in out.splitlines()]
        assert {kinds(told)[0], kinds(told)[-1]} == {"start", "end"}


@pytest.mark.parametrize("ending", [signal.SIGTERM, None])
def test_nothing_is_left_running(tmp_path, ending):
    log = write_file(tmp_path / "run" / "log.jsonl", steps(1, 20))
    with (
        log.open("a"),
        subprocess.Popen([*WATCH, log], stdout=subprocess.PIPE) as watching,
    ):
        assert watching.stdout is not None
        assert json.loads(watching.stdout.readline())["event"] == "start"
        if ending is None:  # its reader goes, and nothing is to be told
            watching.stdout.close()
        else:
            watching.send_signal(ending)
        assert watching.wait(DEADLINE) == (141 if ending is None else 128 + ending)
