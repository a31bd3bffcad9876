"""The installed command on a real pty, seen through a terminal emulator."""

from __future__ import annotations

import base64
import json
import os
import pty
import re
import signal
import subprocess
import sys
import tempfile

import pytest
from real_terminal import DEADLINE, Pty, restored

pytestmark = pytest.mark.pty


def line(step: int) -> str:
    return (
        json.dumps(
            {
                "step": step,
                "data": {"critic/score/mean": step / 100, "actor/kl_loss": 0.01},
            }
        )
        + "\n"
    )


@pytest.fixture
def run(request):
    """Start the command; end it after the test."""
    started = []

    def start(*words, **options):
        started.append(Pty(*words, **options))
        return started[-1]

    yield start
    for terminal in started:
        terminal.close()


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "run_a" / "log.jsonl"
    path.parent.mkdir()
    path.write_text("".join(line(step) for step in range(1, 50)))
    return path


def test_from_the_first_frame_to_the_last(run, log, tmp_path):
    # Two runs, the shown one with a sample: each panel that has something to show has a frame.
    sample = {
        "scope": "sample",
        "step": 49,
        "prompt": "1+1?",
        "response": "two",
        "reward": 1.0,
    }
    (log.parent / "samples.jsonl").write_text(json.dumps(sample) + "\n")
    other = tmp_path / "run_b" / "log.jsonl"
    other.parent.mkdir()
    other.write_text(line(1))
    terminal = run(log.parent, other.parent)
    # Every layout is reached by resizing alone.
    everything = ("─ runs ─", "─ charts ─", "nothing found", "─ samples ─", "? Help")
    terminal.until(*everything)
    assert "gpus" in "\n".join(terminal.screen.display).casefold(), (
        "one row where there are none"
    )
    terminal.resize(80, 24)
    terminal.until("─ charts ─", "nothing found", "? Help", gone="─ runs ─")
    terminal.until("─ charts ─", gone="GPUs:")
    terminal.resize(40, 12)
    terminal.until("reward", "nothing found", gone="─ charts ─")
    terminal.resize(120, 40)
    terminal.until(*everything)
    # A storm of sizes leaves the last one.
    for at in range(40):
        terminal.resize(1 + at * 37 % 200, 1 + at * 13 % 60)
    terminal.resize(120, 40)
    terminal.until(*everything)
    # Bytes that are no text are no keys.
    terminal.until("run_a", "step 49", "reward", "0.49")
    terminal.press(b"\xff\xfe\xc3m")
    terminal.until("page 1/")  # all metrics
    terminal.press(b"\x1b")
    terminal.until("step 49", gone="page 1/")
    # A copy reaches the clipboard of the terminal.
    terminal.press(b"\x19")  # ctrl+y
    terminal.until("copied")
    (copied,) = re.findall(rb"\x1b\]52;c;([A-Za-z0-9+/=]*)\x07", terminal.output)
    assert base64.b64decode(copied) == b"critic/score/mean step 49 0.49"
    # A step that is appended is seen.
    with log.open("a") as file:
        file.write(line(77))
    terminal.until("step 77", "0.77")
    # What is found while watching is not reported where that is not wanted.
    terminal.read_for(SETTLED)
    before = len(terminal.output)
    with log.open("a") as file:
        file.write(breach(78, 88))
    terminal.until("circuit breaker: policy KL")
    terminal.read_for(1.0)
    assert b"\x07" not in terminal.output[before:]
    # It ends with success, and leaves the terminal as it was.
    terminal.press(b"q")
    assert terminal.end() == 0
    assert restored(terminal.output)


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGTERM,
        *(
            pytest.param(one, marks=pytest.mark.thorough)
            for one in (signal.SIGHUP, signal.SIGINT)
        ),
    ],
)
def test_signals_restore_the_terminal(run, log, number):
    terminal = run(log, TERM="linux", module=True)  # which starts the same app
    terminal.until("step 49")
    os.kill(terminal.pid, number)
    assert terminal.end() == 128 + number
    assert restored(terminal.output)


