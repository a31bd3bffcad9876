"""What parts of the benchmark have in common: what a measurement costs, and the row it becomes."""

from __future__ import annotations

import gc
import os
import re
import resource
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median, quantiles
from typing import TYPE_CHECKING, NamedTuple

from terminal import Terminal, memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

APP = (sys.executable, "-m", "verl_tui")
_READING = re.compile(r"reading \d+%").search
"""Finds that the app has not read all there is."""
_SAMPLED = 0.1
"""Seconds between two looks at what a command holds."""
_LONG = 15.0
"""Seconds from which on something is measured once only."""


class Cost(NamedTuple):
    """What a piece of work took."""

    wall: float
    """Seconds."""
    cpu: float
    """Seconds of processor time, of all processes together."""
    peak: float = 0.0
    """The most MiB held, 0 where that was not looked at."""


class Row(NamedTuple):
    """A row of the table."""

    measure: str
    ours: str
    peer: str = ""
    """What it is compared with, in the same run."""
    ratio: float | None = None
    """Our figure through that of the peer, or the other way round, as `measure` says."""
    goal: str = ""


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured."""

    small: bool
    """Whether sizes are only those of a try."""
    wandb: str | None
    """The command `wandb`, None where there is none."""

    def size(self, full: int, small: int) -> int:
        """Return one of two sizes."""
        return small if self.small else full

    def tries(self, full: int) -> int:
        """Return how often to measure."""
        return 1 if self.small else full


class Part(NamedTuple):
    """A part of the benchmark."""

    name: str
    measure: Callable[[Path, Effort], Iterator[Row]]
    """Makes its logs in an empty folder, and yields its rows."""
    large: bool = False
    """Whether it takes minutes and gigabytes, and is left out unless asked for."""


def medians(tries: int, *works: Callable[[], Cost]) -> list[Cost]:
    """Do each work so many times, in turn and in alternating order; return the median of each.

    Works of which one round takes long are done once.
    """
    taken: list[list[Cost]] = [[] for _ in works]
    for round_ in range(tries):
        began = time.perf_counter()
        order = range(len(works)) if round_ % 2 == 0 else reversed(range(len(works)))
        for at in order:
            taken[at].append(works[at]())
        if time.perf_counter() - began > _LONG * len(works):
            break
    return [Cost(*map(median, zip(*costs, strict=True))) for costs in taken]


def in_process(work: Callable[[], object]) -> Cost:
    """Return what a function takes here, with the processes that it starts and waits for."""
    gc.collect()
    began, cpu = time.perf_counter(), _cpu()
    work()
    return Cost(time.perf_counter() - began, _cpu() - cpu)


def _cpu() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def of_command(command: Sequence[str | Path], most_status: int = 0) -> Cost:
    """Return what a command takes, from its start to its end.

    Raises:
        RuntimeError: It ended with a higher status than it may.
    """
    began = time.perf_counter()
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        assert process.stderr is not None
        with peak_memory(process.pid) as peak:
            said = process.stderr.read()
            _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if not 0 <= process.returncode <= most_status:
        raise RuntimeError(
            f"{command} ended with {process.returncode}: {said.decode()[-300:]}"
        )
    wall = time.perf_counter() - began
    return Cost(wall, usage.ru_utime + usage.ru_stime, peak[0])


def on_screen(
    command: Sequence[str | Path],
    size: tuple[int, int],
    until: Callable[[Terminal], bool],
) -> Cost:
    """Return what a command on a pty takes until its screen is as awaited; then end it.

    Raises:
        TimeoutError: That took more than three minutes.
    """
    terminal = Terminal(command, size, VERL_TUI_STATE="")
    try:
        with peak_memory(terminal.pid) as peak:
            came = terminal.read(180, lambda: until(terminal))
            wall = time.perf_counter() - terminal.started
            cpu = terminal.cpu
        if not came:
            raise TimeoutError(f"the screen did not become as awaited\n{terminal.text}")
        return Cost(wall, cpu, peak[0])
    finally:
        terminal.close()


@contextmanager
def peak_memory(pid: int) -> Iterator[list[float]]:
    """Look every now and then at what a process and its children hold; give a list of one figure:
    the most MiB so far.
    """
    peak, over = [0.0], threading.Event()

    def look() -> None:
        peak[0] = max(peak[0], memory(pid, "VmHWM"))

    def watch() -> None:
        while not over.wait(_SAMPLED):
            look()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        look()
        over.set()
        thread.join()


def shows(text: str) -> Callable[[Terminal], bool]:
    """Return what tells whether a text is on a screen."""
    return lambda terminal: terminal.shows(text)


def has_read(step: int) -> Callable[[Terminal], bool]:
    """Return what tells whether the app shows a step and has read all there is."""
    return lambda terminal: (
        terminal.shows(f"step {step}") and not any(map(_READING, terminal.lines))
    )


def percentile(values: Sequence[float], percent: int) -> float:
    """Return a percentile."""
    return quantiles(values, n=100, method="inclusive")[percent - 1]


def seconds(cost: Cost) -> str:
    """Return wall and processor time in words, with memory where that was looked at."""
    words = f"{cost.wall:.2f} s, CPU {cost.cpu:.2f} s"
    return f"{words}, {cost.peak:.0f} MiB" if cost.peak else words
