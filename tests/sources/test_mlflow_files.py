"""Runs in MLflow's file store, laid out as mlflow 3 does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from log_reading import read_run, read_runs, values

from verl_tui.runs.views.state import State, state

if TYPE_CHECKING:
    from pathlib import Path

META = """artifact_uri: file:///x
lifecycle_stage: active
run_id: {id}
run_name: {name}
status: {status}
"""


def write(
    store: Path, id: str, name: str, status: int, metrics: dict[str, str]
) -> Path:
    run = store / "7" / id
    run.mkdir(parents=True)
    (store / "7" / "meta.yaml").write_text("lifecycle_stage: active\nname: all\n")
    (run / "meta.yaml").write_text(META.format(id=id, name=name, status=status))
    for path, text in {
        "params/lr": "1e-06",
        "params/algorithm/adv_estimator": "grpo",
        "tags/mlflow.user": "me",
        **{f"metrics/{key}": text for key, text in metrics.items()},
    }.items():
        (run / path).parent.mkdir(parents=True, exist_ok=True)
        (run / path).write_text(text)
    return run


def column(values: list[float], first: int = 1) -> str:
    return "".join(
        f"{1_700_000_000_000 + 1000 * at} {value} {at}\n"
        for at, value in enumerate(values, first)
    )


def test_each_run_of_a_store_is_read(tmp_path):
    store = tmp_path / "mlruns"
    rewards = {"critic/score/mean": column([0.25, 0.5]), "loss": column([1.0, 2.0])}
    write(store, "a" * 32, "tiny", 3, rewards)
    write(
        store,
        "b" * 32,
        "sick",
        4,
        {"critic/score/mean": column([0.5]) + f"x\n1 2 1{0:099}\n"},
    )
    runs = read_runs(tmp_path)
    tiny, sick = runs["tiny"], runs["sick"]
    assert len(runs) == 2
    assert (tiny.step, state(tiny, tiny.last_record or 0.0)) == (2, State.FINISHED)
    assert values(tiny, "critic/score/mean") == {1: 0.25, 2: 0.5}
    assert tiny.settings == {"lr": 1e-06, "algorithm.adv_estimator": "grpo"}
    assert (sick.step, state(sick, sick.last_record or 0.0)) == (1, State.CRASHED)
    assert sick.unreadable == 2


def test_a_line_that_is_being_written_waits_for_its_end(tmp_path):
    run = write(tmp_path, "a" * 32, "tiny", 1, {"loss": column([1.0]) + "17000"})
    found = read_run(run)
    assert (found.step, found.unreadable) == (1, 0)
