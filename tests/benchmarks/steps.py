"""Measures what a training step costs on the way to the terminal, on every screen: 117 metrics on a
pty.

python tests/benchmarks/steps.py [STEPS]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from statistics import mean

from made_logs import line
from terminal import Terminal

SIZE = (120, 40)
SCREENS = {
    "dashboard": (),
    "runs over the full screen": ("\x1bOQ", "z"),
    "charts over the full screen": ("\x1bOR", "z"),
    "health over the full screen": ("\x1bOS", "z"),
    "GPUs over the full screen": ("\x1b[15~", "z"),
    "samples over the full screen": ("\x1b[17~", "z"),
    "a chart": ("\r",),
    "a smoothed chart": ("\r", "s"),
    "all metrics": ("m",),
    "all metrics, table": ("m", "v"),
    "samples": ("o",),
    "timing": ("t",),
    "compare": ("C",),
    "sources": ("i",),
    "configuration": ("c",),
    "log": ("l",),
    "history": ("A",),
    "help": ("?",),
}
"""Name and keys of every screen."""
_GOAL = 4.0
"""kB of a step."""


def cost(
    keys: tuple[str, ...], folder: Path, last: int
) -> tuple[list[float], int, float]:
    """Return the kB of some steps on a screen, bytes without anything new, and the ms of processor
    time of a step.
    """
    log = folder / "log.jsonl"
    log.write_text("".join(line(step) for step in range(1, last + 1)))
    terminal = Terminal(
        [sys.executable, "-m", "verl_tui", log], SIZE, VERL_TUI_STATE=""
    )
    assert terminal.read(30, lambda: terminal.shows(f"step {last}"))
    terminal.read(1)
    for key in keys:
        terminal.press(key.encode())
        terminal.read(1)
    before = terminal.bytes
    terminal.read(3)
    idle = terminal.bytes - before
    used = terminal.cpu
    costs = []
    for step in range(last + 1, last + 9):
        before = terminal.bytes
        with log.open("a") as file:
            file.write(line(step))
        terminal.read(1)
        costs.append((terminal.bytes - before) / 1e3)
    used = (terminal.cpu - used) * 1e3 / len(costs)
    terminal.close()
    return costs, idle, used


def main() -> None:
    """Measure and print a table."""
    last = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    print(
        f"a step, {SIZE[0]}×{SIZE[1]}\n\n| screen | goal | mean | most | nothing new for 3 s | processor |"
    )
    print("|---|---|---|---|---|---|")
    for name, keys in SCREENS.items():
        with tempfile.TemporaryDirectory() as folder:
            costs, idle, used = cost(keys, Path(folder), last)
        kilobytes = f"{mean(costs):.1f} kB | {max(costs):.1f} kB"
        print(
            f"| {name} | ≤ {_GOAL:.0f} kB | {kilobytes} | {idle} bytes | {used:.0f} ms |",
            flush=True,
        )


if __name__ == "__main__":
    main()
