"""Measures the speed table in `README.md` beside this file, on real ptys.

    python tests/benchmarks/bench.py [loading judging latency live link idle start]

Each figure stands beside its goal, and beside a reference of the same run where there is one.
"""

from __future__ import annotations

import json
import math
import os
import platform
import random
import shutil
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING

from terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).parent
APP = [sys.executable, "-m", "verl_tui"]
BARE = """
from textual.app import App
from textual.widgets import Label

class Bare(App):
    def compose(self):
        yield Label("nothing but text")

Bare().run()
"""
"""The least that Textual can do: what the app's start is compared with."""
METRICS = [
    "critic/score/mean", "critic/score/max", "critic/score/min", "actor/ppo_kl", "actor/kl_loss", "actor/pg_loss",
    "actor/entropy", "actor/grad_norm", "actor/pg_clipfrac", "response_length/mean", "perf/throughput", "timing_s/step",
    *(f"timing_s/part_{n}" for n in range(20)), *(f"other/metric_{n}" for n in range(85)),
]  # fmt: skip
Row = tuple[str, str, str, str]


def line(step: int) -> str:
    """Return a step of 117 metrics as verl's file logger writes it."""
    data = {key: math.sin(step / 50 + n) * 0.3 + 0.5 for n, key in enumerate(METRICS)}
    return json.dumps({"step": step, "data": data}, separators=(",", ":")) + "\n"


def write_log(path: Path, megabytes: float, first: int = 1) -> int:
    """Write a log of about so many MB; return its last step."""
    block = [line(step) for step in range(first, first + 200)]
    size, step = 0, first
    with path.open("w") as file:
        while size < megabytes * 1e6:
            text = block[(step - first) % 200].replace(
                f'"step":{first + (step - first) % 200},', f'"step":{step},', 1
            )
            file.write(text)
            size += len(text)
            step += 1
    return step - 1


def percentile(values: list[float], percent: int) -> float:
    """Return a percentile."""
    return quantiles(values, n=100)[percent - 1]


def loading(folder: Path) -> list[Row]:
    """How late the screen's loop wakes while 100 MB load, against a loop that loads nothing."""
    big, small, result = folder / "big.jsonl", folder / "small.jsonl", folder / "late.json"
    write_log(big, 100)
    small.write_text(line(1))
    figures = {}
    for name, log, most in (("idle", small, "6"), ("loading", big, "120")):
        terminal = Terminal([sys.executable, HERE / "ticking.py", log, result, most], (120, 40))
        terminal.read(130, terminal.ended)
        figures[name] = json.loads(result.read_text())
        terminal.close()
    busy, quiet = (percentile(figures[name]["late"], 95) * 1e3 for name in ("loading", "idle"))
    worst = max(figures["loading"]["late"]) * 1e3
    seconds = figures["loading"]["seconds"]
    began = time.perf_counter()
    big.read_bytes()
    raw = time.perf_counter() - began
    rate = big.stat().st_size / 1e6 / seconds
    held = [figures[name]["memory"] for name in ("loading", "idle")]
    return [
        (
            "loop delay p95 while 100 MB load",
            "≤ 25 ms",
            f"{busy:.1f} ms",
            f"{quiet:.1f} ms with nothing to load",
        ),
        ("worst loop delay meanwhile", "", f"{worst:.0f} ms", ""),
        (
            "loading a file logger's log",
            "",
            f"{rate:.0f} MB/s",
            f"reading the bytes alone: {100 / raw:.0f} MB/s",
        ),
        (
            "memory once 100 MB are loaded",
            "",
            f"{held[0]:.0f} MiB",
            f"{held[1]:.0f} MiB with nothing to load",
        ),
    ]


def latency(folder: Path) -> list[Row]:
    """How long an appended step takes to the screen, against `tail -f` on the same terminal."""
    log = folder / "log.jsonl"
    log.write_text("".join(line(step) for step in range(1, 200)))
    terminal = Terminal([*APP, log], (120, 40))
    assert terminal.read(20, lambda: terminal.shows("step 199"))
    times = appended(terminal, log, range(200, 240), line, lambda step: f"step {step}")
    plain = folder / "plain.txt"
    plain.write_text("nothing yet\n")
    tail = Terminal(["tail", "-f", plain], (120, 40))
    assert tail.read(5, lambda: tail.shows("nothing yet"))
    least = appended(
        tail, plain, range(200, 210), lambda step: f"step {step}\n", lambda step: f"step {step}"
    )
    beside = f"median {median(times):.0f} ms; `tail -f`: median {median(least):.0f} ms"
    return [("append → pixels p95", "≤ 250 ms", f"{percentile(times, 95):.0f} ms", beside)]


