"""The guard: trips once, runs its command once, tells what it does, and really stops a process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from itertools import starmap
from typing import TYPE_CHECKING, Any

import pytest
from command_line import run
from jsonl import write_jsonl

from verl_tui.config import Config
from verl_tui.guard import Guard, Orders
from verl_tui.monitor import Monitor, load
from verl_tui.runs.views.checkpoints import BestBy
from verl_tui.sources.feed import Feed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

NOW = 1_800_000_000.0
DEADLINE = 60
GUARD = [sys.executable, "-m", "verl_tui", "guard"]


def write(
    path: Path,
    kls: Sequence[float] = (),
    rewards: Sequence[float] = (),
    modified: float = NOW,
) -> Path:
    """Write a log of so many values of KL, or of rewards."""
    rows = []
    for kl, reward in [*((kl, 2.5) for kl in kls), *((0.03, one) for one in rewards)]:
        step = 1 + len(rows) // 2
        rows.append({"scope": "rollout", "step": step, "reward_mean": reward})
        rows.append({"scope": "ppo", "step": step, "kl_div": kl})
    write_jsonl(path, rows)
    os.utime(path, (modified, modified))
    return path


@pytest.fixture
def deaf(monkeypatch):
    """Leave the signals of this process alone."""
    monkeypatch.setattr("signal.signal", lambda *_: None)


ERROR = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nValueError: no\n'
HEALTHY, BROKEN = [0.03] * 20, [0.03] * 20 + [0.3] * 8


class Started:
    """Stands for the commands that were started."""

    def __init__(self, *codes: int | None) -> None:
        self.calls: list[tuple[tuple[str, ...], Mapping[str, str]]] = []
        self.codes = list(codes)
        self.pid = 4711

    def __call__(
        self, command: Sequence[str], environment: Mapping[str, str]
    ) -> Started:
        self.calls.append((tuple(command), environment))
        return self

    def poll(self) -> int | None:
        return self.codes.pop(0) if self.codes else 0


def watched(
    path: Path, orders: Orders, start: Started, now: float = NOW + 1
) -> tuple[Guard, list[dict[str, Any]]]:
    guard = Guard(load([str(path)], Config(), now), orders, start)
    return guard, list(guard.tick(now))


def kinds(events: Sequence[Mapping[str, Any]]) -> list[str]:
    return [event["event"] for event in events]


def tripped(events: Sequence[Mapping[str, Any]]) -> list[str]:
    return [event["id"] for event in events if event["event"] == "tripped"]


def test_it_trips_once_and_runs_the_command_once(tmp_path):
    path = write(tmp_path / "verl_logs.jsonl", BROKEN)
    start = Started(0)
    guard, events = watched(path, Orders(command=("stop", "$(me) ; rm -rf {}")), start)
    assert kinds(events) == ["watching", "state", "tripped", "command"]
    assert events[2]["id"] == "circuit-breaker-kl"
    assert (events[2]["since_step"], events[2]["ended"]) == (21, False)
    assert events[0]["time"].endswith("+00:00")
    ((command, environment),) = start.calls
    assert command == ("stop", "$(me) ; rm -rf {}"), (
        "nothing is put into it, and no shell reads it"
    )
    assert environment["VERL_TUI_FINDING"] == "circuit-breaker-kl"
    assert environment["VERL_TUI_SINCE_STEP"] == "21"
    assert environment["VERL_TUI_PATHS"].split(os.pathsep)[0] == str(path)
    assert not guard.done
    assert kinds(list(guard.tick(NOW + 2))) == ["command-ended", "ended"]
    assert guard.done
    assert guard.tripped
    assert list(guard.tick(NOW + 3)) == []
    assert len(start.calls) == 1


def test_what_has_ended_is_reported_and_sets_nothing_off(tmp_path):
    path, start = write(tmp_path / "verl_logs.jsonl", BROKEN), Started()
    guard, events = watched(path, Orders(command=("stop",)), start, NOW + 100_000)
    assert kinds(events) == ["watching", "state", "tripped", "ended"]
    assert events[2]["ended"] is True
    assert (guard.done, guard.tripped, start.calls) == (True, True, [])


def test_a_copy_that_goes_on_with_its_next_piece_is_stopped_then(tmp_path):
    path, form = (
        tmp_path / "log.jsonl",
        '{{"step": {}, "data": {{"actor/ppo_kl": {}}}}}\n',
    )
    path.write_text("".join(starmap(form.format, enumerate(BROKEN, 1))))
    os.utime(path, (NOW, NOW))
    start, monitor, feed = Started(0), Monitor(Config()), Feed([str(path)])
    guard = Guard(monitor, Orders(command=("stop",)), start)

    def look(now: float) -> list[str]:
        monitor.apply(feed.scan(), now)
        live = bool(monitor.runs)
        for batch in (*feed.read(), *feed.update_writers(now)):
            monitor.apply(batch._replace(live=live), now)
        return tripped(list(guard.tick(now)))

    assert look(NOW + 1) == ["circuit-breaker-kl"]
    assert look(NOW + 2) == start.calls == []
    with path.open("a") as file:
        file.write(form.format(len(BROKEN) + 1, 0.3))
    os.utime(path, (NOW + 9, NOW + 9))
    assert look(NOW + 10) == ["circuit-breaker-kl"]
    assert len(start.calls) == 1
    assert look(NOW + 11) == []


@pytest.mark.parametrize("age", [1.0, 600.0, 1800.0, 100_000.0])
def test_a_hang_stops_nothing_where_only_a_files_time_speaks_or_the_run_has_finished(
    tmp_path, age
):
    start = Started(None)
    orders = Orders(frozenset({"hang", "crash"}), ("stop",))
    unfinished = write(tmp_path / "copied" / "verl_logs.jsonl", HEALTHY)
    finished = tmp_path / "finished" / "train.log"
    finished.parent.mkdir()
    form = "step:{} - actor/entropy:0.5 - timing_s/step:3.0\n"
    lines = "".join(map(form.format, range(1, 21)))
    finished.write_text(f"{lines}Final validation metrics: {{}}\n")
    os.utime(finished, (NOW, NOW))
    for path in (unfinished, finished):
        guard, events = watched(path, orders, start, NOW + age)
        assert "tripped" not in kinds(events)
        assert not guard.tripped
    assert start.calls == []


def test_what_follows_trips_through_its_cause(tmp_path):
    path = write(tmp_path / "verl_logs.jsonl", BROKEN)
    both = Orders(frozenset(("circuit-breaker-kl", "kl-high")))
    _, events = watched(path, both, Started())
    assert tripped(events) == ["circuit-breaker-kl"]
    _, events = watched(path, Orders(frozenset(("kl-high",))), Started())
    assert tripped(events) == ["kl-high"]


def test_a_command_that_cannot_be_started_is_reported(tmp_path):
    path = write(tmp_path / "verl_logs.jsonl", BROKEN)
    orders = Orders(command=(str(tmp_path / "gone"),))
    events = list(Guard(load([str(path)], Config(), NOW + 1), orders).tick(NOW + 1))
    assert kinds(events)[-1] == "problem"
    assert "no such file" in events[-1]["message"]


# -- the real thing --------------------------------------------------------------------------------

WRITER = """
    import json, sys, time
    with open(sys.argv[1], "a") as log:
        for step in range(1, 1_000_000):
            kl = 0.03 if step <= 20 else 0.3
            log.write(json.dumps({"scope": "rollout", "step": step, "reward_mean": 2.5}) + "\\n")
            log.write(json.dumps({"scope": "ppo", "step": step, "kl_div": kl}) + "\\n")
            log.flush()
            time.sleep(0.02)
