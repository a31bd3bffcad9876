"""Rows that ever have other keys: what is kept together, and what comes out in the end."""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st
from log_reading import read_run, values

from verl_tui.key_groups import KeyGrouping

if TYPE_CHECKING:
    from pathlib import Path

ALWAYS = tuple(f"actor/{name}" for name in "abcdefghijklmnop")
SOURCES = tuple(f"source/{number}/score" for number in range(40))
STEPS = 400


def varying(count: int, seed: int = 1) -> list[tuple[str, ...]]:
    """Return the keys of so many rows, each with some of the sources."""
    rng = Random(seed)
    return [
        (*ALWAYS, *(key for key in SOURCES if rng.random() < 0.3)) for _ in range(count)
    ]


def test_a_few_kinds_of_rows_are_kept_as_they_are() -> None:
    grouping = KeyGrouping()
    kinds = varying(100)
    assert all(grouping.of(keys) == (keys, ()) for keys in kinds * 2)


def test_keys_that_all_rows_have_stay_together_and_the_others_apart() -> None:
    grouping = KeyGrouping()
    *_, last = map(grouping.of, varying(STEPS))
    assert last.core == ALWAYS
    assert last.others
    assert set(last.others) <= set(SOURCES)


def test_two_kinds_of_rows_that_vary_have_each_their_own_core() -> None:
    grouping = KeyGrouping()
    train = varying(STEPS)
    tests = [tuple(f"val/{key}" for key in keys) for keys in varying(STEPS, seed=2)]
    *_, one, other = (
        grouping.of(keys) for pair in zip(train, tests, strict=True) for keys in pair
    )
    assert one.core == ALWAYS
    assert other.core == tuple(f"val/{key}" for key in ALWAYS)


@given(st.lists(st.sets(st.sampled_from(SOURCES), min_size=1).map(tuple), max_size=300))
def test_each_key_is_kept_once_and_groups_are_few(rows: list[tuple[str, ...]]) -> None:
    grouping = KeyGrouping()
    groups = set()
    for keys in rows:
        core, others = grouping.of(keys)
        assert sorted((*core, *others)) == sorted(keys)
        groups |= {core, *((key,) for key in others)}
    assert len(groups) <= 128 + 64 + len(SOURCES) + 1


def written(
    path: Path, kinds: list[tuple[str, ...]], first: int = 1, mode: str = "w"
) -> None:
    """Write a file logger's log with a value for each key that tells its step."""
    with path.open(mode, encoding="utf-8") as file:
        for step, keys in enumerate(kinds, first):
            data = {key: step + len(key) / 100 for key in keys}
            file.write(json.dumps({"step": step, "data": data}) + "\n")


def test_all_values_are_there_in_few_tables(tmp_path: Path) -> None:
    kinds = varying(STEPS)
    written(tmp_path / "exp.jsonl", kinds)
    run = read_run(tmp_path)
    for key in (*ALWAYS, *SOURCES):
        steps = [step for step, keys in enumerate(kinds, 1) if key in keys]
        assert values(run, key) == {step: step + len(key) / 100 for step in steps}
    tables = [
        table for state in run.sources.values() for table in state.tables.values()
    ]
    assert len(tables) <= 128 + 64 + len(SOURCES)
    assert max(map(len, tables)) > STEPS / 2


def test_a_restart_is_noticed_where_rows_vary(tmp_path: Path) -> None:
    kinds = varying(2 * STEPS)
    written(tmp_path / "exp.jsonl", kinds[:STEPS])
    written(tmp_path / "exp.jsonl", kinds[STEPS:], first=STEPS - 50, mode="a")
    run = read_run(tmp_path)
    assert [mark.step for mark in run.restarts] == [STEPS - 50]
    assert "source/3/score" in run.keys
    assert values(run, ALWAYS[0])[STEPS] == STEPS + len(ALWAYS[0]) / 100


def test_records_are_counted_once_however_their_keys_are_kept(tmp_path: Path) -> None:
    written(tmp_path / "exp.jsonl", varying(STEPS))
    run = read_run(tmp_path)
    assert sum(state.status.records for state in run.sources.values()) == STEPS
