"""All records of some logs, kept in memory to be replayed in the order of their times."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections import defaultdict
from dataclasses import replace
from itertools import accumulate, chain, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING

from verl_tui.means import clamp
from verl_tui.monitor import Monitor
from verl_tui.records import Dump, MetricRows, Progress, Restart
from verl_tui.replay.recorded_source import (
    RecordedSource,
    RunSpan,
    TimedRecord,
    TimedSource,
)
from verl_tui.replay.timing import Timing
from verl_tui.runs.run import Run
from verl_tui.sources.feed import Feed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from verl_tui.config import Config
    from verl_tui.records import Batch, SourceStatus
    from verl_tui.sources.discovery.finder import Discovery


class RecordedRun:
    """One run of a recording."""

    def __init__(self, name: str, batches: Sequence[Batch]) -> None:
        """Find the time of every record.

        Args:
            name: Name of the run.
            batches: All batches of its sources, in their order.
        """
        self.name = name
        run = Run(name)
        by_source = defaultdict[str, list["Batch"]](list)
        for batch in batches:
            run.apply(batch, 0.0)
            by_source[batch.status.path].append(batch)
        self.sources = [RecordedSource(name, own) for own in by_source.values()]
        timing = Timing(run, chain.from_iterable(batch.records for batch in batches))
        self.pace = timing.pace
        """Basis of the pace if the log has no times, else None."""
        self.estimated = timing.estimated
        """True if the times of the steps are estimated."""
        self.total = run.total_steps
        self._timed = self._place(timing)
        moments = (record.moment for record in chain.from_iterable(self._timed))
        known = list(filter(math.isfinite, moments))
        self.span = RunSpan(min(known), max(known)) if known else None
        """Time span of the run, None without steps."""
        dumps_only = not any(map(_has_steps, self.sources))
        pairs = zip(self.sources, self._timed, strict=True)
        marks = chain.from_iterable(_marked(*pair, dumps=dumps_only) for pair in pairs)
        self.moments, self.steps = _marks(marks)
        """Moments at which the run reached further steps, and these steps."""

    def _place(self, timing: Timing) -> list[list[TimedRecord]]:
        """Return the timed records of each source.

        Sources without progress of their own take the times of their steps from the others.
        """
        placed = {
            i: TimedSource(source, timing).records()
            for i, source in enumerate(self.sources)
            if _has_steps(source)
        }
        if placed:
            marks = (_marked(self.sources[i], timed) for i, timed in placed.items())
            moments, steps = _marks(chain.from_iterable(marks))
            timing.reference.note(steps, moments)
        return [
            placed.get(i) or TimedSource(source, timing).records()
            for i, source in enumerate(self.sources)
        ]

    def set_times(self, span: RunSpan, shift: float) -> None:
        """Set the moments of all records, see `RecordedSource.set_times`."""
        for source, timed in zip(self.sources, self._timed, strict=True):
            source.set_times(timed, span, shift)
        self.moments = array("d", [moment + shift for moment in self.moments])
        self._timed = []

    def reached(self, moment: float) -> int:
        """Return the number of steps reached at a moment."""
        return bisect_right(self.moments, moment)

    def when(self, step: int) -> float | None:
        """Return the moment at which the run first reached a step, None if it never did."""
        for moment, reached in zip(self.moments, self.steps, strict=True):
            if reached >= step:
                return moment
        return None


def _marked(
    source: RecordedSource, timed: Iterable[TimedRecord], *, dumps: bool = False
) -> Iterator[tuple[float, int | None]]:
    """Yield moments with the step reached, None at a restart from the beginning."""
    kind = Dump if dumps else Progress
    for moment, index, row in timed:
        record = source.records[index]
        if isinstance(record, MetricRows) and (record.progress or dumps):
            yield moment, record.steps[row]
        elif isinstance(record, kind) and record.step is not None:
            yield moment, record.step
        elif isinstance(record, Restart) and record.step is None:
            yield moment, None


def _has_steps(source: RecordedSource) -> bool:
    """True if a source shows which steps training has reached."""
    return any(map(_has_step, source.records))


def _has_step(record: object) -> bool:
    """True if a record shows that training has reached a step."""
    if isinstance(record, MetricRows):
        return record.progress
    return isinstance(record, Progress) and record.step is not None


def _marks(
    reached: Iterable[tuple[float, int | None]],
) -> tuple[array[float], array[int]]:
    """Return moments and steps, without steps that were reached before."""
    moments = array("d")
    steps = array("q")
    top: int | None = None
    dated = [mark for mark in reached if math.isfinite(mark[0])]
    for moment, step in sorted(dated, key=itemgetter(0)):
        if step is None:
            top = None
        elif top is None or step > top:
            top = step
            if moments and moments[-1] == moment:
                steps[-1] = step
            else:
                moments.append(moment)
                steps.append(step)
    return moments, steps


class Recording:
    """The runs of some paths. Keeps all records in memory, beside those that the app keeps."""

    def __init__(self, discovery: Discovery, batches: Iterable[Batch]) -> None:
        """Arrange the records in time.

        Args:
            discovery: The sources found.
            batches: All batches of the sources.
        """
        self.discovery = replace(discovery, runs=())
        by_run: dict[str, list[Batch]] = defaultdict(list)
        for batch in batches:
            by_run[batch.run].append(batch)
        self.runs = {name: RecordedRun(name, own) for name, own in by_run.items()}
        """Runs by name, in the order found."""
        going = [recorded for recorded in self.runs.values() if len(recorded.moments)]
        self.together = _at_once(going)
        """True if runs are replayed at their true times, else all start at once."""
        spans = [recorded.span for recorded in going if recorded.span is not None]
        begin, end = self._set_times(spans)
        firsts = [recorded.moments[0] for recorded in going]
        self.start = min(firsts, default=begin)
        lasts = [source.moments[-1] for source in self._sources() if source.moments]
        self.end = max(lasts, default=end)

    def _set_times(self, spans: Sequence[RunSpan]) -> RunSpan:
        """Set the moments of all runs; return the latest beginning and the latest end."""
        begin = max((span.begin for span in spans), default=0.0)
        end = max((span.end for span in spans), default=0.0)
        for recorded in self.runs.values():
            span = recorded.span or RunSpan(begin, end)
            recorded.set_times(span, 0.0 if self.together else begin - span.begin)
        return RunSpan(begin, end)

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
        feed.scan()
        batches: list[Batch] = []
        known: dict[tuple[str, str], SourceStatus] = {}
        done = size = 0
        for batch in chain(feed.read(), feed.finish()):
            batches.append(batch)
            status = batch.status
            source = (batch.run, status.path)
            before = known.get(source)
            known[source] = status
            done += status.bytes_read
            size += status.size
            if before is not None:
                done -= before.bytes_read
                size -= before.size
            if progress is not None:
                progress(done, size)
        return cls(feed.discovery, batches)

    @property
    def empty(self) -> bool:
        """True if no run has a step."""
        return not any(len(recorded.moments) for recorded in self.runs.values())

    @property
    def last_step(self) -> int:
        """The highest step that any run has reached."""
        highest = (max(recorded.steps, default=0) for recorded in self.runs.values())
        return max(highest, default=0)

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
        moments: Sequence[float]
        if recorded is not None and len(recorded.moments):
            moments = recorded.moments
        else:
            moments = self._all_moments()
        at = bisect_right(moments, moment) - 1 + count
        if 0 <= at < len(moments):
            return moments[at]
        return None

    def share(self, moment: float) -> float:
        """Return the share of the recording before a moment, 0..1."""
        if self.end > self.start:
            share = (moment - self.start) / (self.end - self.start)
            return clamp(share, 0.0, 1.0)
        return 1.0

    def at_share(self, share: float) -> float:
        """Return the moment at a share of the recording."""
        return self.start + clamp(share, 0.0, 1.0) * (self.end - self.start)

    # -- replaying ---------------------------------------------------------------------------------

    def rewind(self) -> None:
        """Begin again with the first records."""
        for source in self._sources():
            source.rewind()

    def due(self, until: float) -> bool:
        """True if records up to a moment have not been taken."""
        return any(source.due(until) for source in self._sources())

    def take(self, until: float) -> Iterator[Batch]:
        """Yield the records up to a moment that have not been taken."""
        for source in self._sources():
            while (batch := source.take(until)) is not None:
                yield batch

    def monitor(self, config: Config, moment: float) -> Monitor:
        """Return a monitor of the records up to a moment, judged at that moment."""
        monitor = Monitor(config)
        self.rewind()
        monitor.apply(replace(self.discovery, read=True), moment)
        for batch in self.take(moment):
            monitor.apply(batch, moment)
        monitor.judge(moment)
        return monitor

    def _sources(self) -> Iterator[RecordedSource]:
        for recorded in self.runs.values():
            yield from recorded.sources

    def _all_moments(self) -> Sequence[float]:
        moments: set[float] = set()
        for recorded in self.runs.values():
            moments.update(recorded.moments)
        return sorted(moments)


def _at_once(runs: Sequence[RecordedRun]) -> bool:
    """True if the runs overlapped in time, as far as their logs have times."""
    if len(runs) < 2:
        return True
    if any(recorded.pace is not None for recorded in runs):
        return False
    spans = sorted(recorded.span for recorded in runs if recorded.span is not None)
    ends = accumulate((span.end for span in spans), max)
    return all(
        after.begin <= end
        for (_, after), end in zip(pairwise(spans), ends, strict=False)
    )
