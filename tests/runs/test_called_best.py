"""Which checkpoint is of which step, by its name or by the value in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from verl_tui.records import Batch, Event, EventKind, MetricRows, SourceStatus
from verl_tui.runs.run import Run
from verl_tui.runs.views.checkpoints import best, called_best, checkpoints
from verl_tui.sources.folders.checkpoint_folders import CheckpointSource

REWARDS = [1.0, 2.25, 2.92, 2.5, 2.92, 3.10449, 2.0]
VALIDATION = [0.25, 0.5, 0.75, 0.5, 0.5, 0.5, 0.5]


def run_with(*names: str, suffix: str = "") -> Run:
    run = Run("r")
    rows = MetricRows(
        ("rollout/reward_mean", "eval/acc"),
        range(10, 80, 10),
        (REWARDS, VALIDATION),
        range(7),
    )
    events = (Event(EventKind.BEST, f"/c/{name}{suffix}", 0) for name in names)
    run.apply(Batch("r", SourceStatus("x", "f"), (rows, *events)), 0.0)
    return run


@pytest.mark.parametrize(
    ("name", "step", "key"),
    [
        ("best_2.920", 30, "rollout/reward_mean"),
        ("best_3.104", 60, "rollout/reward_mean"),
        ("best_reward_2.25", 20, "rollout/reward_mean"),
        ("best-0.75", 30, "eval/acc"),
        ("best_eval_acc_0.750", 30, "eval/acc"),
        ("best_2.500", None, None),  # was no best when it came
        ("best_9.999", None, None),
        ("best_model", None, None),
    ],
)
@pytest.mark.parametrize("suffix", ["", ".pt"])
def test_a_value_in_its_name_tells_the_step(
    name: str, step: int | None, key: str | None, suffix: str
) -> None:
    (found,) = called_best(run_with(name, suffix=suffix))
    assert (found.step, found.key) == (step, key)


def test_they_are_known_by_their_steps_and_listed_in_order() -> None:
    run = run_with("best_3.104", "best_model", "best_1.000", "best_2.920")
    assert [one.step for one in called_best(run)] == [10, 30, 60, None]
    assert checkpoints(run) == {
        10: "/c/best_1.000",
        30: "/c/best_2.920",
        60: "/c/best_3.104",
    }
    top = best(run)
    assert top is not None
    assert top.checkpoint is not None
    assert (top.step, top.checkpoint.path) == (60, "/c/best_3.104")


def test_names_on_disk(tmp_path: Path) -> None:
    for folder in ("best_2.920", "checkpoints/best_2.25", "global_step_7"):
        (tmp_path / folder).mkdir(parents=True)
    for file in (
        "best_-0.5.pt",
        "step_40.ckpt",
        "best_notes.txt",
        "model.safetensors",
        "best_1.0",
    ):
        (tmp_path / file).touch()
    records, _ = CheckpointSource(tmp_path, [tmp_path, tmp_path / "checkpoints"]).read()
    found = {
        (Path(one.text).name, one.kind, one.step)
        for one in records
        if isinstance(one, Event)
    }
    assert found == {
        ("best_2.920", EventKind.BEST, None),
        ("best_2.25", EventKind.BEST, None),
        ("best_-0.5.pt", EventKind.BEST, None),
        ("global_step_7", EventKind.CHECKPOINT, 7),
        ("step_40.ckpt", EventKind.CHECKPOINT, 40),
    }
