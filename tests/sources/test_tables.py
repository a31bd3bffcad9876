"""A directory of TRL's tables: one source, each table read once and whole, a damaged one named."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from log_reading import NOW, drain, read_run, values

from verl_tui.records import Batch, Record, Restart, Sample, Unreadable
from verl_tui.runs.run import Run
from verl_tui.runs.samples import Place
from verl_tui.sources.feed import Feed
from verl_tui.sources.folders import completion_tables as tables
from verl_tui.sources.folders.completion_tables import TableFolder, tables_to_read
from verl_tui.sources.formats import parquet

if TYPE_CHECKING:
    from pathlib import Path

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = tmp_path / "completions"
    path.mkdir()
    return path


def write(home: Path, step: int, *, said: str = "four", reward: float = 1.0) -> Path:
    path = home / f"completions_{step:05d}.parquet"
    columns: dict[str, list[Any]] = {
        "step": [str(step)] * 2,
        "prompt": ["2 + 2?"] * 2,
        "completion": [said, "five"],
        "right": [reward, 0.0],
        "advantage": [0.5, -0.5],
    }
    pq.write_table(pa.table(columns), path)
    return path


def steps(records: list[Record]) -> list[int | None]:
    return [record.step for record in records if isinstance(record, Sample)]


def reported(records: list[Record]) -> list[str]:
    return [record.reason for record in records if isinstance(record, Unreadable)]


def test_a_directory_is_one_source(home: Path) -> None:
    for step in range(1, 31):
        write(home, step, reward=step / 10)
    (home.parent / "train.jsonl").write_text('{"step": 30, "loss": 0.5}\n')
    for named in (home.parent, home):
        feed = Feed([str(named)])
        feed.scan()
        of_tables = {
            batch.status.path
            for batch in feed.read()
            if batch.status.format == parquet.name
        }
        assert of_tables == {str(home / "completions_*.parquet")}
    run = read_run(home.parent)
    assert values(run, "samples/score") == {
        step: pytest.approx(step / 20) for step in range(1, 31)
    }


def test_one_table_that_is_named_is_read_alone(home: Path) -> None:
    write(home, 1)
    run = read_run(write(home, 2))
    assert set(values(run, "samples/score")) == {2}


def test_the_newest_is_read_first_and_each_once(home: Path) -> None:
    for step in (2, 10, 1):
        write(home, step)
    source = TableFolder(home)
    assert steps(drain(source)) == [10, 10, 2, 2, 1, 1]
    assert drain(source) == []
    write(home, 11)
    assert steps(drain(source)) == [11, 11]
    status = source.status()
    assert (status.format, status.records, status.unreadable) == (
        "TRL completions",
        8,
        0,
    )
    assert (
        status.bytes_read
        == status.size
        == sum(path.stat().st_size for path in home.iterdir())
    )
    assert status.note == "the reward of a sample is its right: no total is stated"


def test_a_table_that_is_still_written_is_read_once_it_is_whole(home: Path) -> None:
    path = write(home, 4)
    whole = path.read_bytes()
    path.write_bytes(whole[:-200])
    source = TableFolder(home)
    assert drain(source) == []
    path.write_bytes(whole)
    assert steps(drain(source)) == [4, 4]
    assert list(source.finish()) == []


def test_one_that_begins_empty_is_read_once_it_is_whole(home: Path) -> None:
    whole = write(home, 1).read_bytes()
    path = home / "completions_00002.parquet"
    path.touch()
    source = TableFolder(home)
    assert steps(drain(source)) == [1, 1]
    path.write_bytes(whole)
    assert steps(drain(source)) == [1, 1], "its own column states the step"
    assert reported([*source.finish()]) == []


def test_a_damaged_table_is_named_and_costs_nothing_else(home: Path) -> None:
    for step in range(1, 6):
        write(home, step)
    cut = home / "completions_00002.parquet"
    bent = home / "completions_00003.parquet"
    cut.write_bytes(cut.read_bytes()[:-9])
    data = bent.read_bytes()
    bent.write_bytes(data[:4] + bytes(len(data) - 12) + data[-8:])
    source = TableFolder(home)
    records = drain(source)
    assert sorted(set(steps(records))) == [1, 4, 5]
    first, second = sorted(reported(records))
    assert (
        first
        == "completions_00002.parquet: not complete: still being written, or cut off"
    )
    assert second.startswith("completions_00003.parquet: damaged: ")
    assert source.status().unreadable == 2
    assert reported([*drain(source), *source.finish()]) == [], "said once"


def test_the_newest_is_only_said_to_be_cut_where_nobody_looks_again(home: Path) -> None:
    write(home, 1)
    path = write(home, 2)
    path.write_bytes(path.read_bytes()[:-9])
    source = TableFolder(home)
    assert reported(drain(source)) == []
    assert reported([*source.finish()]) == [
        "completions_00002.parquet: not complete: still being written, or cut off"
    ]


def test_a_table_written_again_replaces_the_first(home: Path) -> None:
    write(home, 1)
    source = TableFolder(home)
    run = Run("r")
    for said in ("four", "vier"):
        path = write(home, 1, said=said)
        os.utime(path, ns=(1, len(said) if said == "four" else 99))
        records = drain(source)
        assert any(isinstance(record, Restart) for record in records) == (
            said == "vier"
        )
        run.apply(Batch("r", source.status(), tuple(records)), NOW)
    assert [
        sample.response for sample in run.samples.kept(Place(1, validation=False))
    ] == [
        "vier",
        "five",
    ]


def test_without_pyarrow_one_sentence_says_what_to_install(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for step in range(3):
        write(home, step)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    source = TableFolder(home)
    assert drain(source) == []
    assert list(source.finish()) == []
    assert (
        source.status().note
        == "needs pyarrow to be read: pip install 'verl-tui[parquet]'"
    )


def test_of_very_many_the_newest_and_some_of_those_before_are_read() -> None:
    few = dict.fromkeys(range(100), 10_000)
    assert tables_to_read(few) == list(range(99, -1, -1))
    kept = tables_to_read(dict.fromkeys(range(10_000), 10_000))
    assert len(kept) * (tables.COST + 10_000) <= tables.BUDGET
    assert kept[:500] == list(range(9999, 9499, -1))
    between = {
        later - earlier
        for earlier, later in zip(kept[:0:-1], kept[-2::-1], strict=True)
    }
    assert len(between) == 2, "one after another, then evenly"
    assert min(kept) <= max(between)
    assert tables_to_read({}) == []


def test_it_says_how_many_were_read(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "BUDGET", 10 * tables.COST)
    for step in range(1, 41):
        write(home, step)
    source = TableFolder(home)
    read = set(steps(drain(source)))
    assert max(read) == 40
    note = source.status().note or ""
    assert note.endswith(
        f"; {len(read)} of 40 tables were read, the newest ones and some of those before"
    )


def test_a_directory_that_goes_is_said(home: Path) -> None:
    path = write(home, 1)
    source = TableFolder(home)
    drain(source)
    path.unlink()
    assert drain(source) == []
    assert source.status().problem is None
    home.rmdir()
    assert drain(source) == []
    assert source.status().problem == "no such file or directory"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.binary(max_size=60), at=st.integers(0, 900), lost=st.integers(0, 60))
def test_any_bytes_cost_one_table_at_most(
    home: Path, data: bytes, at: int, lost: int
) -> None:
    write(home, 1)
    text = write(home, 2).read_bytes()
    (home / "completions_00002.parquet").write_bytes(
        text[:at] + data + text[at + lost :]
    )
    source = TableFolder(home)
    records = [*drain(source), *source.finish()]
    assert steps(records).count(1) >= 2
    assert source.status().problem is None
    assert len(reported(records)) <= 1
