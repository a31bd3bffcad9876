"""Samples in columns and in records: ms-swift's JSONL, TRL's Parquet, W&B's tables; rewards are added up
where no total stands.
"""

from __future__ import annotations

import json
import math
import sys
from typing import TYPE_CHECKING, Any

import pytest
from file_writing import write_file
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from log_reading import Watch, drain, feed_in_pieces, read_run, values

from verl_tui.records import Record, Sample, Unreadable
from verl_tui.sources.fields.sample import RewardSum
from verl_tui.sources.folders.step_files import TableFolder
from verl_tui.sources.formats.catalog import FORMATS
from verl_tui.sources.formats.tables import completions, parquet, wandb_tables
from verl_tui.sources.source import FileSource

if TYPE_CHECKING:
    from pathlib import Path


def columns(step: int, **more: list[Any]) -> dict[str, list[Any]]:
    """Return two samples of a step as ms-swift and TRL lay them out."""
    return {
        "step": [str(step)] * 2, "prompt": ["1 + 1?", "2 + 2?"], "completion": [f"two, at {step}", "four"],
        "Right": [1.0, 0.0], "Short": [0.25, None], "advantages": [0.5, -0.5], **more,
    }  # fmt: skip


LINES = b"".join(json.dumps(columns(step)).encode() + b"\n" for step in (1, 2, 3))


def samples_in(path: Path, format: Any) -> list[Sample]:
    source = FileSource(path, format)
    found = (*drain(source), *source.finish())
    return [record for record in found if isinstance(record, Sample)]


def test_ms_swifts_completions(tmp_path):
    path = write_file(tmp_path / "completions.jsonl", LINES)
    assert next(one for one in FORMATS if one.matches(path, LINES)) is completions
    found = samples_in(path, completions)
    assert [(sample.step, sample.prompt, sample.score) for sample in found[:2]] == [
        (1, "1 + 1?", 1.25),
        (1, "2 + 2?", 0.0),
    ]
    assert [sample.step for sample in found] == [1, 1, 2, 2, 3, 3]
    assert found[0].extras == {"Right": 1.0, "Short": 0.25, "advantages": 0.5}
    run = read_run(path)
    assert values(run, "samples/score") == {1: 0.625, 2: 0.625, 3: 0.625}
    assert not any("advantage" in key for key in run.keys), (
        "it is no part of the reward"
    )


@pytest.mark.parametrize(
    ("weights", "scores", "note"),
    [
        (None, [1.25, 0.0], "Right + Short: no total is stated, no weights are known"),
        ([2, 0.5], [2.125, 0.0], "2 × Right + 0.5 × Short: no total is stated"),
    ],
)
def test_rewards_are_weighted_where_the_settings_state_weights_and_that_is_said(
    weights, scores, note, tmp_path
):
    path = write_file(tmp_path / "completions.jsonl", LINES)
    if weights:
        (tmp_path / "args.json").write_text(json.dumps({"reward_weights": weights}))
    source = FileSource(path, completions)
    found = [record.score for record in drain(source) if isinstance(record, Sample)]
    assert found[:2] == scores
    assert source.status().note == f"the reward of a sample is {note}"


@pytest.mark.parametrize(
    ("record", "reward"),
    [
        ({"reward": 3.0, "acc_reward": 1.0}, 3.0),
        ({"acc_reward": 1.0, "format_reward": 0.5, "reward_std": 9.0}, 1.5),
        ({"rewards": {"acc": 1.0, "format": 0.25}}, 1.25),
        ({"length": 7}, None),
        ({"acc_reward": None}, None),
    ],
)
def test_what_counts_as_a_reward(record, reward):
    found = RewardSum().complete({"prompt": "a", "completion": "b", **record})
    assert found.get("reward") == reward


# -- W&B's tables ----------------------------------------------------------------------------------


def table(path: Path, names: list[str], rows: list[list[Any]]) -> Path:
    return write_file(path, json.dumps({"columns": names, "data": rows}))


