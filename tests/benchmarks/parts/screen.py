"""How the screen behaves while a log loads, while steps come, behind a slow link, and at rest."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from made_logs import line, write_file_log
from measuring import APP, Row, percentile
from terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from measuring import Effort

_TICKING = Path(__file__).parents[1] / "ticking.py"
_LAST = 199
"""Steps that a log has before something is appended."""


def loop(folder: Path, effort: Effort) -> Iterator[Row]:
    """How late the screen's loop wakes while a log loads and is judged, beside a loop that loads
    nothing.
    """
    megabytes = effort.size(100, 5)
    big = folder / "big.jsonl"
    small = folder / "small.jsonl"
    result = folder / "late.json"
    write_file_log(big, megabytes)
    small.write_text(line(1), encoding="utf-8")
    found = []
    for log, most in ((small, "6"), (big, "120")):
        terminal = Terminal([sys.executable, _TICKING, log, result, most], (120, 40))
        terminal.read(130, terminal.ended)
        found.append(json.loads(result.read_text(encoding="utf-8")))
        terminal.close()
    (_, quiet), (worst, usual) = (
        (max(one["late"]), percentile(one["late"], 95)) for one in found
    )
    idle, loading = (one["memory"] for one in found)
    yield Row(
        f"delay of the screen's loop while {megabytes} MB load and are judged, p95; worst",
        f"{usual * 1e3:.1f} ms; {worst * 1e3:.0f} ms",
        f"nothing to load: {quiet * 1e3:.1f} ms",
        goal="≤ 25 ms; ≤ 100 ms",
    )
    yield Row(
        f"memory once {megabytes} MB are loaded",
        f"{loading:.0f} MiB",
        f"nothing: {idle:.0f} MiB",
    )


def latency(folder: Path, effort: Effort) -> Iterator[Row]:
    """How long an appended step takes to the screen, beside `tail -f` on the same terminal."""
    log, plain = folder / "log.jsonl", folder / "plain.txt"
    log.write_text("".join(map(line, range(1, _LAST + 1))), encoding="utf-8")
    plain.write_text(f"step {_LAST}\n", encoding="utf-8")
    steps = range(_LAST + 1, _LAST + 1 + effort.size(40, 4))
    times = _appended([*APP, log], log, steps, line)
    least = _appended(
        ["tail", "-f", plain], plain, steps[:10], lambda step: f"step {step}\n"
    )
    yield Row(
        "from an appended step to the screen, p95 ÷ median of `tail -f`",
        f"{percentile(times, 95):.0f} ms, median {median(times):.0f} ms",
        f"`tail -f`: median {median(least):.0f} ms",
        percentile(times, 95) / median(least),
        "≤ 250 ms",
    )


def _appended(
    command: list[str | Path], log: Path, steps: range, write: Callable[[int], str]
) -> list[float]:
    """Append steps one by one; return the ms until each is on the screen."""
    terminal, times = Terminal(command, (120, 40)), []
    _await_step(terminal, _LAST)
    for step in steps:
        terminal.read(0.7)
        began = time.perf_counter()
        _append(log, write(step))
        _await_step(terminal, step)
        times.append((time.perf_counter() - began) * 1e3)
    terminal.close()
    return times


def link(folder: Path, effort: Effort) -> Iterator[Row]:
    """How long the quit key takes behind a slow link while the run goes on, beside a link without
    limit.
    """
    log = folder / "log.jsonl"
    steps = effort.size(8, 2)
    slow = max(_quit_time(log, 10_000, steps) for _ in range(effort.tries(2)))
    fast = _quit_time(log, None, steps)
    yield Row(
        "quit key behind a link of 10 kB/s, the worst of some tries",
        f"{slow:.2f} s",
        f"no limit: {fast:.2f} s",
        slow / fast,
        "≤ 1 s",
    )


def _quit_time(log: Path, rate: float | None, steps: int) -> float:
    """Return the seconds from the quit key to the end of the program, after some steps, one each
    second.
    """
    log.write_text("".join(map(line, range(1, 1000))), encoding="utf-8")
    terminal = Terminal([*APP, log], (160, 50))
    _await_step(terminal, 999)
    # the first frames are several screens, which a slow link takes long for
    terminal.read(5)
    terminal.rate = rate
    for step in range(1000, 1000 + steps):
        _append(log, line(step))
        terminal.read(1)
    began = time.perf_counter()
    terminal.press(b"q")
    assert terminal.read(30, terminal.ended), "the quit key was not heard"
    taken = time.perf_counter() - began
    terminal.close()
    return taken


def idle(folder: Path, effort: Effort) -> Iterator[Row]:
    """What a finished run costs."""
    log, most = folder / "train.log", effort.size(30, 5)
    steps = "".join(f"step:{n} - critic/score/mean:{n / 300}\n" for n in range(300))
    log.write_text(f"{steps}'Final validation metrics: None'\n", encoding="utf-8")
    terminal = Terminal([*APP, log], (160, 50))
    terminal.read(20, lambda: terminal.shows("finished"))
    terminal.read(effort.size(15, 3))
    cpu = terminal.cpu
    sent = terminal.bytes
    began = time.perf_counter()
    terminal.read(most)
    share = (terminal.cpu - cpu) / (time.perf_counter() - began)
    sent = terminal.bytes - sent
    terminal.close()
    yield Row(
        "idle on a finished run: processor", f"{share:.2%}", "of one core", goal="≤ 1%"
    )
    yield Row(
        f"idle on a finished run: bytes in {most} s", f"{sent}", goal="a clock tick"
    )


def _append(log: Path, text: str) -> None:
    with log.open("a", encoding="utf-8") as file:
        file.write(text)


def _await_step(terminal: Terminal, step: int) -> None:
    assert terminal.read(30, lambda: terminal.shows(f"step {step}")), (
        f"step {step} never came"
    )
