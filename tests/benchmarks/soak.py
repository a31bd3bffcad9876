"""Watches runs for long while steps are written all the time: does anything grow, tire or get lost?

    python tests/benchmarks/soak.py --minutes 60 --rate 50 --runs 5

Runs of three formats (file logger, console, CSV) are written side by side, so many steps a second
in all, with dumps of samples. A monitor without a screen and the app on a pty watch them, each in a
process of its own. A table tells every so often what either holds and how late it is; at the end
every point that was written is held against what the monitor has. Exits 1 where one is missing.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING, NamedTuple

import psutil
from terminal import Terminal

from verl_tui.config import Config
from verl_tui.monitor import Monitor
from verl_tui.reading import ReadingThreads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

KEYS = (
    "critic/score/mean", "actor/ppo_kl", "actor/kl_loss", "actor/pg_loss", "actor/entropy", "actor/grad_norm",
    "response_length/mean", "timing_s/step", *(f"other/metric_{n}" for n in range(22)),
)  # fmt: skip
SIZE = (140, 45)
_EVERY_DUMP = 10
"""Steps of a run between two dumps of four samples."""
_PULSE = 0.1
"""Seconds between two writings; a step that is due earlier waits that long at most."""
_PATIENCE = 60.0
"""Seconds to take in the last steps."""


def value(run: int, step: int, key: int) -> float:
    """Return what a run logs at a step under a key: exact in every format."""
    return round(math.sin(step / 50 + key + run) * 0.3 + 0.5, 6)


class Log:
    """One run's log, written step by step, and its dumps."""

    def __init__(self, folder: Path, number: int) -> None:
        self.name = f"run-{number}"
        self.steps = 0
        self.dumps = 0
        self.written: list[float] = []
        """When each step was written, seconds since the epoch."""
        self._number = number
        self._form, ending = (
            (_file_line, "jsonl"), (_console_line, "log"), (_csv_line, "csv"),
        )[number % 3]  # fmt: skip
        self._folder = folder / self.name
        (self._folder / "rollouts").mkdir(parents=True)
        self._file = (self._folder / f"train.{ending}").open("w", encoding="utf-8")
        if ending == "csv":
            self._file.write(",".join(("step", *KEYS)) + "\n")

    def write(self, steps: int) -> None:
        """Append so many steps in one go, as one that is flushed now and then does."""
        for step in range(self.steps + 1, self.steps + steps + 1):
            self._file.write(
                self._form(step, [value(self._number, step, at) for at in _AT])
            )
            if step % _EVERY_DUMP == 0:
                self._dump(step)
        self._file.flush()
        self.steps += steps
        self.written += [time.time()] * steps

    def _dump(self, step: int) -> None:
        rows = (
            {"input": f"user\nWhat is {step}+{n}?", "output": str(step + n), "gts": str(step + n), "score": 1.0, "step": step}
            for n in range(4)
        )  # fmt: skip
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (self._folder / "rollouts" / f"{step}.jsonl").write_text(text)
        self.dumps += 1

    def close(self) -> None:
        """Write no more."""
        self._file.close()


_AT = range(len(KEYS))


def _file_line(step: int, values: list[float]) -> str:
    return (
        json.dumps({"step": step, "data": dict(zip(KEYS, values, strict=True))}) + "\n"
    )


def _console_line(step: int, values: list[float]) -> str:
    numbers = " - ".join(
        f"{key}:{value}" for key, value in zip(KEYS, values, strict=True)
    )
    return f"(TaskRunner pid=1) step:{step} - {numbers}\n"


def _csv_line(step: int, values: list[float]) -> str:
    return ",".join(map(str, (step, *values))) + "\n"


# -- the monitor, in a process of its own ----------------------------------------------------------


