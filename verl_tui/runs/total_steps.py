"""The number of steps that a run is to take, by its settings and the length of an epoch."""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import TYPE_CHECKING, TypeVar

from verl_tui.runs.settings import NAMES, as_whole_number, number

if TYPE_CHECKING:
    from collections.abc import Callable

    from verl_tui.runs.series import Series
    from verl_tui.runs.settings import RunSettings

T = TypeVar("T")
_TRIED = 4
"""Newest shares of epochs that are looked at."""
_ROUNDING = 1e-6
"""Share of its size by which a number in single precision may be off."""


def planned_steps(
    settings: RunSettings,
    series: Callable[[str], Series | None],
    per_epoch: int | None = None,
) -> int | None:
    """Return the steps that the settings mean, None if they do not show them.

    Args:
        settings: Of the run.
        series: Returns the run's series of a metric, None where it has none.
        per_epoch: Steps of one pass over the data, if the trainer states them.
    """
    total = _stated(settings, "total_steps", as_whole_number)
    if total is not None:
        return total
    epochs = _stated(settings, "epochs", number)
    each = per_epoch or _by_data(settings) or _by_epochs(series)
    if epochs is None or each is None or not 0 < epochs * each < 1e12:
        return None
    # A part of a step is one, as Hugging Face's trainer counts.
    return math.ceil(epochs * each * (1 - _ROUNDING))


def _stated(
    settings: RunSettings, what: str, parse: Callable[[object], T | None]
) -> T | None:
    found = (parse(settings.values.get(key)) for key in NAMES[what])
    return next((one for one in found if one is not None), None)


def _by_data(settings: RunSettings) -> int | None:
    """Return the steps of an epoch by the size of the data; an incomplete last batch is dropped, as
    verl does.
    """
    prompts, each = (
        as_whole_number(found[1]) if (found := settings.find(NAMES[what])) else None
        for what in ("data", "batch")
    )
    if prompts is not None and each is not None and prompts >= each:
        return prompts // each
    return None


def _by_epochs(series: Callable[[str], Series | None]) -> float | None:
    """Return the steps of an epoch: known when the log has seen one end, or where it counts shares
    of epochs without rounding them, as some versions do.
    """
    counted = series("training/epoch")
    if counted is not None:
        return _between_epochs(counted)
    shares = series("train/epoch") or series("epoch")
    if shares is None:
        return None
    pairs = zip(shares.steps[-_TRIED:], shares.values[-_TRIED:], strict=True)
    return next(
        (
            step / share
            for step, share in pairs
            if math.isfinite(share)
            and share > 0 < step
            and abs(share - round(share, 4)) > _ROUNDING * max(1.0, share)
        ),
        None,
    )


def _between_epochs(counted: Series) -> float | None:
    """Return the steps of an epoch as verl counts them: epochs from 0, steps from 1
    (`ppo/ray_trainer.py`).
    """
    steps, values = counted.steps, counted.values
    if not steps or not values[-1] > 0:
        return None
    first = bisect_left(values, values[-1])
    begun = 0 < first < len(steps) and steps[first - 1] == steps[first] - 1
    return (steps[first] - 1) / values[-1] if begun else None
