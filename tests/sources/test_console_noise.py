"""Lines of a console without information are recognised by their words, whatever numbers they have."""

from __future__ import annotations

from typing import TypeGuard

import pytest
from test_line_words import WORDS

from verl_tui.records import Event, EventKind, Pulse
from verl_tui.sources.formats.console.decoder import ConsoleDecoder
from verl_tui.sources.formats.console.silent_lines import Noise
from verl_tui.sources.formats.lines import LineReader
from verl_tui.times import parse_time

SILENT = b"\x1b[36m(WorkerDict pid=20311)\x1b[0m INFO 11-23 10:00:07 [pool.py:378] reset the cache"


def test_what_no_reader_looks_for_says_nothing() -> None:
    noise = Noise()
    assert noise.date(SILENT) is False
    assert noise.date(SILENT.replace(b"7", b"8")) is False
    assert noise.date(b"2026-11-23 10:00:07 " + SILENT)


@pytest.mark.parametrize("word", [*WORDS, "step:", "[prompt]", "╭", "a\rb"])
def test_a_word_that_a_reader_looks_for_is_no_noise(word: str) -> None:
    noise = Noise()
    assert noise.date(SILENT) is False
    assert noise.date(SILENT + word.encode()) is None
    coloured = b"\x1b[31m".join(word[at : at + 1].encode() for at in range(99))
    assert noise.date(SILENT + coloured) is None


def test_long_lines_are_read() -> None:
    assert Noise().date(b"x" * 1000) is None


@pytest.mark.parametrize("date", ["", "2026-11-28 10:00:{at:02} "])
def test_trouble_that_is_repeated_is_counted(date: str) -> None:
    kinds = [
        f"(W pid={10 + at % 2}) {date.format(at=at)}request {at} failed"
        for at in range(40)
    ]
    kinds.insert(20, "(W pid=10) another thing failed")
    reader = LineReader(ConsoleDecoder())
    # While a decoder looks for the trainer, it reads each line as a whole.
    steps = "".join(f"step:{at} - actor/entropy:0.4\n" for at in range(1, 99))
    text = "".join(f"{line}\n" for line in kinds)
    records = reader.feed((steps + text).encode())
    found = [one for one in records if is_trouble(one)]
    assert sum(one.times for one in found) == len(kinds)
    assert len(found) < len(kinds)
    assert [one.line for one in found] == sorted(one.line for one in found)
    assert found[-1].line == 98 + len(kinds)
    assert found[-1].text.endswith("request 39 failed")
    times = [one.time for one in records if isinstance(one, Pulse)]
    assert times[-1:] == ([parse_time("2026-11-28 10:00:39")] if date else [])
    assert found[-1].clock == (36_039 if date else None)


def test_no_heartbeat_is_counted_as_trouble_alike() -> None:
    steps = "".join(f"step:{at} - actor/entropy:0.4\n" for at in range(1, 99))
    beats = [
        f"INFO:2026-11-28 10:0{at}:00,100:pending: 0, running: {at}, failure: 0\n"
        for at in range(5)
    ]
    reader = LineReader(ConsoleDecoder())
    records = reader.feed((steps + "".join(beats)).encode())
    counters = [one.counters for one in records if isinstance(one, Pulse)]
    assert counters == [f"pending: 0, running: {at}, failure: 0" for at in range(5)]


def is_trouble(record: object) -> TypeGuard[Event]:
    return isinstance(record, Event) and record.kind is EventKind.WARNING