def test_a_table_logged_twice_counts_once_and_one_that_grows_tells_its_new_rows(
    tmp_path,
):
    rows = [[n, "p", f"r{n}", 0.5] for n in range(1, 7)]
    names = ["step", "prompt", "response", "reward"]
    first = table(tmp_path / "s_1_aa.table.json", names, rows[:2])
    again = table(tmp_path / "s_2_aa.table.json", names, rows[:2])
    grown = table(tmp_path / "s_3_bb.table.json", names, rows)
    told, once, new = (
        [sample.step for sample in samples_in(path, wandb_tables)]
        for path in (first, again, grown)
    )
    assert sorted(told + once) == [1, 2]
    assert new == [3, 4, 5, 6]


GENERATIONS = [
    "step",
    "input_1",
    "output_1",
    "score_1",
    "input_2",
    "output_2",
    "score_2",
]


def test_validation_generations_are_taken_once(tmp_path):
    rows = [
        [step, f"in {step}", f"out {step}", 0.5, f"in2 {step}", f"out2 {step}", None]
        for step in (5, 10, 15)
    ]
    folder = tmp_path / "files" / "media" / "table" / "val"
    second = table(folder / "generations_10_bb.table.json", GENERATIONS, rows[:2])
    third = table(folder / "generations_15_aa.table.json", GENERATIONS, rows)
    both = samples_in(second, wandb_tables)
    assert [(s.step, s.prompt, s.response, s.score, s.validation) for s in both] == [
        (5, "in 5", "out 5", 0.5, True), (5, "in2 5", "out2 5", None, True),
        (10, "in 10", "out 10", 0.5, True), (10, "in2 10", "out2 10", None, True),
    ]  # fmt: skip
    assert [s.step for s in samples_in(third, wandb_tables)] == [15, 15]
    assert not both[0].extras


@pytest.mark.parametrize(
    ("name", "names", "row", "expected"),
    [
        ("completions_3_ab", ["step", "prompt", "completion", "reward", "length_2"], ["40", "p", "c", 1, 9],
         Sample(40, "p", "c", 1.0, extras={"length_2": 9})),
        ("eval/texts_7_ab", ["question", "answer"], ["q", "a"], Sample(7, "q", "a")),
    ],
)  # fmt: skip
def test_tables_of_other_trainers(name, names, row, expected, tmp_path):
    empty = [None if cell in ("c", "a") else cell for cell in row]
    path = table(tmp_path / f"{name}.table.json", names, [row, empty])
    assert wandb_tables.matches(path, path.read_bytes())
    assert samples_in(path, wandb_tables)[0] == expected


def test_what_is_no_table_of_samples(tmp_path):
    path = table(tmp_path / "a_1_b.table.json", ["step", "loss"], [[1, 2]])
    assert not wandb_tables.matches(path, path.read_bytes())
    assert not wandb_tables.matches(tmp_path / "x.json", path.read_bytes())
    assert wandb_tables.matches(path, b'{"data": [[1')
    for text in ("[1]}", "{}", '{"columns": 1, "data": 2}', '{"columns": ["prompt"], "data": [1, [2, 3], []]}', "[" * 9999):  # fmt: skip
        path.write_text(text)
        assert not samples_in(path, wandb_tables)


@given(cuts=st.lists(st.integers(0, 10**6), max_size=8), stop=st.integers(0, 10**6))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_table_is_read_when_it_is_whole(tmp_path, cuts, stop):
    rows = [[{"}": "}"}, "é}", f"out {n}", math.nan] for n in range(20)]
    names = ["a", "input", "output", "score"]
    path = table(tmp_path / "x_9_ab.table.json", names, rows)
    data = path.read_bytes()
    _, whole = feed_in_pieces(path, wandb_tables, data, [])
    assert [sample.response for sample in whole] == [f"out {n}" for n in range(20)]
    assert repr(feed_in_pieces(path, wandb_tables, data, cuts)[1]) == repr(whole)
    assert feed_in_pieces(path, wandb_tables, data[: stop % len(data)], cuts)[1] == []


