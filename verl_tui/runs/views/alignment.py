"""The step up to which each of several runs counts when they are compared."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.runs.cached import cached_by_revision
from verl_tui.runs.time.step_clocks import clocks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.runs.clock import Clock
    from verl_tui.runs.run import Run


class Alignment(Enum):
    """The point up to which runs are compared."""

    END = "each at its end"
    STEP = "at the same step"
    TIME = "after the same time"


class Stop(NamedTuple):
    """The point up to which a run counts."""

    step: int | None
    """Last step that counts; None if no step of the run does."""
    elapsed: float | None
    """Seconds from the run's beginning to that step, None where unknown."""


def stops(runs: Sequence[Run], alignment: Alignment) -> list[Stop]:
    """Return how far each run counts; runs without a step, or without times if these are needed, do
    not count.
    """
    steps = [run.step for run in runs]
    if alignment is Alignment.STEP:
        steps = _to_common_step(steps)
    elif alignment is Alignment.TIME:
        steps = _to_common_time(runs)
    return [
        Stop(step, _elapsed(run, step)) for run, step in zip(runs, steps, strict=True)
    ]


def _to_common_step(steps: Sequence[int | None]) -> list[int | None]:
    common = min((step for step in steps if step is not None), default=None)
    return [None if step is None else common for step in steps]


def _to_common_time(runs: Sequence[Run]) -> list[int | None]:
    """Return the step of each run after the time of the shortest."""
    lasted = [_elapsed(run, run.step) for run in runs]
    common = min((seconds for seconds in lasted if seconds is not None), default=0.0)
    return [
        None if seconds is None else _step_after(run, common)
        for run, seconds in zip(runs, lasted, strict=True)
    ]


def seconds_per_step(run: Run, stop: Stop, most: int) -> float | None:
    """Return how long the newest steps took by the run's clock, None where unknown."""
    clock = _clock(run)
    if clock is None or stop.step is None:
        return None
    last = bisect_right(clock.steps, stop.step) - 1
    first = max(0, last - most)
    if last < 1:
        return None
    seconds = clock.times[last] - clock.times[first]
    return seconds / (clock.steps[last] - clock.steps[first])


@cached_by_revision
def _clock(run: Run) -> Clock | None:
    return next(iter(clocks(run)), None)


def _elapsed(run: Run, step: int | None) -> float | None:
    clock = _clock(run)
    if clock is None or step is None:
        return None
    at = min(bisect_left(clock.steps, step), len(clock) - 1)
    return max(0.0, clock.times[at] - clock.times[0])


def _step_after(run: Run, seconds: float) -> int | None:
    """Return the step that a run had reached some seconds after its beginning."""
    clock = _clock(run)
    if clock is None:
        return None
    return clock.steps[bisect_right(clock.times, clock.times[0] + seconds) - 1]
