"""A log as text: the same lines from wherever one comes, however the file grows, and none of it
loaded as a whole.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import orjson
import pytest
from file_writing import write_file
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from verl_tui.on_demand import log_blocks
from verl_tui.on_demand import log_reader as log_module
from verl_tui.on_demand.log_reader import Log
from verl_tui.text import safe, strip_ansi

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from verl_tui.on_demand.log_blocks import LogBlock, LogLine

SMALL, SHORT = 16, 24
PIECES = [
    *(b"\n", b"\r", b"\r\n", b"10%|# | 1/10", b"\x1b[36m", b"\x1b]0;t\x07", b"\0"),
    *("训练".encode(), b"x" * 40),
]
BYTES = st.lists(
    st.one_of(
        st.sampled_from(PIECES),
        st.binary(max_size=20),
        st.text("ab \n", max_size=30).map(str.encode),
    ),
    max_size=30,
).map(b"".join)


@pytest.fixture
def small(monkeypatch):
    """Blocks so small that lines fill several of them."""
    monkeypatch.setattr(log_blocks, "BLOCK", SMALL)
    monkeypatch.setattr(log_blocks, "WINDOW", SHORT)
    monkeypatch.setattr(log_blocks, "STRIDE", 4 * SMALL)
    monkeypatch.setattr(log_module, "KEPT", 1000)


def read(log: Log) -> Log:
    """Do what the thread does, until nothing is left to do."""
    for _ in range(100_000):
        if not log.waits():
            return log
        log.read_on()
    raise AssertionError("never done")


def opened(path: Path) -> Log:
    return read(Log(str(path), threading.Condition()))


def block(log: Log, number: int) -> LogBlock:
    found = log.block(number)
    if found is None or log.waits():
        read(log)
        found = log.block(number)
    assert found is not None
    return found


def start_of(log: Log, number: int) -> int | None:
    log.start_of(number)
    return read(log).start_of(number)


def forwards(log: Log) -> Iterator[LogLine]:
    number = 0
    while number <= log.last:
        one = block(log, number)
        yield from one.lines
        assert one.after > number
        number = one.after


def backwards(log: Log) -> Iterator[LogLine]:
    number = log.last
    while number >= 0:
        one = block(log, number)
        yield from reversed(one.lines)
        assert one.before < number
        number = one.before


def expected(data: bytes) -> list[tuple[int, int, bytes]]:
    """Return start, end and bytes of all lines, read in the simplest way."""
    found, at = [], 0
    for line in data.split(b"\n"):
        end = min(len(data), at + len(line) + 1)
        if at < len(data):
            found.append((at, end, line))
        at = end
    return found


def check(log: Log, data: bytes) -> None:
    lines = list(forwards(log))
    assert list(backwards(log)) == lines[::-1]
    firsts = [line for line in lines if line.first]
    known = expected(data)
    assert [(line.start, line.end) for line in firsts] == [one[:2] for one in known]
    for line, (_, _, raw) in zip(firsts, known, strict=True):
        if b"\r" not in raw and len(raw) < SHORT:
            text = safe(strip_ansi(raw).decode("utf-8", "replace"))
            assert line.text == text.replace("\n", " ").rstrip()
        assert not any(it < " " or "\x7f" <= it < "\xa0" for it in line.text)
    read(log)
    for number, line in enumerate(firsts, 1):
        block(log, line.start // SMALL)
        assert log.number(line.start) == number
        assert start_of(log, number) == line.start
    assert start_of(log, len(firsts) + 1) == -1


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example([b"a" * 15 + b"\n", b"b\n"])
@example([b"a" * 16, b"\n", b"\n" * 16, b"c" * 100, b"d\n", b"e"])
@given(st.lists(BYTES, min_size=1, max_size=4))
def test_any_bytes_any_growth(small, tmp_path, pieces):
    path = tmp_path / "train.log"
    path.unlink(missing_ok=True)
    data = pieces[0]
    assume(not b"".join(pieces).startswith(b"\x1f\x8b"))  # a compressed one
    path.write_bytes(data)
    log = opened(path)
    check(log, data)
    for more in pieces[1:]:
        data += more
        with path.open("ab") as file:
            file.write(more)
        log.check()
        read(log)
        check(log, data)
    assert log.generation == 0


class Word:
    """Looks for a word."""

    def __init__(self, word: str) -> None:
        self.word = word

    def worth(self, data: bytes) -> bool:
        return self.word.encode() in data

    def found(self, line: str) -> bool:
        return self.word in line


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text("ab\n", max_size=400), st.integers(0, 400), st.sampled_from([1, -1]))
def test_finds_the_next_line_either_way(small, tmp_path, text, origin, way):
    (tmp_path / "train.log").write_text(text)
    log = opened(tmp_path / "train.log")
    origin = min(origin, len(text))
    search = log.find(Word("ab"), origin, way)
    read(log)
    known = expected(text.encode())
    starts = [start for start, _, line in known if b"ab" in line[:SHORT]]
    wanted = [start for start in starts[::way] if (start >= origin) == (way > 0)]
    assert search.done
    assert search.found == (wanted[0] if wanted else None)


def test_the_newest_lines_cost_a_few_reads(tmp_path, monkeypatch):
    path = tmp_path / "train.log"
    with path.open("wb") as file:
        file.truncate(5 * 2**30)
        file.seek(0, os.SEEK_END)
        file.write(b"\nthe end\n")
    got = 0
    pread = os.pread

    def counted(descriptor: int, count: int, at: int) -> bytes:
        nonlocal got
        data = pread(descriptor, count, at)
        got += len(data)
        return data

    monkeypatch.setattr(os, "pread", counted)
    log = opened(path)
    assert block(log, log.last).lines[-1].text == "the end"
    assert got < 2 * log_blocks.BLOCK
    assert log.number(5 * 2**30 + 1) is None, "gigabytes are not counted unasked"


def test_progress_bars_keep_their_last_state(tmp_path):
    path = tmp_path / "train.log"
    path.write_bytes(
        b"\rstep:  0%|  | 0/9\rstep: 10%|# | 1/9\r\nstart\rloading\r5%|\r6%|\rdone\n\r\r\n"
    )
    lines = list(forwards(opened(path)))
    assert "|".join(line.text for line in lines) == (
        "step: 10%|# | 1/9|start|loading|6%||done|"
    )
    assert [line.first for line in lines] == [True, True, False, False, False, True]
    bars = (b"\rTraining: %d%%|%s|" % (i % 100, b"#" * 50) for i in range(40_000))
    path.write_bytes(b"before\n" + b"".join(bars))
    before, bar = forwards(opened(path))
    assert (before.text, bar.text[:16]) == ("before", "Training: 99%|##")


def test_a_very_long_line_is_cut(tmp_path):
    path = write_file(tmp_path / "train.log", b"a\n" + b"x" * 1_000_000 + b"\nb\n")
    log = opened(path)
    lines = list(forwards(log))
    assert [line.text[:3] for line in lines] == ["a", "xxx", "b"]
    assert lines[1].text.endswith(f"… [{1_000_001 - log_blocks.WINDOW:,} more bytes]")
    assert list(backwards(log)) == lines[::-1]
    assert block(log, 3).lines == ()
    last = 1_000_003 // log_blocks.BLOCK
    assert (block(log, 3).before, block(log, 0).after) == (0, last)


def test_truncation_replacement_and_rewriting(tmp_path):
    path = write_file(tmp_path / "train.log", "one\ntwo\n")
    log = opened(path)
    assert [line.text for line in forwards(log)] == ["one", "two"]
    for generation, text in enumerate(["1\n", "another\n", "different\nlonger\n"], 1):
        path.write_text(text)
        os.utime(path, ns=(generation, generation))
        log.check()
        read(log)
        assert log.generation == generation
        assert [line.text for line in forwards(log)] == text.split()
    copy = write_file(tmp_path / "copy", "different\nlonger\nand on\n")
    copy.replace(path)
    log.check()
    read(log)
    assert log.generation == 3, "log shippers replace a file by a longer copy of itself"
    assert [line.text for line in forwards(log)][-1] == "and on"


def test_a_line_that_a_collector_keeps_is_shown_as_it_was_printed(tmp_path):
    path = tmp_path / "c0ffee-json.log"
    with path.open("wb") as file:
        for line in (
            "\x1b[36m(Task pid=1)\x1b[0m begins\n",
            "10%|# | 1/10\r20%|# | 2/10\x1b]0;t\x07\n",
        ):
            row = {"log": line, "stream": "stdout", "time": "2026-11-20T10:00:00Z"}
            file.write(orjson.dumps(row) + b"\n")
    lines = block(opened(path), 0).lines
    assert [line.text for line in lines] == ["(Task pid=1) begins", "20%|# | 2/10"]
