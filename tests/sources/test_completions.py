"""Samples in columns: ms-swift's JSONL, TRL's Parquet and W&B tables; rewards are added up where no
total stands.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from log_reading import drain, read_run, values

from verl_tui.records import Sample
from verl_tui.sources.fields.sample import RewardSum
from verl_tui.sources.formats.catalog import FORMATS
from verl_tui.sources.formats.tables import completions, parquet, wandb_tables
from verl_tui.sources.source import FileSource

if TYPE_CHECKING:
    from pathlib import Path


def columns(step: int, **more: list[Any]) -> dict[str, list[Any]]:
    """Return two samples of a step as ms-swift and TRL lay them out."""
    return {
        "step": [str(step)] * 2,
        "prompt": ["1 + 1?", "2 + 2?"],
        "completion": [f"two, at {step}", "four"],
        "Right": [1.0, 0.0],
        "Short": [0.25, None],
        "advantages": [0.5, -0.5],
        **more,
    }


LINES = b"".join(json.dumps(columns(step)).encode() + b"\n" for step in (1, 2, 3))


def samples_in(path: Path, format: Any) -> list[Sample]:
    source = FileSource(path, format)
    return [
        record
        for record in (*drain(source), *source.finish())
        if isinstance(record, Sample)
    ]


def test_ms_swifts_completions(tmp_path: Path) -> None:
    path = tmp_path / "completions.jsonl"
    path.write_bytes(LINES)
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
        "an advantage is no part of the reward"
    )


def test_rewards_are_weighted_where_the_settings_state_weights_and_that_is_said(
    tmp_path: Path,
) -> None:
    (tmp_path / "completions.jsonl").write_bytes(LINES)
    source = FileSource(tmp_path / "completions.jsonl", completions)
    drain(source)
    assert (
        source.status().note
        == "the reward of a sample is Right + Short: no total is stated, no weights are known"
    )
    (tmp_path / "args.json").write_text(json.dumps({"reward_weights": [2, 0.5]}))
    source = FileSource(tmp_path / "completions.jsonl", completions)
    scores = [record.score for record in drain(source) if isinstance(record, Sample)]
    assert scores[:2] == [2.125, 0.0]
    assert (
        source.status().note
        == "the reward of a sample is 2 × Right + 0.5 × Short: no total is stated"
    )


@pytest.mark.parametrize(
    ("record", "reward"),
    [
        ({"prompt": "a", "completion": "b", "reward": 3.0, "acc_reward": 1.0}, 3.0),
        (
            {
                "prompt": "a",
                "completion": "b",
                "acc_reward": 1.0,
                "format_reward": 0.5,
                "reward_std": 9.0,
            },
            1.5,
        ),
        (
            {"prompt": "a", "completion": "b", "rewards": {"acc": 1.0, "format": 0.25}},
            1.25,
        ),
        ({"prompt": "a", "completion": "b", "length": 7}, None),
        ({"prompt": "a", "completion": "b", "acc_reward": None}, None),
    ],
)
def test_what_counts_as_a_reward(record: dict[str, Any], reward: float | None) -> None:
    assert RewardSum().complete(record).get("reward") == reward


def table(path: Path, names: list[str], rows: list[list[Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        json.dumps(
            {"columns": names, "data": rows, "ncols": len(names), "nrows": len(rows)}
        )
    )
    return path


def test_a_table_logged_twice_counts_once_and_one_that_grows_tells_its_new_rows(
    tmp_path: Path,
) -> None:
    rows = [[n, "p", f"r{n}", 0.5] for n in range(1, 7)]
    names = ["step", "prompt", "response", "reward"]
    first = table(tmp_path / "s_1_aa.table.json", names, rows[:2])
    again = table(tmp_path / "s_2_aa.table.json", names, rows[:2])
    grown = table(tmp_path / "s_3_bb.table.json", names, rows)
    stated = {
        path: [sample.step for sample in samples_in(path, wandb_tables)]
        for path in (first, again, grown)
    }
    assert sorted(stated[first] + stated[again]) == [1, 2]
    assert stated[grown] == [3, 4, 5, 6]


def write_parquet(path: Path, table: dict[str, list[Any]]) -> bytes:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    pq.write_table(pa.table(table), path)
    return path.read_bytes()


def test_trls_parquet(tmp_path: Path) -> None:
    path = tmp_path / "completions" / "completions_00010.parquet"
    path.parent.mkdir()
    head = write_parquet(path, columns(10))
    assert next(one for one in FORMATS if one.matches(path, head)) is parquet
    assert not any(
        one.matches(path.with_name("train.parquet"), head) for one in FORMATS
    ), "a data set"
    assert [(sample.step, sample.score) for sample in samples_in(path, parquet)] == [
        (10, 1.25),
        (10, 0.0),
    ]
    (path.parent.parent / "train.jsonl").write_text('{"step": 10, "loss": 0.5}\n')
    run = read_run(tmp_path)
    assert values(run, "samples/score") == {10: 0.625}
