"""How long each step of a run took, and what restarts cost: by times in the log, else by its
clocks, else by its timers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from verl_tui.means import median_along
from verl_tui.runs.cached import cached_by_revision
from verl_tui.runs.clock import Clock, moments
from verl_tui.runs.time.step_clocks import TIMERS, by_timers, clocks
from verl_tui.runs.time.step_timing import occasional_parts, seconds_of

if TYPE_CHECKING:
    from verl_tui.runs.run import Run
    from verl_tui.runs.time.step_timing import Numbers

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
    key = next(filter(None, map(run.indicators.get, _DATED)), run.loss_alone) or ""
    series = run.present(key)
    if series is None:
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
    known = values[np.isfinite(values)]
    return float(median_along(known)) if len(known) else float("nan")


def _repeated(
    run: Run, steps: Any, times: Numbers, own: Numbers
) -> tuple[Numbers, list[list[int]], Any]:
    """Return the seconds before each row in which steps were made that a restart made again, these
    steps, and whether a row is the first of a process that went on.
    """
    seconds, again, is_first = np.zeros(len(steps)), [], np.zeros(len(steps), bool)
    gaps, usual = np.nan_to_num(np.diff(times, prepend=np.nan)), _median(own)
    for mark in run.restarts:
        # The log may leave out the step that was resumed from.
        near = np.flatnonzero((steps >= mark.step) & (steps <= mark.step + 1))
        at = max(near.tolist(), key=gaps.__getitem__, default=0)
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
