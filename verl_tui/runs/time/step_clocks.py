"""When a run reached its steps, of everything that tells it, the best evidence first."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from verl_tui.runs.time.clock import Clock
from verl_tui.runs.time.elapsed import BAR, Lapse, by_timers, joined

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.runs.run import Run
    from verl_tui.runs.source_state import SourceState

_WRITTEN = "the file's last change"


class Moments:
    """Moments that were noted, and what else a run tells of its steps.

    Times in the log come first, then what arrived while we watched. What lay there before that is
    counted back from the first arrival, by the progress bar or else by the step timers, so that one
    clock covers the whole run. Of a run that nobody watches the same is counted back from its
    file's last change.
    """

    def __init__(self) -> None:
        self.stated, self.watched = Clock("times in the log"), Clock("arrival while we watched")
        self._known: tuple[int, list[Clock]] = (-1, [])
        self._past: tuple[object, Clock | None, SourceState | None] = (None, None, None)
        """What was counted back from the first arrival, with what it was made of."""

    def clocks(self, run: Run) -> Sequence[Clock]:
        """Return what tells when steps were reached; clocks that tell nothing are left out."""
        if self._known[0] != run.revision:
            self._known = (run.revision, self._clocks(run))
        return self._known[1]

    def _clocks(self, run: Run) -> list[Clock]:
        past, counted = self._before(run)
        bars = [state.bar_clock() for state in run.sources.values() if state is not counted]
        found = [
            clock for clock in (self.stated, joined(self.watched, past), *bars) if len(clock) > 1
        ]
        return found or [clock for clock in (_by_timers(run),) if clock is not None]

    def _before(self, run: Run) -> tuple[Clock | None, SourceState | None]:
        """Return what lay there before anybody watched, and the source whose bar tells it."""
        if not self.watched:
            return None, None
        step, time = self.watched.steps[0], self.watched.times[0]
        timer = run.indicator("step_time")
        told = [
            *(state.bar_steps for state in run.sources.values()),
            timer.steps if timer is not None else (),
        ]
        made_of = step, time, tuple(bisect_right(steps, step) for steps in told)
        if made_of != self._past[0]:
            self._past = made_of, *_counted_back(run, step, time)
        return self._past[1:]


def _counted_back(run: Run, step: int, time: float) -> tuple[Clock | None, SourceState | None]:
    for state in run.sources.values():
        clock = Lapse(BAR, state.bar_steps, state.bar_elapsed).clock(step, time)
        if clock is not None and len(clock) > 1:
            return clock, state
    return by_timers(run, step).clock(step, time), None


def _by_timers(run: Run) -> Clock | None:
    """Return what the step timers tell where nothing else does."""
    states = [state for state in run.sources.values() if state.step is not None]
    written = max(
        (state.status.modified for state in states if state.status.modified is not None),
        default=None,
    )
    if run.step is None or written is None:
        return None
    clock = by_timers(run, run.step).clock(run.step, written, _WRITTEN)
    return clock if clock is not None and len(clock) > 1 else None