def appended(
    terminal: Terminal,
    log: Path,
    steps: range,
    write: Callable[[int], str],
    seen: Callable[[int], str],
) -> list[float]:
    """Append steps one by one; return the ms until each is on the screen, and end the command."""
    times = []
    for step in steps:
        terminal.read(0.7)
        text, shown = write(step), seen(step)
        began = time.perf_counter()
        with log.open("a") as file:
            file.write(text)
        assert terminal.read(5, lambda shown=shown: terminal.shows(shown)), f"{shown} never came"
        times.append((time.perf_counter() - began) * 1e3)
    terminal.close()
    return times


def nvml(folder: Path) -> dict[str, str]:
    """Return the environment in which a stand-in for NVML shows 8 devices, none where there is no
    compiler.
    """
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return {}
    target = folder / "libnvidia-ml.so.1"
    source = HERE.parent / "data" / "nvml_stub.c"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-Wl,-soname,libnvidia-ml.so.1", "-o", target, source],
        check=True,
    )
    return {"LD_LIBRARY_PATH": str(folder)}


def live(folder: Path) -> list[Row]:
    """What a live run costs: one step a second, 8 charts and more, GPU gauges."""
    log = folder / "log.jsonl"
    log.write_text("".join(line(step) for step in range(1, 1000)))
    devices = nvml(folder)
    terminal = Terminal([*APP, log], (160, 50), **devices)
    terminal.read(20, lambda: terminal.shows("step 999"))
    terminal.read(5)
    assert not devices or terminal.shows("8 GPUs") or terminal.shows("H100"), (
        "no gauges of GPUs on the screen"
    )
    cpu, sent, began, steps = terminal.cpu, terminal.bytes, time.perf_counter(), 25
    for step in range(1000, 1000 + steps):
        with log.open("a") as file:
            file.write(line(step))
        terminal.read(1)
    share = (terminal.cpu - cpu) / (time.perf_counter() - began)
    written = (terminal.bytes - sent) / steps / 1e3
    memory = terminal.memory
    terminal.close()
    return [
        ("live, 1 step/s, GPU gauges, 160×50: processor", "≤ 4%", f"{share:.1%}", "of one core"),
        ("the same: to the terminal", "≤ 8 kB a step", f"{written:.1f} kB", ""),
        ("the same: memory", "", f"{memory:.0f} MiB", ""),
    ]


def link(folder: Path) -> list[Row]:
    """How long the quit key takes behind a link of 10 kB/s while the run goes on, against a link
    without limit.
    """
    log = folder / "log.jsonl"
    slow, fast = (
        [quit_time(log, rate) for _ in range(times)] for rate, times in ((10_000, 3), (None, 1))
    )
    beside = f"worst of 3; {max(fast):.2f} s without a limit"
    return [("quit key behind a 10 kB/s link", "≤ 1 s", f"{max(slow):.2f} s", beside)]


def quit_time(log: Path, rate: float | None) -> float:
    """Return the seconds from the quit key to the end of the program, while a step comes each
    second.
    """
    log.write_text("".join(line(step) for step in range(1, 1000)))
    terminal = Terminal([*APP, log], (160, 50))
    assert terminal.read(20, lambda: terminal.shows("step 999"))
    terminal.read(5)  # the first frames are several screens, which a slow link takes long for
    terminal.rate = rate
    for step in range(1000, 1008):
        with log.open("a") as file:
            file.write(line(step))
        terminal.read(1)
    began = time.perf_counter()
    terminal.press(b"q")
    assert terminal.read(30, terminal.ended), "the quit key was not heard"
    taken = time.perf_counter() - began
    terminal.close()
    return taken


