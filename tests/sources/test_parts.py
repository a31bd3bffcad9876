"""Parts of logs: their records are those of the whole log, wherever they begin and end."""

from __future__ import annotations

import math
import random
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from log_reading import drain
from log_writing import console_log, csv_log, event_log, file_log, tutorial_log, wandb_log

from verl_tui.records import MetricRows, Restart, Unreadable
from verl_tui.sources.formats import filelogger, metrics_csv, tutorial
from verl_tui.sources.formats.console import decoder as console
from verl_tui.sources.formats.tensorboard import reader as tensorboard
from verl_tui.sources.formats.wandb import reader as wandb
from verl_tui.sources.parts import LogParts
from verl_tui.sources.source import FileSource

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

Cell = tuple[str, int, str, str]
"""Key, step, value, time."""


def cells(records: Iterable[Any], least: float = -math.inf) -> list[Cell]:
    """Return the values of training from a step on, by key and step."""
    return sorted(
        (key, step, repr(value), repr(rows.times[at]) if rows.times else "")
        for rows in records
        if isinstance(rows, MetricRows) and rows.progress and not rows.mean
        for key, column in zip(rows.keys, rows.columns, strict=True)
        for at, (step, value) in enumerate(zip(rows.steps, column, strict=True))
        if step >= least
    )


LOGS: dict[str, tuple[Any, str, Any]] = {
    "file logger": (filelogger, "verl.jsonl", file_log),
    "tutorial": (tutorial, "log.jsonl", tutorial_log),
    "console": (console, "train.log", console_log),
    "CSV": (metrics_csv, "metrics.csv", csv_log),
    "events": (tensorboard, "events.out.tfevents.1.host", event_log),
    "W&B": (wandb, "run-x.wandb", wandb_log),
    "W&B, trainer's steps": (wandb, "run-x.wandb", lambda steps: wandb_log(steps, 1)),
    "W&B, trainer's steps now and then": (wandb, "run-x.wandb", lambda steps: wandb_log(steps, 5)),
}


class Log:
    """A log of some hundreds of steps."""

    def __init__(self, kind: str, folder: Path, steps: list[int]) -> None:
        format_, name, write = LOGS[kind]
        path = folder / name
        data = write(steps)
        path.write_bytes(data)
        self.kind = kind
        self.size = len(data)
        self.parts = LogParts(path, format_)
        self.whole = drain(FileSource(path, format_))


@pytest.fixture(scope="module", params=LOGS)
def log(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Log:
    rises = random.Random(7)
    steps = list(accumulate(rises.choice((1, 1, 1, 2)) for _ in range(400)))
    return Log(request.param, tmp_path_factory.mktemp("logs"), steps)


# -- parts -----------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(cut=st.floats(0, 1))
def test_from_any_cut_on_the_records_are_those_of_the_whole_log(log: Log, cut: float) -> None:
    at = round(cut * log.size)
    start = log.parts.begin(at, log.size)
    if start is None:
        return
    assert start >= at
    part = log.parts.part(start, log.size)
    assert not part.needs_beginning
    assert not any(isinstance(record, Restart | Unreadable) for record in part.records)
    if part.complete_from is not None:
        assert cells(part.records, part.complete_from) == cells(log.whole, part.complete_from)
    elif log.size - start > 64 * 1024:
        pytest.fail("no step of many is known to be whole")


@settings(max_examples=25, deadline=None)
@given(cut=st.floats(0, 1), size=st.integers(1, 70_000))
def test_a_block_gives_records_of_the_whole_log_only(log: Log, cut: float, size: int) -> None:
    at = round(cut * log.size)
    start = log.parts.begin(at, at + size)
    if start is None:
        return
    part = log.parts.part(start, at + size)
    assert part.start == start >= at
    assert part.stop <= at + size
    assert not any(isinstance(record, Restart | Unreadable) for record in part.records)
    assert not set(cells(part.records)) - set(cells(log.whole))


def test_blocks_one_after_the_other_hold_all_records(log: Log) -> None:
    starts = [0]
    while (found := log.parts.begin(starts[-1] + 10_000, log.size)) is not None:
        starts.append(found)
    stops = [*starts[1:], log.size]
    blocks = [log.parts.part(start, stop) for start, stop in zip(starts, stops, strict=True)]
    assert len(blocks) > 1
    left_out = set(cells(log.whole)) - {cell for one in blocks for cell in cells(one.records)}
    # Where not every record states the trainer's step, a block's first have none.
    assert left_out == set() or log.kind == "W&B, trainer's steps now and then"
