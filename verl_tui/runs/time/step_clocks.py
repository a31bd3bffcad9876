"""The clocks of a run: when it reached its steps, by every kind of evidence, the best first; how
long each step took and what restarts cost; the step up to which each of several runs counts.

Times in the log come first, then arrivals while we watched. Steps before that are counted back from
the first arrival, by the progress bar or else by the step timers, so that one clock covers the
whole run. For a run that nobody watches the same is counted back from its file's last change.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui.means import median_along
from verl_tui.runs.cached import cached_by_revision
from verl_tui.runs.clock import Clock, moments
from verl_tui.runs.time.step_timing import (
    durations,
    excluded,
    occasional_parts,
    seconds_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.runs.run import Run
    from verl_tui.runs.source_state import SourceState
    from verl_tui.runs.time.step_timing import Numbers


# -- clocks ----------------------------------------------------------------------------------------


TIMERS = "step timers"
_LONGEST_STRIDE = 100
"""Steps from record to record at most where there is only one: a resumed run may begin anywhere."""
_BAR = "progress bar"
_LAST_CHANGE = " and the file's last change"


@cached_by_revision
def clocks(run: Run) -> Sequence[Clock]:
    """Return the clocks of a run; those with fewer than two steps are left out."""
    watched, used = run.watched, None
    if watched:
        past, used = _past(run, watched.steps[0], watched.times[0])
        if past:
            watched = Clock(
                f"{watched.origin}, before that the {past.origin}",
                past.steps + watched.steps[1:],
                past.times + watched.times[1:],
            )
    bars = [_bar_clock(one) for one in run.sources.values() if one is not used]
    known = [one for one in (run.stated, watched, *bars) if len(one) > 1]
    return known or [one for one in _by_last_change(run) if len(one) > 1]


def _bar_clock(source: SourceState) -> Clock:
    """Return the clock of a source's progress bar, if the bar went on to the end of the file."""
    end = source.status.modified
    if end is None or source.step is None:
        return Clock()
    return source.bar.counted_back(source.step, end, _BAR + _LAST_CHANGE)


def _by_last_change(run: Run) -> Iterator[Clock]:
    """Yield the clock of the step timers, for a run without other evidence."""
    sources = [one.status for one in run.sources.values() if one.step is not None]
    changes = [one.modified for one in sources if one.modified is not None]
    if changes and run.step is not None:
        timers = by_timers(run, run.step)
        yield timers.counted_back(run.step, max(changes), TIMERS + _LAST_CHANGE)


def _past(run: Run, step: int, time: float) -> tuple[Clock, SourceState | None]:
    """Return the clock up to a moment, and the source whose progress bar it is of."""
    for source in run.sources.values():
        clock = source.bar.counted_back(step, time, _BAR)
        if len(clock) > 1:
            return clock, source
    return by_timers(run, step).counted_back(step, time, TIMERS), None


def logged_seconds(run: Run, since: int, step: int) -> tuple[int, float]:
    """Return the seconds up to a step by the times in the log, else by its progress bar, behind the
    first step from `since` on that these date.
    """
    bars = [one.bar.counted_back(step, 0.0, _BAR) for one in run.sources.values()]
    for clock in (run.stated, *bars):
        if clock.steps and clock.steps[0] < step <= clock.steps[-1]:
            dated = max(since, clock.steps[0])
            begun, done = clock.at_each([dated, step])
            return dated, done - begun
    return step, 0.0


def by_timers(run: Run, step: int) -> Clock:
    """Return the seconds that a run took by its own timers up to each step; a step without one took
    the usual.

    Parts that a step's own time leaves out, such as validation since verl v0.6, are added to it.
    """
    import numpy as np

    timer = run.indicator("step_time")
    count = 0 if timer is None else bisect_right(timer.steps, step)
    if not timer or not count:
        return Clock()
    steps = np.array(timer.steps[:count])
    values = durations(timer, steps)
    valid = values > 0
    if not valid.any():
        return Clock()
    # A log that begins with step 10 is taken to log every tenth.
    stride = (
        median_along(np.diff(steps)) if count > 1 else min(steps[0], _LONGEST_STRIDE)
    )
    first = max(0, timer.steps[0] - int(stride))
    seconds = np.where(valid, values, median_along(values[valid]))
    seconds *= np.diff(steps, prepend=first)
    seconds += seconds_of(run, excluded(run), steps)
    seconds[steps == first] = 0.0
    elapsed = np.cumsum(seconds)
    start = int(steps[0] == first)
    return Clock("", [first, *steps[start:].tolist()], [0.0, *elapsed[start:].tolist()])


# -- comparing -------------------------------------------------------------------------------------


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
        steps = _to_common(steps)
    elif alignment is Alignment.TIME:
        lasted = filter(None, (_elapsed(run, run.step) for run in runs))
        shortest = min(lasted, default=0.0)
        steps = [_step_after(run, shortest) for run in runs]
    return [
        Stop(step, _elapsed(run, step)) for run, step in zip(runs, steps, strict=True)
    ]


def _to_common(steps: Sequence[int | None]) -> list[int | None]:
    common = min((step for step in steps if step is not None), default=None)
    return [None if step is None else common for step in steps]


