"""Checkpoints on disk: reported once, also when they are completed or removed."""

from __future__ import annotations

import pytest

from verl_tui.records import Batch, Event, EventKind, SourceStatus
from verl_tui.runs.run import Run
from verl_tui.sources.files import checkpoint_step
from verl_tui.sources.folders.checkpoint_folders import TRACKER, CheckpointSource


def reported(source: CheckpointSource) -> list[tuple[EventKind, str, int | None]]:
    records, more = source.read()
    assert not more
    return [
        (r.kind, r.text.rpartition("/")[2], r.step)
        for r in records
        if isinstance(r, Event)
    ]


@pytest.mark.parametrize(
    ("name", "step"),
    [
        *(
            ("global_step_120", 120),
            ("policy-step-7", 7),
            ("checkpoint-250", 250),
            ("step5", 5),
            ("step_6", 6),
        ),
        *(("best_model", None), ("global_step_", None), ("global_step_1_old", None)),
    ],
)
def test_names(name, step):
    assert checkpoint_step(name) == step


def test_what_comes_is_called_best_is_completed_and_goes(tmp_path):
    home = tmp_path / "checkpoints" / "project" / "experiment"
    source = CheckpointSource(tmp_path, [home])
    for name in (
        "global_step_20",
        "global_step_10",
        "best_model",
        "best",
        "best_global_step_10",
        "bestiary",
        "actor",
    ):
        (home / name).mkdir(parents=True)
    assert sorted(reported(source), key=str) == [
        (EventKind.BEST, "best", None),
        (EventKind.BEST, "best_global_step_10", 10),
        (EventKind.BEST, "best_model", None),
        (EventKind.CHECKPOINT, "global_step_10", 10),
        (EventKind.CHECKPOINT, "global_step_20", 20),
    ]
    assert reported(source) == []
    tracker = home / TRACKER
    for text in ("", "garbage", "-3"):
        tracker.write_text(text)
        assert reported(source) == []
    tracker.write_text("10")
    assert [(kind, step) for kind, _, step in reported(source)] == [
        (EventKind.SAVED, 10)
    ]
    tracker.write_text("20\n")
    (home / "global_step_10").rmdir()
    assert [(kind, step) for kind, _, step in reported(source)] == [
        (EventKind.REMOVED, 10),
        (EventKind.SAVED, 20),
    ]
    assert source.status().records == 4


def test_what_lies_on_disk_beats_what_the_console_calls_it():
    run, status = Run("r"), SourceStatus("x", "f")
    reported = Event(EventKind.CHECKPOINT, "checkpoints/global_step_5", 17, 5)
    found = Event(EventKind.CHECKPOINT, "/disk/global_step_5", 0, 5)
    for records in ((reported, found), (reported,)):
        run.apply(Batch("r", status, records), 0.0)
        assert run.checkpoints == {5: "/disk/global_step_5"}


def test_a_checkpoint_without_the_state_that_is_written_last_is_still_being_saved(
    tmp_path,
):
    source = CheckpointSource(tmp_path, [tmp_path])
    for step in (20, 40):
        (tmp_path / f"checkpoint-{step}").mkdir(parents=True)
    (tmp_path / "checkpoint-20" / "trainer_state.json").write_text("{}")
    assert reported(source) == [(EventKind.CHECKPOINT, "checkpoint-20", 20)]
    (tmp_path / "checkpoint-40" / "trainer_state.json").write_text("{}")
    assert reported(source) == [(EventKind.CHECKPOINT, "checkpoint-40", 40)]
