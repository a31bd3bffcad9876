"""The number of steps that a run is to take, by its settings and the length of an epoch."""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import TYPE_CHECKING

from verl_tui.runs.settings import NAMES, as_whole_number, number

if TYPE_CHECKING:
    from collections.abc import Callable

    from verl_tui.runs.series import Series
    from verl_tui.runs.settings import RunSettings

_TRIED = 4
"""Newest shares of epochs that are looked at, and as many of the first."""
_ROUNDING = 1e-6
"""Share of its size by which a number in single precision may be off."""

StepRange = tuple[float, float]
"""Fewest and most steps, where it is not known what becomes of an epoch's last batches."""


def planned_steps(
    settings: RunSettings,
    series: Callable[[str], Series | None],
    per_epoch: int | None = None,
) -> tuple[int, int] | None:
    """Return the fewest and the most steps that the settings may mean, None if they do not show
    them.

    Args:
        settings: Of the run.
        series: Returns the run's series of a metric, None where it has none.
        per_epoch: Steps of one pass over the data, if the trainer states them.
    """
    for key in NAMES["total_steps"]:
        total = as_whole_number(settings.values.get(key))
        if total is not None:
            return total, total
    epochs = _stated_epochs(settings)
    if epochs is None:
        return None
    each = per_epoch or _by_data(settings)
    least, most = (each, each) if each else _steps_per_epoch(series) or (0, 0)
    if 0 < epochs * most < 1e12:
        return _whole(epochs * least), _whole(epochs * most)
    return None


def _whole(steps: float) -> int:
    """Return a number of steps; a part of one is one, as Hugging Face's trainer counts."""
    near = round(steps)
    return near if abs(steps - near) <= _ROUNDING * steps else math.ceil(steps)


def _stated_epochs(settings: RunSettings) -> float | None:
    for key in NAMES["epochs"]:
        epochs = number(settings.values.get(key))
        if epochs is not None:
            return epochs
    return None


def _by_data(settings: RunSettings) -> int | None:
    """Return the steps of an epoch by the size of the data; an incomplete last batch is dropped, as
    verl does.
    """
    size = settings.find(NAMES["data"])
    batch = settings.find(NAMES["batch"])
    prompts = as_whole_number(size[1]) if size else None
    each = as_whole_number(batch[1]) if batch else None
    if prompts is not None and each is not None and prompts >= each:
        return prompts // each
    return None


def _steps_per_epoch(series: Callable[[str], Series | None]) -> StepRange | None:
    """Return the steps of an epoch: known when the log has seen one end, or where it counts parts
    of epochs exactly.
    """
    counted = series("training/epoch")
    if counted is not None:
        each = _between_epochs(counted)
        return (each, each) if each is not None else None
    shares = series("train/epoch") or series("epoch")
    return _by_shares(shares) if shares is not None else None


def _by_shares(shares: Series) -> StepRange | None:
    """Return the steps of an epoch by the shares of the data that Hugging Face's trainer has seen.

    Its last, incomplete step is dropped (transformers up to 4.45, where the next epoch makes up for
    it, and 4.46 to 4.49, where it is made, but not planned) or made (from 4.50 on).
    """
    newest, oldest = slice(None, -_TRIED, -1), slice(_TRIED)
    last = _exact(shares, newest)
    if last is None:
        return None
    first = _exact(shares, oldest) or last
    each = last[0] / last[1]
    if abs(each - round(each)) <= _ROUNDING * each:
        return round(each), round(each)
    made_up = last[1] > 1 and abs(first[0] / first[1] - each) <= _ROUNDING * each
    return math.floor(each), math.floor(each) if made_up else math.ceil(each)


def _exact(shares: Series, part: slice) -> tuple[int, float] | None:
    """Return the first step of a part with a share that was not rounded, as some versions do: it
    says too little then.
    """
    pairs = zip(shares.steps[part], shares.values[part], strict=True)
    exact = (
        (step, share)
        for step, share in pairs
        if math.isfinite(share)
        and share > 0 < step
        and abs(share - round(share, 4)) > _ROUNDING * max(1.0, share)
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