def seconds_per_step(run: Run, stop: Stop, most: int) -> float | None:
    """Return how long the newest steps took by the run's clock, None where unknown."""
    clock = _clock(run)
    if not clock or stop.step is None:
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
    if not clock or step is None:
        return None
    at = min(bisect_left(clock.steps, step), len(clock) - 1)
    return max(0.0, clock.times[at] - clock.times[0])


def _step_after(run: Run, seconds: float) -> int | None:
    """Return the step that a run had reached some seconds after its beginning."""
    clock = _clock(run)
    if not clock or run.step is None:
        return None
    return clock.steps[bisect_right(clock.times, clock.times[0] + seconds) - 1]


_DATED = ("step_time", "reward", "policy_loss", "response_length", "entropy")
"""Indicators whose rows stand for steps, the first to try first."""
_LONG, _LEAST = 5.0, 120.0
"""A step hangs that takes so many usual ones more, and so many seconds, as a run counts as stalled:
heuristic.
"""


class Passes(NamedTuple):
    """The steps of a run that count in the end, and the seconds before each.

    `key` is the metric whose rows they are, `origin` says what their times are of, and `stated`
    whether the log states these. A row stands for as many steps as `strides` says, which took
    `seconds`; of these it hung for `hung`, and validated or saved the model for `aside`. Before it
    went `repeated`, in which steps were made that a restart made again (`again`, first and last),
    and `down`, in which no process trained. `start` is the time before the first step.
    """

    key: str
    origin: str
    stated: bool
    steps: Any
    strides: Numbers
    seconds: Numbers
    hung: Numbers
    aside: Numbers
    repeated: Numbers
    again: list[list[int]]
    down: Numbers
    start: float


@cached_by_revision
def passes(run: Run) -> Passes | None:
    """Return how long the steps of a run took, None where nothing tells."""
    import numpy as np

    key = next(filter(None, map(run.indicators.get, _DATED)), run.loss_alone) or ""
    series = run.present(key)
    if not series:
        return None
    steps = np.array(series.steps)
    # What is counted back by timers leaves no time for anything else.
    dated = [one for one in clocks(run) if not one.origin.startswith(TIMERS)]
    clock, *_ = *dated, Clock(TIMERS, estimated=True)
    times = np.array(moments(series.times, series.steps, dated))
    gaps = np.diff(times, prepend=np.nan)
    gaps[~(gaps >= 0)] = np.nan
    strides = np.fmax(1.0, np.diff(steps, prepend=0))
    strides[0] = np.fmin(strides[0], np.fmax(1.0, _median(strides[1:])))
    timed = by_timers(run, series.steps[-1])
    own = np.array(timed.at_each(steps)) - timed.at_each(steps - strides)
    usual = _median((own if len(timed) else gaps) / strides)
    own = np.where(np.isnan(own), usual * strides, own)
    if not np.isfinite(own).all():
        return None
    repeated, again, is_first = _repeated(run, steps, times, own)
    down = np.fmax(0.0, gaps - own - repeated) * is_first
    seconds = np.where(np.isnan(gaps), own, gaps - down - repeated)
    aside = np.fmin(seconds, seconds_of(run, occasional_parts(run), steps))
    due = _median((seconds - aside) / strides) * strides
    more = seconds - aside - due
    hung = np.where(more > np.fmax(_LEAST, _LONG * due), more, 0.0)
    stated = np.isfinite(series.times).mean() > 0.5 or not clock.estimated
    begun = filter(None, (one.start for one in run.sources.values()))
    start = max([0.0, *(took - own[0] * (at >= steps[0]) for at, took in begun)])
    spent = (seconds, hung, aside, repeated, again, down, float(start))
    return Passes(key, clock.origin, bool(stated), steps, strides, *spent)


def _median(values: Numbers) -> float:
    import numpy as np

    known = values[np.isfinite(values)]
    return float(median_along(known)) if len(known) else float("nan")


def _repeated(
    run: Run, steps: Any, times: Numbers, own: Numbers
) -> tuple[Numbers, list[list[int]], Any]:
    """Return the seconds before each row in which steps were made that a restart made again, these
    steps, and whether a row is the first of a process that went on.
    """
    import numpy as np

    seconds, again, is_first = np.zeros(len(steps)), [], np.zeros(len(steps), bool)
    gaps, usual = np.nan_to_num(np.diff(times, prepend=np.nan)), _median(own)
    for mark in run.restarts:
        # The log may leave out the step that was resumed from.
        begin = np.searchsorted(steps, mark.step)
        at = max(range(len(steps))[begin : begin + 2], key=gaps.__getitem__, default=0)
        step, last = int(steps[at]), mark.reached or 0
        is_first[at] = at > 0
        if at and last >= step:
            again.append([step, last])
            guess = usual * (last - step + 1)
            most = gaps[at] - own[at] if gaps[at] else guess
            ends = [mark.ended, *(one.ended for one in run.sources.values())]
            spent = np.array(ends, np.float64) - times[at - 1]
            spent = spent[spent <= most].max(initial=0.0)
            seconds[at] = spent or min(most, guess)
    return seconds, again, is_first
