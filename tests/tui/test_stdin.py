"""A log piped into the installed command: the screen shows it, the keys come from the terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest
from real_terminal import DEADLINE, Pty, restored
from test_installed import line

SIZE = (120, 40)


class Piped(Pty):
    """The command on a pty, with a pipe in the place of standard input."""

    def __init__(self, *words: object) -> None:
        here, self.end_of_pipe = os.pipe()
        self._here = here
        super().__init__(*words, size=SIZE)
        os.close(here)

    def write(self, text: str) -> None:
        os.write(self.end_of_pipe, text.encode())

    def hang_up(self) -> None:
        """End the log."""
        if self.end_of_pipe >= 0:
            os.close(self.end_of_pipe)
            self.end_of_pipe = -1

    def close(self) -> None:
        self.hang_up()
        super().close()


@pytest.fixture
def run(monkeypatch):
    """Start the command with a pipe; end it after the test."""
    started = []
    execve = os.execve

    def piped(path, words, environment):
        # In the child: its standard input becomes the pipe, the pty stays its terminal.
        os.dup2(piped.here, 0)
        os.closerange(3, 64)
        execve(path, words, environment)

    monkeypatch.setattr(os, "execve", piped)
    pipe = os.pipe

    def remember():
        piped.here, there = pipe()
        return piped.here, there

    monkeypatch.setattr(os, "pipe", remember)

    def start(*words):
        started.append(Piped(*words))
        return started[-1]

    yield start
    for terminal in started:
        terminal.close()


def test_a_log_is_piped_in_and_the_terminals_keys_are_read(run):
    terminal = run("-")
    terminal.write("".join(line(step) for step in range(1, 50)))
    terminal.until("stdin", "step 49", "0.49")
    terminal.write(line(77))
    terminal.until("step 77", "0.77")
    terminal.press(b"r")
    terminal.until("cannot be read a second time")
    terminal.press(b"?")
    terminal.until("Help")
    terminal.press(b"q")
    terminal.until("step 77", gone="esc closes")
    terminal.press(b"q")
    assert terminal.end() == 0
    assert restored(terminal.output)


def test_the_screen_stays_when_the_log_ends(run):
    terminal = run("-")
    terminal.write(
        "Started a local Ray instance\nstep:3 - critic/score/mean:0.25\nstep:4 - critic/score/mean:0.375\n"
    )
    terminal.hang_up()
    terminal.until("stdin", "step 4", "0.375")
    terminal.press(b"q")
    assert terminal.end() == 0


def test_without_a_terminal_for_keys_it_says_what_to_do():
    here, there = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "verl_tui", "-"], input=line(1).encode(), stdout=there, stderr=subprocess.PIPE,
        start_new_session=True, timeout=DEADLINE, check=False,
    )  # fmt: skip
    os.close(here)
    os.close(there)
    assert done.returncode == 3
    assert done.stderr.startswith(b"verl-tui: this is not a terminal")
