"""What the names of checkpoints say."""

from __future__ import annotations

from pathlib import Path

import pytest

from verl_tui.records import Batch, Event, EventKind, SourceStatus
from verl_tui.runs.run import Run
from verl_tui.runs.views.checkpoints import called_best
from verl_tui.sources.folders.checkpoint_folders import CheckpointSource


@pytest.mark.parametrize(
    ("name", "value"),
    [("best_2.920", 2.92), ("best_-0.5.pt", -0.5), ("best_model", None)],
)
def test_the_value_in_its_name_is_told(name, value):
    run = Run("r")
    event = Event(EventKind.BEST, f"/c/{name}", 0)
    run.apply(Batch("r", SourceStatus("x", "f"), (event,)), 0.0)
    (found,) = called_best(run)
    assert (found.step, found.value, run.checkpoints) == (None, value, {})


def test_names_on_disk(tmp_path):
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