def test_what_a_model_wrote_never_reaches_the_terminal_raw(run, tmp_path):
    evil = "\x1b]0;owned\x07\x1b[2J\x9b31m\x07\x00\u202e[red]x[/red][/INST]\x1b[?1049l tail"
    record = {
        "scope": "sample",
        "step": 1,
        "prompt": evil,
        "response": evil,
        "reward": 1.0,
    }
    path = tmp_path / "evil[red].jsonl"
    path.write_text(
        json.dumps(record)
        + "\n"
        + json.dumps({"scope": evil, "step": 1, evil: 1.0})
        + "\n"
    )
    errors = tmp_path / "err.log"
    terminal = run(path, size=(140, 45), errors=errors)
    terminal.until("[red]x[/red][/INST]", "tail")
    for raw in (
        b"owned\x07",
        b"\x1b]0;owned",
        "\u202e".encode(),
        b"\x9b31m",
        b"\x1b[2J",
    ):
        assert raw not in terminal.output
    terminal.press(b"q")
    assert terminal.end() == 0
    # Where errors go into a file the screen is drawn all the same, and nothing else is in it.
    assert restored(terminal.output)
    assert errors.read_text() == ""


@pytest.mark.parametrize(
    "environment",
    [
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        pytest.param({"LC_ALL": "C"}, marks=pytest.mark.thorough),
    ],
)
def test_a_terminal_without_unicode_gets_ascii(run, log, environment):
    terminal = run(log, **environment)
    terminal.until("reward", "step 49", "+-")
    terminal.press(b"?")
    terminal.until("All metrics", "esc closes")
    terminal.press(b"q")
    terminal.until("step 49", "reward", gone="esc closes")
    terminal.press(b"q")
    assert terminal.end() == 0
    assert terminal.output.isascii()


@pytest.mark.parametrize("missing", ["stdin", "stdout"])
def test_without_a_terminal_it_says_what_to_do(log, missing):
    here, there = pty.openpty()
    with tempfile.TemporaryFile() as file:
        streams = {
            name: file if name == missing else there
            for name in ("stdin", "stdout", "stderr")
        }
        done = subprocess.run(
            [sys.executable, "-m", "verl_tui", log],
            check=False,
            timeout=DEADLINE,
            **streams,
        )
        said = os.read(here, 65536).decode()
    os.close(here)
    os.close(there)
    assert done.returncode == 3
    assert said.startswith("verl-tui: this is not a terminal")
    assert "check" in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("frame.svg", "<svg"),
        pytest.param("frame.txt", " run_a", marks=pytest.mark.thorough),
    ],
)
def test_snapshot(log, tmp_path, name, begins):
    target = tmp_path / name
    command = [
        sys.executable,
        "-m",
        "verl_tui",
        log.parent,
        "--snapshot",
        target,
        "--size",
        "80x24",
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    assert (done.returncode, done.stderr) == (0, "")
    text = target.read_text()
    assert text.startswith(begins)
    assert "run_a" in text
    assert "\x1b" not in text
    if name.endswith("txt"):
        assert len(text.splitlines()) == 24
        assert max(map(len, text.splitlines())) <= 80


def breach(first: int, last: int) -> str:
    """Return steps whose policy KL is far out."""
    steps = (
        {"step": n, "data": {"critic/score/mean": 0.5, "actor/ppo_kl": 0.4}}
        for n in range(first, last + 1)
    )
    return "".join(json.dumps(step) + "\n" for step in steps)


SETTLED = 3.0
"""Seconds after which what is found is no longer taken for what lay on disk."""


def test_what_is_found_while_watching_is_reported_where_that_is_wanted(
    run, log, tmp_path
):
    said = b"\x1bPtmux;\x1b\x1b]777;notify;verl-tui;"
    config = tmp_path / "config.toml"
    config.write_text('desktop = "osc777"')
    terminal = run("--config", config, log.parent, TMUX="/tmp/tmux-0/default,1,0")
    terminal.until("step 49", "nothing found")
    terminal.read_for(SETTLED)
    before = len(terminal.output)
    assert b"circuit" not in terminal.output
    with log.open("a") as file:
        file.write(breach(50, 60))
    terminal.until("circuit breaker: policy KL")
    terminal.read_for(1.0)
    written = terminal.output[before:]
    assert written.count(said) == 1
    assert said + b"run_a: circuit-breaker-kl: " in written
    terminal.press(b"q")
    assert terminal.end() == 0