def watch(folder: Path) -> None:
    """Follow until standard input ends, with a line for each question; then tell what came."""
    news, asked = threading.Event(), threading.Event()
    over = threading.Event()

    def hear() -> None:
        for _ in sys.stdin:
            asked.set()
        over.set()

    threading.Thread(target=hear, daemon=True).start()
    monitor = Monitor(Config())
    reading = ReadingThreads(
        [str(folder)], Config(gpu_interval=5.0), clock=time.time, notify=news.set
    )
    reading.start()
    judged, costs = 0.0, [0.0]
    while not over.is_set():
        news.wait(0.2)
        news.clear()
        for one in reading.take():
            monitor.apply(one, time.time())
        if time.monotonic() - judged > 1.0:
            judged, before = time.monotonic(), time.process_time()
            monitor.judge(time.time())
            costs.append(time.process_time() - before)
        if asked.is_set():
            asked.clear()
            print(
                json.dumps({"steps": _newest(monitor), "judging": median(costs[-30:])}),
                flush=True,
            )
    reading.stop()
    print(json.dumps(_missing(monitor)), flush=True)


def _newest(monitor: Monitor) -> dict[str, int]:
    return {run.name: run.step or 0 for run in monitor.runs.values()}


def _missing(monitor: Monitor) -> dict[str, tuple[int, int, int, int]]:
    """Return for each run its last step, points, those with another value, and dumps."""
    found = {}
    for run in monitor.runs.values():
        number = int(run.name.rpartition("-")[2])
        points = 0
        wrong = 0
        for at, key in enumerate(KEYS):
            series = run.series(key)
            pairs = (
                () if series is None else zip(series.steps, series.values, strict=True)
            )
            for step, known in pairs:
                points += 1
                wrong += known != value(number, step, at)
        found[run.name] = (run.step or 0, points, wrong, len(run.samples.places))
    return found


class Watcher:
    """The monitor's process: asked how far it is, then what it has."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, __file__, "--watch", str(folder)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.pid = self._process.pid

    def ask(self) -> dict[str, object]:
        """Return the newest step of each run, and what judging costs."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("?\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def end(self) -> dict[str, tuple[int, int, int, int]]:
        """Return what it has in the end."""
        out, _ = self._process.communicate(timeout=_PATIENCE)
        return json.loads(out)


# -- figures ---------------------------------------------------------------------------------------


class Held(NamedTuple):
    """What a process holds."""

    memory: float
    """MiB."""
    descriptors: int
    threads: int
    cpu: float
    """Seconds of processor time so far."""


def held(pid: int) -> Held:
    """Return what a process holds now."""
    process = psutil.Process(pid)
    with process.oneshot():
        times = process.cpu_times()
        return Held(
            process.memory_info().rss / 2**20,
            process.num_fds(),
            process.num_threads(),
            times.user + times.system,
        )


def shown_step(terminal: Terminal, name: str) -> int | None:
    """Return the step that the app's first row says of a run, None while it shows another."""
    found = re.search(rf" {name} .* step ([\d,]+)", terminal.lines[0])
    return None if found is None else int(found[1].replace(",", ""))


