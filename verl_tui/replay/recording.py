"""All records of some logs, kept in memory to be replayed in the order of their times."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from dataclasses import replace
from itertools import accumulate, chain, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING

from verl_tui.means import clamp
from verl_tui.replay.recorded_source import RecordedSource, RunSpan
from verl_tui.replay.timing import Timing
from verl_tui.runs.run import Run
from verl_tui.sources.feed import Feed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

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
        run = Run(name)
        by_source = defaultdict[str, list["Batch"]](list)
        for batch in batches:
            run.apply(batch, 0.0)
            by_source[batch.status.path].append(batch)
        self.sources = [RecordedSource(name, own) for own in by_source.values()]
        timing = Timing(run, (record for batch in batches for record in batch.records))
        self.pace = timing.pace
        """Basis of the pace if the log has no times, else None."""
        self.estimated = timing.estimated
        """True if the times of the steps are estimated."""
        for source in self.sources:
            source.find_times(timing)
        marks = _marks(self.sources, dumps=False) or _marks(self.sources, dumps=True)
        self.moments = [moment for moment, _ in marks]
        """Moments at which the run reached further steps."""
        self.steps = [step for _, step in marks]
        """These steps."""
        self.span = _span(self.sources)
        """Time span of the run, None without steps."""

    def set_times(self, span: RunSpan, shift: float) -> None:
        """Set the moments of all records, see `RecordedSource.set_times`."""
        for source in self.sources:
            source.set_times(span, shift)
        self.moments = [moment + shift for moment in self.moments]

    def when(self, step: int) -> float | None:
        """Return the moment at which the run first reached a step, None if it never did."""
        marks = zip(self.moments, self.steps, strict=True)
        return next((moment for moment, reached in marks if reached >= step), None)


def _span(sources: Iterable[RecordedSource]) -> RunSpan | None:
    known = [*filter(math.isfinite, chain(*(one.moments for one in sources)))]
    return RunSpan(min(known), max(known)) if known else None


def _marks(
    sources: Iterable[RecordedSource], *, dumps: bool
) -> list[tuple[float, int]]:
    """Return moments at which further steps were reached, with these steps."""
    marks = chain.from_iterable(source.marks(dumps=dumps) for source in sources)
    known = [mark for mark in marks if math.isfinite(mark[0])]
    found: list[tuple[float, int]] = []
    top = -math.inf
    for moment, step in sorted(known, key=itemgetter(0)):
        if step is None:
            top = -math.inf
        elif step > top:
            top = step
            if found and found[-1][0] == moment:
                found.pop()
            found.append((moment, step))
    return found


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
        going = [recorded for recorded in self.runs.values() if recorded.moments]
        self.together = _at_once(going)
        """True if runs are replayed at their true times, else all start at once."""
        spans = [recorded.span for recorded in going if recorded.span is not None]
        begin, end = self._set_times(spans)
        firsts = [recorded.moments[0] for recorded in going]
        self.start = min(firsts, default=begin)
        lasts = [
            source.moments[-1] for source in self._sources() if len(source.moments)
        ]
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
        for batch in chain(feed.read(), feed.finish()):
            batches.append(batch)
            known[batch.run, batch.status.path] = batch.status
            if progress is not None:
                progress(
                    sum(status.bytes_read for status in known.values()),
                    sum(status.size for status in known.values()),
                )
        return cls(feed.discovery, batches)

    @property
    def empty(self) -> bool:
        """True if no run has a step."""
        return not any(recorded.moments for recorded in self.runs.values())

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
        chosen = [recorded] if recorded and recorded.moments else self.runs.values()
        moments = sorted({time for one in chosen for time in one.moments})
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

    def _sources(self) -> Iterator[RecordedSource]:
        for recorded in self.runs.values():
            yield from recorded.sources


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
