"""Measures how fast TensorBoard's event files are read, beside TensorBoard's own reader, in one
run.

    python tests/benchmarks/events.py [thousands of scalars]

Needs `tensorboard`. Both read the same file, written by TensorBoard's own writer, from the disk's
cache; the time is that of the processor, imports not counted.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from bench import machine
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.summary.writer.record_writer import RecordWriter

from verl_tui.records import MetricRows
from verl_tui.sources.formats.tensorboard import reader as tensorboard
from verl_tui.sources.source import FileSource

if TYPE_CHECKING:
    from collections.abc import Callable

TAGS = [
    f"{('actor', 'critic', 'perf', 'timing_s')[n % 4]}/{'metric_' * (1 + n % 5)}{n}"
    for n in range(100)
]


def write(path: Path, steps: int) -> None:
    """Write a number of each tag at each step."""
    rng, now = random.Random(1), 1.7e9
    with path.open("wb") as file:
        writer = RecordWriter(file)
        writer.write(Event(wall_time=now, file_version="brain.Event:2").SerializeToString())
        for step in range(steps):
            now += 20.0
            for tag in TAGS:
                now += rng.random() * 1e-4
                event = Event(wall_time=now, step=step)
                event.summary.value.add(tag=tag, simple_value=rng.random())
                writer.write(event.SerializeToString())


def ours(path: Path) -> int:
    """Read a file as the monitor does; return how many numbers it had."""
    source, found, more = FileSource(path, tensorboard), 0, True
    while more:
        records, more = source.read()
        found += sum(len(record.steps) for record in records if isinstance(record, MetricRows))
    return found


def theirs(path: Path) -> int:
    """Read a file as TensorBoard does; return how many numbers it had."""
    accumulator = EventAccumulator(str(path), size_guidance={"scalars": 0})
    accumulator.Reload()
    return sum(len(accumulator.Scalars(tag)) for tag in accumulator.Tags()["scalars"])


def timed(read: Callable[[Path], int], path: Path, expected: int) -> float:
    """Return the seconds that reading takes."""
    began = time.process_time()
    found = read(path)
    taken = time.process_time() - began
    assert found == expected, f"{found} of {expected} numbers"
    return taken


def main() -> None:
    """Measure and print a table."""
    steps = 1000 * int((sys.argv[1:] or ["1000"])[0]) // len(TAGS)
    count = steps * len(TAGS)
    print(f"{machine()}; TensorBoard {version('tensorboard')}\n")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.out.tfevents.1.host.1.0"
        write(path, steps)
        size = path.stat().st_size / 1e6
        before = timed(ours, path, count)
        other = timed(theirs, path, count)
        after = timed(ours, path, count)
    mean = (before + after) / 2
    print("| measure | goal | here | beside it |\n|---|---|---|---|")
    here = f"{mean:.2f} s ({before:.2f}, {after:.2f})"
    print(
        f"| {count:,} scalars of {len(TAGS)} tags ({size:.0f} MB) | | {here} | TensorBoard: {other:.2f} s |"
    )
    print(
        f"| times as fast as TensorBoard | ≥ 10 | {other / mean:.1f} | {count / mean / 1e3:,.0f} k scalars/s |"
    )


if __name__ == "__main__":
    main()
