"""A W&B run as a source, and the values that its records hold."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from verl_tui.records import MetricRows
from verl_tui.sources.formats import wandb
from verl_tui.sources.source import FileSource

if TYPE_CHECKING:
    from pathlib import Path


def source(tmp_path: Path, data: bytes) -> FileSource:
    """Write a run's log, and return what reads it."""
    path = tmp_path / "run-x.wandb"
    path.write_bytes(data)
    return FileSource(path, wandb)


def said(records: list[object]) -> dict[str, dict[int, list[str]]]:
    """Return every value that rows hold, by key and step, in their order."""
    found: dict[str, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for rows in records:
        if isinstance(rows, MetricRows):
            for key, column in zip(rows.keys, rows.columns, strict=True):
                for step, value in zip(rows.steps, column, strict=True):
                    found[key][step].append(repr(value))
    return {key: dict(steps) for key, steps in found.items()}
