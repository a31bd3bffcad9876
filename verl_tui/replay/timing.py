"""Find out when a recorded run reached each step."""

from __future__ import annotations

import math
from itertools import accumulate, pairwise
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.records import Dump, MetricRows, Progress, Record, Sample
from verl_tui.runs.clock import Clock, counted_back
from verl_tui.runs.time.elapsed import TIMERS
from verl_tui.runs.time.step_clocks import bar_clock, clocks
from verl_tui.runs.views.state import last_write
from verl_tui.times import LATEST

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Series

_SECOND = 1.0
"""Seconds a step where nothing tells."""
_BEYOND = 10
"""Steps before the first and behind the last known moment that are extrapolated; farther ones
belong to another count.
"""
_BURST = 0.1
"""Seconds a step below which files did not come one by one: they were copied."""
_GAPS = 200
"""Gaps between steps that make the usual one."""
_EARLIEST = 1e8
"""Seconds since the epoch before which a stated time is none, as in `verl_tui.times.parse_time`."""


def stated(time: float) -> bool:
    """Return whether a time that a row states can be one."""
    return _EARLIEST < time < LATEST


class SourcePass(NamedTuple):
    """The steps of a source between two of its restarts."""

    steps: tuple[int, ...]
    """Of its rows and its progress bar, ascending."""
    bars: tuple[tuple[int, float], ...]
    """Steps that the progress bar has shown, with the seconds it says had passed; ascending in
    both.
    """


def source_pass(records: Iterable[Record]) -> SourcePass:
    """Return the steps and the progress bar in the records of one source."""
    steps: set[int] = set()
    bars: list[tuple[int, float]] = []
    for record in records:
        if isinstance(record, MetricRows) and record.progress:
            steps.update(record.steps)
        elif isinstance(record, Progress) and record.step is not None:
            steps.add(record.step)
            step, seconds = bars[-1] if bars else (-math.inf, -math.inf)
            if record.step > step and record.elapsed is not None and record.elapsed >= seconds:
                bars.append((record.step, record.elapsed))
    return SourcePass(tuple(sorted(steps)), tuple(bars))


class Timing:
    """Times at which a run reached its steps: from the log, its progress bar or timers."""

    def __init__(self, run: Run, records: Iterable[Record]) -> None:
        """Ask a run.

        Args:
            run: The run with everything there is.
            records: All that its sources have said.
        """
        self._run = run
        # Timers pace what they can below, over all passes; a clock made of them tells of the newest
        # pass only.
        self._clocks = [clock for clock in clocks(run) if not clock.origin.startswith(TIMERS)]
        timer = run.indicator("step_time")
        self._taken = _positive(timer) if timer is not None else {}
        self._usual = median(self._taken.values()) if self._taken else self._usual_gap()
        self.reference = Clock("")
        """When the run reached its steps, for sources that only refer to them; whoever lays out the
        others sets it.
        """
        if run.step is None:
            self._refer(list(records))
        self.pace: str | None = None
        """The basis of the pace in words, None if there are clocks."""
        if not self._clocks:
            self.pace = f"paced by {timer.key}" if timer and self._taken else "a second a step"

    @property
    def estimated(self) -> bool:
        """Whether the times of the steps are estimated."""
        return not self._clocks or self._clocks[0].estimated

    def clock(self, told: SourcePass, path: str, end: float, *, last: bool) -> Clock:
        """Return when the steps of a pass were reached.

        Args:
            told: The pass.
            path: Its source.
            end: When it was over.
            last: Whether it is the source's newest pass: a run's clocks know no other.
        """
        if not told.steps:
            return self.reference
        for clock in self._candidates(path, last=last):
            if len(clock) > 1 and _overlap(clock.steps, told.steps):
                return clock
        if len(told.bars) > 1 and not last:
            steps, seconds = zip(*told.bars, strict=True)
            return counted_back("progress bar", steps, seconds, end)
        return counted_back("timers", told.steps, self._elapsed(told.steps), end)

    def _candidates(self, path: str, *, last: bool) -> list[Clock]:
        """Return the clocks that may know the steps of a source, the best first."""
        clocks = [clock for clock in self._clocks if not clock.estimated]
        if last:
            source = self._run.sources.get(path)
            clocks += [bar_clock(source)] if source is not None else []
            clocks += self._clocks
        return clocks

    def at(self, clock: Clock, step: int) -> float:
        """Return when a step was reached by a clock, nan where that cannot be told."""
        if not len(clock):
            return math.nan
        if step < clock.steps[0]:
            return clock.times[0] - min(clock.steps[0] - step, _BEYOND) * self._usual
        if step > clock.steps[-1]:
            return clock.times[-1] + min(step - clock.steps[-1], _BEYOND) * self._usual
        return clock.at(step)

    def _elapsed(self, steps: Sequence[int]) -> list[float]:
        """Return the seconds since the first of some steps by the timers, a step without one taking
        the usual time.
        """
        gaps = (
            (after - before) * self._taken.get(after, self._usual)
            for before, after in pairwise(steps)
        )
        return list(accumulate(gaps, initial=0.0))[: len(steps)]

    def _refer(self, records: Sequence[Record]) -> None:
        """Take the steps from dumps and samples: nothing else tells of any."""
        files = _of_files([record for record in records if isinstance(record, Dump)])
        self._clocks = [files] if files is not None else []
        steps = {
            record.step
            for record in records
            if isinstance(record, Dump | Sample) and record.step is not None
        }
        known = sorted(steps)
        self.reference = files or counted_back(
            "", known, self._elapsed(known), last_write(self._run) or 0.0
        )

    def _usual_gap(self) -> float:
        for clock in self._clocks:
            known = list(zip(clock.steps[-_GAPS:], clock.times[-_GAPS:], strict=True))
            if gaps := [(b[1] - a[1]) / (b[0] - a[0]) for a, b in pairwise(known) if b[0] > a[0]]:
                return median(gaps)
        return _SECOND


def _positive(timer: Series) -> dict[int, float]:
    """Return the finite seconds above 0 by their steps."""
    pairs = zip(timer.steps, timer.values, strict=True)
    return {step: seconds for step, seconds in pairs if 0 < seconds < math.inf}


def _overlap(known: Sequence[int], asked: Sequence[int]) -> bool:
    return known[0] <= asked[-1] and asked[0] <= known[-1]


def _of_files(dumps: Sequence[Dump]) -> Clock | None:
    """Return when dumps were written, None if their files do not tell: all were copied in one
    go.
    """
    clock = Clock("the dumps' last change")
    known = {
        dump.step: dump.modified for dump in dumps if dump.modified is not None and not dump.removed
    }
    steps = sorted(known)
    clock.note(steps, [known[step] or 0.0 for step in steps])
    if len(clock) < 2 or len(clock) < len(steps):
        return None
    return (
        clock
        if clock.times[-1] - clock.times[0] >= _BURST * (clock.steps[-1] - clock.steps[0])
        else None
    )
