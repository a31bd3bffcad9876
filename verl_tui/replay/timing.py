"""Times at which a recorded run reached its steps."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from verl_tui.records import Dump, Sample
from verl_tui.runs.clock import Clock, counted_back
from verl_tui.runs.time.forecast import pace
from verl_tui.runs.time.step_clocks import TIMERS, clocks
from verl_tui.runs.views.state import last_write

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from verl_tui.records import Record
    from verl_tui.runs.run import Run
    from verl_tui.runs.time.forecast import Pace

_LONGEST = 3e9
"""Seconds of a step from which on its times are beyond all clocks: a century."""
_BEYOND = 10
"""Most steps extrapolated beyond the known times; farther ones belong to another count."""
_BURST = 0.1
"""Seconds per step below which files were copied rather than written one by one."""


class Timing:
    """The times of a run's steps: from the log, its progress bar or timers, else a second each."""

    def __init__(self, run: Run, records: Iterable[Record]) -> None:
        """Find the clock of a run, of which these are all records."""
        usual = pace(run)
        self._usual = min(usual.seconds, _LONGEST) if usual else 1.0
        clock = next(iter(clocks(run)), None)
        steps: Sequence[int] = (run.step or 0,)
        if run.step is None:
            files = _files(records)
            clock, steps = _of_files(files), sorted({one.step or 0 for one in files})
        self.pace: str | None = None
        """The basis of the pace in words, None if there is a clock."""
        if clock is None or clock.origin.startswith(TIMERS):
            self.pace = _words(usual)
        self._clock = clock or self._counted(steps, last_write(run))
        self._most = math.inf if self.pace else _BEYOND

    def _counted(self, steps: Sequence[int], end: float | None) -> Clock:
        elapsed = [step * self._usual for step in steps]
        return counted_back("", steps, elapsed, end or 0.0)

    @property
    def estimated(self) -> bool:
        """True if the times of the steps are estimated."""
        return self._clock.estimated

    def at(self, steps: Any) -> Any:
        """Return the times of an array of steps, nan if unknown."""
        import numpy as np

        known, times = self._clock.steps, self._clock.times
        if not len(known):
            return np.full(len(steps), math.nan)
        after = np.clip(steps - known[-1], 0, self._most)
        before = np.clip(known[0] - steps, 0, self._most)
        return np.interp(steps, known, times) + (after - before) * self._usual


def _words(usual: Pace | None) -> str:
    return f"paced by {usual.origin}" if usual is not None else "a second a step"


def _files(records: Iterable[Record]) -> list[Dump | Sample]:
    return [
        one
        for one in records
        if isinstance(one, Dump | Sample) and one.step is not None
    ]


def _of_files(files: Iterable[Dump | Sample]) -> Clock | None:
    """Return the times at which dumps were written, None if the files were copied."""
    clock = Clock("the dumps' last change")
    known = {
        dump.step: dump.modified
        for dump in files
        if isinstance(dump, Dump) and dump.modified is not None and not dump.removed
    }
    steps = sorted(known)
    clock.note(steps, [known[step] for step in steps])
    if len(clock) < 2 or len(clock) < len(steps):
        return None
    seconds = clock.times[-1] - clock.times[0]
    return clock if seconds >= _BURST * (clock.steps[-1] - clock.steps[0]) else None
