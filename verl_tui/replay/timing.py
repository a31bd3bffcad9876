"""Times at which a recorded run reached its steps."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from verl_tui.records import Dump, Record, Sample
from verl_tui.runs.clock import Clock, ElapsedTimes, counted_back
from verl_tui.runs.time.forecast import pace
from verl_tui.runs.time.step_clocks import TIMERS, by_timers, clocks
from verl_tui.runs.views.state import last_write

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from verl_tui.runs.run import Run

_LONGEST = 3e9
"""Seconds of a step from which on its times are beyond all clocks: a century."""
_SECOND = 1.0
"""Seconds per step if nothing else is known."""
_BEYOND = 10
"""Most steps extrapolated beyond the known times; farther ones belong to another count."""
_BURST = 0.1
"""Seconds per step below which files were copied rather than written one by one."""


class Timing:
    """Times at which a run reached its steps: from the log, its progress bar or timers."""

    def __init__(self, run: Run, records: Iterable[Record]) -> None:
        """Collect the clocks of a run.

        Args:
            run: The whole run.
            records: All records of its sources.
        """
        self._run = run
        # Timers set the pace below for all passes; a clock made of them covers the newest only.
        self._clocks = [
            clock for clock in clocks(run) if not clock.origin.startswith(TIMERS)
        ]
        usual = pace(run)
        self._usual = _SECOND if usual is None else min(usual.seconds, _LONGEST)
        self.pace: str | None = None
        """The basis of the pace in words, None if there are clocks."""
        if not self._clocks:
            paced = f"paced by {usual.origin}" if usual is not None else ""
            self.pace = paced or "a second a step"
        self.reference = Clock("")
        """Times of the steps for sources without progress; filled from the other sources."""
        if run.step is None:
            self._refer(records)

    @property
    def estimated(self) -> bool:
        """True if the times of the steps are estimated."""
        return not self._clocks or self._clocks[0].estimated

    def clock(
        self, steps: Sequence[int], bar: ElapsedTimes, end: float, *, last: bool
    ) -> Clock:
        """Return a clock for the steps of a source between two of its restarts.

        Args:
            steps: Ascending.
            bar: What the progress bar showed with them.
            end: Time at which the last of them was over.
            last: True behind the last restart: estimates of a run cover no other steps.
        """
        if not steps:
            return self.reference
        known = [clock for clock in self._clocks if not clock.estimated]
        known.append(bar.clock(steps[-1], end, "progress bar"))
        if last:
            known += self._clocks
        for clock in known:
            if len(clock) > 1 and _overlap(clock.steps, steps):
                return clock
        return counted_back(TIMERS, steps, self._elapsed(steps), end)

    def at(self, clock: Clock, steps: Sequence[float]) -> list[float]:
        """Return the times of steps by a clock, nan if unknown."""
        return _along(clock.steps, clock.times, steps, self._usual, _BEYOND)

    def _elapsed(self, steps: Sequence[int]) -> Sequence[float]:
        """Return the seconds since some beginning, by timers or the usual time of a step."""
        timers = by_timers(self._run, self._run.step or 0)
        known = timers if timers.steps else ElapsedTimes([0], [0.0])
        return _along(known.steps, known.elapsed, steps, self._usual, math.inf)

    def _refer(self, records: Iterable[Record]) -> None:
        """Take the steps from dumps and samples, in a run without any others."""
        known = [
            record
            for record in records
            if isinstance(record, Dump | Sample) and record.step is not None
        ]
        files = _of_files(known)
        self._clocks = [files] if files is not None else []
        steps = sorted({record.step or 0 for record in known})
        end = last_write(self._run) or 0.0
        self.reference = files or counted_back("", steps, self._elapsed(steps), end)


def _along(
    known: Sequence[int],
    values: Sequence[float],
    steps: Sequence[float],
    usual: float,
    most: float,
) -> list[float]:
    """Return values at steps between those known; beyond them each step adds the usual.

    Args:
        known: Steps, ascending.
        values: The value at each of them.
        steps: The steps asked for.
        usual: Added by each step beyond those known.
        most: Most steps beyond those known that count.
    """
    import numpy as np

    if not len(known):
        return [math.nan] * len(steps)
    asked = np.array(steps, np.float64)
    after = np.clip(asked - known[-1], 0, most)
    before = np.clip(known[0] - asked, 0, most)
    found = np.interp(asked, known, values) + (after - before) * usual
    return [*map(float, found)]


def _overlap(one: Sequence[int], other: Sequence[int]) -> bool:
    return one[0] <= other[-1] and other[0] <= one[-1]


def _of_files(records: Iterable[Record]) -> Clock | None:
    """Return the times at which dumps were written, None if the files were copied."""
    clock = Clock("the dumps' last change")
    known = {
        dump.step: dump.modified
        for dump in records
        if isinstance(dump, Dump) and dump.modified is not None and not dump.removed
    }
    steps = sorted(known)
    clock.note(steps, [known[step] for step in steps])
    if len(clock) < 2 or len(clock) < len(steps):
        return None
    seconds = clock.times[-1] - clock.times[0]
    count = clock.steps[-1] - clock.steps[0]
    return clock if seconds >= _BURST * count else None
