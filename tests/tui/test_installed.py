"""The installed command on a real pty, seen through a terminal emulator."""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import subprocess
import sys
from contextlib import closing

import pytest
from command_line import complaint
from command_line import run as command
from file_writing import write_file
from real_terminal import DEADLINE, Pty, restored
from watching import sample

from verl_tui.cli import main

pytestmark = pytest.mark.pty
SEQUENCES = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])"
)


def line(step, **data):
    data = data or {"critic/score/mean": step / 100, "actor/kl_loss": 0.01}
    return json.dumps({"step": step, "data": data}) + "\n"


def copied(output):
    """Return what the terminal was given for its clipboard."""
    found = re.findall(rb"\x1b\]52;c;([A-Za-z0-9+/=]*)\x07", output)
    return [base64.b64decode(one).decode() for one in found]


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
    return write_file(
        tmp_path / "run_a" / "log.jsonl", "".join(line(step) for step in range(1, 50))
    )


def test_from_the_first_frame_to_the_last(run, log, tmp_path):
    # Two runs, the shown one with a sample: each panel that has something to show has a frame.
    (log.parent / "samples.jsonl").write_text(sample(49, "two"))
    other = write_file(tmp_path / "run_b" / "log.jsonl", line(1))
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
    for at in range(20):
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
    assert copied(terminal.output) == ["critic/score/mean step 49 0.49"]
    # A step that is appended is seen.
    with log.open("a") as file:
        file.write(line(77))
    terminal.until("step 77", "0.77")
    # It ends with success, and leaves the terminal as it was.
    terminal.press(b"q")
    assert terminal.end() == 0
    assert restored(terminal.output)


@pytest.mark.thorough
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT])
def test_signals_restore_the_terminal(run, log, number):
    terminal = run(log, TERM="linux", module=True)  # which starts the same app
    terminal.until("step 49")
    os.kill(terminal.pid, number)
    assert terminal.end() == 128 + number
    assert restored(terminal.output)


EVIL = "\x1b]52;c;ZXZpbA==\x07\x1bPx\x1b\\\x1b]0;owned\x07\x1b[2J\x9b31m\x00\u202e[red]x[/red][/INST]\x1b[?1049labc\u200b\ud800"
LONG = "é\x1b" * 40_000


def test_what_a_model_wrote_reaches_terminal_and_clipboard_as_plain_text(run, tmp_path):
    folder = tmp_path / "run\x1b]52;c;ZXZpbA==\x07\x1b[2J\u202e"
    write_file(folder / "log[red].jsonl", line(5, **{f"score{EVIL}": 0.5}))
    (folder / "samples.jsonl").write_text(sample(5, EVIL + LONG))
    errors = tmp_path / "err.log"
    terminal = run(folder.parent, size=(140, 45), errors=errors, VERL_TUI_STATE="")
    terminal.until("step 5", "[red]x[/red][/INST]", "é␛é␛")
    # the chart, the run, the sample
    texts: list[str] = [""]
    for keys in (b"\x19", b"\x1bOQ\x19", b"\x1b[17~\x19"):
        while (found := (copied(terminal.output) or [""])[-1]) in texts:
            terminal.press(keys)
            terminal.read_for(0.2)
        texts.append(found)
    assert all(len(text.encode()) <= 75_000 for text in texts)
    assert all(text.replace("\n", "").isprintable() for text in texts)
    assert texts[2].startswith("$'")
    assert texts[3].count("é␛") > 10_000
    terminal.press(b"q")
    assert terminal.end() == 0
    assert restored(terminal.output)
    for raw in (b"\x1b]52;c;ZXZpbA==", b"\x1b]0;owned", b"\x1b[2J"):
        assert raw not in terminal.output
    rest = SEQUENCES.sub(b"", terminal.output).decode("utf-8", "replace")
    assert {sign for sign in rest if not sign.isprintable()} <= {"\r", "\n"}
    # Where errors go into a file the screen is drawn all the same, and nothing else is in it.
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
def test_without_a_terminal_it_says_what_to_do(log, missing, monkeypatch, capsys):
    for name in ("stdin", "stdout"):
        stream = getattr(sys, name)
        monkeypatch.setattr(stream, "isatty", lambda there=name != missing: there)
    assert main([str(log)]) == 3
    said = complaint(capsys)
    assert said.startswith("this is not a terminal")
    assert "check" in said


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("frame.svg", "<svg"),
        pytest.param("frame.txt", " run_a", marks=pytest.mark.thorough),
    ],
)
def test_snapshot(log, tmp_path, name, begins):
    target = tmp_path / name
    done = command(str(log.parent), "--snapshot", str(target), "--size", "80x24")
    assert (done.returncode, done.stderr) == (0, "")
    text = target.read_text()
    assert text.startswith(begins)
    assert "run_a" in text
    assert "\x1b" not in text
    if name.endswith("txt"):
        assert len(text.splitlines()) == 24
        assert max(map(len, text.splitlines())) <= 80


SETTLED = 3.0
"""Seconds after which what is found is no longer taken for what lay on disk."""


def test_what_is_found_meanwhile_is_reported_where_that_is_wanted(run, log, tmp_path):
    said = b"\x1bPtmux;\x1b\x1b]777;notify;verl-tui;"
    config = write_file(tmp_path / "config.toml", 'desktop = "osc777"')
    terminal = run("--config", config, log.parent, TMUX="/tmp/tmux-0/default,1,0")
    terminal.until("step 49", "nothing found")
    terminal.read_for(SETTLED)
    before = len(terminal.output)
    assert b"circuit" not in terminal.output
    with log.open("a") as file:
        far_out = {"critic/score/mean": 0.5, "actor/ppo_kl": 0.4}
        file.writelines(line(step, **far_out) for step in range(50, 61))
    terminal.until("circuit breaker: policy KL")
    terminal.read_until(lambda: said in terminal.output)
    os.kill(terminal.pid, signal.SIGTERM)
    assert terminal.end() == 128 + signal.SIGTERM
    assert restored(terminal.output)
    written = terminal.output[before:]
    assert written.count(said) == 1
    assert said + b"run_a: circuit-breaker-kl: " in written


def test_a_log_is_piped_in_and_the_terminals_keys_are_read():
    here, there = os.pipe()

    def pipe_in():
        # In the child: its standard input becomes the pipe, the pty stays its terminal.
        os.dup2(here, 0)
        os.closerange(3, 64)

    terminal = Pty("-", prepare=pipe_in)
    os.close(here)
    with closing(terminal), os.fdopen(there, "w", 1) as log:
        log.writelines(map(line, range(1, 50)))
        terminal.until("stdin", "step 49", "0.49")
        log.write(line(77))
        terminal.until("step 77", "0.77")
        terminal.press(b"r")
        terminal.until("cannot be read a second time")
        # The screen stays when the log ends.
        log.close()
        terminal.press(b"?")
        terminal.until("Help")
        terminal.press(b"q")
        terminal.until("step 77", gone="esc closes")
        terminal.press(b"q")
        assert terminal.end() == 0
    assert restored(terminal.output)


def test_without_a_terminal_for_keys_it_says_what_to_do():
    here, there = os.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "verl_tui", "-"], input=line(1).encode(), stdout=there, stderr=subprocess.PIPE,
        start_new_session=True, timeout=DEADLINE, check=False,
    )  # fmt: skip
    os.close(here)
    os.close(there)
    assert done.returncode == 3
    assert done.stderr.startswith(b"verl-tui: this is not a terminal")
