"""The clocks of a run: when it reached its steps, by every kind of evidence, the best first.

Times in the log come first, then arrivals while we watched. Steps before that are counted back from
the first arrival, by the progress bar or else by the step timers, so that one clock covers the
whole run. For a run that nobody watches the same is counted back from its file's last change.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from verl_tui.runs.cached import cached_by_revision
from verl_tui.runs.clock import Clock, ElapsedTimes
from verl_tui.runs.time.step_timing import excluded_timers, valid_durations

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.runs.run import Run
    from verl_tui.runs.source_state import SourceState

TIMERS = "step timers"
_BAR = "progress bar"
_LAST_CHANGE = " and the file's last change"


@cached_by_revision
def clocks(run: Run) -> Sequence[Clock]:
    """Return the clocks of a run; those with fewer than two steps are left out."""
    watched, told = _with_past(run)
    bars = [_bar_clock(one) for one in run.sources.values() if one is not told]
    known = [clock for clock in (run.stated, watched, *bars) if len(clock) > 1]
    return known or [clock for clock in _timer_clock(run) if len(clock) > 1]


def _timer_clock(run: Run) -> Iterator[Clock]:
    """Yield the clock of the step timers, for a run without other evidence."""
    sources = [one for one in run.sources.values() if one.step is not None]
    times = [one.status.modified for one in sources]
    changes = [time for time in times if time is not None]
    if run.step is not None and changes:
        timers = by_timers(run, run.step)
        yield timers.clock(run.step, max(changes), TIMERS + _LAST_CHANGE)


def _bar_clock(source: SourceState) -> Clock:
    """Return the clock of a source's progress bar, if the bar went on to the end of the file."""
    end = source.status.modified
    if end is None or source.step is None:
        return Clock(_BAR)
    return source.bar.clock(source.step, end, _BAR + _LAST_CHANGE)


def _with_past(run: Run) -> tuple[Clock, SourceState | None]:
    """Return the clock of the watched steps, with those before in front of it, and the source whose
    progress bar these are known by.
    """
    watched = run.watched
    if not watched:
        return watched, None
    first = watched.steps[0], watched.times[0]
    told = ((one, one.bar.clock(*first, _BAR)) for one in run.sources.values())
    source, past = next(filter(lambda one: len(one[1]) > 1, told), (None, Clock(_BAR)))
    if source is None:
        past = by_timers(run, first[0]).clock(*first, TIMERS)
    if not past:
        return watched, None
    clock = Clock(f"{watched.origin}, before that the {past.origin}")
    clock.steps = past.steps + watched.steps[1:]
    clock.times = past.times + watched.times[1:]
    return clock, source


def by_timers(run: Run, step: int) -> ElapsedTimes:
    """Return how long a run took by its own timers up to a step; a step without one took the usual.

    Parts that a step's own time leaves out, such as validation since verl v0.6, are added to it.
    """
    import numpy as np

    timer = run.indicator("step_time")
    count = 0 if timer is None else bisect_right(timer.steps, step)
    if timer is None or not count:
        return ElapsedTimes()
    steps = np.array(timer.steps[:count])
    values = np.array(timer.values[:count])
    valid = (values > 0) & (values < np.inf)
    if not valid.any():
        return ElapsedTimes()
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
        return ElapsedTimes()
    start = int(steps[0] == first)
    return ElapsedTimes(
        [first, *steps[start:].tolist()], [0.0, *elapsed[start:].tolist()]
    )
