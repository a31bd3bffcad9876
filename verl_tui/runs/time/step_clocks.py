"""The clocks of a run: when it reached its steps, by every kind of evidence, the best first.

Times in the log come first, then arrivals while we watched. Steps before that are counted back from
the first arrival, by the progress bar or else by the step timers, so that one clock covers the
whole run. For a run that nobody watches the same is counted back from its file's last change.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from verl_tui.runs.cached import cached_by_revision
from verl_tui.runs.clock import Clock
from verl_tui.runs.time.elapsed import BAR, ElapsedTimes, by_timers, with_past

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.runs.run import Run
    from verl_tui.runs.source_state import SourceState

_LAST_CHANGE = "the file's last change"


class _BeforeWatching(NamedTuple):
    """The steps before the first arrival."""

    clock: Clock | None = None
    source: SourceState | None = None
    """The source whose progress bar the clock is made of."""


_counted: WeakKeyDictionary[Run, tuple[object, _BeforeWatching]] = WeakKeyDictionary()
"""The steps before the first arrival, with the key of what they were counted from."""


@cached_by_revision
def clocks(run: Run) -> Sequence[Clock]:
    """Return the clocks of a run; those with fewer than two steps are left out."""
    before = _before_watching(run)
    bars = [
        bar_clock(state) for state in run.sources.values() if state is not before.source
    ]
    known = (run.stated, with_past(run.watched, before.clock), *bars)
    return [clock for clock in known if len(clock) > 1] or _by_timers(run)


def bar_clock(state: SourceState) -> Clock:
    """Return the clock of a source's progress bar, if the bar went on to the end of the file."""
    bar = ElapsedTimes(BAR, state.bar_steps, state.bar_elapsed)
    if state.status.modified is None or state.step is None:
        return Clock(BAR)
    return bar.clock(state.step, state.status.modified, _LAST_CHANGE) or Clock(BAR)


def _before_watching(run: Run) -> _BeforeWatching:
    """Return the steps before the first arrival, counted anew only where their times are others."""
    if not run.watched:
        return _BeforeWatching()
    step = run.watched.steps[0]
    time = run.watched.times[0]
    timer = run.indicator("step_time")
    evidence = [state.bar_steps for state in run.sources.values()]
    evidence += [timer.steps] if timer is not None else []
    key = step, time, tuple(bisect_right(steps, step) for steps in evidence)
    known = _counted.get(run)
    if known is None or known[0] != key:
        known = _counted[run] = key, _counted_back(run, step, time)
    return known[1]


def _counted_back(run: Run, step: int, time: float) -> _BeforeWatching:
    for state in run.sources.values():
        clock = ElapsedTimes(BAR, state.bar_steps, state.bar_elapsed).clock(step, time)
        if clock is not None and len(clock) > 1:
            return _BeforeWatching(clock, state)
    return _BeforeWatching(by_timers(run, step).clock(step, time))


def _by_timers(run: Run) -> list[Clock]:
    """Return the clock of the step timers, for a run without other evidence."""
    changes = [
        state.status.modified
        for state in run.sources.values()
        if state.step is not None and state.status.modified is not None
    ]
    if run.step is None or not changes:
        return []
    clock = by_timers(run, run.step).clock(run.step, max(changes), _LAST_CHANGE)
    if clock is not None and len(clock) > 1:
        return [clock]
    return []
