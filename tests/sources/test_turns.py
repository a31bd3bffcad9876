"""Whose turn it is: first the run that is shown, though no log holds the others up."""

from __future__ import annotations

import threading
from itertools import count
from typing import TYPE_CHECKING

import log_writing
from log_reading import follow_feed

from verl_tui.records import Batch
from verl_tui.sources.feed import Feed
from verl_tui.sources.source import FileSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from verl_tui.sources.discovery.found import FoundFile

RUNS = ("a", "b", "c")
CHUNK = 400
"""Bytes of a turn: a log below takes about ten."""


def few_bytes_a_turn(file: FoundFile, ordinal: int) -> FileSource:
    assert file.format is not None
    return FileSource(file.path, file.format, ordinal, CHUNK)


def turns(root: Path, shown: Callable[[], str | None]) -> Iterator[Batch]:
    """Follow all runs, and yield the batches until each log has been read to its end."""
    taken, stop = list[Batch](), threading.Event()

    def deliver(news: object) -> None:
        if isinstance(news, Batch) and news.records:
            taken.append(news)
            log = root / news.run / "log.jsonl"
            if news.run == "b" and log.stat().st_size < 2**16:  # faster than it is read
                with log.open("ab") as file:
                    file.write(log_writing.file_log([*range(100, 110)]))
        if all(any(is_last(one, run) for one in taken) for run in RUNS):
            stop.set()

    for run in RUNS:
        (root / run).mkdir()
        (root / run / "log.jsonl").write_bytes(log_writing.file_log([*range(1, 40)]))
    ticks = count()
    feed = Feed([str(root)], shown=shown, source_of=few_bytes_a_turn)
    follow_feed(feed, stop, deliver, lambda: float(next(ticks)))
    yield from taken


def is_last(batch: Batch, run: str) -> bool:
    return batch.run == run and batch.status.bytes_read == batch.status.size


def end(order: list[Batch], run: str) -> int:
    """Return the turn in which a log had been read whole."""
    return next(at for at, batch in enumerate(order) if is_last(batch, run))


def test_the_first_run_is_read_first_until_one_is_shown(tmp_path: Path) -> None:
    order = list(turns(tmp_path, lambda: None))
    assert end(order, "a") < end(order, "c")


def test_a_log_that_grows_as_fast_as_it_is_read_does_not_hold_the_others_up(
    tmp_path: Path,
) -> None:
    order = list(turns(tmp_path, lambda: "b"))
    assert end(order, "c") < end(order, "b")
