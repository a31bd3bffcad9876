"""Measures how soon the screen answers with many runs loaded: from a key to the changed frame, on a
real pty.

    python tests/benchmarks/runs.py [RUNS]

Each figure stands beside its goal and beside the same key with two runs. The first frame that shows
something new counts; what takes longer, as the curves of another run, comes in the next one.
Answers while the machine was not there do not count (see `terminal.stolen`); how many of those
there were is told.
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

from terminal import Answer, Terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

APP = [sys.executable, "-m", "verl_tui"]
METRICS = (
    "critic/score/mean", "critic/score/max", "critic/score/min", "actor/ppo_kl", "actor/kl_loss", "actor/pg_loss",
    "actor/entropy", "actor/grad_norm", "actor/pg_clipfrac", "response_length/mean", "perf/throughput", "timing_s/step",
    *(f"other/metric_{n}" for n in range(30)),
)  # fmt: skip
SIZE = (140, 45)
_GOAL = "≤ 50 ms"
_TIMES = 40
_BESIDE = 12
"""The same with two runs, which stands beside it."""
_PATIENCE = 3
"""How many times as often a key is pressed at most, until so many answers are undisturbed."""
_LIST, _CHARTS = b"\x1bOQ", b"\x1bOR"
"""f2, f3: the list of runs has the focus, the charts have it."""
KEYS = {
    "y log scale": [b"y"],
    "x another axis": [b"x"],
    "s S smoother, less smooth": [b"s", b"S"],
    "← → cursor": [b"\x1b[D", b"\x1b[D", b"\x1b[C"],
    "+ - zoom": [b"+", b"+", b"-", b"-"],
    "e next finding": [b"e"],
    "tab": [b"\t"],
    "z the panel alone, and back": [b"z", b"z"],
}
"""Keys of the dashboard, pressed in turn."""
LIST_KEYS = {
    "j in the list": [b"j"],
    "s sorts the list": [b"s"],
    "space selects, curves follow": [b" ", b"j"],
}
"""Keys while the list of runs has the focus."""
SCREENS = {
    "enter opens a chart": b"\r",
    "m all metrics": b"m",
    "l the log": b"l",
    "C compares": b"C",
    "? help": b"?",
}
_BACK = b"\x1b"
"""Esc; for 15 ms it may be the beginning of another key, which counts."""
_DASHBOARD = "verl-tui run-"
"""Begins the line at the top of the dashboard, and of no other screen."""


def write_runs(folder: Path, count: int) -> list[str]:
    """Write so many runs of 20 to 300 steps; return their names in the order of their numbers."""
    names = [f"run-{number:03}" for number in range(count)]
    for number, name in enumerate(names):
        (folder / name).mkdir()
        steps = random.Random(number).randint(20, 300)
        with (folder / name / "train.jsonl").open("w") as file:
            for step in range(1, steps + 1):
                data = {
                    key: 0.5 + 0.3 * math.sin(step / 50 + at + number)
                    for at, key in enumerate(METRICS)
                }
                file.write(json.dumps({"step": step, "data": data}) + "\n")
    return names


def timed(terminal: Terminal, key: bytes, expected: str = "") -> Answer:
    """Press a key; return how soon the screen shows a text, or, without one, anything new."""
    return terminal.answer(
        key, lambda: terminal.shows(expected) if expected else terminal.changed
    )


def enough(answers: list[Answer], wanted: int) -> bool:
    """Tell whether a key has been pressed often enough."""
    return (
        len(answers) >= wanted * _PATIENCE
        or sum(not answer.disturbed for answer in answers) >= wanted
    )


def at_work(terminal: Terminal, keys: bytes) -> float:
    """Return the ms of processor time that each key costs: on a busy machine it says more than the
    clock.
    """
    before = terminal.cpu
    for at in range(len(keys)):
        terminal.press(keys[at : at + 1])
        terminal.read(0.3)
    return (terminal.cpu - before) * 1e3 / len(keys)


def answers(
    terminal: Terminal, names: list[str], times: int
) -> Iterator[tuple[str, list[Answer]]]:
    """Yield what was pressed, and all answers."""
    switched: list[Answer] = []
    while not enough(switched, times):
        name = names[(len(switched) + 1) % len(names)]
        switched.append(timed(terminal, b"]", f"verl-tui {name} "))
    yield "] next run, its name is there", switched
    yield from pressed(terminal, KEYS, times)
    terminal.press(_CHARTS)
    terminal.read(1)
    yield from opened(terminal, times // 2)
    if len(names) > _TIMES:
        terminal.press(_LIST)
        terminal.read(1)
        yield from pressed(terminal, LIST_KEYS, times)


def pressed(
    terminal: Terminal, keys: dict[str, list[bytes]], times: int
) -> Iterator[tuple[str, list[Answer]]]:
    """Yield the same of keys that are pressed in turn: until the first frame that shows something
    new.
    """
    for what, turn in keys.items():
        taken: list[Answer] = []
        while not enough(taken, times) or len(taken) % len(turn):
            taken.append(timed(terminal, turn[len(taken) % len(turn)]))
        yield what, taken


def opened(terminal: Terminal, times: int) -> Iterator[tuple[str, list[Answer]]]:
    """Yield the same of keys that open a screen, and of the one that closes it."""
    back: list[Answer] = []
    for what, key in SCREENS.items():
        taken: list[Answer] = []
        while not enough(taken, times):
            taken.append(timed(terminal, key))
            # A busy app takes a key that comes now for one of the screen that it is about to leave.
            assert terminal.read(10, lambda: not terminal.shows(_DASHBOARD)), (
                f"{what}: no screen"
            )
            back.append(timed(terminal, _BACK))
            _go_back(terminal)
        yield what, taken
    yield "esc back", back


def _go_back(terminal: Terminal) -> None:
    """Wait until the dashboard is in front again: the first esc may only have cleared a cursor."""
    for _ in range(4):
        if terminal.read(3, lambda: terminal.shows(_DASHBOARD)):
            return
        terminal.press(_BACK)
    raise AssertionError(f"no way back to the dashboard\n{terminal.text}")


def measure_keys(
    folder: Path,
    count: int,
    times: int,
    tell: Callable[[str, list[Answer]], None] = lambda key, answers: None,
) -> tuple[dict[str, list[Answer]], float]:
    """Return all answers with so many runs loaded, and the processor time that a key costs.

    Args:
        folder: Where the runs are written.
        count: How many there are.
        times: How often a key is pressed.
        tell: Called with each key and its answers as soon as they are known.
    """
    names = write_runs(folder, count)
    terminal = Terminal([*APP, folder], SIZE)
    assert terminal.read(60, lambda: terminal.shows("step "))
    terminal.read(120, lambda: not terminal.shows("reading"))
    terminal.read(2)
    figures: dict[str, list[Answer]] = {}
    for key, taken in answers(terminal, names, times):
        figures[key] = taken
        tell(key, taken)
    work = at_work(terminal, b"]" * times)
    terminal.close()
    return figures, work


def undisturbed(answers: list[Answer]) -> list[float]:
    """Return the ms of the answers that count."""
    return [answer.first for answer in answers if not answer.disturbed]


def row(key: str, taken: list[Answer], beside: list[Answer]) -> str:
    """Return a key's row of the table."""
    counted, alone = undisturbed(taken), undisturbed(beside)
    of = f"{len(counted)} of {len(taken)}"
    if len(counted) < 2:
        return f"| {key} | p95 {_GOAL} | | | {of} | |"
    worst = quantiles(counted, n=20, method="inclusive")[-1]
    with_two = f"{median(alone):.0f} ms" if alone else ""
    return f"| {key} | p95 {_GOAL} | {median(counted):.0f} ms | {worst:.0f} ms | {of} | {with_two} |"


def main() -> None:
    """Measure, and print a table row by row: with two hundred runs it takes some minutes."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print(f"two runs first, then {count}", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        two, work_of_two = measure_keys(Path(folder), 2, _BESIDE)
    print(
        f"| key, {count} runs | goal | median | p95 | of | two runs, median |",
        flush=True,
    )
    print("|---|---|---|---|---|---|", flush=True)

    def tell(key: str, taken: list[Answer]) -> None:
        print(row(key, taken, two.get(key, [])), flush=True)

    with tempfile.TemporaryDirectory() as folder:
        _, work = measure_keys(Path(folder), count, _TIMES, tell)
    print(
        f"\n`]`, processor time: {work:.0f} ms a key; with two runs {work_of_two:.0f} ms"
    )


if __name__ == "__main__":
    main()
