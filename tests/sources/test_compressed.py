"""Compressed logs: byte for byte as if they were not, bounded, and as far as they are whole."""

from __future__ import annotations

import gzip
import itertools
import json
import random
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from log_reading import drain, read_run, read_runs, values

from verl_tui.records import MetricRows, Restart
from verl_tui.sources.feed import Feed
from verl_tui.sources.files import compressed
from verl_tui.sources.files.compressed import CompressedTail
from verl_tui.sources.formats import filelogger
from verl_tui.sources.source import FileSource

if TYPE_CHECKING:
    from pathlib import Path

DICE = random.Random(7)
PLAIN = b"".join(
    json.dumps({"step": step, "data": {"critic/score/mean": DICE.random()}}).encode()
    + b"\n"
    for step in range(1, 4000)
)
"""More than one slice, compressed."""


def everything(tail: CompressedTail, limit: int = 10_000) -> bytes:
    """Read to the end or to what is damaged, never more than allowed."""
    found = b""
    more = True
    while more:
        chunk = tail.read(limit)
        assert len(chunk.data) <= limit
        assert 0 <= tail.offset <= tail.size
        found, more = found + chunk.data, chunk.more
    return found


def test_a_run_is_found_and_read(tmp_path: Path) -> None:
    (tmp_path / "run_a").mkdir()
    (tmp_path / "run_b").mkdir()
    (tmp_path / "run_a" / "metrics.jsonl.gz").write_bytes(gzip.compress(PLAIN))
    (tmp_path / "run_b" / "train.log.gz").write_bytes(
        gzip.compress(b"(T pid=1) step:3 - critic/score/mean:0.25\n")
    )
    (tmp_path / "run_b" / "model.bin.gz").write_bytes(gzip.compress(b"step:3 - a:1\n"))
    runs = read_runs(tmp_path)
    assert {name: run.step for name, run in runs.items()} == {"run_a": 3999, "run_b": 3}
    expected = {
        json.loads(line)["step"]: json.loads(line)["data"]
        for line in PLAIN.splitlines()
    }
    assert values(runs["run_a"], "critic/score/mean") == {
        step: data["critic/score/mean"] for step, data in expected.items()
    }
    (state,) = (
        s
        for s in runs["run_a"].sources.values()
        if s.status.format == "verl file logger"
    )
    assert (
        state.status.bytes_read
        == state.status.size
        == (tmp_path / "run_a" / "metrics.jsonl.gz").stat().st_size
    )


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"step:1 - a:1\n", "damaged gzip data"),
        (b"", "empty so far"),
        (b"\x1f\x8b", "empty so far"),
    ],
)
def test_what_is_no_log_is_said(tmp_path: Path, content: bytes, why: str) -> None:
    path = tmp_path / "train.log.gz"
    path.write_bytes(content)
    found = Feed([str(path)]).scan()
    assert not found.runs
    assert why in " ".join((*found.problems, *found.waiting))


def test_a_bomb_is_read_little_by_little(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(bytes(30_000_000)))
    tail = CompressedTail(path)
    assert len(tail.read(1000).data) <= 1000
    assert tail.offset < tail.size
    assert compressed.head(path, 5000) == bytes(5000)
    assert sum(len(tail.read(1 << 20).data) for _ in range(40)) >= 29_000_000


def test_a_file_that_grows(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    packed = gzip.compress(PLAIN)
    tail = CompressedTail(path)
    found = b""
    for start, stop in itertools.pairwise(
        [0, 1, 5, 40, len(packed) // 2, len(packed) - 3, len(packed)]
    ):
        with path.open("ab") as file:
            file.write(packed[start:stop])
        found += everything(tail)
    assert found == PLAIN
    assert tail.read().more is False


@given(at=st.integers(0, 10**6), byte=st.integers(0, 255), end=st.integers(0, 10**6))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_lies_before_damage_is_read(
    tmp_path: Path, at: int, byte: int, end: int
) -> None:
    packed = bytearray(gzip.compress(PLAIN, mtime=0))
    cut = bytes(packed[: end % len(packed)])
    path = tmp_path / "a.gz"
    path.write_bytes(cut)
    found = everything(CompressedTail(path))
    assert found == zlib.decompressobj(31).decompress(cut), (
        "a file cut off is no damage: more may follow"
    )
    packed[at % len(packed)] = byte
    path.write_bytes(packed)
    tail = CompressedTail(path)
    found = b""
    with suppress(OSError):
        for _ in range(1000):
            found += tail.read(5_000_000).data
    whole = zlib.decompressobj(31).decompress(bytes(packed[: at % len(packed)]))
    assert found[: len(whole)] == whole


def test_damage_is_a_problem_of_the_source(tmp_path: Path) -> None:
    packed = gzip.compress(PLAIN)
    middle = len(packed) // 2
    path = tmp_path / "metrics.jsonl.gz"
    path.write_bytes(packed[:middle] + b"\xff" * 40 + packed[middle + 40 :])
    source = FileSource(path, filelogger)
    steps = [
        step
        for rows in drain(source)
        if isinstance(rows, MetricRows)
        for step in rows.steps
    ]
    assert steps[:1500] == list(range(1, 1501))
    assert (source.status().problem or "").startswith("damaged gzip data near byte")
    assert source.status().bytes_read == source.status().size
    path.write_bytes(gzip.compress(PLAIN[100:]))
    assert isinstance(drain(source)[0], Restart)
    assert source.status().problem is None


@pytest.mark.parametrize("name", ["metrics.jsonl", "train.log", "job.out", "odd.weird"])
@pytest.mark.parametrize("named", [True, False])
def test_what_is_compressed_under_a_plain_name_is_read(
    tmp_path: Path, name: str, named: bool
) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(PLAIN))
    run = read_run(path if named else tmp_path)
    assert run.step == 3999
    (source,) = (one for one in run.sources.values() if one.status.records)
    assert source.status.bytes_read == path.stat().st_size
    assert source.status.unreadable == 0
