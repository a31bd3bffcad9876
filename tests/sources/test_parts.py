"""Parts of logs: their records are those of the whole log, wherever they begin and end."""

from __future__ import annotations

import math
import os
import random
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from log_reading import drain
from log_writing import (
    console_log,
    event_log,
    file_log,
    llama_factory_log,
    swift_log,
    tutorial_log,
    wandb_log,
)
from property_examples import examples
from wandb_writing import field, history, written

from verl_tui.records import MetricRows, Progress, Restart, Settings, Unreadable
from verl_tui.sources.ends import EndSource
from verl_tui.sources.formats import (
    filelogger,
    tutorial,
)
from verl_tui.sources.formats.console import reader as console
from verl_tui.sources.formats.tensorboard import reader as tensorboard
from verl_tui.sources.formats.trainer_logs import llama_factory, swift
from verl_tui.sources.formats.wandb import reader as wandb
from verl_tui.sources.source import FileSource

if TYPE_CHECKING:
    from collections.abc import Iterable

SHARED = Path(
    os.environ.get("VERL_TUI_LOGS", Path(__file__).parents[3] / "shared" / "logs")
)
REAL = [
    (
        wandb,
        "JOY-SWang__R1-AQA-Omni/wandb/run-20250612_083819-asc2sncx/run-asc2sncx.wandb",
    ),
]
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
    "ms-swift": (swift, "logging.jsonl", swift_log),
    "LLaMA-Factory": (llama_factory, "trainer_log.jsonl", llama_factory_log),
    "console": (console, "train.log", console_log),
    "events": (tensorboard, "events.out.tfevents.1.host", event_log),
    "W&B": (wandb, "run-x.wandb", wandb_log),
    "W&B, trainer's steps": (wandb, "run-x.wandb", lambda steps: wandb_log(steps, 1)),
    "W&B, trainer's steps now and then": (
        wandb,
        "run-x.wandb",
        lambda steps: wandb_log(steps, 5),
    ),
}


class Log:
    """A log of some hundreds of steps."""

    def __init__(self, kind: str, folder: Path, steps: list[int]) -> None:
        format_, name, write = LOGS[kind]
        path = folder / name
        data = write(steps)
        path.write_bytes(data)
        self.kind = kind
        self.path = path
        self.format = format_
        self.size = len(data)
        self.end = EndSource(path, format_, 0, 1)
        self.whole = drain(FileSource(path, format_))


@pytest.fixture(scope="module", params=LOGS)
def log(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Log:
    rises = random.Random(7)
    steps = list(accumulate(rises.choice((1, 1, 1, 2)) for _ in range(300)))
    return Log(request.param, tmp_path_factory.mktemp("logs"), steps)


# -- parts -----------------------------------------------------------------------------------------


@settings(max_examples=examples(1 / 3))
@given(cut=st.floats(0, 1))
def test_from_any_cut_on_the_records_are_those_of_the_whole_log(
    log: Log, cut: float
) -> None:
    end, records = end_of(log.path, log.format, log.size - round(cut * log.size))
    assert not end.needs_beginning
    assert not any(isinstance(record, Restart | Unreadable) for record in records)
    if end.complete_from is not None:
        assert cells(records, end.complete_from) == cells(log.whole, end.complete_from)
    elif log.size - end.start > 10_000:
        pytest.fail("no step of many is known to be whole")


@settings(max_examples=examples(1 / 3))
@given(cut=st.floats(0, 1), size=st.integers(1, 70_000))
def test_a_block_gives_records_of_the_whole_log_only(
    log: Log, cut: float, size: int
) -> None:
    at = round(cut * log.size)
    records = log.end.block(at, at + size)
    assert not any(isinstance(record, Restart | Unreadable) for record in records)
    assert not set(cells(records)) - set(cells(log.whole))


# -- what leans on the beginning, and what looks like a record -------------------------------------


def end_of(path: Path, format_: Any, size: int) -> tuple[EndSource, list[Any]]:
    """Return the end of a log that begins within a number of bytes, and its records."""
    end = EndSource(path, format_, 0, size)
    return end, [one for one in drain(end) if not isinstance(one, Settings | Progress)]


def test_steps_of_wandb_count_as_the_beginning_of_the_history_counts_them(
    tmp_path: Path,
) -> None:
    path = tmp_path / "run-x.wandb"
    printed = [field(17, field(8, "x" * 30_000)) for _ in range(30)]
    numbers = {"loss": "1", "note": f'"{"x" * 500}"'}
    own = [history(step, numbers) for step in range(1, 1000)]
    path.write_bytes(written([*printed, *own]))
    end, records = end_of(path, wandb, 70_000)
    assert not end.needs_beginning
    assert [cell[1] for cell in cells(records, 990)] == [*range(990, 1000)]

    stated = [
        history(step, {**numbers, "train/global_step": str(step // 4)})
        for step in range(1000, 1005)
    ]
    path.write_bytes(written([*printed, *own, *stated]))
    assert end_of(path, wandb, 70_000)[0].needs_beginning


# -- real logs -------------------------------------------------------------------------------------


@pytest.mark.skipif(
    not SHARED.is_dir(), reason="no logs of others here: set VERL_TUI_LOGS"
)
@pytest.mark.parametrize(("format_", "name"), REAL)
def test_parts_of_real_logs_are_those_of_the_whole(format_: Any, name: str) -> None:
    path = SHARED / name
    end, records = end_of(path, format_, path.stat().st_size // 3)
    assert end.complete_from is not None
    assert not end.needs_beginning
    whole = drain(FileSource(path, format_))
    assert cells(records, end.complete_from) == cells(whole, end.complete_from)
