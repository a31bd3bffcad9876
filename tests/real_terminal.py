"""The installed command on a real pty, seen through a terminal emulator."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import shutil
import signal
import struct
import sys
import termios
import time
from typing import TYPE_CHECKING

import pyte

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

COMMAND = shutil.which("verl-tui", path=os.path.dirname(sys.executable)) or ""  # noqa: PTH120
MODULE = [sys.executable, "-m", "verl_tui"]
DEADLINE = 90.0
"""Seconds until what was asked for is there, also on a machine that has much else to do; a test is
stopped after 120.
"""


class Pty:
    """The command on a pty."""

    def __init__(
        self,
        *words: object,
        size: tuple[int, int] = (120, 40),
        module: bool = False,
        errors: Path | None = None,
        folder: Path | None = None,
        prepare: Callable[[], object] = lambda: None,
        **environment: str,
    ) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            _resize(0, *size)
            for name in ("TMUX", "COLUMNS", "LINES"):
                os.environ.pop(name, None)
            os.environ.update({"COLORTERM": "truecolor", **environment})
            if folder is not None:
                os.chdir(folder)
            prepare()
            if errors is not None:
                os.dup2(os.open(errors, os.O_CREAT | os.O_WRONLY), 2)
            command = [COMMAND] if COMMAND and not module else MODULE
            # With its environment as Python knows it: readline sets COLUMNS and LINES behind its
            # back.
            os.execve(command[0], [*command, *map(str, words)], os.environ)
        self.screen = pyte.Screen(*size)
        self.stream = pyte.ByteStream(self.screen)
        self.output = b""
        self.code: int | None = None
        self.resize(*size)

    def resize(self, columns: int, rows: int) -> None:
        _resize(self.fd, columns, rows)
        self.screen.resize(rows, columns)

    def press(self, keys: bytes) -> None:
        os.write(self.fd, keys)

    def until(self, *texts: str, gone: str | None = None) -> None:
        """Read until all texts are on the screen, and one is not."""

        def there() -> bool:
            shown = "\n".join(self.screen.display)
            return all(text in shown for text in texts) and (
                gone is None or gone not in shown
            )

        self.read_until(there, f"{texts} never appeared")

    def read_until(
        self, condition: Callable[[], bool], otherwise: str = "never came"
    ) -> None:
        """Read until a condition holds."""
        end = time.monotonic() + DEADLINE
        while not condition():
            while not self.read():
                # to look at the same screen again takes longer than to draw it
                assert time.monotonic() < end, "\n".join(
                    [otherwise, *self.screen.display]
                )

    def end(self) -> int:
        """Read until the command has ended; return its exit code."""
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end and self.code is None:
            self.read()
            done, status = os.waitpid(self.pid, os.WNOHANG)
            if done:
                self.code = os.waitstatus_to_exitcode(status)
                self.read_for(0.2)  # its last words may still wait
        assert self.code is not None, "the command goes on"
        return self.code

    def read(self) -> bool:
        """Take what has come, or wait for it a moment; return whether there was something."""
        if not select.select([self.fd], [], [], 0.05)[0]:
            return False
        try:
            data = os.read(self.fd, 65536)
        except OSError:  # nobody is at the other end any more
            time.sleep(0.01)
            return False
        self.output += data
        self.stream.feed(data)
        return True

    def read_for(self, seconds: float) -> None:
        """Take what comes for so long."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.read()

    def close(self) -> None:
        if self.code is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)


def _resize(terminal: int, columns: int, rows: int) -> None:
    size = struct.pack("HHHH", rows, columns, 0, 0)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, size)


def restored(output: bytes) -> bool:
    """Tell whether the terminal was left as it was found: main screen, cursor, no mouse reports."""
    return all(output.rfind(on) < output.rfind(off) for on, off in (
        (b"\x1b[?1049h", b"\x1b[?1049l"), (b"\x1b[?25l", b"\x1b[?25h"), (b"\x1b[?1000h", b"\x1b[?1000l"),
    ))  # fmt: skip
