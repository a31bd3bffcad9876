"""The schedule of validations and checkpoints."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.runs.settings import number

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from verl_tui.runs.run import Run

_OCCASIONS = 20
"""Recent validations or checkpoints that their schedule is learned from."""
_HELD = 2
"""Equal distances that make a schedule, where one more differs: heuristic."""


class Schedule(NamedTuple):
    """The schedule of something beside training, such as validations."""

    every: float
    """Steps from one time to the next, `inf` for never."""
    last: int
    """A step at which it was due."""
    regular: bool
    """False where the distances differ, so that only their mean is known."""

    def falls_on(self, step: int) -> bool | None:
        """Return whether it is due at a step, None where unknown."""
        if math.isinf(self.every):
            return False
        if not self.regular:
            return None
        return (step - self.last) % self.every == 0

    def next_after(self, step: int) -> int | None:
        """Return the next step at which it is due, None where unknown."""
        if math.isinf(self.every) or not self.regular:
            return None
        return step + int(self.every - (step - self.last) % self.every)


def schedule_of(run: Run, occasions: Collection[int], setting: str) -> Schedule:
    """Return when something is due, by the run's settings or by when it happened so far.

    Args:
        run: The run.
        occasions: Steps at which it happened.
        setting: Name of the setting that holds the number of steps in between; 0 and less mean
            never.
    """
    stated = number(run.settings.get(setting))
    if stated is not None and math.isfinite(stated) and stated == int(stated):
        if stated > 0:
            return Schedule(stated, 0, regular=True)
        return _NEVER
    # At step 0 the model is evaluated before training.
    recent = sorted(step for step in occasions if step > 0)[-_OCCASIONS:]
    if recent and (recent[-1] == run.total_steps or _is_last(recent, run.step)):
        recent.pop()  # the last step has everything
    return _learned(recent, run.step)


def _learned(recent: Sequence[int], step: int | None) -> Schedule:
    """Return the schedule that recent occasions show."""
    if not recent:
        return _NEVER
    distances = [after - before for before, after in pairwise(recent)]
    if not distances:
        reached = max(step or 0, recent[0])
        return Schedule(float(reached), recent[0], regular=False)
    usual = sum(distances) / len(distances)
    return Schedule(usual, recent[-1], regular=len(set(distances)) == 1)


_NEVER = Schedule(math.inf, 0, regular=True)


def _is_last(recent: Sequence[int], newest: int | None) -> bool:
    """Return whether the newest step looks like a run's last: it alone breaks a schedule that held
    at least three times.
    """
    distances = [after - before for before, after in pairwise(recent)]
    regular = len(distances) > _HELD and len(set(distances[:-1])) == 1
    return regular and recent[-1] == newest and distances[-1] < distances[0]
