"""Sizes that a run's settings state: responses a step, GPUs. Frameworks name them differently."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.runs.settings import as_whole_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.runs.settings import RunSettings

PROMPTS = ("data.train_batch_size", "rollout_batch_size", "num_prompts_per_step")
EACH = (
    "actor_rollout_ref.rollout.n",
    "rollout.n",
    "num_generations",
    "num_generations_per_prompt",
    "n_samples_per_prompt",
)
GPUS = ("trainer.n_gpus_per_node", "n_gpus_per_node", "cluster.gpus_per_node")
NODES = ("trainer.nnodes", "nnodes", "cluster.num_nodes")


def batch_size(settings: RunSettings) -> int | None:
    """Return how many responses a step works on, None where the settings do not state it."""
    return _product(_size(settings, PROMPTS), _size(settings, EACH))


def gpu_count(settings: RunSettings) -> int | None:
    """Return how many GPUs the trainer has, None where the settings do not state it."""
    nodes = 1 if settings.stated(NODES) is None else _size(settings, NODES)
    return _product(_size(settings, GPUS), nodes)


def _size(settings: RunSettings, names: Sequence[str]) -> int | None:
    found = settings.stated(names)
    return None if found is None else as_whole_number(found[1])


def _product(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one * other
