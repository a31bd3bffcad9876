"""Standard input: formats found by the first lines, nothing lost or read twice, the end waited
for.
"""

from __future__ import annotations

import bz2
import gzip
import itertools
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_reading import read_run, values

from verl_tui.records import MetricRows
from verl_tui.sources import pipe
from verl_tui.sources.files import PACKED, Chunk
from verl_tui.sources.formats import HEAD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from verl_tui.records import Record

DATA = Path(__file__).parents[1] / "data"
DICTS = (
    b"pip install\n" * 20
    + b"{'loss': 0.5, 'epoch': 0.1}\n{'loss': 0.25, 'epoch': 0.2}\n"
)
CSV = b"step,reward\n1,0.5\n2,0.25\n"
FLAT = b'{"step": 1, "reward": 0.5}\n{"step": 2, "reward": 0.25}\n'
LOGS = {"dicts": DICTS, "csv": CSV, "flat": FLAT}
for _name in (
    "console_v09.log",
    "console_sft.log",
    "filelogger_v07.jsonl",
    "tutorial.jsonl",
):
    LOGS[_name] = (DATA / _name).read_bytes()


@pytest.fixture
def end(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Put a pipe in the place of standard input; return its other end."""
    here, there = os.pipe()
    monkeypatch.setattr(pipe, "descriptor", here)
    yield there
    os.close(here)


@pytest.mark.parametrize("spec", ["-", "/dev/stdin"])
def test_it_is_read_to_its_end(end, spec):
    os.write(end, FLAT)
    os.close(end)
    run = read_run(spec)
    assert run.name == "stdin"
    assert values(run, "reward") == {1: 0.5, 2: 0.25}
    (state,) = run.sources.values()
    assert (state.status.path, state.status.format) == ("/dev/stdin", "tutorial JSONL")
    assert state.status.bytes_read == state.status.size == len(FLAT)


@pytest.mark.parametrize("name", LOGS)
@given(cuts=st.lists(st.integers(0, 10**5), max_size=8))
def test_any_cut_gives_the_same_records(name, cuts):
    data = LOGS[name]
    edges = sorted({0, len(data), *(cut % len(data) for cut in cuts)})
    assert (
        points([data])
        == points([data[a:b] for a, b in itertools.pairwise(edges)])
        != []
    )


class Pieces(pipe.PipeTail):
    """Standard input that comes in given pieces."""

    def __init__(self, pieces: list[bytes]) -> None:
        super().__init__()
        self._pieces = iter(pieces)

    def read(self, limit: int = 0) -> Chunk:
        """Return the next piece."""
        data = next(self._pieces, None)
        self.ended = data is None
        self.offset += len(data or b"")
        return Chunk(data or b"", more=not self.ended)


def records_of(pieces: list[bytes]) -> list[Record]:
    """Return what is read of pieces, one read after the other, and at the end."""
    source = pipe.PipeSource(pipe, tail=Pieces(pieces))
    records: list[Record] = []
    more = True
    while more:
        found, more = source.read()
        records += found
    return [*records, *source.finish()]


def points(pieces: list[bytes]) -> list[tuple[str, int, str]]:
    """Return every value that is read of pieces."""
    records = records_of(pieces)
    return sorted(
        (key, step, repr(value))
        for rows in records
        if isinstance(rows, MetricRows)
        for key, column in zip(rows.keys, rows.columns, strict=True)
        for step, value in zip(rows.steps, column, strict=True)
    )


def test_a_silence_before_the_format_is_known_decides_nothing(end):
    os.write(end, b"loading\n" * 9)
    source = pipe.PipeSource(pipe)
    assert source.read() == ((), True)
    assert source.finish() == ()
    assert source.status().format == "standard input"
    os.write(end, FLAT)
    os.close(end)
    assert [
        [*rows.steps] for rows in source.read()[0] if isinstance(rows, MetricRows)
    ] == [[1, 2]]
    assert source.status().format == "tutorial JSONL"


def test_what_tells_nothing_is_a_console_in_the_end():
    noise = b"installing" * 99 + b"\n"
    noise *= HEAD // len(noise) + 1
    assert points([noise, b"\nstep:1 - a:1\n"]) == [("a", 1, "1.0")]
    assert (
        points([b"step:1 - a:1"])
        == points([b"x\n" * 9, b"step:1 - a:1"])
        == [("a", 1, "1.0")]
    )
    assert points([b""]) == points([b"\n \n"]) == []


@pytest.mark.parametrize(
    ("data", "code", "step"),
    [
        (
            b'{"step": %d, "data": {"critic/score/mean": 0.5}}\n'
            * 59
            % (*range(1, 60),),
            0,
            59,
        ),
        (b"", 3, None),
    ],
)
def test_check(data, code, step, end, asked):
    os.write(end, data)
    os.close(end)
    runs = json.loads(asked("check", "--json", "-", code=code).out)["runs"]
    assert [(run["name"], run["step"]) for run in runs] == [("stdin", step)]


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress])
def test_what_is_compressed_is_said(compress, end):
    os.write(end, compress(FLAT))
    os.close(end)
    (state,) = read_run("-").sources.values()
    assert [line.reason for line in state.unreadable] == [PACKED]
