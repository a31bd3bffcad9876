"""A directory of TRL's tables: one source, each table read once and whole, a damaged one named."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest
from log_reading import drain, read_run, values

from verl_tui.records import Record, Sample, Unreadable
from verl_tui.sources.feed import Feed
from verl_tui.sources.folders.step_files import TableFolder
from verl_tui.sources.formats.tables import parquet

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
    first, second = sorted(reported(source.finish()))
    assert (
        first
        == "completions_00002.parquet: not complete: still being written, or cut off"
    )
    assert second.startswith("completions_00003.parquet: damaged: ")
    assert source.status().unreadable == 2
    assert reported([*drain(source), *source.finish()]) == [], "said once"


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
