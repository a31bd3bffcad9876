"""Keep all records of some logs, to replay them in the order of their times."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections import defaultdict
from dataclasses import replace
from itertools import chain, pairwise
from typing import TYPE_CHECKING

from verl_tui.monitor import Monitor
from verl_tui.records import Dump, MetricRows, Progress, Restart
from verl_tui.replay.timing import Timing
from verl_tui.replay.track import Layout, RunSpan, TimedRecord, Track
from verl_tui.runs.run import Run
from verl_tui.sources.feed import Feed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from verl_tui.config import Config
    from verl_tui.records import Batch, SourceStatus
    from verl_tui.sources.discovery.finder import Discovery


class Reel:
    """One run on the tape."""

    def __init__(self, name: str, batches: Sequence[Batch]) -> None:
        """Find out when everything happened.

        Args:
            name: Of the run.
            batches: All that its sources have said, in their order.
        """
        self.name = name
        run, by_source = Run(name), defaultdict[str, list["Batch"]](list)
        for batch in batches:
            run.apply(batch, 0.0)
            by_source[batch.status.path].append(batch)
        self.tracks = [Track(name, told) for told in by_source.values()]
        timing = Timing(run, chain.from_iterable(batch.records for batch in batches))
        self.pace = timing.pace
        """What sets the pace where the log does not tell when its steps were reached, None if it
        does.
        """
        self.estimated = timing.estimated
        """Whether the times of the steps are estimated."""
        self.total = run.total_steps
        self._pieces = self._place(timing)
        moments = (piece.moment for piece in chain.from_iterable(self._pieces))
        known = list(filter(math.isfinite, moments))
        self.span = RunSpan(min(known), max(known)) if known else None
        """When the run was going, None if its log tells of no steps."""
        dumps_only = not any(map(_has_steps, self.tracks))
        pairs = zip(self.tracks, self._pieces, strict=True)
        marks = chain.from_iterable(_marked(*pair, dumps=dumps_only) for pair in pairs)
        self.moments, self.steps = _marks(marks)
        """When the run reached each further step, and which."""

    def _place(self, timing: Timing) -> list[list[TimedRecord]]:
        """Return the pieces of each track; what only refers to steps comes when the others have
        come to them.
        """
        placed = {
            i: Layout(track, timing).pieces()
            for i, track in enumerate(self.tracks)
            if _has_steps(track)
        }
        if placed:
            marks = (_marked(self.tracks[i], pieces) for i, pieces in placed.items())
            moments, steps = _marks(chain.from_iterable(marks))
            timing.reference.note(steps, moments)
        return [
            placed.get(i) or Layout(track, timing).pieces() for i, track in enumerate(self.tracks)
        ]

    def lay_out(self, span: RunSpan, shift: float) -> None:
        """Set the moments of all pieces, see `Track.lay_out`."""
        for track, pieces in zip(self.tracks, self._pieces, strict=True):
            track.lay_out(pieces, span, shift)
        self.moments = array("d", [moment + shift for moment in self.moments])
        self._pieces = []

    def reached(self, moment: float) -> int:
        """Return how many steps had been reached at a moment."""
        return bisect_right(self.moments, moment)

    def when(self, step: int) -> float | None:
        """Return when the run first was at a step or beyond, None if it never was."""
        return next(
            (moment for moment, at in zip(self.moments, self.steps, strict=True) if at >= step),
            None,
        )


def _marked(
    track: Track, pieces: Iterable[TimedRecord], *, dumps: bool = False
) -> Iterator[tuple[float, int | None]]:
    """Yield moments with the step that was reached, None if the source began anew."""
    for piece in pieces:
        record = track.records[piece.record]
        if isinstance(record, MetricRows) and (record.progress or dumps):
            yield piece.moment, record.steps[piece.row]
        elif isinstance(record, Dump if dumps else Progress) and record.step is not None:
            yield piece.moment, record.step
        elif isinstance(record, Restart) and record.step is None:
            yield piece.moment, None


def _has_steps(track: Track) -> bool:
    """True if a source shows which steps training has reached."""
    return any(map(_tells, track.records))


def _tells(record: object) -> bool:
    """Return whether a record shows that training has reached a step."""
    return (isinstance(record, MetricRows) and record.progress) or (
        isinstance(record, Progress) and record.step is not None
    )


def _marks(told: Iterable[tuple[float, int | None]]) -> tuple[array[float], array[int]]:
    """Return moments and steps, a step only where it is further than what came before."""
    moments, steps = array("d"), array("q")
    top: int | None = None
    for moment, step in sorted(((m, s) for m, s in told if math.isfinite(m)), key=_by_moment):
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


def _by_moment(mark: tuple[float, int | None]) -> float:
    return mark[0]


class Tape:
    """The runs behind some paths. All records are kept in memory, as large as the app has them and
    once more.
    """

    def __init__(self, discovery: Discovery, batches: Iterable[Batch]) -> None:
        """Lay out what was read.

        Args:
            discovery: What the paths lead to.
            batches: All that the sources have said.
        """
        self.discovery = replace(discovery, runs=())
        by_run: dict[str, list[Batch]] = defaultdict(list)
        for batch in batches:
            by_run[batch.run].append(batch)
        self.reels = {name: Reel(name, told) for name, told in by_run.items()}
        """By run, in the order they were found."""
        going = [reel for reel in self.reels.values() if len(reel.moments)]
        self.together = _at_once(going)
        """Whether the runs are played at their true times; else each is played from its own
        start.
        """
        begin, end = self._lay_out([reel.span for reel in going if reel.span is not None])
        self.start = min((reel.moments[0] for reel in going), default=begin)
        self.end = max(
            (track.moments[-1] for track in self._tracks() if track.moments), default=end
        )

    def _lay_out(self, spans: Sequence[RunSpan]) -> RunSpan:
        """Set the moments of all runs; return the latest beginning and the latest end."""
        begin = max((span.begin for span in spans), default=0.0)
        end = max((span.end for span in spans), default=0.0)
        for reel in self.reels.values():
            span = reel.span or RunSpan(begin, end)
            reel.lay_out(span, 0.0 if self.together else begin - span.begin)
        return RunSpan(begin, end)

    @classmethod
    def read(cls, specs: Sequence[str], told: Callable[[int, int], None] | None = None) -> Tape:
        """Read all that lies behind some paths, once.

        Args:
            specs: Paths, directories and globs.
            told: Is told after each batch how many bytes have been read, and how many there are.
        """
        feed = Feed(specs)
        feed.settle()
        feed.scan()
        batches: list[Batch] = []
        known: dict[tuple[str, str], SourceStatus] = {}
        done = size = 0
        for batch in chain(feed.read(), feed.finish()):
            batches.append(batch)
            source = batch.run, batch.status.path
            before, known[source] = known.get(source), batch.status
            done += batch.status.bytes_read - (before.bytes_read if before is not None else 0)
            size += batch.status.size - (before.size if before is not None else 0)
            if told is not None:
                told(done, size)
        return cls(feed.discovery, batches)

    @property
    def empty(self) -> bool:
        """Whether no run has a step."""
        return not any(len(reel.moments) for reel in self.reels.values())

    @property
    def last_step(self) -> int:
        """The highest step that any run has reached."""
        return max((step for reel in self.reels.values() for step in reel.steps), default=0)

    def when(self, step: int) -> float | None:
        """Return when the first of the runs was at a step or beyond, None if none ever was."""
        return min(
            (moment for reel in self.reels.values() if (moment := reel.when(step)) is not None),
            default=None,
        )

    def next_step(self, moment: float, run: str | None, count: int) -> float | None:
        """Return when a run was so many steps further than at a moment, or back; None if it has
        none there.

        Args:
            moment: From where on.
            run: Whose steps; of all runs if that one has none.
            count: Below 0 for steps before the one that was reached last.
        """
        reel = self.reels.get(run or "")
        moments = reel.moments if reel is not None and len(reel.moments) else self._all_moments()
        at = bisect_right(moments, moment) - 1 + count
        return moments[at] if 0 <= at < len(moments) else None

    def share(self, moment: float) -> float:
        """Return how much of the tape lies before a moment, 0..1."""
        return (
            min(1.0, max(0.0, (moment - self.start) / (self.end - self.start)))
            if self.end > self.start
            else 1.0
        )

    def at_share(self, share: float) -> float:
        """Return the moment before which so much of the tape lies."""
        return self.start + min(1.0, max(0.0, share)) * (self.end - self.start)

    # -- telling -----------------------------------------------------------------------------------

    def rewind(self) -> None:
        """Tell everything once more."""
        for track in self._tracks():
            track.rewind()

    def due(self, until: float) -> bool:
        """Return whether something is to be told that happened until a moment."""
        return any(track.due(until) for track in self._tracks())

    def take(self, until: float) -> Iterator[Batch]:
        """Yield what happened until a moment and has not been told yet."""
        for track in self._tracks():
            while (batch := track.take(until)) is not None:
                yield batch

    def monitor(self, config: Config, moment: float) -> Monitor:
        """Return a monitor that knows and has judged what could be known at a moment."""
        monitor = Monitor(config)
        self.rewind()
        monitor.apply(replace(self.discovery, read=True), moment)
        for batch in self.take(moment):
            monitor.apply(batch, moment)
        monitor.judge(moment)
        return monitor

    def _tracks(self) -> Iterator[Track]:
        for reel in self.reels.values():
            yield from reel.tracks

    def _all_moments(self) -> Sequence[float]:
        return sorted({moment for reel in self.reels.values() for moment in reel.moments})


def _at_once(reels: Sequence[Reel]) -> bool:
    """Return whether runs went on side by side, as far as their logs tell when they were."""
    if len(reels) < 2:
        return True
    if any(reel.pace is not None for reel in reels):
        return False
    spans = sorted(reel.span for reel in reels if reel.span is not None)
    ends = [max(span.end for span in spans[: i + 1]) for i in range(len(spans))]
    return all(after.begin <= end for (_, after), end in zip(pairwise(spans), ends, strict=False))
