"""Rows that ever have other keys: what is kept together, and what comes out in the end."""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING

from log_reading import read_run, values

if TYPE_CHECKING:
    from pathlib import Path

ALWAYS = tuple(f"actor/{name}" for name in "abcdefghijklmnop")
SOURCES = tuple(f"source/{number}/score" for number in range(40))
STEPS = 400
_PLACES = {key: at for at, key in enumerate((*ALWAYS, *SOURCES))}


def value(step: int, key: str) -> float:
    """Return the value of a metric, which no other one has at a step."""
    return step + _PLACES[key] / 100


def varying(count: int, seed: int = 1) -> list[tuple[str, ...]]:
    """Return the keys of so many rows, each with some of the sources."""
    rng = Random(seed)
    return [
        (*ALWAYS, *(key for key in SOURCES if rng.random() < 0.3)) for _ in range(count)
    ]


def written(
    path: Path, kinds: list[tuple[str, ...]], first: int = 1, mode: str = "w"
) -> None:
    """Write a file logger's log with a value for each key that tells its step and the key."""
    with path.open(mode, encoding="utf-8") as file:
        for step, keys in enumerate(kinds, first):
            data = {key: value(step, key) for key in keys}
            file.write(json.dumps({"step": step, "data": data}) + "\n")


def test_all_values_are_there_in_few_tables(tmp_path):
    kinds = [*varying(STEPS), ALWAYS, ALWAYS[::-1], ALWAYS]
    written(tmp_path / "exp.jsonl", kinds)
    run = read_run(tmp_path)
    for key in (*ALWAYS, *SOURCES):
        steps = [step for step, keys in enumerate(kinds, 1) if key in keys]
        assert values(run, key) == {step: value(step, key) for step in steps}
    tables = [
        table for state in run.sources.values() for table in state.tables.values()
    ]
    assert len(tables) <= 128 + 64 + len(SOURCES)
    assert max(map(len, tables)) > STEPS / 2


def test_a_restart_is_noticed_where_rows_vary(tmp_path):
    kinds = varying(2 * STEPS)
    written(tmp_path / "exp.jsonl", kinds[:STEPS])
    written(tmp_path / "exp.jsonl", kinds[STEPS:], first=STEPS - 50, mode="a")
    run = read_run(tmp_path)
    assert [mark.step for mark in run.restarts] == [STEPS - 50]
    assert "source/3/score" in run.keys
    assert values(run, ALWAYS[0])[STEPS] == value(STEPS, ALWAYS[0])
