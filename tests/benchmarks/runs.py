"""Measures how soon the screen answers with many runs loaded: from a key to the changed frame, on a real pty.

    python tests/benchmarks/runs.py [RUNS]

Each figure stands beside its goal and beside the same key with two runs. The first frame that shows something new
counts; what takes longer, as the curves of another run, comes in the next one.
"""

from __future__ import annotations

import json
import math
import random
import sys
import tempfile
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING

from terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator

APP = [sys.executable, "-m", "verl_tui"]
METRICS = (
    "critic/score/mean", "critic/score/max", "critic/score/min", "actor/ppo_kl", "actor/kl_loss", "actor/pg_loss",
    "actor/entropy", "actor/grad_norm", "actor/pg_clipfrac", "response_length/mean", "perf/throughput", "timing_s/step",
    *(f"other/metric_{n}" for n in range(30)),
)  # fmt: skip
SIZE = (140, 45)
_GOAL = "≤ 50 ms"
_TIMES = 40
_LIST = b"\x1bOQ"
"""f2: the list of runs has the focus."""
KEYS = {
    "y log scale": [b"y"],
    "x another axis": [b"x"],
    "s S smoother, less smooth": [b"s", b"S"],
    "← → cursor": [b"\x1b[D", b"\x1b[D", b"\x1b[C"],
    "+ - zoom": [b"+", b"+", b"-", b"-"],
    "e next finding": [b"e"],
    "tab": [b"\t"],
    "z the panel alone, and back": [b"z"],
}
"""Keys of the dashboard, pressed in turn."""
LIST_KEYS = {
    "j in the list": [b"j"],
    "s sorts the list": [b"s"],
    "space selects, curves follow": [b" ", b"j"],
}
"""Keys while the list of runs has the focus."""
SCREENS = {"enter opens a chart": b"\r", "m all metrics": b"m", "l the log": b"l", "C compares": b"C", "? help": b"?"}
_BACK = b"\x1b"
"""Esc; for 15 ms it may be the beginning of another key, which counts."""


def write_runs(folder: Path, count: int) -> list[str]:
    """Write so many runs of 20 to 300 steps; return their names in the order of their numbers."""
    names = [f"run-{number:03}" for number in range(count)]
    for number, name in enumerate(names):
        (folder / name).mkdir()
        steps = random.Random(number).randint(20, 300)
        with (folder / name / "train.jsonl").open("w") as file:
            for step in range(1, steps + 1):
                data = {key: 0.5 + 0.3 * math.sin(step / 50 + at + number) for at, key in enumerate(METRICS)}
                file.write(json.dumps({"step": step, "data": data}) + "\n")
    return names


def timed(terminal: Terminal, key: bytes, expected: str = "") -> float:
    """Press a key; return the ms until the screen shows a text, or, without one, anything new."""
    return terminal.answer(key, lambda: terminal.shows(expected) if expected else terminal.changed)[0]


def at_work(terminal: Terminal, keys: bytes) -> float:
    """Return the ms of processor time that each key costs: on a busy machine it says more than the clock."""
    before = terminal.cpu
    for at in range(len(keys)):
        terminal.press(keys[at : at + 1])
        terminal.read(0.3)
    return (terminal.cpu - before) * 1e3 / len(keys)


def answers(terminal: Terminal, names: list[str]) -> Iterator[tuple[str, list[float]]]:
    """Yield what was pressed, and the ms of each answer."""
    shown = [names[at % len(names)] for at in range(1, _TIMES + 1)]
    yield "] next run, its name is there", [timed(terminal, b"]", f"verl-tui {name} ") for name in shown]
    yield from pressed(terminal, KEYS)
    yield from opened(terminal)
    if len(names) > _TIMES:
        terminal.press(_LIST)
        terminal.read(1)
        yield from pressed(terminal, LIST_KEYS)


def pressed(terminal: Terminal, keys: dict[str, list[bytes]]) -> Iterator[tuple[str, list[float]]]:
    """Yield the same of keys that are pressed in turn: until the first frame that shows something new."""
    for what, turn in keys.items():
        yield what, [timed(terminal, turn[at % len(turn)]) for at in range(_TIMES)]


def opened(terminal: Terminal) -> Iterator[tuple[str, list[float]]]:
    """Yield the same of keys that open a screen, and of the one that closes it."""
    back: list[float] = []
    for what, key in SCREENS.items():
        taken = []
        for _ in range(_TIMES // 2):
            taken.append(timed(terminal, key))
            back.append(timed(terminal, _BACK))
        yield what, taken
    yield "esc back", back


def measure(folder: Path, count: int) -> tuple[dict[str, list[float]], float]:
    """Return the ms of all answers with so many runs loaded, and the processor time that a key costs."""
    names = write_runs(folder, count)
    terminal = Terminal([*APP, folder], SIZE)
    assert terminal.read(60, lambda: terminal.shows("step "))
    terminal.read(120, lambda: not terminal.shows("reading"))
    terminal.read(2)
    figures = dict(answers(terminal, names))
    work = at_work(terminal, b"]" * _TIMES)
    terminal.close()
    return figures, work


def main() -> None:
    """Measure and print a table."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    figures: dict[int, dict[str, list[float]]] = {}
    work: dict[int, float] = {}
    for many in (2, count):
        with tempfile.TemporaryDirectory() as folder:
            figures[many], work[many] = measure(Path(folder), many)
    print(f"| key, {count} runs | goal | median | p95 | two runs, median |\n|---|---|---|---|---|")
    for key, taken in figures[count].items():
        worst = quantiles(taken, n=20, method="inclusive")[-1]
        alone = figures[2].get(key)
        beside = f"{median(alone):.0f} ms" if alone else ""
        print(f"| {key} | p95 {_GOAL} | {median(taken):.0f} ms | {worst:.0f} ms | {beside} |")
    print(f"\n`]`, processor time: {work[count]:.0f} ms a key; with two runs {work[2]:.0f} ms")


if __name__ == "__main__":
    main()
