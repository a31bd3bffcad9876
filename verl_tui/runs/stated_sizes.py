"""Sizes that a run's settings state: responses a step, GPUs. Frameworks name them differently."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from verl_tui.runs.settings import as_whole_number, is_open

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


def stated_setting(
    settings: RunSettings, names: Sequence[str]
) -> tuple[str, Any] | None:
    """Return a setting that has a value: neither empty nor a reference that was not looked up;
    earlier names first.
    """
    for name in names:
        found = settings.find([name])
        if (
            found is not None
            and found[1] is not None
            and found[1] != ""
            and not is_open(found[1])
        ):
            return found
    return None


def batch_size(settings: RunSettings) -> int | None:
    """Return how many responses a step works on, None where the settings do not state it."""
    prompts = stated_setting(settings, PROMPTS)
    each = stated_setting(settings, EACH)
    count = as_whole_number(prompts[1]) if prompts else None
    times = as_whole_number(each[1]) if each else None
    if count is not None and times is not None:
        return count * times
    return None


def gpu_count(settings: RunSettings) -> int | None:
    """Return how many GPUs the trainer has, None where the settings do not state it."""
    each = stated_setting(settings, GPUS)
    nodes = stated_setting(settings, NODES)
    count = as_whole_number(each[1]) if each else None
    times = as_whole_number(nodes[1]) if nodes else 1
    if count is not None and times is not None:
        return count * times
    return None
