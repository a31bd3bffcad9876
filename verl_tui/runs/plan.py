"""What a run has before it: how many steps, and which of them validate or save a checkpoint."""

from __future__ import annotations

import math
from bisect import bisect_left
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.runs.remember import while_unchanged
from verl_tui.runs.settings import number, whole

if TYPE_CHECKING:
    from collections.abc import Collection

    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Series

_TOTALS = ("trainer.total_training_steps", "total_training_steps", "total_steps", "max_steps")
_EPOCHS = ("trainer.total_epochs", "num_train_epochs", "total_epochs", "num_epochs")
_TRIED = 4
"""Newest shares of epochs that are looked at."""
_OCCASIONS = 20
"""Recent validations or checkpoints that their rhythm is learned from."""


@while_unchanged
def planned_steps(run: Run) -> int | None:
    """Return how many steps the settings let the whole run take, None where they do not tell."""
    for key in _TOTALS:
        if (stated := whole(run.settings.get(key))) is not None:
            return stated
    epochs = next((found for key in _EPOCHS if (found := number(run.settings.get(key))) is not None), None)
    each = _steps_per_epoch(run)
    return round(epochs * each) if epochs is not None and each is not None and 0 < epochs * each < 1e12 else None


def _steps_per_epoch(run: Run) -> float | None:
    """Return the steps of an epoch: known when the log has seen one end, or where it counts parts of epochs exactly."""
    if (counted := run.series("training/epoch")) is not None:
        return _between_epochs(counted)
    shares = run.series("train/epoch") or run.series("epoch")
    if shares is None:
        return None
    # TRL: the share of the data seen so far; some versions round it, and then it says too little.
    exact = (
        step / value
        for step, value in zip(shares.steps[:-_TRIED:-1], shares.values[:-_TRIED:-1], strict=True)
        if math.isfinite(value) and value > 0 < step and abs(value - round(value, 4)) > 1e-6 * max(1.0, value)
    )
    return next(exact, None)


def _between_epochs(counted: Series) -> float | None:
    """Return the steps of an epoch as verl counts them: epochs from 0, steps from 1 (`ppo/ray_trainer.py`)."""
    steps, values = counted.steps, counted.values
    if not steps or not values[-1] > 0:
        return None
    first = bisect_left(values, values[-1])
    begun = 0 < first < len(steps) and steps[first - 1] == steps[first] - 1
    return (steps[first] - 1) / values[-1] if begun else None


class Rhythm(NamedTuple):
    """How often something beside training is due."""

    every: float
    """Steps from one time to the next, `inf` for never."""
    last: int
    """A step at which it was due."""
    regular: bool
    """False where the distances differ, so that only their mean is known."""

    def falls_on(self, step: int) -> bool | None:
        """Return whether it is due at a step, None where that cannot be told."""
        if math.isinf(self.every):
            return False
        return (step - self.last) % self.every == 0 if self.regular else None

    def next_after(self, step: int) -> int | None:
        """Return the next step at which it is due, None where that cannot be told."""
        if math.isinf(self.every) or not self.regular:
            return None
        return step + int(self.every - (step - self.last) % self.every)


def rhythm(run: Run, occasions: Collection[int], setting: str) -> Rhythm:
    """Return when something is due by the run's settings, else as it was so far.

    Args:
        run: The run.
        occasions: Steps at which it happened.
        setting: Name of the setting that holds every how many steps; 0 and less mean never.
    """
    stated = number(run.settings.get(setting))
    if stated is not None and math.isfinite(stated) and stated == int(stated):
        return Rhythm(stated, 0, regular=True) if stated > 0 else Rhythm(math.inf, 0, regular=True)
    recent = sorted(step for step in occasions if step > 0)[-_OCCASIONS:]  # at 0 the model is looked at before training
    if recent and recent[-1] == run.total_steps:
        recent.pop()  # the last step has everything
    if not recent:
        return Rhythm(math.inf, 0, regular=True)
    distances = [after - before for before, after in pairwise(recent)]
    if not distances:
        return Rhythm(float(max(run.step or 0, recent[0])), recent[0], regular=False)
    return Rhythm(sum(distances) / len(distances), recent[-1], regular=len(set(distances)) == 1)
