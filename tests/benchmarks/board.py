"""Measures how `export tensorboard` writes points beside tensorboardX: processor time, in one
process.

python tests/benchmarks/board.py [METRICS [STEPS]]
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from tensorboardX import SummaryWriter

from verl_tui.exporters.tensorboard import RunLogDirectory
from verl_tui.records import Batch, MetricRows, SourceStatus
from verl_tui.runs.run import Run

NOW = 1_790_000_000.0
TRIES = 3


def run_of(keys: list[str], columns: list[list[float]]) -> Run:
    """Return a run with these metrics."""
    run, steps = Run("run"), range(len(columns[0]))
    rows = MetricRows(
        tuple(keys), steps, columns, steps, [NOW + step for step in steps]
    )
    run.apply(Batch("run", SourceStatus("log", "test"), (rows,)), NOW)
    return run


def ours(keys: list[str], columns: list[list[float]], directory: Path) -> float:
    """Return the seconds that the export takes."""
    run = run_of(keys, columns)
    begun = time.process_time()
    RunLogDirectory(directory).write(run, NOW)
    return time.process_time() - begun


def theirs(keys: list[str], columns: list[list[float]], directory: Path) -> float:
    """Return the seconds that tensorboardX takes."""
    begun = time.process_time()
    with SummaryWriter(str(directory)) as writer:
        for key, column in zip(keys, columns, strict=True):
            for step, value in enumerate(column):
                writer.add_scalar(key, value, step, NOW + step)
    return time.process_time() - begun


def main() -> None:
    """Print both, and how many times as long tensorboardX takes."""
    metrics, steps = (*map(int, sys.argv[1:]), *(100, 1000)[len(sys.argv) - 1 :])
    dice = random.Random(0)
    keys = [f"actor/metric_{number}/mean" for number in range(metrics)]
    columns = [[dice.random() for _ in range(steps)] for _ in keys]
    measured = {ours: list[float](), theirs: list[float]()}
    for attempt in range(TRIES):
        for one, times in measured.items():
            with tempfile.TemporaryDirectory() as directory:
                times.append(one(keys, columns, Path(directory) / str(attempt)))
    mine, other = (median(times) for times in measured.values())
    print(
        f"{metrics * steps:,} points: {mine:.2f} s; tensorboardX {other:.2f} s, {other / mine:.1f} times as long"
    )


if __name__ == "__main__":
    main()
