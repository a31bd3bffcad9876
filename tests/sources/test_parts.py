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
from log_writing import (
    console_log,
    file_log,
    llama_factory_log,
    swift_log,
    tutorial_log,
)
from property_examples import examples

from verl_tui.records import MetricRows, Progress, Restart, Settings, Unreadable
from verl_tui.sources.ends import EndSource
from verl_tui.sources.formats import (
    filelogger,
    tutorial,
)
from verl_tui.sources.formats.console import reader as console
from verl_tui.sources.formats.tutorial import llama_factory, swift
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
    "ms-swift": (swift, "logging.jsonl", swift_log),
    "LLaMA-Factory": (llama_factory, "trainer_log.jsonl", llama_factory_log),
    "console": (console, "train.log", console_log),
}


class Log:
    """A log of some hundreds of steps."""

    def __init__(self, kind: str, folder: Path, steps: list[int]) -> None:
        format_, name, write = LOGS[kind]
        path = folder / name
        data = write(steps)
        path.write_bytes(data)
        self.path = path
        self.format = format_
        self.size = len(data)
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
def test_from_any_cut_on_the_records_are_those_of_the_whole_log(log, cut):
    end, records = end_of(log.path, log.format, log.size - round(cut * log.size))
    assert not end.needs_beginning
    assert not any(isinstance(record, Restart | Unreadable) for record in records)
    if end.complete_from is not None:
        assert cells(records, end.complete_from) == cells(log.whole, end.complete_from)
    elif log.size - end.start > 10_000:
        pytest.fail("no step of many is known to be whole")


def end_of(path: Path, format_: Any, size: int) -> tuple[EndSource, list[Any]]:
    """Return the end of a log that begins within a number of bytes, and its records."""
    end = EndSource(path, format_, size)
    return end, [one for one in drain(end) if not isinstance(one, Settings | Progress)]
