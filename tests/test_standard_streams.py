"""Standard streams that are full, closed or somewhere else, and signals that end a command."""

from __future__ import annotations

import errno
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_line import python

from verl_tui.cli import main
from verl_tui.commands.shared import Options
from verl_tui.commands.signals import (
    EndedError,
    at_end,
    end_tidily,
    write_runs,
)
from verl_tui.monitor import Monitor

PROGRAM = (sys.executable, "-m", "verl_tui")
FULL = Path("/dev/full")
PATIENCE = 30.0
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
needs_full = pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "run" / "log.jsonl"
    path.parent.mkdir()
    write(path, "critic/score/mean", 0.5, 8)
    return path


def write(path: Path, metric: str, value: float, steps: int) -> None:
    form = f'{{{{"step": {{}}, "data": {{{{"{metric}": {value}}}}}}}}}\n'
    path.write_text("".join(map(form.format, range(1, steps + 1))))


# -- streams ---------------------------------------------------------------------------------------


@needs_full
@pytest.mark.parametrize(
    "words",
    [["config"], ["config", "--help"], ["check"], ["get", "state"], ["export", "csv"]],
)
def test_a_full_disk_below_the_output_is_said(words, log, monkeypatch, capsys):
    paths = [] if "config" in words else [str(log)]
    with FULL.open("w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert main([*words, *paths]) == 73
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert said[0].endswith(": no space left on device")


@needs_full
def test_messages_that_cannot_be_written_stop_nothing(log, monkeypatch, capsys):
    with FULL.open("w") as full:
        monkeypatch.setattr(sys, "stderr", full)
        assert main(["check", str(log), "/nowhere", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["runs"]) == 1


@pytest.mark.parametrize("closed", ["2>&-", "<&- >&- 2>&-"])
def test_streams_that_are_closed_are_not_missed(log, tmp_path, closed):
    table = tmp_path / "table.csv"
    command = [*PROGRAM, "export", "csv", str(log), "-o", str(table)]
    words = ["sh", "-c", f'exec "$@" {closed}', "sh", *command]
    done = subprocess.run(words, capture_output=True, check=False)
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr
    assert table.read_text().count("\n") == 9, "and nothing else stands in it"


@needs_full
def test_a_guard_whose_events_are_not_taken_goes_on(log, tmp_path):
    write(log, "actor/ppo_kl", 0.9, 29)
    ran = tmp_path / "ran"
    with FULL.open("w") as full, log.open("a"):
        command = [*PROGRAM, "guard", str(log), "--", "touch", str(ran)]
        settings = {"stdout": full, "stderr": subprocess.PIPE, "text": True}
        done = subprocess.run(command, check=False, timeout=30, **settings)
    assert (done.returncode, ran.exists()) == (2, True)
    assert done.stderr.count("no space left on device; the guard goes on") == 1


def asked(path: Path) -> Options:
    return Options(paths=[str(path)], config=None, interval=1.0)


class Target:
    """Can be written now and then."""

    def __init__(self, *works: bool) -> None:
        self._works = list(works)

    def write(self, monitor: Monitor) -> None:
        if not self._works.pop(0):
            raise OSError(errno.ENOSPC, "No space left on device", "verl.prom")


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize(
    ("works", "code", "said"),
    [
        ((True, False, False, True), 0, ["verl.prom: no space", "written again"]),
        ((True, False), 73, ["verl.prom: no space"]),
    ],
)
def test_an_export_that_follows_outlives_a_full_disk(
    works, code, said, log, monkeypatch, capsys
):
    monkeypatch.setattr("verl_tui.exporters.following.follow", lambda _, config, **__: [
        Monitor(config) for _ in works
    ])  # fmt: skip
    target = Target(*works)
    assert write_runs(asked(log), target.write, follow=True) == code
    empty, *heard = capsys.readouterr().err.splitlines()
    assert empty == "verl-tui: nothing to export so far"
    assert len(heard) == len(said)
    assert all(words in line for words, line in zip(said, heard, strict=True))


# -- signals ---------------------------------------------------------------------------------------


@pytest.fixture
def kept():
    """Give the signals back as they were."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_command_that_is_ended_tidies_up(kept, number):
    end_tidily()
    with pytest.raises(EndedError) as ended:
        signal.raise_signal(number)
    assert ended.value.code == 128 + number
    assert signal.getsignal(number) is signal.SIG_DFL, (
        "the second one waits for nothing"
    )


def test_ctrl_c_is_an_interrupt_once_a_command_runs(kept):
    end_tidily()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


INTERRUPTED = """
from verl_tui import __main__ as program
def interrupted(ready):
    try:
        exec("raise KeyboardInterrupt")
    except KeyboardInterrupt:
        print("cleaned up")
        return 130
program.main = interrupted
program.run()
"""


def test_an_interrupt_while_a_module_is_imported_has_the_code_of_all_others(tmp_path):
    """A dataclass is made by `exec`, which Python remembers an interrupt in, although it is caught:
    it would end by the signal itself.
    """
    (tmp_path / "interrupted.py").write_text(INTERRUPTED)
    done = python("-m", "interrupted", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (130, "cleaned up\n", "")


def test_what_whoever_started_us_ignores_stays_ignored(kept):
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    heard: list[int] = []
    end_tidily()
    at_end(lambda number, _: heard.append(number))
    for number in SIGNALS:
        signal.raise_signal(number)
    assert heard == [signal.SIGINT, signal.SIGTERM]


@pytest.mark.parametrize(
    "number",
    [signal.SIGTERM, *(pytest.param(one, marks=pytest.mark.thorough) for one in (signal.SIGINT, signal.SIGHUP))],
)  # fmt: skip
def test_a_signal_leaves_nothing_half_written(tmp_path, number):
    there = tmp_path / "tmp"
    there.mkdir()
    demo = subprocess.Popen(
        [*PROGRAM, "demo", "--headless"],
        stdout=subprocess.PIPE,
        env={"TMPDIR": str(there), "VERL_TUI_STATE": ""},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    )
    assert demo.stdout is not None
    assert b"writing simulated runs" in demo.stdout.readline()
    demo.send_signal(number)
    demo.communicate(timeout=30)
    assert demo.returncode == 128 + number
    assert not list(there.iterdir())


@pytest.mark.pty
@pytest.mark.parametrize(
    ("words", "said", "codes"),
    [
        (("guard",), b"watching", {128 + signal.SIGHUP}),
        # It says so before it follows, and its code is 0 from then on.
        (("export", "prometheus", "--port", "0"), b"metrics are at", {0, 128 + signal.SIGHUP}),
    ],
)  # fmt: skip
def test_what_follows_ends_with_its_terminal(log, words, said, codes):
    pid, terminal = pty.fork()
    if pid == 0:
        # whoever started the tests may ignore it
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        os.execv(sys.executable, [*PROGRAM, *words, str(log)])
    heard = b""
    while said not in heard:
        assert select.select([terminal], [], [], PATIENCE)[0], heard
        heard += os.read(terminal, 4096)
    os.close(terminal)
    end = time.monotonic() + PATIENCE
    while not (status := os.waitpid(pid, os.WNOHANG))[0] and time.monotonic() < end:
        time.sleep(0.02)
    if not status[0]:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    assert status[0] == pid
    assert os.waitstatus_to_exitcode(status[1]) in codes
