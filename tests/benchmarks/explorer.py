"""How quickly the screen of all metrics answers, and what a new step costs: 300 metrics × 10,000
steps on a pty.

    python tests/benchmarks/explorer.py [METRICS STEPS]

A key counts as answered when the screen looks different; rows and charts that are made a moment
later count as well, in the second figure. What the terminal itself takes is not counted, and
answers while the machine was not there are not (see `terminal.stolen`).
"""

from __future__ import annotations

import json
import math
import random
import re
import sys
import tempfile
import time
from pathlib import Path

from terminal import Answer, Terminal

SIZE = (120, 40)
_ROUNDS = 3
"""How often all keys are pressed."""
PREFIXES = (
    "actor",
    "critic",
    "timing_s",
    "perf",
    "val-core/gsm8k",
    "val-aux/math",
    "rollout_corr",
    "response_length",
)
KEYS = {
    "charts": b"l" * 3
    + b"j" * 3
    + b"\x1b[6~" * 6
    + b"k" * 2
    + b"\x1b[5~" * 3
    + b"><)("
    + b"Gg",
    "cursor and zoom": b"\x1b[D" * 12 + b"++--" + b"\x1b[C" * 4,
    "table": b"j" * 4 + b"\x1b[6~" * 5 + b"k" * 3 + b"\x1b[5~" * 3 + b"Gg" + b"sSss",
    "switching": b"vvvv",
}


def write(path: Path, metrics: int, first: int, count: int) -> None:
    """Append steps; every tenth is a validation, as verl logs it: with the keys of validation in
    the same line.
    """
    chance = random.Random(first)
    keys = [
        f"{PREFIXES[n % len(PREFIXES)]}/metric_{n // len(PREFIXES)}"
        for n in range(metrics)
    ]
    with path.open("a") as file:
        for step in range(first, first + count):
            data = {
                key: round(math.sin(step / (50 + n)) * (1 + n % 5) + chance.random(), 4)
                for n, key in enumerate(keys)
                if step % 10 == 0 or not key.startswith("val-")
            }
            file.write(json.dumps({"step": step, "data": data}) + "\n")


def answer(terminal: Terminal, key: bytes) -> Answer:
    """Return how soon the first changed screen comes after a key, and the last bytes of it."""
    return terminal.answer(key, lambda: terminal.changed)


def pressed(keys: bytes) -> list[bytes]:
    """Return single keys."""
    return re.findall(rb"\x1b\[\d*[A-Z~]|.", keys)


def in_words(times: list[float]) -> str:
    """Return median and 95th percentile."""
    times = sorted(times)
    return f"{times[len(times) // 2]:.0f} / {times[min(len(times) - 1, int(len(times) * 0.95))]:.0f} ms"


def main() -> None:
    """Measure and print."""
    metrics, steps = (
        (int(word) for word in sys.argv[1:3]) if len(sys.argv) > 2 else (300, 10_000)
    )
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.jsonl"
        write(log, metrics, 1, steps)
        terminal = Terminal(
            [sys.executable, "-m", "verl_tui", log], SIZE, VERL_TUI_STATE=""
        )
        assert terminal.read(120, lambda: terminal.shows(f"step {steps}"))
        terminal.read(3)
        used = terminal.cpu
        began = time.perf_counter()
        terminal.press(b"m")
        assert terminal.read(20, lambda: terminal.shows(f"{metrics} metrics"))
        first = (time.perf_counter() - began) * 1e3
        terminal.read(2)
        print(f"{metrics} metrics × {steps} steps, {SIZE[0]}×{SIZE[1]}; median / p95")
        print(f"opening: {first:.0f} ms, {(terminal.cpu - used) * 1e3:.0f} ms of CPU")
        for name, keys in KEYS.items():
            if name == "table":
                answer(terminal, b"v")
            used = terminal.cpu
            times = [answer(terminal, key) for key in pressed(keys) * _ROUNDS]
            cost = (terminal.cpu - used) * 1e3 / len(times)
            firsts, wholes, _ = zip(
                *[one for one in times if not one.disturbed], strict=True
            )
            print(
                f"{name}: first change {in_words(list(firsts))}, whole {in_words(list(wholes))}, {cost:.0f} ms of CPU a key; "
                f"{len(firsts)} of {len(times)} counted"
            )
        for name in ("table", "charts"):
            sent, count = terminal.bytes, 10
            for _ in range(count):
                write(log, metrics, steps + 1, 1)
                steps += 1
                terminal.read(1)
            print(f"a step, {name}: {(terminal.bytes - sent) / count / 1e3:.1f} kB")
            answer(terminal, b"v")
        sent = terminal.bytes
        terminal.read(5)
        print(
            f"nothing new for 5 s: {terminal.bytes - sent} bytes; {terminal.memory:.0f} MiB"
        )
        terminal.close()


if __name__ == "__main__":
    main()
