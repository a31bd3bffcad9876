"""All records of some logs, kept in memory to be replayed in the order of their times."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from dataclasses import replace
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from verl_tui.means import clamp
from verl_tui.replay.recorded_source import RecordedSource
from verl_tui.runs.clock import Clock
from verl_tui.runs.run import Run
from verl_tui.runs.time.forecast import pace
from verl_tui.runs.time.step_clocks import TIMERS, clocks
from verl_tui.sources.feed import Feed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from verl_tui.records import Batch, SourceStatus
    from verl_tui.sources.discovery.finder import Discovery

_LONGEST = 3e9
"""Seconds of a step from which on its times are beyond all clocks: a century."""
_BEYOND = 10
"""Most steps extrapolated beyond the known times; farther ones belong to another count."""


class RecordedRun:
    """One run of a recording: when it reached its steps, and its sources.

    Args:
        name: Name of the run.
        batches: All batches of its sources, in their order.
    """

    def __init__(self, name: str, batches: Sequence[Batch]) -> None:
        run = Run(name)
        by_source: dict[str, list[Batch]] = defaultdict(list)
        for batch in batches:
            run.apply(batch, 0.0)
            by_source[batch.status.path].append(batch)
        usual = pace(run)
        self._usual = min(usual.seconds, _LONGEST) if usual else 1.0
        self._clock = next(iter(clocks(run)), None) or self._paced(run, batches)
        self.estimated = self._clock.estimated
        """True if the times of the steps are estimated."""
        self.pace: str | None = None
        """Basis of the pace if the log has no times, else None."""
        if not self._clock.origin or self._clock.origin.startswith(TIMERS):
            self.pace = f"paced by {usual.origin}" if usual else "a second a step"
        self.sources = [
            RecordedSource(name, own, self._at) for own in by_source.values()
        ]
        marks = _marks(self.sources, weak=False) or _marks(self.sources, weak=True)
        self.moments = list(marks)
        """Moments at which the run reached further steps."""
        self.steps = list(marks.values())
        """These steps."""
        dated = np.concatenate([[], *map(attrgetter("moments"), self.sources)])
        dated = dated[np.isfinite(dated)]
        self.span = (dated.min(), dated.max()) if len(dated) else None
        """First and last moment of the run, None without steps."""

    def _paced(self, run: Run, batches: Iterable[Batch]) -> Clock:
        """Return the times of steps that took as long as usual, counted back from the last change
        of a file.
        """
        records = chain.from_iterable(batch.records for batch in batches)
        steps = (getattr(one, "step", None) or 0 for one in records)
        last = run.step or max(steps, default=0)
        end = run.modified or 0.0
        times = (end - last * self._usual, end)
        return Clock("", (0, last), times, estimated=True)

    def _at(self, steps: Any) -> Any:
        """Return the times of an array of steps, nan if unknown."""
        known = self._clock.steps
        most = math.inf if self.pace else _BEYOND
        beyond = np.clip(steps - known[-1], 0, most)
        beyond -= np.clip(known[0] - steps, 0, most)
        return np.interp(steps, known, self._clock.times) + beyond * self._usual

    def set_times(self, span: tuple[float, float], shift: float) -> None:
        """Set the moments of all records, see `RecordedSource.set_times`."""
        for source in self.sources:
            source.set_times(span, shift)
        self.moments = [moment + shift for moment in self.moments]

    def when(self, step: int) -> float | None:
        """Return the moment at which the run first reached a step, None if it never did."""
        marks = zip(self.moments, self.steps, strict=True)
        return next((moment for moment, reached in marks if reached >= step), None)


def _marks(sources: Iterable[RecordedSource], *, weak: bool) -> dict[float, int]:
    """Return moments at which further steps were reached, with these steps; after a restart they
    are reached again.
    """
    marks = chain.from_iterable(source.marks(weak=weak) for source in sources)
    found: dict[float, int] = {}
    top = -math.inf
    for moment, step in sorted(marks, key=lambda mark: mark[0]):
        if step is None:
            top = -math.inf
        elif step > top and math.isfinite(moment):
            top = found[moment] = step
    return found


class Recording:
    """The runs of some paths. Keeps all records in memory, beside those that the app keeps.

    Args:
        discovery: The sources found.
        batches: All batches of the sources.
    """

    def __init__(self, discovery: Discovery, batches: Iterable[Batch]) -> None:
        self.discovery = replace(discovery, runs=())
        by_run: dict[str, list[Batch]] = defaultdict(list)
        for batch in batches:
            by_run[batch.run].append(batch)
        self.runs = {name: RecordedRun(name, own) for name, own in by_run.items()}
        """Runs by name, in the order found."""
        going = [*filter(attrgetter("moments"), self.runs.values())]
        self.together = _at_once(going)
        """True if runs are replayed at their true times, else all start at once."""
        begin, end = self._set_times(going)
        self._sources = [
            *chain.from_iterable(map(attrgetter("sources"), self.runs.values()))
        ]
        self.start = min((recorded.moments[0] for recorded in going), default=begin)
        lasts = (one.moments[-1] for one in self._sources if len(one.moments))
        self.end = max(lasts, default=end)

    def _set_times(self, going: Sequence[RecordedRun]) -> tuple[float, float]:
        """Set the moments of all records; return the latest beginning and end of a run."""
        spans = [*filter(None, map(attrgetter("span"), going))]
        begin, end = map(max, zip(*spans, strict=True)) if spans else (0.0, 0.0)
        for recorded in self.runs.values():
            span = recorded.span or (begin, end)
            recorded.set_times(span, 0.0 if self.together else begin - span[0])
        return begin, end

    @classmethod
    def read(
        cls, specs: Sequence[str], progress: Callable[[int, int], None] | None = None
    ) -> Recording:
        """Read all sources of some paths once.

        Args:
            specs: Paths, directories and globs.
            progress: Called after each batch with the bytes read and the bytes in all.
        """
        feed = Feed(specs)
        feed.settle()
        found = feed.scan()
        batches: list[Batch] = []
        known: dict[tuple[str, str], SourceStatus] = {}
        for batch in chain(feed.read(), feed.finish()):
            batches.append(batch)
            known[batch.run, batch.status.path] = batch.status
            if progress is not None:
                read = sum(status.bytes_read for status in known.values())
                progress(read, sum(status.size for status in known.values()))
        return cls(found, batches)

    @property
    def empty(self) -> bool:
        """True if no run has a step."""
        return not any(recorded.moments for recorded in self.runs.values())

    @property
    def last_step(self) -> int:
        """The highest step that any run has reached."""
        return max((max(one.steps, default=0) for one in self.runs.values()), default=0)

    def when(self, step: int) -> float | None:
        """Return the moment at which the first run reached a step, None if none did."""
        moments = [recorded.when(step) for recorded in self.runs.values()]
        return min((when for when in moments if when is not None), default=None)

    def next_step(self, moment: float, run: str | None, count: int) -> float | None:
        """Return the moment `count` steps after a moment, None if the run has no such step.

        Args:
            moment: The moment to count from.
            run: Name of the run whose steps count; all runs if that one has none.
            count: Negative to go back.
        """
        recorded = self.runs.get(run or "")
        chosen = [recorded] if recorded and recorded.moments else self.runs.values()
        moments = sorted({time for one in chosen for time in one.moments})
        at = bisect_right(moments, moment) - 1 + count
        return moments[at] if 0 <= at < len(moments) else None

    def share(self, moment: float) -> float:
        """Return the share of the recording before a moment, 0..1."""
        length = self.end - self.start
        return clamp((moment - self.start) / length, 0.0, 1.0) if length > 0 else 1.0

    def at_share(self, share: float) -> float:
        """Return the moment at a share of the recording."""
        return self.start + clamp(share, 0.0, 1.0) * (self.end - self.start)

    # -- replaying ---------------------------------------------------------------------------------

    def rewind(self) -> None:
        """Begin again with the first records."""
        for source in self._sources:
            source.rewind()

    def due(self, until: float) -> bool:
        """True if records up to a moment have not been taken."""
        return any(source.due(until) for source in self._sources)

    def take(self, until: float) -> Iterator[Batch]:
        """Yield the records up to a moment that have not been taken."""
        for source in self._sources:
            while (batch := source.take(until)) is not None:
                yield batch


def _at_once(runs: Sequence[RecordedRun]) -> bool:
    """True if the runs overlapped in time, as far as their logs have times."""
    if len(runs) > 1 and any(recorded.pace is not None for recorded in runs):
        return False
    latest = math.inf
    for begin, end in sorted(one.span for one in runs if one.span is not None):
        if begin > latest:
            return False
        latest = end if latest == math.inf else max(latest, end)
    return True