class Soak:
    """Writes, watches and notes."""

    def __init__(self, folder: Path, runs: int, rate: float) -> None:
        self.logs = [Log(folder, number) for number in range(runs)]
        self.rate = rate
        for log in self.logs:
            log.write(3)
        self.watcher = Watcher(folder)
        self.app = Terminal(
            [sys.executable, "-m", "verl_tui", folder], SIZE, VERL_TUI_STATE=""
        )
        self._ages: tuple[list[float], list[float]] = ([], [])
        """Seconds by which the monitor and the app were behind."""
        self._cpu = (0.0, 0.0)

    def go_on(self, seconds: float) -> None:
        """Write for so long, and look at both once a second."""
        began, steps, looked = time.monotonic(), 0, 0.0
        while (elapsed := time.monotonic() - began) < seconds:
            due = int(elapsed * self.rate)
            for number, log in enumerate(self.logs):
                share = due // len(self.logs) + (number < due % len(self.logs))
                done = steps // len(self.logs) + (number < steps % len(self.logs))
                if share > done:
                    log.write(share - done)
            steps = due
            self.app.read(_PULSE)
            if time.monotonic() - looked > 1.0:
                looked = time.monotonic()
                self._look()

    def _look(self) -> None:
        newest = self.watcher.ask()["steps"]
        self._ages[0].append(
            max(self._behind(log, newest.get(log.name, 0)) for log in self.logs)
        )
        for log in self.logs:
            if (step := shown_step(self.app, log.name)) is not None:
                self._ages[1].append(self._behind(log, step))

    @staticmethod
    def _behind(log: Log, step: int) -> float:
        """Return for how long a later step has been there; 0 where there is none."""
        return time.time() - log.written[step] if step < log.steps else 0.0

    def row(self, minutes: float) -> str:
        """Return a line of the table: what both hold now, and how late they were since the last."""
        cells = [f"{minutes:.1f}", f"{sum(log.steps for log in self.logs):,}"]
        for at, pid in enumerate((self.watcher.pid, self.app.pid)):
            now, ages = held(pid), self._ages[at]
            late = (
                f"{median(ages):.2f} / {quantiles(ages, n=20)[-1]:.2f}"
                if len(ages) > 1
                else "-"
            )
            cells += [f"{now.memory:.0f}", f"{now.descriptors}", f"{now.threads}", late]
            cells.append(f"{now.cpu - self._cpu[at]:.1f}")
        self._cpu = (held(self.watcher.pid).cpu, held(self.app.pid).cpu)
        self._ages = ([], [])
        judging = float(str(self.watcher.ask()["judging"])) * 1e3
        return "| " + " | ".join([*cells, f"{judging:.0f}"]) + " |"

    def settled(self) -> bool:
        """Wait until both have the last steps; tell whether they have."""
        for log in self.logs:
            log.close()
        wanted = {log.name: log.steps for log in self.logs}
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            self.app.read(0.5)
            on_screen = any(
                shown_step(self.app, log.name) == log.steps for log in self.logs
            )
            if on_screen and self.watcher.ask()["steps"] == wanted:
                return True
        return False

    def lost(self) -> Iterator[str]:
        """Yield a sentence for each run of which anything is missing or wrong."""
        found = self.watcher.end()
        for log in self.logs:
            last, points, wrong, dumps = found.get(log.name, (0, 0, 0, 0))
            meant = log.steps * len(KEYS)
            if (last, points, wrong, dumps) != (log.steps, meant, 0, log.dumps):
                yield (
                    f"{log.name}: step {last} of {log.steps}, {points:,} of {meant:,} points, "
                    f"{wrong} wrong, {dumps} of {log.dumps} dumps"
                )

    def close(self) -> None:
        """End the app."""
        self.app.close()


_TITLES = (
    "minutes",
    "steps",
    *(
        f"{who}: {what}"
        for who in ("monitor", "app")
        for what in ("MiB", "descriptors", "threads", "behind p50 / p95 s", "CPU s")
    ),
    "judging ms",
)


def soak(folder: Path, options: argparse.Namespace, tell: Callable[[str], None]) -> int:
    """Run it; return the exit code."""
    this = Soak(folder, options.runs, options.rate)
    tell("| " + " | ".join(_TITLES) + " |\n|" + "---|" * len(_TITLES))
    began = time.monotonic()
    every = min(options.every, options.minutes) * 60
    while time.monotonic() - began < options.minutes * 60 - 1:
        this.go_on(every)
        tell(this.row((time.monotonic() - began) / 60))
    in_time, lost = this.settled(), list(this.lost())
    this.close()
    tell("")
    steps = sum(log.steps for log in this.logs)
    tell(
        f"{steps:,} steps, {steps * len(KEYS):,} points, {sum(log.dumps for log in this.logs):,} dumps"
    )
    tell(
        "all of them taken in"
        if in_time
        else f"not all of them taken in within {_PATIENCE:g} s"
    )
    tell("\n".join(lost) or "0 points lost, 0 wrong, 0 dumps lost")
    return 1 if lost or not in_time else 0


def main() -> int:
    """Read the options, make a directory of one's own, and begin."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument(
        "--rate", type=float, default=50.0, help="steps a second, of all runs"
    )
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument(
        "--every", type=float, default=1.0, help="minutes between two lines"
    )
    parser.add_argument("--watch", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.watch is not None:
        watch(options.watch)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        return soak(Path(folder), options, lambda text: print(text, flush=True))


if __name__ == "__main__":
    sys.exit(main())
