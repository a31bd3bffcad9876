"""Steps under every trainer's name, and records that state none: counted, and said so."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from log_reading import drain, feed_in_pieces, read_run, values

from verl_tui.sources.fields.steps import StepTracker, step_fields
from verl_tui.sources.formats import tutorial
from verl_tui.sources.formats.catalog import FORMATS
from verl_tui.sources.source import FileSource

LOGS = Path(
    os.environ.get("VERL_TUI_LOGS", Path(__file__).parents[3] / "shared" / "logs")
)
LLAMA_FACTORY = LOGS / "hykun1989__360-LLaMA-Factory-grpo/trainer_log.jsonl"


def steps_of(*records: dict[str, Any]) -> tuple[list[int], StepTracker]:
    """Return the steps of records, one after the other."""
    place = StepTracker()
    return [
        place.of(record, step_fields(record), keys=[*record]) for record in records
    ], place


def written(path: Path, records: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.mark.parametrize(
    "name",
    ["step", "global_step", "global_steps", "current_steps", "iteration", "iter", "update", "optimizer_step", "_step",
     "train/global_step", "trainer/global_step", "training/step", "num_steps", "Iteration", "train-step"],
)  # fmt: skip
def test_a_step_by_any_name(name: str, tmp_path: Path) -> None:
    records = [{name: 10 * n, "loss": 1.0 / n} for n in range(1, 6)]
    run = read_run(written(tmp_path / "metrics.jsonl", records))
    assert values(run, "loss") == {10 * n: 1.0 / n for n in range(1, 6)}
    assert [state.status.note for state in run.sources.values()] == [None] * len(
        run.sources
    )
    path = tmp_path / "csv" / "metrics.csv"
    path.parent.mkdir()
    path.write_text(
        f"{name},loss\n" + "".join(f"{10 * n},{1.0 / n!r}\n" for n in range(1, 6))
    )
    assert values(read_run(path.parent), "loss") == values(run, "loss")


def test_a_step_with_its_total(tmp_path: Path) -> None:
    pair = read_run(
        written(
            tmp_path / "a.jsonl", [{"loss": 0.5, "global_step/max_steps": "10/438"}]
        )
    )
    assert (values(pair, "loss"), pair.total_steps) == ({10: 0.5}, 438)
    total = read_run(
        written(
            tmp_path / "b.jsonl",
            [{"loss": 0.5, "iteration": 3, "total_iterations": 30}],
        )
    )
    assert (values(total, "loss"), total.total_steps) == ({3: 0.5}, 30)
    assert set(total.keys) == {"loss"}


def test_the_trainers_step_goes_before_that_of_a_tracker() -> None:
    assert steps_of(
        {"_step": 70, "train/global_step": 5}, {"_step": 80, "train/global_step": 6}
    )[0] == [5, 6]


def test_records_with_nothing_but_an_epoch_are_counted_and_said_to_be(
    tmp_path: Path,
) -> None:
    records = [{"epoch": n / 10, "loss": 1.0 / n} for n in range(1, 5)]
    records.insert(2, {"epoch": 0.2, "eval_loss": 2.0})
    run = read_run(written(tmp_path / "metrics.jsonl", records))
    assert values(run, "loss") == {n: 1.0 / n for n in range(1, 5)}
    assert values(run, "eval_loss") == {2: 2.0}, (
        "an evaluation is of the step that it follows"
    )
    notes = {state.status.note for state in run.sources.values()} - {None}
    assert notes == {
        "no record states a step: 5 records are counted in the order of the file"
    }


def test_an_epoch_that_goes_back_is_a_resumed_run() -> None:
    epochs = [0.1, 0.2, 0.3, 0.4, 0.3, 0.4, 0.5]
    assert steps_of(*({"epoch": epoch, "loss": 1.0} for epoch in epochs))[0] == [
        1,
        2,
        3,
        4,
        3,
        4,
        5,
    ]


def test_records_without_any_step_are_not_put_on_one(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    records = [{"loss": float(n), "reward": 0.5} for n in range(4)]
    written(tmp_path / "run" / "metrics.jsonl", records)
    run = read_run(tmp_path / "run")
    assert values(run, "loss") == {1: 0.0, 2: 1.0, 3: 2.0, 4: 3.0}
    (tmp_path / "csv").mkdir()
    (tmp_path / "csv" / "m.csv").write_text("loss,reward\n0.0,0.5\n1.0,0.5\n")
    table = read_run(tmp_path / "csv")
    assert values(table, "loss") == {1: 0.0, 2: 1.0}
    assert (
        "no record states a step: 2 records are counted in the order of the file"
        in [state.status.note for state in table.sources.values()]
    )


def test_a_number_of_steps_that_does_not_rise_is_the_length_of_an_episode() -> None:
    lengths = [{"num_steps": n, "reward": 0.5} for n in (7, 12, 12, 5, 9)]
    found, place = steps_of(*lengths)
    assert found == [7, 12, 13, 14, 15]
    assert (
        place.note
        == '"num_steps" does not rise, so it is no step: 3 records are counted in the order of the file'
    )


def test_a_header_before_the_first_step_is_said() -> None:
    found, place = steps_of(
        {"lr": 0.5}, {"step": 10, "loss": 1.0}, {"step": 11, "loss": 1.0}
    )
    assert found == [1, 10, 11]
    assert (
        place.note
        == "1 record is before the first stated step, counted in the order of the file"
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "args.json",
            '{"max_steps": 80, "num_train_epochs": 3.0, "steps": 5, "epoch": 1}',
        ),
        ("tasks.jsonl", '{"id": 5, "difficulty": 0.5}\n{"id": 6, "difficulty": 0.7}\n'),
        ("words.jsonl", '{"step": "first, add", "id": 1}\n'),
    ],
)
def test_what_is_no_log_of_metrics(name: str, text: str) -> None:
    assert not any(format.matches(Path(name), text.encode()) for format in FORMATS)


@pytest.mark.skipif(not LLAMA_FACTORY.exists(), reason=f"no {LLAMA_FACTORY}")
def test_a_real_log_of_current_steps() -> None:
    run = read_run(LLAMA_FACTORY)
    truth = [json.loads(line) for line in LLAMA_FACTORY.read_text().splitlines()]
    assert (len(truth), run.step, run.total_steps) == (202, 202, 5100)
    assert values(run, "loss") == {
        record["current_steps"]: record["loss"] for record in truth
    }


_RECORDS = (
    st.fixed_dictionaries(
        {},
        optional={
            "step": st.one_of(
                st.integers(), st.text(max_size=4), st.none(), st.floats()
            ),
            "global_step/max_steps": st.one_of(st.just("3/5"), st.text(max_size=6)),
            "num_steps": st.integers(),
            "total_steps": st.one_of(st.integers(), st.text(max_size=3), st.floats()),
            "epoch": st.one_of(st.floats(), st.text(max_size=3), st.none()),
            "loss": st.floats(),
        },
    )
    .map(json.dumps)
    .map(str.encode)
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    lines=st.lists(st.one_of(_RECORDS, st.binary(max_size=40)), max_size=12),
    cuts=st.lists(st.integers(0, 2000)),
)
def test_any_cut_of_any_records_gives_the_same(
    tmp_path: Path, lines: list[bytes], cuts: list[int]
) -> None:
    data = b"\n".join(lines) + b"\n"
    path = tmp_path / "m.jsonl"
    path.write_bytes(data)
    whole = FileSource(path, tutorial)
    run, _ = feed_in_pieces(path, tutorial, data, [])
    drain(whole)
    cut, _ = feed_in_pieces(path, tutorial, data, cuts)
    assert {key: repr(values(run, key)) for key in run.keys} == {
        key: repr(values(cut, key)) for key in cut.keys
    }
    assert whole.status().note == next(iter(cut.sources.values())).status.note


def test_numbers_that_were_written_as_texts(tmp_path: Path) -> None:
    records = [
        {
            "step": f"{n}",
            "loss": f"0.{n}",
            "lr": "1e-06",
            "kl": "nan",
            "seed": "7",
            "version": "2.1",
        }
        for n in (1, 2)
    ]
    run = read_run(written(tmp_path / "metrics.jsonl", records))
    assert values(run, "loss") == {1: 0.1, 2: 0.2}
    assert set(run.keys) == {"loss", "lr", "kl"}