"""


def test_it_really_stops_a_process_that_writes_a_log(tmp_path):
    log = tmp_path / "run ; touch HACKED $(touch HACKED)" / "verl_logs.jsonl"
    log.parent.mkdir()
    writer = subprocess.Popen([sys.executable, "-c", textwrap.dedent(WRITER), log])
    try:
        calls = tmp_path / "calls"
        said = f'echo "$VERL_TUI_RUN|$VERL_TUI_FINDING" >> "{calls}"'
        script = f"kill {writer.pid}; {said}"
        words = ("guard", log.parent, "--", "sh", "-c", script)
        done = run(*words, timeout=DEADLINE, cwd=tmp_path)
        assert writer.wait(DEADLINE) == -signal.SIGTERM
    finally:
        writer.kill()
    assert done.returncode == 2, done.stderr
    assert calls.read_text() == f"{log.parent.name}|circuit-breaker-kl\n"
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert kinds(events)[-3:] == ["command", "command-ended", "ended"]
    assert events[-1]["state"] == "stopped"
    assert events[-1]["step"] < 2000
    assert not list(tmp_path.rglob("HACKED"))


def test_a_dry_run_runs_nothing_and_a_signal_ends_it(tmp_path):
    log = write(tmp_path / "verl_logs.jsonl", BROKEN, modified=time.time())
    command = [*GUARD, log, "--dry-run", "--", "touch", tmp_path / "ran"]
    guard = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert guard.stdout is not None
    event = {}
    while event.get("event") != "command":
        event = json.loads(guard.stdout.readline())
    assert (event["argv"], event["pid"]) == (["touch", str(tmp_path / "ran")], None)
    assert event["dry_run"] is True
    guard.send_signal(signal.SIGTERM)
    guard.communicate(timeout=DEADLINE)
    assert guard.returncode == 128 + signal.SIGTERM
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--kl", "0.5"], 0, ""),
        (["--kl", "0.25", "--count", "8"], 2, ""),
        (["--count", "9"], 0, ""),
        (["--on", "kl-hihg"], 64, "did you mean kl-high"),
        (["--count", "0"], 64, "whole number"),
        (["--reward-drop", "2"], 64, "share"),
        (["--", "no-such-program-here"], 64, "no such command"),
    ],
)
def test_words(tmp_path, words, code, said, deaf, asked):
    log = write(tmp_path / "verl_logs.jsonl", BROKEN, modified=1e9)
    error = asked("guard", log, *words, code=code).err
    assert said in error
    assert error.count("\n") <= 1


LINE = "step:{} - actor/entropy:0.5 - critic/score/mean:0.3\n".format


@pytest.mark.parametrize(
    ("text", "code", "end"),
    [
        ("".join(map(LINE, range(1, 9))), 0, ("ended?", 8)),
        (LINE(1) + LINE(2).strip(), 0, ("ended?", 2)),
        (LINE(1) + ERROR, 0, ("crashed", 1)),
        ("remember the milk\n", 3, ("ended?", None)),
        ("", 3, ("ended?", None)),
    ],
)
def test_the_end_of_standard_input_is_an_end(text, code, end, deaf, asked, monkeypatch):
    here, there = os.pipe()
    monkeypatch.setattr("verl_tui.sources.pipe.descriptor", here)
    os.write(there, text.encode())
    os.close(there)
    said = asked("guard", "-", code=code)
    last = json.loads(said.out.splitlines()[-1])
    assert (last["event"], last["state"], last["step"]) == ("ended", *end)
    assert ("nothing readable in standard input" in said.err) is (code == 3)
    os.close(here)


# -- new bests -------------------------------------------------------------------------------------


class Watched:
    """A guard over one log that grows between its looks."""

    def __init__(self, path: Path, start: Started, *first: float) -> None:
        self.path, self.rewards, self.now = write(path, rewards=first), [*first], NOW
        self.monitor, self.feed = Monitor(Config()), Feed([str(path)])
        self.feed.scan()
        orders = Orders(command=("keep",), best=BestBy())
        self.guard = Guard(self.monitor, orders, start)

    def look(self, *more: float) -> list[dict[str, Any]]:
        self.rewards += more
        write(self.path, rewards=self.rewards)
        self.now += 1
        for batch in self.feed.read():
            self.monitor.apply(batch, self.now)
        return list(self.guard.tick(self.now))


def test_each_new_best_runs_the_command_with_step_value_and_checkpoint(tmp_path):
    start = Started()
    watched = Watched(tmp_path / "run" / "verl_logs.jsonl", start, 2.0, 2.5)
    first = watched.look()
    assert kinds(first) == ["watching", "state", "best"]
    assert (first[2]["step"], first[2]["value"], first[2]["before"]) == (2, 2.5, True)
    assert kinds(watched.look(2.4)) == [], "no best, nothing to tell"
    found = watched.look(2.75)
    assert kinds(found) == ["best", "command"]
    assert {key: found[0][key] for key in ("metric", "key", "step", "value", "path", "before")} == {
        "metric": "reward", "key": "rollout/reward_mean", "step": 4, "value": 2.75, "path": None, "before": False,
    }  # fmt: skip
    ((command, environment),) = start.calls
    assert command == ("keep",)
    names = ("STEP", "VALUE", "METRIC", "PATH")
    told = [environment[f"VERL_TUI_{name}"] for name in names]
    assert told == ["4", "2.75", "reward", ""]
    assert kinds(watched.look(2.9)) == ["best", "command-ended", "command"]
    assert watched.guard.tripped is False


def test_one_command_at_a_time_and_the_newest_best_next(tmp_path):
    start = Started(None, None, 0)
    watched = Watched(tmp_path / "run" / "verl_logs.jsonl", start, 1.0)
    watched.look()
    assert kinds(watched.look(2.0)) == ["best", "command"]
    assert kinds(watched.look(3.0)) == ["best"]
    assert kinds(watched.look(4.0)) == ["best"]
    assert kinds(watched.look()) == ["command-ended", "command"]
    steps = [environment["VERL_TUI_STEP"] for _, environment in start.calls]
    assert steps == ["2", "4"]


def test_with_bests_findings_and_archives_run_nothing(tmp_path):
    orders, start = Orders(command=("keep",), best=BestBy()), Started()
    path = write(tmp_path / "verl_logs.jsonl", BROKEN)
    guard, events = watched(path, orders, start)
    assert kinds(events) == ["watching", "state", "tripped", "best"]
    assert guard.tripped
    _, events = watched(write(path, rewards=[1.0, 2.0]), orders, start, NOW + 100_000)
    assert kinds(events) == ["watching", "state", "ended", "best"]
    assert start.calls == []


def test_nothing_in_a_path_reaches_the_terminal_raw(tmp_path, deaf, asked):
    folder = tmp_path / os.fsdecode(b"r\xff\xc2\x9b2J\xe2\x80\xae")
    folder.mkdir()
    path = write(folder / "verl_logs.jsonl", HEALTHY, modified=1e9)
    out = asked("guard", path).out
    assert out.isascii()
    assert json.loads(out.splitlines()[0])["paths"][0] == str(path)
