"""Random keys and sizes, one behind the other, on healthy logs and on those with the worst
values.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from typing import TYPE_CHECKING, NamedTuple

from watching import NOW, sample, write_run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_GAP = 0.008
"""Seconds from one key to the next in a terminal."""
_START, _QUIET, _END = 60.0, 1.5, 60.0
"""Seconds in which a busy machine opens the app, those without news after which all keys have done
their work, and the most of all those.
"""
_KEPT = 30_000
"""Bytes of what it wrote that are kept: an error with where it was."""
_NAMED = {
    "up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D", "home": "\x1b[H", "end": "\x1b[F",
    "pageup": "\x1b[5~", "pagedown": "\x1b[6~", "f2": "\x1bOQ", "f3": "\x1bOR", "f4": "\x1bOS", "f5": "\x1b[15~",
    "f6": "\x1b[17~", "escape": "\x1b", "enter": "\r", "tab": "\t", "shift+tab": "\x1b[Z", "space": " ",
    "backspace": "\x7f", "ctrl+p": "\x10", "ctrl+l": "\x0c", "shift+left": "\x1b[1;2D", "shift+right": "\x1b[1;2C",
}  # fmt: skip
"""Bytes of the keys that are no characters."""
_OFTEN = (
    "enter",
    "escape",
    "left",
    "right",
    "up",
    "down",
    "pageup",
    "pagedown",
    "tab",
    "ctrl+p",
    "space",
)
_CHARACTERS = "aAbcCdeEfgGhHijklLmnNoOprsStuvwxyz0123456789[]/?+-=*,. \u00e9"
"""Those that keys are named by, but for `q`: whoever ends the app ends the walk."""
KEYS = (*_NAMED, *_CHARACTERS, *_OFTEN * 4)
"""Names of the keys, those more than once that go anywhere."""
USUAL = ((40, 12), (60, 20), (80, 24), (120, 40), (140, 45), (220, 60))
"""Sizes that terminals have."""
_WORST = (
    1e308,
    -1e308,
    float("nan"),
    float("inf"),
    -float("inf"),
    0.0,
    5e-324,
    1.7976931348623157e308,
)
_NEVER = (1e12, -1e12, 1e18, -1e18, 253_402_300_800.0, 1e300, NOW)
"""Times beyond the calendar, whose last year is 9999, and one of today."""


class Resized(NamedTuple):
    """The terminal has another size."""

    width: int
    height: int


def any_size(rng: random.Random) -> Resized:
    """Return a size that hardly any terminal has."""
    return Resized(rng.choice((1, 2, 5, 20, 40, 80, 140)), rng.choice((1, 2, 3, 4, 6, 12, 24, 45)))


def usual_size(rng: random.Random) -> Resized:
    """Return a size that people have."""
    return Resized(*rng.choice(USUAL))


def walk(
    seed: int, count: int, sized: Callable[[random.Random], Resized]
) -> Iterator[str | Resized]:
    """Yield so many keys, and another size now and then; the same for the same seed."""
    rng = random.Random(seed)
    for _ in range(count):
        yield sized(rng) if rng.random() < 0.05 else rng.choice(KEYS)


# -- logs ------------------------------------------------------------------------------------------


def write_worst(folder: Path) -> None:
    """Write logs whose values and times are at the ends of what there is, one of them with steps to
    match.
    """
    for number, last in enumerate((40, 3, 1)):
        _worst(folder / f"worst-{number}" / "log.jsonl", last, lambda at: at)
    _worst(folder / "far" / "log.jsonl", 20, lambda at: at * 10**15)
    for number, never in enumerate(_NEVER):
        _timed(folder / f"never-{number}" / "verl_logs.jsonl", never)
    write_run(
        folder, "usual", 12, text=sample(3, "an answer" * 50) + sample(4, "\x1b[31m" + "!" * 3000)
    )
    (folder / "empty").mkdir()
    (folder / "empty" / "train.log").write_text("Started a local Ray instance\n")


def _worst(path: Path, last: int, step_at: Callable[[int], int]) -> None:
    path.parent.mkdir(parents=True)
    with path.open("w", encoding="utf-8") as file:
        for at in range(1, last + 1):
            values = {
                "critic/score/mean": _WORST[at % len(_WORST)], "critic/score/max": 1e308, "critic/score/min": -1e308,
                "actor/ppo_kl": _WORST[0] if at % 2 else _WORST[1], "actor/grad_norm": 1.7976931348623157e308,
                "actor/entropy": float("nan"), "actor/pg_loss": at * 1e307, "perf/throughput": 5e-324,
                "response_length/mean": 1e308, "timing_s/step": 1e308, "timing_s/gen": -1e308, "perf/mfu/actor": 1e300,
            }  # fmt: skip
            file.write(json.dumps({"step": step_at(at), "data": values}) + "\n")


def _timed(path: Path, moment: float) -> None:
    path.parent.mkdir(parents=True)
    with path.open("w", encoding="utf-8") as file:
        for step in range(1, 11):
            record = {
                "scope": "rollout",
                "step": step,
                "timestamp": moment + step,
                "reward_mean": 0.1 * step,
            }
            file.write(json.dumps(record) + "\n")


# -- in a terminal ---------------------------------------------------------------------------------


class Terminal:
    """The app on a terminal of its own."""

    def __init__(self, logs: Path, here: Path, size: Resized) -> None:
        self._fd, self._there = (
            os.openpty()
        )  # both stay open: what has been written can still be read
        self._take_size(size)
        self.last = b""
        """The end of what came."""
        environment = {
            **os.environ,
            "TERM": "xterm-256color",
            "VERL_TUI_STATE": "",
            "COLUMNS": "",
            "LINES": "",
        }
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        self._app = subprocess.Popen(
            [sys.executable, "-m", "verl_tui", str(logs)],
            cwd=here,
            env=environment,
            start_new_session=True,
            **dict.fromkeys(("stdin", "stdout", "stderr"), self._there),
        )

    @property
    def status(self) -> int | None:
        """How the app has ended, None while it runs."""
        return self._app.poll()

    def take(self, step: str | Resized) -> None:
        """Type a key, or have another size."""
        if isinstance(step, Resized):
            self.resize(step)
        else:
            os.write(self._fd, _NAMED.get(step, step).encode())

    def resize(self, size: Resized) -> None:
        """Have another size; the app is told, as it is in no session of this terminal."""
        self._take_size(size)
        self._app.send_signal(signal.SIGWINCH)

    def _take_size(self, size: Resized) -> None:
        fcntl.ioctl(
            self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", size.height, size.width, 0, 0)
        )

    def read(self, seconds: float, until: Callable[[], bool] = lambda: False) -> None:
        """Take what the app writes, for so long or until something holds."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and not until():
            if select.select([self._fd], [], [], left)[0]:
                self.last = (self.last + os.read(self._fd, 65536))[-_KEPT:]

    def settle(self) -> None:
        """Take what the app writes until nothing comes any more."""
        end, before = time.monotonic() + _END, b""
        while self.status is None and self.last != before and time.monotonic() < end:
            before = self.last
            self.read(_QUIET)

    def close(self) -> None:
        """End the app, if it has not ended."""
        if self.status is None:
            self._app.kill()
            self._app.wait()
        os.close(self._fd)
        os.close(self._there)


def end_of_walk(
    steps: Iterator[str | Resized], size: Resized, logs: Path, here: Path
) -> tuple[int, str]:
    """Type a walk into the app on a terminal; return the app's status and the last that it
    wrote.
    """
    terminal = Terminal(logs, here, size)
    try:
        terminal.read(_START, lambda: b"runs" in terminal.last or terminal.status is not None)
        for step in steps:
            if terminal.status is not None:
                break
            terminal.take(step)
            terminal.read(_GAP)
        terminal.settle()
        terminal.read(_GAP)
        return terminal.status or 0, terminal.last.decode("utf-8", "replace")
    finally:
        terminal.close()
