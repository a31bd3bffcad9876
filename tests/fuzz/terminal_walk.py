"""Walk through the installed app on a real pty: keys, mouse, pastes, sizes and bytes of no meaning,
signals, stopping and going on, while hostile logs change; and say what breaks it.

Whatever comes, the process goes on until it is told to end, ends with success, leaves the terminal
and its modes as they were, writes nothing behind that, leaves no process, and has had no error of
its own.
"""

from __future__ import annotations

import os
import re
import signal
import termios
import time
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import psutil
from fuzz.worlds import World
from real_terminal import Pty, restored

if TYPE_CHECKING:
    from collections.abc import Iterator

_PATIENCE = 30.0
"""Seconds in which the process must do what it is told, on a busy machine too."""
_MOMENT = 2.0
"""Seconds between two keys that are to end the app: more than end a paste whose end was lost."""
SIZES = ((1, 1), (2, 3), (40, 1), (20, 6), (40, 12), (80, 24), (120, 40), (200, 60))
_LEAVING = b"qQ\x03\x11\x1a\x1c"
"""Keys that end the app, stop it or might: a walk would be over."""
_KEYS = tuple(
    bytes((byte,)) for byte in range(256) if byte not in _LEAVING and byte != 0x1B
)  # fmt: skip
_SEQUENCES = (
    *(b"\x1b[" + end for end in (b"A", b"B", b"C", b"D", b"H", b"F", b"Z", b"5~", b"6~", b"3~")),
    *(b"\x1bO" + end for end in (b"P", b"Q", b"R", b"S")), b"\x1b[15~", b"\x1b[17~", b"\r", b"\t",
    b"\x1b", b"\x1b", b"\x1b[I", b"\x1b[O", b"\x1b[?1;2c", b"\x1b[5;7R", b"\x1b[?2026;2$y",
    b"\x1b[48;9;9;0;0t", b"\x1b[97u", b"\x1b[1;5C", b"\x1b]11;rgb:0/0/0\x1b\\", b"\x1b[", b"\x1b]",
    b"\x1bP", b"\x1b[<0;5", b"\x1b[999999999999A", b"\x1b[M !!", b"\xe6\xbc\xa2", b"\xf0\x9f",
)  # fmt: skip
_PASTES = (
    b"",
    b"kl",
    b"\x1b[2J\x00\xff",
    b"x" * 5000,
    "漢\u202e[red]".encode(),
    b"\n" * 50,
)
_ESCAPES = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])"
)
_ECHO = b"^["
"""What a terminal itself shows of an escape that comes when the app has left it."""
_OTHERS = ("looking at", "reading")
"""What is written of a file that the world has taken away: no error of ours."""


