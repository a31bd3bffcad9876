"""The number of steps that a run is to take, by its settings and the length of an epoch."""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import TYPE_CHECKING

from verl_tui.runs.settings import as_whole_number, number

if TYPE_CHECKING:
    from collections.abc import Callable

    from verl_tui.runs.series import Series
    from verl_tui.runs.settings import RunSettings

_TOTALS = (
    "trainer.total_training_steps",
    "total_training_steps",
    "total_steps",
    "max_steps",
)
_EPOCHS = ("trainer.total_epochs", "num_train_epochs", "total_epochs", "num_epochs")
_SIZES = (
    "train_dataset_size",
    "train_size",
    "num_train_samples",
    "num_train_examples",
    "dataset_size",
)
"""Prompts of the training data."""
_BATCHES = (
    "data.train_batch_size",
    "train_batch_size",
    "rollout_batch_size",
    "num_prompts_per_step",
)
"""Prompts of a step. A bare `batch_size` may be that of each device, so it is not used."""
_TRIED = 4
"""Newest shares of epochs that are looked at."""


def planned_steps(
    settings: RunSettings,
    series: Callable[[str], Series | None],
    per_epoch: int | None = None,
) -> int | None:
    """Return the total number of steps by the settings, None if they do not show it.

    Args:
        settings: Of the run.
        series: Returns the run's series of a metric, None where it has none.
        per_epoch: Steps of one pass over the data, if the trainer states them.
    """
    for key in _TOTALS:
        total = as_whole_number(settings.values.get(key))
        if total is not None:
            return total
    epochs = _stated_epochs(settings)
    if epochs is None:
        return None
    each = per_epoch or _by_data(settings) or _steps_per_epoch(series)
    if each is not None and 0 < epochs * each < 1e12:
        return round(epochs * each)
    return None


def _stated_epochs(settings: RunSettings) -> float | None:
    for key in _EPOCHS:
        epochs = number(settings.values.get(key))
        if epochs is not None:
            return epochs
    return None


def _by_data(settings: RunSettings) -> int | None:
    """Return the steps of an epoch by the size of the data; an incomplete last batch is dropped, as
    verl does.
    """
    size = settings.find(_SIZES)
    batch = settings.find(_BATCHES)
    prompts = as_whole_number(size[1]) if size else None
    each = as_whole_number(batch[1]) if batch else None
    if prompts is not None and each is not None and prompts >= each:
        return prompts // each
    return None


def _steps_per_epoch(series: Callable[[str], Series | None]) -> float | None:
    """Return the steps of an epoch: known when the log has seen one end, or where it counts parts
    of epochs exactly.
    """
    counted = series("training/epoch")
    if counted is not None:
        return _between_epochs(counted)
    shares = series("train/epoch") or series("epoch")
    if shares is None:
        return None
    # TRL: the share of the data seen so far; some versions round it, and then it says too little.
    exact = (
        step / value
        for step, value in zip(
            shares.steps[:-_TRIED:-1], shares.values[:-_TRIED:-1], strict=True
        )
        if math.isfinite(value)
        and value > 0 < step
        and abs(value - round(value, 4)) > 1e-6 * max(1.0, value)
    )
    return next(exact, None)


def _between_epochs(counted: Series) -> float | None:
    """Return the steps of an epoch as verl counts them: epochs from 0, steps from 1
    (`ppo/ray_trainer.py`).
    """
    steps = counted.steps
    values = counted.values
    if not steps or not values[-1] > 0:
        return None
    first = bisect_left(values, values[-1])
    begun = 0 < first < len(steps) and steps[first - 1] == steps[first] - 1
    if not begun:
        return None
    return (steps[first] - 1) / values[-1]
