"""`get … --wait`: the answer when a condition holds, read from logs that another thread writes, and
one sentence and a code where it does not, or never will.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from functools import partial
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import pytest
from file_writing import write_file
from log_reading import MADE

from verl_tui.cli import main
from verl_tui.config import Config
from verl_tui.guard import is_gone
from verl_tui.monitor import Monitor
from verl_tui.reading import refreshes
from verl_tui.sources.feed import Feed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

DEADLINE = 60
GET = [sys.executable, "-m", "verl_tui", "get"]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr("signal.signal", lambda *_: None)  # those of the tests stay
    often = partial(refreshes, between=0.05)
    monkeypatch.setattr("verl_tui.answers.waiting.refreshes", often)


def steps(first: int, last: int, **more: float) -> list[str]:
    """Return lines of a training whose reward rises by a hundredth a step, with KL high from 30 on."""
    lines = []
    for at in range(first, last + 1):
        kl = 0.4 if at >= 30 else 0.02
        data = {"critic/score/mean": at / 100, "actor/ppo_kl": kl, **more}
        data["training/total_steps"] = 200.0
        lines.append(json.dumps({"step": at, "data": data}))
    return lines


@contextmanager
def growing(log: Path, lines: Sequence[str]) -> Iterator[None]:
    """Hold a log open and append lines to it, one after the other, until all are there or nobody
    waits for them.
    """
    over = Event()

    def write() -> None:
        for line in lines:
            file.write(f"{line}\n")
            file.flush()
            if over.wait(0.004):
                return

    with log.open("a", encoding="utf-8") as file:
        writer = Thread(target=write)
        writer.start()
        try:
            yield
        finally:
            over.set()
            writer.join()


@pytest.fixture
def log(tmp_path):
    """The log of a run of ten steps."""
    return write_file(tmp_path / "run_7" / "log.jsonl", "\n".join([*steps(1, 10), ""]))


def answer(capsys: pytest.CaptureFixture[str], *words: object) -> dict[str, Any]:
    assert main(["get", *map(str, words), "--json", "--timeout", "1m"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize(
    ("condition", "step"),
    [
        ("step=5", 10),
        ("step=40", 40),
        ("reward>0.2 and step>=12", 21),
        ("reward>0.9 or kl > 0.3", 30),
        ("finding>=warning", 30),
        ("finding=kl-high", 30),
        ("val>0.7", 60),
        ("not state=waiting and max kl > 0.1", 30),
    ],
)
def test_it_answers_as_soon_as_the_condition_holds(log, capsys, condition, step):
    lines = [*steps(11, 59), *steps(60, 5000, **{"val-core/gsm8k/acc/mean@1": 0.8})]
    with growing(log, lines):
        found = answer(capsys, "state", log.parent, "--wait", condition)
    assert found["state"] == "running"
    assert step <= found["step"] < 5000, "it did not wait for the end"
    assert found["read"] == "whole"
    assert found["bytes_read"] <= log.stat().st_size, "each byte is read once"


def test_each_answer_is_of_the_moment_at_which_it_holds(log, capsys):
    wait = ("--wait", "step=50")
    sample = {"step": 49, "input": "why?", "output": "because", "score": 1.0}
    (log.parent / "49.jsonl").write_text(json.dumps(sample) + "\n")
    with growing(log, steps(11, 5000)):
        points = answer(capsys, "metrics", log.parent, "--metric", "reward", *wait)
        found = answer(capsys, "findings", log.parent, *wait)
        lines = answer(capsys, "log", log.parent, "--last", 1, *wait)
        metrics = answer(capsys, "metrics", log.parent, *wait)
        samples = answer(capsys, "samples", log.parent, *wait)
    assert points["points"][-1]["step"] >= 50
    assert points["total"] == points["points"][-1]["step"]
    assert found["findings"][0]["id"] == "circuit-breaker-kl"
    assert json.loads(lines["lines"][-1]["text"])["step"] >= 50
    assert metrics["metrics"][0]["count"] >= 50
    assert samples["samples"][0]["response"] == "because"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("RUN --wait reward>5 --timeout 1", 4, "run_7, running at step 10, did not meet reward>5 within 1 s"),
        ("EMPTY --wait step=5 --timeout 0.1", 4, "empty: no log in this directory yet: looking for *.jsonl, *.log, *.out, *.txt, *.csv; no run could be read within 0.1 s"),
        ("ENDED --wait reward>5", 5, "ended, stopped? at step 10, did not meet reward>5, and has ended"),
        ("ENDED --wait state=running", 5, "ended, stopped? at step 10, did not meet state=running, and has ended"),
        ("PLANNED --wait step=201", 5, "planned, running at step 10, did not meet step=201, and never will: its last step is 200"),
        ("RUN --wait state=finishd", 5, "--wait: no state is called finishd; did you mean finished?"),
        ("RUN --wait finding=kl-hihg", 5, "--wait: no finding is called kl-hihg; did you mean kl-high or ref-kl-high or ref-kl-rising?"),
        ("RUN --wait reward>", 64, "--wait: unfinished"),
        ("RUN --wait reward>high", 64, "--wait: “high” is no number"),
        ("RUN --timeout 5", 64, "--timeout goes with --wait"),
        ("RUN --wait step=1 --timeout soon", 64, "argument --timeout: soon is not a time such as 90 (seconds), 30m or 2h"),
        ("ALL --wait step=1", 64, "4 runs: ended, notes, planned, run_7; name one with --run"),
        ("ALL --run run_9 --wait step=1", 64, "run_9 is none of the runs: ended, notes, planned, run_7"),
        ("ALL --run planned/train.log --wait step=1", 64, "planned/train.log is none of the runs: ended, notes, planned, run_7"),
        ("NOTHING --wait step=1", 3, "NOTHING: no such file or directory"),
        ("NOTES --wait step=1", 3, "notes: it is no training"),
    ],
)  # fmt: skip
def test_what_does_not_hold_is_said_in_one_sentence(
    log, capsys, monkeypatch, words, code, said
):
    home = log.parents[1]
    monkeypatch.chdir(home)
    texts = {
        "ended": log.read_text(),
        "planned": "(TaskRunner pid=1) Total training steps: 200\n"
        "(TaskRunner pid=1) step:10 - critic/score/mean:0.5 - actor/ppo_kl:0.1\n",
        "notes": "remember the milk\n",
        "empty": "",
    }
    for name, text in texts.items():
        (home / name).mkdir()
        path = write_file(home / name / "train.log", text)
        os.utime(path, (1e9, 1e9))
    (home / "empty" / "train.log").unlink()
    standing = {
        "RUN": log.parent, "ENDED": home / "ended", "PLANNED": home / "planned", "EMPTY": home / "empty",
        "NOTES": home / "notes" / "train.log", "ALL": home / "*" / "*log*", "NOTHING": "NOTHING",
    }  # fmt: skip
    with growing(log, ()), growing(home / "planned" / "train.log", [" "]):
        given = [str(standing.get(one, one)) for one in words.split()]
        limit = [] if "--timeout" in words else ["--timeout", "20"]
        argv = ["get", "state", *given, *limit]
        assert main(argv) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.replace(f"{home}/", "").startswith(f"verl-tui: {said}")
    assert err.count("\n") == 1


def test_what_is_not_logged_is_said_at_once_and_waited_for(log, capsys):
    with growing(log, ()):
        wait = ["--wait", "rewrd > 1 or vl > 1", "--timeout", "1"]
        assert main(["get", "state", str(log.parent), *wait]) == 4
    *unlogged, last = capsys.readouterr().err.splitlines()
    first, second = sorted(unlogged)
    assert "run_7: no run has rewrd, alike: reward" in first
    assert "run_7: no run has vl" in second
    assert last.endswith("within 1 s")


def test_a_run_that_vanishes_ends_it(log, capsys):
    began = Event()

    def vanish() -> None:
        began.wait(DEADLINE)
        shutil.rmtree(log.parent)

    gone = Thread(target=vanish)
    gone.start()
    with growing(log, ()):
        words = ["--wait", "step=900", "--timeout", "1m"]
        code = main(["get", "state", str(log.parent), *words], ready=began.set)
        gone.join()
    assert code == 3
    said = capsys.readouterr().err
    assert said.startswith("verl-tui: ")
    assert said.count("\n") == 1


def test_a_run_whose_files_vanish_before_they_are_read_is_gone(log):
    monitor, feed = Monitor(Config()), Feed([str(log.parent)])
    feed.settle()
    monitor.apply(feed.scan(), 0.0)
    shutil.rmtree(log.parent)
    for batch in feed.read():
        monitor.apply(batch, 0.0)
    assert [*map(is_gone, monitor.runs.values())] == [True]


def test_real_runs_as_they_grow(tmp_path, capsys):
    raised = MADE / "verl061_raise" / "train.log"
    if not raised.is_file():
        pytest.skip(f"no {raised}")
    log = tmp_path / "real" / "train.log"
    log.parent.mkdir()
    lines = raised.read_text(errors="replace").splitlines()
    log.write_text("\n".join([*lines[:100], ""]))
    blocks = ["\n".join(lines[at : at + 20]) for at in range(100, len(lines), 20)]
    with growing(log, blocks):
        found = answer(capsys, "state", log.parent, "--wait", "step=5")
        assert (found["step"] or 0) >= 5
        found = answer(capsys, "state", log.parent, "--wait", "state=crashed")
        assert (found["state"], found["verdict"]) == ("crashed", "critical")
        found = answer(capsys, "findings", log.parent, "--wait", "finding=crash")
        assert found["findings"][0]["id"] == "crash"


@pytest.mark.parametrize("ending", [signal.SIGINT, None])
def test_nothing_is_left_running(log, ending):
    command = [*GET, "state", log, "--wait", "rewrd>1"]
    with (
        growing(log, ()),
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as one,
    ):
        assert one.stdout is not None
        assert one.stderr is not None
        assert b"rewrd" in one.stderr.readline(), "it waits"
        if ending is None:
            one.stdout.close()
        else:
            one.send_signal(ending)
        assert one.wait(DEADLINE) == (141 if ending is None else 128 + ending)


def test_standard_input_is_waited_for_too(log):
    done = subprocess.run(
        [*GET, "state", "-", "--wait", "step=9", "--json"], input=log.read_bytes(),
        capture_output=True, check=False, timeout=DEADLINE,
    )  # fmt: skip
    assert (done.returncode, json.loads(done.stdout)["step"]) == (0, 10)