# -- TRL's Parquet ---------------------------------------------------------------------------------


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a directory for tables, beside a log."""
    pytest.importorskip("pyarrow")
    path = tmp_path / "completions"
    path.mkdir()
    return path


def write(home: Path, step: int, reward: float = 1.0) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = home / f"completions_{step:05d}.parquet"
    cells = {"Right": [reward, 0.0], "Short": [0.0, 0.0]}
    pq.write_table(pa.table(columns(step, **cells)), path)
    return path


def steps(records: list[Record]) -> list[int | None]:
    return [record.step for record in records if isinstance(record, Sample)]


def reported(records: list[Record]) -> list[str]:
    return [record.reason for record in records if isinstance(record, Unreadable)]


def test_a_directory_is_one_source(home):
    head = write(home, 1).read_bytes()
    path = home / "completions_00001.parquet"
    assert next(one for one in FORMATS if one.matches(path, head)) is parquet
    other = path.with_name("train.parquet")
    assert not any(one.matches(other, head) for one in FORMATS), "a data set"
    for step in range(1, 31):
        write(home, step, reward=step / 10)
    (home.parent / "train.jsonl").write_text('{"step": 30, "loss": 0.5}\n')
    for named in (home.parent, home):
        watch = Watch(named)
        watch.look()
        (run,) = watch.runs.values()
        of_tables = [path for path, one in run.sources.items() if one.status.format == parquet.name]  # fmt: skip
        assert of_tables == [str(home / "completions_*.parquet")]
    scores = values(read_run(home.parent), "samples/score")
    assert scores == pytest.approx({step: step / 20 for step in range(1, 31)})


def test_the_newest_is_read_first_and_each_once(home):
    for step in (2, 10, 1):
        write(home, step)
    source = TableFolder(home)
    assert steps(drain(source)) == [10, 10, 2, 2, 1, 1]
    assert drain(source) == []
    write(home, 11)
    assert steps(drain(source)) == [11, 11]
    status = source.status()
    known = (status.format, status.records, status.unreadable)
    assert known == ("TRL completions", 8, 0)
    sizes = [path.stat().st_size for path in home.iterdir()]
    assert status.bytes_read == status.size == sum(sizes)
    assert (status.note or "").startswith("the reward of a sample is Right + Short")


def test_a_table_that_is_still_written_is_read_once_it_is_whole(home):
    path = write(home, 4)
    whole = path.read_bytes()
    path.write_bytes(whole[:-200])
    source = TableFolder(home)
    assert drain(source) == []
    path.write_bytes(whole)
    assert steps(drain(source)) == [4, 4]
    assert list(source.finish()) == []


def test_a_damaged_table_is_named_and_costs_nothing_else(home):
    _, cut, bent, *_ = (write(home, step) for step in range(1, 6))
    cut.write_bytes(cut.read_bytes()[:-9])
    data = bent.read_bytes()
    bent.write_bytes(data[:4] + bytes(len(data) - 12) + data[-8:])
    source = TableFolder(home)
    records = drain(source)
    assert sorted({*steps(records)}) == [1, 4, 5]
    first, second = sorted(reported(records))
    assert first == f"{cut.name}: not complete: still being written, or cut off"
    assert second.startswith(f"{bent.name}: damaged: ")
    assert source.status().unreadable == 2
    assert reported([*drain(source), *source.finish()]) == [], "said once"


def test_without_pyarrow_one_sentence_says_what_to_install(home, monkeypatch):
    for step in range(3):
        write(home, step)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    source = TableFolder(home)
    assert drain(source) == []
    assert list(source.finish()) == []
    said = "needs pyarrow to be read: pip install 'verl-tui[parquet]'"
    assert source.status().note == said
