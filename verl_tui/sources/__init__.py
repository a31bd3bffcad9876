"""Where records come from: one module a format, listed here in the order of trying."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.sources import (
    completions,
    console,
    exposition,
    filelogger,
    llama_factory,
    metrics_csv,
    parquet,
    rollouts,
    samples,
    swift,
    tensorboard,
    trackio,
    trainer_state,
    tutorial,
    wandb,
    wandb_tables,
)

if TYPE_CHECKING:
    from verl_tui.sources.format import Format

FORMATS: tuple[Format, ...] = (
    tensorboard,
    trackio,
    wandb,
    wandb_tables,
    exposition,
    rollouts,
    filelogger,
    metrics_csv,
    trainer_state,
    swift,
    llama_factory,
    completions,
    parquet,
    samples,
    tutorial,
    console,
)
"""The first format that recognises a file reads it: the narrow ones come before the broad ones."""

HEAD = 128 * 1024
"""Bytes from which a format is recognised; verl prints its configuration first, its steps much later."""