class Walk:
    """The app in a world of hostile logs, and a seed's way through it."""

    def __init__(self, folder: Path, seed: int) -> None:
        """Start the app."""
        self.rng = Random(seed)
        self.world = World(folder / "logs", seed)
        self.log = folder / "debug.log"
        self.terminal = Pty(
            *("--debug-log", self.log, self.world.folder),
            folder=folder,
            VERL_TUI_STATE="",
            XDG_CONFIG_HOME=str(folder),
        )
        self.before = termios.tcgetattr(self.terminal.fd)
        self.taken = 0

    def begin(self) -> None:
        """Wait until there is something on the screen."""
        self.terminal.until("Help")

    def go(self, steps: int) -> None:
        """Take so many steps, fewer where one of them ends the app."""
        for _ in range(steps):
            self.step()
            self.taken += 1
            self.terminal.read_for(self.rng.choice((0, 0, 0, 0.02)))
            if self._is_over():
                return

    def step(self) -> None:
        """Do something to the app, its terminal or its logs."""
        rng, terminal = self.rng, self.terminal
        kind = rng.random()
        if kind < 0.72:
            terminal.press(b"".join(_keys(rng)))
        elif kind < 0.84:
            terminal.resize(*rng.choice(SIZES))
        elif kind < 0.90:
            self.world.change(rng.randrange(10**9))
        elif kind < 0.97:
            self._signal(signal.SIGWINCH)
        else:
            self._stop_and_go_on()

    def _signal(self, number: int) -> None:
        os.kill(self.terminal.pid, number)

    def _stop_and_go_on(self) -> None:
        """Stop the process, with or without its knowledge, and let it go on."""
        # Where it has not asked for SIGTSTP again yet, the kernel drops it: there is no shell.
        if not self.rng.randrange(2) or not self._stops_at(signal.SIGTSTP, _MOMENT):
            assert self._stops_at(signal.SIGSTOP, _PATIENCE), (
                f"it does not stop, {self._state()}"
            )
        self.terminal.resize(*self.rng.choice(SIZES))
        if self.terminal.code is None:
            self._signal(signal.SIGCONT)

    def _stops_at(self, number: int, seconds: float) -> bool:
        """Send a signal; return whether the process stops at it, or has ended."""
        if self.terminal.code is None:
            self._signal(number)
        end = time.monotonic() + seconds
        while not (self._stops() or self.terminal.code is not None):
            if time.monotonic() > end:
                return False
            self.terminal.read_for(0.02)
        return True

    def _stops(self) -> bool:
        """Return whether the process has been stopped, and note whether it has ended."""
        if self.terminal.code is not None:
            return False
        done, status = os.waitpid(self.terminal.pid, os.WNOHANG | os.WUNTRACED)
        if done and not os.WIFSTOPPED(status):
            self._note_end(status)
        return done != 0 and os.WIFSTOPPED(status)

    def _is_over(self) -> bool:
        """Return whether the process has ended; one that has stopped at a key goes on."""
        if self._stops():
            self._signal(signal.SIGCONT)
        return self.terminal.code is not None

    def _state(self) -> str:
        return f"it is {psutil.Process(self.terminal.pid).status()}"

    def _note_end(self, status: int) -> None:
        self.terminal.code = os.waitstatus_to_exitcode(status)
        self.terminal.read_for(0.2)

    def leave(self) -> None:
        """Have the app end, if it has not; it may wait for a key of a prompt or a pager first."""
        terminal = self.terminal
        terminal.resize(80, 24)
        for moment in (0.2, *[_MOMENT] * 12):
            for keys in (b"\x1b", b"\x1b", b"q"):
                if self._ended_within(moment):
                    return
                terminal.press(keys)
        if self._ended_within(_PATIENCE):
            return
        raise AssertionError(
            f"it does not end, {self._state()}:\n" + "\n".join(terminal.screen.display)
        )

    def _ended_within(self, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while not self._is_over():
            if time.monotonic() > end:
                return False
            self.terminal.read_for(0.05)
        return True

    def wrong(self) -> Iterator[str]:
        """Yield what is not as it should be after the end."""
        terminal = self.terminal
        if terminal.code != 0:
            yield f"it ended with {terminal.code}"
        if not restored(terminal.output):
            yield "the terminal is not as it was"
        if termios.tcgetattr(terminal.fd) != self.before:
            yield "the modes of the terminal are not as they were"
        behind = terminal.output.rpartition(b"\x1b[?1049l")[2]
        if _ESCAPES.sub(b"", behind).replace(_ECHO, b"").strip():
            yield f"behind the last frame: {behind!r:.500}"
        if left := _session(terminal.pid):
            yield f"processes are left: {left}"
        yield from (line for line in self.errors() if line)

    def errors(self) -> Iterator[str]:
        """Yield what the debug log tells of errors."""
        entries = re.split(r"(?m)^ *\d+\.\d{3} ", self.log.read_text(errors="replace"))
        for entry in entries:
            what = entry.partition(" ")[2].lstrip()
            if "Traceback" in entry and not what.startswith(_OTHERS):
                yield what[:300] + " … " + what[-600:]


def _keys(rng: Random) -> Iterator[bytes]:
    kind = rng.random()
    if kind < 0.5:
        yield from rng.choices(_KEYS[32:127], k=rng.choice((1, 1, 3)))
    elif kind < 0.75:
        yield rng.choice(_SEQUENCES)
    elif kind < 0.85:
        button = rng.choice((0, 2, 32, 35, 64, 65))
        end = rng.choice("Mm")
        yield f"\x1b[<{button};{rng.randrange(220)};{rng.randrange(70)}{end}".encode()
    elif kind < 0.9:
        yield b"\x1b[200~" + rng.choice(_PASTES) + b"\x1b[201~"
    elif kind < 0.95:
        yield from rng.choices(_KEYS, k=9)
    else:
        yield rng.choice((b"\x10", b"/")) + bytes(rng.choices(b"abcdekl", k=2)) + b"\r"


def _session(leader: int) -> list[int]:
    """Return the processes of a session."""
    return [pid for pid in psutil.pids() if _leads(leader, pid)]


def _leads(leader: int, pid: int) -> bool:
    try:
        return os.getsid(pid) == leader
    except ProcessLookupError:
        return False


def walked(seed: int, steps: int) -> tuple[int, list[str]]:
    """Return how many steps were taken in the walk of a seed, and what broke."""
    with TemporaryDirectory() as folder:
        walk = Walk(Path(folder), seed)
        try:
            walk.begin()
            walk.go(steps)
            walk.leave()
            return walk.taken, list(walk.wrong())
        except (AssertionError, OSError) as error:
            return walk.taken, [str(error), *walk.errors()]
        finally:
            walk.terminal.close()
