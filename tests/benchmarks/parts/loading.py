"""What it costs to read logs in full, to apply them to a run and to judge them."""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import orjson
from made_logs import (
    write_batch_keys,
    write_console,
    write_file_log,
    write_wordy_console,
)
from measuring import Cost, Row, in_process, medians

from verl_tui.config import Config
from verl_tui.health.judge import Judge
from verl_tui.monitor import load
from verl_tui.records import Batch
from verl_tui.runs.run import Run
from verl_tui.sources.formats import filelogger
from verl_tui.sources.formats.console import reader as console_format
from verl_tui.sources.source import FileSource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from measuring import Effort

    from verl_tui.sources.formats.format import Format

_JUDGED = 50
"""How often a run is judged again."""


def applied(path: Path, format: Format) -> Run:
    """Return a run that a log has been read into, in one process and without judging it."""
    run = Run("run")
    source = FileSource(path, format)
    more = True
    while more:
        records, more = source.read()
        run.apply(Batch("run", source.status(), records), time.time())
    return run


def judged(paths: list[Path]) -> None:
    """Read logs as `check` does."""
    load([str(path) for path in paths], Config(), time.time())


def parsed(lines: list[bytes]) -> None:
    """Parse lines and keep nothing."""
    for line in lines:
        orjson.loads(line)


def file_logger(folder: Path, effort: Effort) -> Iterator[Row]:
    """Reading a FileLogger's log, beside `orjson.loads` alone over the same lines."""
    log = folder / "train.jsonl"
    megabytes = effort.size(50, 2)
    write_file_log(log, megabytes)
    lines = log.read_bytes().splitlines()
    alone, read, whole = medians(
        effort.tries(5),
        lambda: in_process(lambda: parsed(lines)),
        lambda: in_process(lambda: applied(log, filelogger)),
        lambda: in_process(lambda: judged([log])),
    )
    beside = f"`orjson.loads` alone: CPU {alone.cpu:.2f} s"
    for words, cost, goal in (
        ("read and applied to a run ÷ orjson, CPU", read, "≤ 1.6"),
        ("the same, found, read in turn and judged", whole, ""),
    ):
        name = f"FileLogger, {megabytes} MB: {words}"
        yield Row(name, f"CPU {cost.cpu:.2f} s", beside, cost.cpu / alone.cpu, goal)


def batch_keys(folder: Path, effort: Effort) -> Iterator[Row]:
    """Reading a log whose steps ever have other keys, beside one in which they are the same."""
    megabytes = effort.size(20, 2)
    logs = {varying: folder / f"{varying}.jsonl" for varying in (True, False)}
    for varying, log in logs.items():
        write_batch_keys(log, megabytes, varying=varying)
    other, same = medians(
        effort.tries(3),
        *(lambda log=log: in_process(lambda: judged([log])) for log in logs.values()),
    )
    yield Row(
        f"FileLogger, {megabytes} MB: steps with ever other keys ÷ the same keys, CPU",
        f"CPU {other.cpu:.2f} s",
        f"the same keys: CPU {same.cpu:.2f} s",
        other.cpu / same.cpu,
    )


def console(folder: Path, effort: Effort) -> Iterator[Row]:
    """How fast consoles are read, beside a FileLogger's log of as many bytes."""
    megabytes = effort.size(30, 2)
    logs = [folder / name for name in ("train.jsonl", "train.log", "samples.log")]
    for log, write in zip(
        logs, (write_file_log, write_console, write_wordy_console), strict=True
    ):
        write(log, megabytes)
    costs = medians(
        effort.tries(5),
        *(
            lambda log=log, format=format: in_process(lambda: applied(log, format))
            for log, format in zip(
                logs, (filelogger, console_format, console_format), strict=True
            )
        ),
    )
    beside, *rates = (megabytes / cost.cpu for cost in costs)
    for kind, rate in zip(
        ("console", "console with printed samples"), rates, strict=True
    ):
        yield Row(
            f"{kind}, MB a second of CPU ÷ FileLogger's",
            f"{rate:.0f} MB/s",
            f"FileLogger: {beside:.0f} MB/s",
            rate / beside,
            "≥ 0.8",
        )


def judging(folder: Path, effort: Effort) -> Iterator[Row]:
    """Judging a run from scratch, and once more after a step, beside reading its log."""
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from scenarios.worlds import verl, write

    steps = effort.size(1000, 100)
    world = verl(steps, random.Random(1))
    for number in range(120 - len(world.columns)):
        world.put(f"other/metric_{number}", 0.5, 0.1)
    run = applied(write(world, folder / "run", "file") / "experiment.jsonl", filelogger)
    guide = load([], Config(), 0.0).guide
    (scratch,) = medians(
        effort.tries(10), lambda: in_process(lambda: Judge(guide, run).verdict(0.0))
    )
    judge, more = Judge(guide, run), []
    judge.verdict(0.0)
    for _ in range(_JUDGED):
        run.revision += 1
        more.append(in_process(lambda: judge.verdict(0.0)))
    again = Cost(*map(median, zip(*more, strict=True)))
    yield Row(
        f"judging {steps:,} steps × 120 metrics from scratch; again after a step",
        f"{scratch.cpu * 1e3:.0f} ms; {again.cpu * 1e3:.1f} ms",
        goal="< 50 ms",
    )
