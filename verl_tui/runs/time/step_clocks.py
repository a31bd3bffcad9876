"""The clocks of a run: when it reached its steps, by every kind of evidence, the best first.

Times in the log come first, then arrivals while we watched. Steps before that are counted back from
the first arrival, by the progress bar or else by the step timers, so that one clock covers the
whole run. For a run that nobody watches the same is counted back from its file's last change.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from verl_tui.runs.cached import cached_by_revision
from verl_tui.runs.clock import Clock
from verl_tui.runs.time.step_timing import excluded_timers, valid_durations

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.runs.run import Run

TIMERS = "step timers"
_BAR = "progress bar"
_LAST_CHANGE = " and the file's last change"


@cached_by_revision
def clocks(run: Run) -> Sequence[Clock]:
    """Return the clocks of a run; those with fewer than two steps are left out."""
    known = [run.stated]
    told = None
    if run.watched:
        past, told = _past(run, run.watched.steps[0], run.watched.times[0])
        known.append(_joined(past, run.watched))
    sources = [one for one in run.sources.values() if one.step is not None]
    for one in sources:
        if one is not told and one.step is not None and one.status.modified is not None:
            origin = _BAR + _LAST_CHANGE
            known.append(one.bar.counted_back(one.step, one.status.modified, origin))
    if not any(len(clock) > 1 for clock in known) and run.step is not None:
        changes = [time for one in sources if (time := one.status.modified) is not None]
        if changes:
            timers = by_timers(run, run.step)
            origin = TIMERS + _LAST_CHANGE
            known.append(timers.counted_back(run.step, max(changes), origin))
    return [clock for clock in known if len(clock) > 1]


def _past(run: Run, step: int, time: float) -> tuple[Clock, object]:
    """Return the clock up to a moment, and the source whose progress bar it is of."""
    for source in run.sources.values():
        clock = source.bar.counted_back(step, time, _BAR)
        if len(clock) > 1:
            return clock, source
    return by_timers(run, step).counted_back(step, time, TIMERS), None


def _joined(past: Clock, watched: Clock) -> Clock:
    """Return the clock of the watched steps, with those before in front of it."""
    if not past:
        return watched
    return Clock(
        f"{watched.origin}, before that the {past.origin}",
        past.steps + watched.steps[1:],
        past.times + watched.times[1:],
    )


def by_timers(run: Run, step: int) -> Clock:
    """Return the seconds that a run took by its own timers up to each step; a step without one took
    the usual.

    Parts that a step's own time leaves out, such as validation since verl v0.6, are added to it.
    """
    import numpy as np

    timer = run.indicator("step_time")
    count = 0 if timer is None else bisect_right(timer.steps, step)
    if timer is None or not count:
        return Clock()
    steps, values = np.array(timer.steps[:count]), np.array(timer.values[:count])
    valid = (values > 0) & (values < np.inf)
    if not valid.any():
        return Clock()
    first = max(0, timer.steps[0] - 1)
    with np.errstate(over="ignore"):
        seconds = np.where(valid, values, np.median(values[valid]))
        seconds *= np.diff(steps, prepend=first)
        for series in excluded_timers(run):
            extras = valid_durations(series.since(first))
            seconds += [extras.get(at, 0.0) for at in timer.steps[:count]]
        seconds[steps == first] = 0.0
        elapsed = np.cumsum(seconds)
    if not np.isfinite(elapsed[-1]):
        return Clock()
    start = int(steps[0] == first)
    return Clock("", [first, *steps[start:].tolist()], [0.0, *elapsed[start:].tolist()])
