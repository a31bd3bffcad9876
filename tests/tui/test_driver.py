"""An app on a terminal that goes away, with any bytes as keys."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import termios
import time
from typing import Any

import pytest
from real_terminal import restored
from textual.events import Key

from verl_tui.tui.terminal.driver import Ear

pytestmark = pytest.mark.pty

DEADLINE = 20.0
APP = """
from textual.app import App
from verl_tui.tui.terminal import driver

class Echo(App):
    def on_ready(self):
        self._driver.write(f"<{self.size} of {self.console.size}>")
        self._driver.write("<ready>")
    def on_resize(self, event):
        self._driver.write(f"<{event.size.width} wide>")
    def on_key(self, event):
        self._driver.write(f"<{event.key}>")
        if event.key == "z":
            self.action_suspend_process()
        if event.key == "q":
            self.exit(0)
    def on_unmount(self):
        for _ in range(100):  # more than wait to be written
            self._driver.write("<end>")

raise SystemExit(Echo(driver_class=driver.RobustDriver).run())
"""


class Terminal:
    """One with an app that is in no shell's session: no signal tells it when the terminal goes."""

    def __init__(self):
        # both stay open: what has been written can still be read
        self.fd, self._there = os.openpty()
        self.before = termios.tcgetattr(self.fd)
        self.output = b""
        streams: dict[str, Any] = dict.fromkeys(
            ("stdin", "stdout", "stderr"), self._there
        )
        # Readline gives a size to the processes of whoever has loaded it.
        sizes = "LINES", "COLUMNS"
        streams["env"] = {
            name: text for name, text in os.environ.items() if name not in sizes
        }
        self.app = subprocess.Popen(
            [sys.executable, "-c", APP], start_new_session=True, **streams
        )
        self.until(lambda: b"\x1b[?7l" in self.output and b"<ready>" in self.output)

    def close(self):
        os.close(self.fd)
        os.close(self._there)

    def press(self, keys):
        os.write(self.fd, keys)
        self.until(lambda: b"<" + keys[-1:] + b">" in self.output)

    def until(self, met):
        """Read until something holds."""
        end = time.monotonic() + DEADLINE
        while not met():
            assert time.monotonic() < end, self.output
            if select.select([self.fd], [], [], 0.02)[0]:
                self.output += os.read(self.fd, 65536)

    def stopped(self):
        """Read until the app has been stopped."""
        self.until(lambda: os.waitpid(self.app.pid, os.WNOHANG | os.WUNTRACED)[0])
        self.rest()

    def send(self, *signals):
        for number in signals:
            self.app.send_signal(number)

    def end(self):
        """Read until the app has ended."""
        self.until(lambda: self.app.poll() is not None)
        self.rest()
        return self.app.returncode

    def rest(self):
        """Read what has been written, and is not read yet."""
        while select.select([self.fd], [], [], 0)[0]:
            self.output += os.read(self.fd, 65536)

    def restored(self):
        """Tell whether the terminal is as it was: modes, screen, cursor, no reports of the
        mouse.
        """
        return termios.tcgetattr(self.fd) == self.before and restored(self.output)


@pytest.fixture
def terminal():
    terminal = Terminal()
    yield terminal
    terminal.app.kill()
    terminal.app.wait()
    terminal.close()


# -- keys ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sent",
    [
        "\x1b[1:2:3u",
        "\x1b[1114112u",
        "\x1b[99999999999999999999u",
        "\x1b[97;1;:1114112u",
    ],
)
def test_what_is_no_key_is_nothing(sent):
    heard = list(Ear().hear(f"a{sent}k".encode()))
    assert [key.key for key in heard if isinstance(key, Key)] == ["a", "k"]


def test_sizes_keys_and_a_terminal_that_is_lent(terminal):
    # An app is sent the size that it has where the terminal has none.
    assert os.get_terminal_size(terminal.fd) == (0, 0)
    said = b"<Size(width=80, height=25) of ConsoleDimensions(width=80, height=25)>"
    assert said in terminal.output, (
        "of two, each would be laid out for ever after the other"
    )
    # A size among the keys is not that of the terminal, and bytes that are no text are no end.
    terminal.press(b"\x1b[?2048;1$y\x1b[48;9;9;0;0tk")
    assert b"<80 wide>" in terminal.output
    assert b"<9 wide>" not in terminal.output
    terminal.press(b"\xff\xfe\xc3k")
    # It steps back, and goes on.
    os.write(terminal.fd, b"z")
    terminal.stopped()
    assert terminal.restored()
    terminal.send(signal.SIGCONT)
    terminal.until(lambda: terminal.output.count(b"\x1b[?7l") == 2)
    assert not terminal.restored()
    terminal.press(b"q")
    assert terminal.end() == 0
    assert terminal.restored()


def test_no_terminal_no_app(terminal):
    os.close(terminal.fd)
    terminal.fd = os.open(os.devnull, os.O_RDWR)
    assert terminal.app.wait(DEADLINE) == 128 + signal.SIGHUP
