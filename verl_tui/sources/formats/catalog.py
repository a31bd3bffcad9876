"""All log formats, in the order of trying."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.sources.formats import (
    filelogger,
    generations,
    metrics_csv,
    metrics_json,
    mlflow_files,
    no_logs,
    rollouts,
    sample_records,
    swanlab,
    trackio,
    trainer_state,
    tutorial,
)
from verl_tui.sources.formats.console import reader as console
from verl_tui.sources.formats.prometheus_text import reader as exposition
from verl_tui.sources.formats.tables import completions, parquet, wandb_tables
from verl_tui.sources.formats.tensorboard import reader as tensorboard
from verl_tui.sources.formats.trainer_logs import llama_factory, swift
from verl_tui.sources.formats.wandb import reader as wandb

if TYPE_CHECKING:
    from pathlib import Path

    from verl_tui.sources.formats.format import Format

FORMATS: tuple[Format, ...] = (
    tensorboard,
    trackio,
    mlflow_files,
    wandb,
    wandb_tables,
    swanlab,
    exposition,
    rollouts,
    filelogger,
    metrics_csv,
    trainer_state,
    swift,
    llama_factory,
    completions,
    parquet,
    sample_records,
    generations,
    metrics_json,
    tutorial,
    console,
)
"""The first format that recognises a file reads it: the narrow ones come before the broad ones."""


def format_of(path: Path, begin: bytes) -> Format | None:
    """Return the format of a file by its name and first bytes, None where it is no log (yet)."""
    if no_logs.is_one(begin):
        return None
    return next((one for one in FORMATS if one.matches(path, begin)), None)
