"""MLflow's file store (`mlruns`), where each run has a folder of many files: its `meta.yaml` stands
for all of them. How they are read: `verl_tui.sources.folders.mlflow_run`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.sources.formats.documents import NoReader

if TYPE_CHECKING:
    from pathlib import Path

name = "MLflow files"
rank = 4
anchor = True

META = "meta.yaml"


def matches(path: Path, head: bytes) -> bool:
    """Return whether a file describes a run that was not deleted; an experiment has no `run_id`."""
    return (
        path.name == META
        and b"\nrun_id: " in head
        and b"\nlifecycle_stage: active" in head
    )


def reader(path: Path) -> NoReader:
    """Return a reader that reads no bytes: they lie in many files."""
    return NoReader(0)
