"""Elapsed times at steps, for logs with durations but no times: progress bars and step timers."""

from __future__ import annotations

import math
from bisect import bisect_right
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.runs.clock import Clock, counted_back
from verl_tui.runs.time.excluded_parts import excluded_timers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from verl_tui.runs.run import Run

BAR = "progress bar"
TIMERS = "step timers"


class ElapsedTimes(NamedTuple):
    """Seconds since some beginning at each of some steps, both ascending."""

    origin: str
    """Name of the evidence, for people."""
    steps: Sequence[int]
    elapsed: Sequence[float]

    def until(self, step: int) -> ElapsedTimes | None:
        """Return the part up to a step, None where nothing is known near it.

        Bars are drawn after their step's line, so the last step may be a stride ahead: it took as
        long as the one before it.
        """
        count = bisect_right(self.steps, step)
        if count < 1 or (count < 2 and self.steps[0] != step):
            return None
        steps = self.steps[:count]
        elapsed = self.elapsed[:count]
        if steps[-1] == step:
            return ElapsedTimes(self.origin, steps, elapsed)
        beyond = count == len(self.steps)
        to = count - 1 if beyond else count
        gap = self.steps[to] - self.steps[to - 1]
        if beyond and step - steps[-1] > gap:
            return None
        taken = self.elapsed[to] - self.elapsed[to - 1]
        last = elapsed[-1] + (step - steps[-1]) / gap * taken
        return ElapsedTimes(self.origin, [*steps, step], [*elapsed, last])

    def clock(self, step: int, end: float, rest: str = "") -> Clock | None:
        """Return a clock counted back from when a step was reached, None where no step is near it.

        Args:
            step: The step.
            end: When it was reached, in seconds since the epoch.
            rest: The evidence for that time, in words, if it is not obvious to users.
        """
        part = self.until(step)
        origin = " and ".join(word for word in (self.origin, rest) if word)
        if part is None:
            return None
        return counted_back(origin, part.steps, part.elapsed, end)


def by_timers(run: Run, step: int) -> ElapsedTimes:
    """Return how long a run took by its own timers up to a step; a step without one took the usual.

    Parts that a step's own time leaves out, such as validation since verl v0.6, are added to it.
    """
    timer = run.indicator("step_time")
    known = timer.steps[: bisect_right(timer.steps, step)] if timer is not None else ()
    if timer is None or not known:
        return _UNTIMED
    extras = _excluded_seconds(run)
    first = max(0, known[0] - 1)
    steps = [first]
    elapsed = [0.0]
    durations = _durations(timer.values[: len(known)])
    for at, took in zip(known, durations, strict=True):
        if at > first:
            seconds = (at - steps[-1]) * took
            elapsed.append(elapsed[-1] + seconds + extras.get(at, 0.0))
            steps.append(at)
    if math.isfinite(elapsed[-1]):
        return ElapsedTimes(TIMERS, steps, elapsed)
    return _UNTIMED


def _durations(values: Sequence[float]) -> list[float]:
    """Return the values of a timer, with the usual one in place of invalid durations; nan if all
    are invalid.
    """
    valid = [value for value in values if 0 < value < math.inf]
    usual = median(valid) if valid else math.nan
    return [value if 0 < value < math.inf else usual for value in values]


def _excluded_seconds(run: Run) -> Mapping[int, float]:
    """Return the seconds of each step that its own time leaves out."""
    extras: dict[int, float] = {}
    for series in excluded_timers(run):
        for step, value in zip(series.steps, series.values, strict=True):
            if 0 < value < math.inf:
                extras[step] = extras.get(step, 0.0) + value
    return extras


_UNTIMED = ElapsedTimes(TIMERS, (), ())


def with_past(watched: Clock, past: Clock | None) -> Clock:
    """Return the clock of the watched steps, with those before in front of it."""
    if past is None:
        return watched
    clock = Clock(f"{watched.origin}, before that the {past.origin}")
    clock.steps = past.steps[:]
    clock.times = past.times[:]
    clock.steps.extend(watched.steps[1:])
    clock.times.extend(watched.times[1:])
    return clock
