"""Whose turn it is: first the run that is shown, though no log holds the others up."""

from __future__ import annotations

import threading
from itertools import count
from typing import TYPE_CHECKING

import pytest
from log_reading import follow_feed
from log_writing import file_log

from verl_tui.records import Batch
from verl_tui.sources.feed import Feed
from verl_tui.sources.source import FileSource

if TYPE_CHECKING:
    from verl_tui.sources.discovery.found import FoundFile

CHUNK = 400
"""Bytes of a turn: a log below takes about ten."""


def few_bytes_a_turn(file: FoundFile) -> FileSource:
    assert file.format is not None
    return FileSource(file.path, file.format, CHUNK)


@pytest.mark.parametrize(("shown", "first"), [(None, "a"), ("b", "c")])
def test_who_is_read_to_its_end_first(shown, first, tmp_path):
    """The first run until one is shown; one that grows as fast as it is read holds up no others."""
    ended, stop = list[str](), threading.Event()

    def deliver(news: object) -> None:
        if not isinstance(news, Batch) or not news.records:
            return
        log = tmp_path / news.run / "log.jsonl"
        if news.run == "b" and log.stat().st_size < 2**16:
            with log.open("ab") as file:
                file.write(file_log([*range(100, 110)]))
        if news.status.bytes_read == news.status.size and news.run not in ended:
            ended.append(news.run)
        if len(ended) == 3:
            stop.set()

    for run in ("a", "b", "c"):
        (tmp_path / run).mkdir()
        (tmp_path / run / "log.jsonl").write_bytes(file_log([*range(1, 40)]))
    ticks = count()
    feed = Feed([str(tmp_path)], shown=lambda: shown, source_of=few_bytes_a_turn)
    follow_feed(feed, stop, deliver, lambda: float(next(ticks)))
    assert ended.index(first) < ended.index("c" if shown is None else "b")
