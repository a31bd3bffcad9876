"""Tables of samples in W&B runs."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from log_reading import drain, feed_in_pieces

from verl_tui.records import Sample
from verl_tui.sources.formats.tables import wandb_tables
from verl_tui.sources.source import FileSource

if TYPE_CHECKING:
    from pathlib import Path

# -- tables ----------------------------------------------------------------------------------------


def table(path: Path, columns: list[str], rows: list[list[object]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"columns": columns, "data": rows}))
    return path


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
    both = drain(FileSource(second, wandb_tables))
    assert [(s.step, s.prompt, s.response, s.score, s.validation) for s in both] == [
        (5, "in 5", "out 5", 0.5, True), (5, "in2 5", "out2 5", None, True),
        (10, "in 10", "out 10", 0.5, True), (10, "in2 10", "out2 10", None, True),
    ]  # fmt: skip
    assert [s.step for s in drain(FileSource(third, wandb_tables))] == [15, 15]
    assert not drain(FileSource(second, wandb_tables))[0].extras


def test_tables_of_other_trainers(tmp_path):
    columns = ["step", "prompt", "completion", "reward", "length_2"]
    path = table(
        tmp_path / "completions_3_ab.table.json",
        columns,
        [["40", "p", "c", 1, 9], ["40", "p", None, 1, 9]],
    )
    assert wandb_tables.matches(path, path.read_bytes())
    (sample,) = drain(FileSource(path, wandb_tables))
    assert (sample.step, sample.prompt, sample.response, sample.score) == (
        40,
        "p",
        "c",
        1.0,
    )
    assert (sample.extras, sample.validation) == ({"length_2": 9}, False)
    path = table(
        tmp_path / "eval" / "texts_7_ab.table.json",
        ["question", "answer"],
        [["q", "a"]],
    )
    (sample,) = drain(FileSource(path, wandb_tables))
    assert (sample.step, sample.prompt, sample.response) == (7, "q", "a")


def test_what_is_no_table_of_samples(tmp_path):
    path = table(tmp_path / "a_1_b.table.json", ["step", "loss"], [[1, 2]])
    assert not wandb_tables.matches(path, path.read_bytes())
    assert not wandb_tables.matches(tmp_path / "x.json", path.read_bytes())
    assert wandb_tables.matches(path, b'{"data": [[1')
    for text in (
        "[1]}",
        "{}",
        '{"columns": 1, "data": 2}',
        '{"columns": ["prompt"], "data": [1, [2, 3], []]}',
        "[" * 9999,
    ):
        path.write_text(text)
        feed = FileSource(path, wandb_tables)
        assert not [r for r in (*drain(feed), *feed.finish()) if isinstance(r, Sample)]


@given(cuts=st.lists(st.integers(0, 10**6), max_size=8), stop=st.integers(0, 10**6))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_table_is_read_when_it_is_whole(tmp_path, cuts, stop):
    rows = [[{"}": "}"}, "é}", f"out {n}", math.nan] for n in range(20)]
    path = table(
        tmp_path / "x_9_ab.table.json", ["a", "input", "output", "score"], rows
    )
    data = path.read_bytes()
    _, whole = feed_in_pieces(path, wandb_tables, data, [])
    assert [sample.response for sample in whole] == [f"out {n}" for n in range(20)]
    assert repr(feed_in_pieces(path, wandb_tables, data, cuts)[1]) == repr(whole)
    assert feed_in_pieces(path, wandb_tables, data[: stop % len(data)], cuts)[1] == []
