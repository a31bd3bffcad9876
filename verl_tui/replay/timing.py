"""Times at which a recorded run reached its steps."""

from __future__ import annotations

import math
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.records import Dump, MetricRows, Progress, Record, Sample
from verl_tui.runs.clock import Clock, counted_back
from verl_tui.runs.time.step_clocks import TIMERS, bar_clock, clocks
from verl_tui.runs.views.state import last_write
from verl_tui.times import LATEST

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Series

_SECOND = 1.0
"""Seconds per step if nothing else is known."""
_BEYOND = 10
"""Most steps extrapolated beyond the known times; farther ones belong to another count."""
_BURST = 0.1
"""Seconds per step below which files were copied rather than written one by one."""
_GAPS = 200
"""Newest gaps between steps that the usual one is taken from."""
_EARLIEST = 1e8
"""Seconds since the epoch; earlier times are invalid, as in `verl_tui.times.parse_time`."""


def is_valid_time(time: float) -> bool:
    """True if the time stated by a row is valid."""
    return _EARLIEST < time < LATEST


class SourcePass(NamedTuple):
    """The steps of a source between two of its restarts."""

    steps: tuple[int, ...]
    """Steps of its rows and its progress bar, ascending."""
    bars: tuple[tuple[int, float], ...]
    """Steps of the progress bar with the elapsed seconds, both ascending."""


def source_pass(records: Iterable[Record]) -> SourcePass:
    """Return the steps and the progress bar in the records of one source."""
    steps: set[int] = set()
    bars: list[tuple[int, float]] = []
    for record in records:
        if isinstance(record, MetricRows) and record.progress:
            steps.update(record.steps)
        elif isinstance(record, Progress) and record.step is not None:
            steps.add(record.step)
            if record.elapsed is None:
                continue
            step, seconds = bars[-1] if bars else (-math.inf, -math.inf)
            if record.step > step and record.elapsed >= seconds:
                bars.append((record.step, record.elapsed))
    return SourcePass(tuple(sorted(steps)), tuple(bars))


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
        timer = run.indicator("step_time")
        self._taken = _positive(timer) if timer is not None else {}
        self._usual = median(self._taken.values()) if self._taken else self._usual_gap()
        self.reference = Clock("")
        """Times of the steps for sources without progress; filled from the other sources."""
        if run.step is None:
            self._refer(list(records))
        self.pace: str | None = None
        """The basis of the pace in words, None if there are clocks."""
        if not self._clocks:
            self.pace = "a second a step"
            if timer and self._taken:
                self.pace = f"paced by {timer.key}"

    @property
    def estimated(self) -> bool:
        """True if the times of the steps are estimated."""
        return not self._clocks or self._clocks[0].estimated

    def clock(self, found: SourcePass, path: str, end: float, *, last: bool) -> Clock:
        """Return a clock for the steps of a pass.

        Args:
            found: The pass.
            path: Path of its source.
            end: Time at which it ended.
            last: True for the newest pass of the source, the only one that a run's clocks cover.
        """
        if not found.steps:
            return self.reference
        for clock in self._candidates(path, last=last):
            if len(clock) > 1 and _overlap(clock.steps, found.steps):
                return clock
        if len(found.bars) > 1 and not last:
            steps, seconds = zip(*found.bars, strict=True)
            return counted_back("progress bar", steps, seconds, end)
        return counted_back("timers", found.steps, self._elapsed(found.steps), end)

    def _candidates(self, path: str, *, last: bool) -> list[Clock]:
        """Return the clocks that may cover the steps of a source, the best first."""
        clocks = [clock for clock in self._clocks if not clock.estimated]
        if not last:
            return clocks
        source = self._run.sources.get(path)
        if source is not None:
            clocks.append(bar_clock(source))
        return clocks + self._clocks

    def at(self, clock: Clock, step: int) -> float:
        """Return the time of a step by a clock, nan if unknown."""
        if not len(clock):
            return math.nan
        before = clock.steps[0] - step
        if before > 0:
            return clock.times[0] - min(before, _BEYOND) * self._usual
        after = step - clock.steps[-1]
        if after > 0:
            return clock.times[-1] + min(after, _BEYOND) * self._usual
        return clock.at(step)

    def _elapsed(self, steps: Sequence[int]) -> list[float]:
        """Return the seconds since the first step, by timers or the usual time of a step."""
        elapsed = [0.0] if steps else []
        for before, after in pairwise(steps):
            gap = (after - before) * self._taken.get(after, self._usual)
            elapsed.append(elapsed[-1] + gap)
        return elapsed

    def _refer(self, records: Sequence[Record]) -> None:
        """Take the steps from dumps and samples, in a run without any others."""
        files = _of_files([record for record in records if isinstance(record, Dump)])
        self._clocks = [files] if files is not None else []
        steps = {
            record.step
            for record in records
            if isinstance(record, Dump | Sample) and record.step is not None
        }
        known = sorted(steps)
        end = last_write(self._run) or 0.0
        self.reference = files or counted_back("", known, self._elapsed(known), end)

    def _usual_gap(self) -> float:
        for clock in self._clocks:
            known = zip(clock.steps[-_GAPS:], clock.times[-_GAPS:], strict=True)
            gaps = [
                (end - start) / (after - before)
                for (before, start), (after, end) in pairwise(known)
                if after > before
            ]
            if gaps:
                return median(gaps)
        return _SECOND


def _positive(timer: Series) -> dict[int, float]:
    """Return the finite seconds above 0 by their steps."""
    pairs = zip(timer.steps, timer.values, strict=True)
    return {step: seconds for step, seconds in pairs if 0 < seconds < math.inf}


def _overlap(one: Sequence[int], other: Sequence[int]) -> bool:
    return one[0] <= other[-1] and other[0] <= one[-1]


def _of_files(dumps: Sequence[Dump]) -> Clock | None:
    """Return the times at which dumps were written, None if the files were copied."""
    clock = Clock("the dumps' last change")
    known = {
        dump.step: dump.modified
        for dump in dumps
        if dump.modified is not None and not dump.removed
    }
    steps = sorted(known)
    clock.note(steps, [known[step] for step in steps])
    if len(clock) < 2 or len(clock) < len(steps):
        return None
    seconds = clock.times[-1] - clock.times[0]
    count = clock.steps[-1] - clock.steps[0]
    return clock if seconds >= _BURST * count else None