def idle(folder: Path) -> list[Row]:
    """What a finished run costs."""
    log = folder / "train.log"
    steps = "".join(f"step:{n} - critic/score/mean:{n / 300}\n" for n in range(300))
    log.write_text(steps + "'Final validation metrics: None'\n")
    terminal = Terminal([*APP, log], (160, 50))
    terminal.read(20, lambda: terminal.shows("finished"))
    terminal.read(15)
    cpu, sent, began = terminal.cpu, terminal.bytes, time.perf_counter()
    terminal.read(30)
    share, written = (terminal.cpu - cpu) / (time.perf_counter() - began), terminal.bytes - sent
    terminal.close()
    return [
        ("idle on a finished run: processor", "≤ 1%", f"{share:.2%}", "of one core"),
        ("the same, bytes in 30 s", "a clock tick", f"{written}", ""),
    ]


def judging(folder: Path) -> list[Row]:
    """What judging a log from scratch costs, and one more step of it, beside reading it."""
    sys.path.insert(0, str(HERE.parent))
    from scenarios.worlds import verl, write

    from verl_tui.config import Config
    from verl_tui.health import Judge
    from verl_tui.monitor import load

    world = verl(1000, random.Random(1))
    for number in range(120 - len(world.columns)):
        world.put(f"other/metric_{number}", 0.5, 0.1)
    began = time.perf_counter()
    monitor = load([str(write(world, folder / "run", "file"))], Config(), time.time())
    (run,), reading = monitor.runs.values(), time.perf_counter() - began
    scratch = []
    for _ in range(10):
        began = time.perf_counter()
        Judge(monitor.guide, run).verdict(0.0)
        scratch.append(time.perf_counter() - began)
    judge, more = Judge(monitor.guide, run), []
    judge.verdict(0.0)
    for _ in range(50):
        run.revision += 1
        began = time.perf_counter()
        judge.verdict(0.0)
        more.append(time.perf_counter() - began)
    beside = f"writing and reading it: {reading * 1000:.0f} ms"
    return [
        (
            "judging 1,000 steps × 120 metrics from scratch",
            "< 50 ms",
            f"{median(scratch) * 1000:.0f} ms",
            beside,
        ),
        ("judging again as it grows", "", f"{median(more) * 1000:.1f} ms", "whatever the length"),
    ]


def start(folder: Path) -> list[Row]:
    """How soon the first text and a small run are on the screen, against the least that Textual can
    do.
    """
    log, bare = folder / "log.jsonl", folder / "bare.py"
    log.write_text("".join(line(step) for step in range(1, 200)))
    bare.write_text(BARE)
    least = median(first_seen([sys.executable, bare], "nothing but text")[0] for _ in range(5))
    first, all_ = zip(
        *(first_seen([*APP, log], "verl-tui", "step 199") for _ in range(6)), strict=True
    )
    beside = f"{least:.2f} s where Textual shows one word"
    return [
        (
            "start → first text",
            "",
            f"{median(first[1:]):.2f} s",
            beside,
        ),  # the first start compiles
        ("start → a small run on the screen", "", f"{median(all_[1:]):.2f} s", ""),
    ]


def first_seen(command: list[str | Path], *texts: str) -> list[float]:
    """Return after how many seconds each text was on the screen."""
    terminal, times = Terminal(command, (120, 40)), []
    for text in texts:
        assert terminal.read(20, lambda text=text: terminal.shows(text)), f"{text} never came"
        times.append(time.perf_counter() - terminal.started)
    terminal.close()
    return times


def machine() -> str:
    """Return what the figures depend on."""
    known = (
        text.split(":")[1].strip()
        for text in Path("/proc/cpuinfo").read_text().splitlines()
        if "model n" in text
    )
    cpu = f"{next(known, platform.processor() or 'processor unknown')}, {os.cpu_count()} cores"
    programs = f"Python {platform.python_version()}, Textual {version('textual')}"
    return f"{cpu}; {programs}; {time.strftime('%Y-%m-%d')}"


def main() -> None:
    """Measure and print a table."""
    wanted = sys.argv[1:] or ["loading", "judging", "latency", "live", "link", "idle", "start"]
    print(f"{machine()}\n")
    print("| measure | goal | here | beside it |\n|---|---|---|---|")
    for name in wanted:
        with tempfile.TemporaryDirectory() as folder:
            for row in globals()[name](Path(folder)):
                print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
