"""A terminal for measuring: runs a command on a pty, answers what a capable terminal answers,
counts what comes.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import psutil
import pyte

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_ANSWERS = {b"\x1b[?2026$p": b"\x1b[?2026;2$y", b"\x1b[c": b"\x1b[?62;22c"}
_QUIET = 0.15
"""Seconds without bytes after which an answer is whole."""


class Answer(NamedTuple):
    """How soon a key was answered."""

    first: float
    """Milliseconds until the frame that was waited for."""
    last: float
    """Milliseconds until the last bytes of all."""
    disturbed: bool
    """Whether the machine was not there meanwhile, which says nothing about the command."""


def stolen() -> int:
    """Return the hundredths of a second that a host has kept the processors for itself; 0 where
    there is none.

    A virtual processor stands still now and then, for up to some tenths of a second; proc(5) calls
    that steal.
    """
    with Path("/proc/stat").open() as file:
        return int(file.readline().split()[8])


class Terminal:
    """A command on a pty of a given size."""

    def __init__(
        self, command: Sequence[str | Path], size: tuple[int, int], **environment: str
    ) -> None:
        columns, rows = size
        self.started = time.perf_counter()
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            os.environ.update(
                TERM="xterm-256color", COLORTERM="truecolor", **environment
            )
            # an installed program has its bytecode
            for name in (
                "NO_COLOR",
                "PYTHONDONTWRITEBYTECODE",
            ):
                os.environ.pop(name, None)
            try:
                os.execvp(str(command[0]), [str(word) for word in command])
            finally:
                # there is no such command: nothing may go on in this copy
                os._exit(127)
        fcntl.ioctl(
            self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0)
        )
        self.bytes = 0
        """Bytes that came so far."""
        self.rate: float | None = None
        """Bytes a second that the link carries, None for no limit."""
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self._lines: list[str] | None = None
        self._over = False

    def read(self, seconds: float, until: Callable[[], bool] = lambda: False) -> bool:
        """Take what comes for so long, or until a condition holds; tell whether it did.

        It is asked while nothing comes: a frame that has come in part shows what never was. Of a
        slow link it is asked all the time.
        """
        end = time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0:
            ready, _, _ = select.select([self._fd], [], [], min(left, 0.002))
            if (self.rate or not ready) and until():
                return True
            if not ready:
                continue
            try:
                data = os.read(self._fd, 256 if self.rate else 65536)
            except OSError:  # the other end is closed: the command is about to end
                time.sleep(0.01)
                if until():
                    return True
                continue
            self._take(data)
        return until()

    def _take(self, data: bytes) -> None:
        self.bytes += len(data)
        for question, answer in _ANSWERS.items():
            if question in data:
                os.write(self._fd, answer)
        if self.rate:
            time.sleep(len(data) / self.rate)
        else:
            self._stream.feed(data)
            self._lines = None

    def answer(
        self, keys: bytes, until: Callable[[], bool], most: float = 10.0
    ) -> Answer:
        """Press keys; return how soon the frame came that fulfils a condition, and the last bytes
        of all.

        The emulator draws nothing meanwhile, so that its own time counts for nothing: what came is
        drawn afterwards, piece by piece, to see which piece was the answer.
        """
        came: list[tuple[float, int, bytes]] = []
        before = stolen()
        drawn, first, end = 0, None, time.perf_counter() + most
        began = time.perf_counter()
        self.press(keys)
        while first is None:
            assert time.perf_counter() < end, f"no answer to {keys!r}\n{self.text}"
            self._gather(came, _QUIET)
            while first is None and drawn < len(came):
                moment, taken, data = came[drawn]
                self._take(data)
                drawn += 1
                first = (moment, taken) if until() else None
        for *_, data in came[drawn:]:
            self._take(data)
        return Answer(
            (first[0] - began) * 1e3, (came[-1][0] - began) * 1e3, first[1] > before
        )

    def _gather(self, came: list[tuple[float, int, bytes]], quiet: float) -> None:
        """Take in what comes, until nothing has for so many seconds, with the moment and what was
        stolen until then.
        """
        while select.select([self._fd], [], [], quiet)[0]:
            try:
                data = os.read(self._fd, 1 << 20)
            except OSError:  # the other end is closed: the command is about to end
                return
            came.append((time.perf_counter(), stolen(), data))

    @property
    def lines(self) -> list[str]:
        """What is on the screen, as it was before the link became slow."""
        if self._lines is None:
            self._lines = self._screen.display
        return self._lines

    @property
    def text(self) -> str:
        """The lines on the screen that are not empty."""
        return "\n".join(line.rstrip() for line in self.lines if line.strip())

    def shows(self, text: str) -> bool:
        """Tell whether a text is on the screen."""
        return any(text in line for line in self.lines)

    @property
    def changed(self) -> bool:
        """Whether any cell has been written, be it in other colours, since keys were pressed
        last.
        """
        return bool(self._screen.dirty)

    def press(self, keys: bytes) -> None:
        """Type."""
        self._screen.dirty.clear()
        os.write(self._fd, keys)

    @property
    def cpu(self) -> float:
        """Seconds of processor time that the command and its children have used."""
        return sum(sum(one.cpu_times()[:4]) for one in _processes(self.pid))

    @property
    def memory(self) -> float:
        """MiB that the command and its children hold."""
        return memory(self.pid)

    def ended(self) -> bool:
        """Tell whether the command is over."""
        self._over = self._over or os.waitpid(self.pid, os.WNOHANG)[0] != 0
        return self._over

    def close(self) -> None:
        """End the command."""
        if not self.ended():
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self._fd)


def memory(pid: int, line: str = "VmRSS") -> float:
    """Return the MiB that a process holds, and those that its children hold for themselves alone; 0
    once it has ended.

    Args:
        pid: The process.
        line: The line of its status (proc_pid_status(5)): VmHWM for the most that it held so far.
    """
    with suppress(psutil.NoSuchProcess, FileNotFoundError):
        status = Path(f"/proc/{pid}/status").read_text().splitlines()
        own = next((int(one.split()[1]) for one in status if one.startswith(line)), 0)
        _, *children = _processes(pid)
        return (
            own / 1024 + sum(child.memory_full_info().uss for child in children) / 2**20
        )
    return 0.0


def _processes(pid: int) -> list[psutil.Process]:
    """Return a process and all below it."""
    first = psutil.Process(pid)
    return [first, *first.children(recursive=True)]
