"""Replay the records of one source in the order of their times, in any portions."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from dataclasses import replace
from itertools import accumulate, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.records import (
    Batch,
    Dump,
    Event,
    Histogram,
    MetricRows,
    Progress,
    Record,
    Restart,
    Sample,
    Settings,
    SourceStatus,
)
from verl_tui.replay.timing import source_pass, stated

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.replay.timing import Timing
    from verl_tui.runs.clock import Clock

_AT_ONCE = 1000
"""Pieces in one batch: they are taken in within some milliseconds."""
AFTERMATH = 3600.0
"""Seconds behind the last step within which a file's last change is the moment of what it says at
its end; later it tells of a copy.
"""


class TimedRecord(NamedTuple):
    """A record, or one row of it."""

    moment: float
    """Seconds since the epoch; nan before the first known moment of its source, inf where nothing
    tells.
    """
    record: int
    """Its place among the records."""
    row: int
    """Its place among the record's rows, -1 where it has none."""


class RunSpan(NamedTuple):
    """First and last moment of a run."""

    begin: float
    end: float


class Track:
    """One source of one run."""

    def __init__(self, run: str, batches: Sequence[Batch]) -> None:
        """Take what a source has said, in its order."""
        self.run = run
        told = [[part for record in batch.records for part in _parts(record)] for batch in batches]
        self.records: list[Record] = [record for records in told for record in records]
        self.final = batches[-1].status
        self._statuses = [batch.status for batch in batches]
        self._ends = list(accumulate(sum(map(_size, records)) for records in told))
        """Number of records up to the end of each batch."""
        self.moments = array("d")
        self._places = array("q")
        self._rows = array("q")
        self._shift = self._begin = 0.0
        self._told: int | None = None
        """Pieces told; None before the source has been heard of."""

    def lay_out(self, pieces: Sequence[TimedRecord], span: RunSpan, shift: float) -> None:
        """Set the moments.

        Args:
            pieces: As `Layout` found them.
            span: When the run began, the moment of what comes before all else, and when it was
                over.
            shift: Seconds by which the run is played later than it was.
        """
        written = self.final.modified or span.end
        last = span.end if written > span.end + AFTERMATH else max(written, span.begin)
        known = sorted(
            ((_known(piece.moment, span.begin, last), piece) for piece in pieces), key=itemgetter(0)
        )
        self.moments = array("d", [moment + shift for moment, _ in known])
        self._places = array("q", [piece.record for _, piece in known])
        self._rows = array("q", [piece.row for _, piece in known])
        self._shift = shift
        self._begin = span.begin + shift

    def rewind(self) -> None:
        """Tell everything once more."""
        self._told = None

    def due(self, until: float) -> bool:
        """Return whether something is to be told that happened until a moment."""
        if self._told is None:
            return (self.moments[0] if self.moments else self._begin) <= until
        return self._told < len(self.moments) and self.moments[self._told] <= until

    def take(self, until: float) -> Batch | None:
        """Return what happened next, until a moment; None if there is nothing more of it."""
        if not self.due(until):
            return None
        start = self._told or 0
        stop = min(bisect_right(self.moments, until, start), start + _AT_ONCE)
        self._told = stop
        moment = self.moments[stop - 1] if stop else self._begin
        return Batch(self.run, self._status(stop, moment), tuple(self._cut(start, stop)))

    def _cut(self, start: int, stop: int) -> Iterator[Record]:
        """Yield the records of some pieces; rows that were together stay so, as far as they are
        told together.
        """
        spans: dict[int, tuple[int, int]] = {}
        for place, row in zip(self._places[start:stop], self._rows[start:stop], strict=True):
            if row >= 0:
                spans[place] = spans.get(place, (row, row))[0], row + 1
                continue
            yield from self._slices(spans)
            spans = {}
            yield self._moved(self.records[place])
        yield from self._slices(spans)

    def _slices(self, spans: dict[int, tuple[int, int]]) -> Iterator[MetricRows]:
        for place, (first, end) in spans.items():
            rows = self.records[place]
            assert isinstance(rows, MetricRows)
            if (first, end) != (0, len(rows.steps)) or (self._shift and rows.times):
                rows = replace(
                    rows,
                    steps=rows.steps[first:end],
                    columns=tuple(column[first:end] for column in rows.columns),
                    orders=rows.orders[first:end],
                    times=[time + self._shift for time in rows.times[first:end]],
                )
            yield rows

    def _moved(self, record: Record) -> Record:
        if self._shift and isinstance(record, Dump) and record.modified is not None:
            return replace(record, modified=record.modified + self._shift)
        return record

    def _status(self, told: int, moment: float) -> SourceStatus:
        """Return how the source was doing when so many pieces had been told: its file ended
        there.
        """
        if told >= len(self.moments):
            status, was, share = self.final, self.final, 1.0
        else:
            at = bisect_left(self._ends, told)
            status, was = self._statuses[at], self._statuses[max(0, at - 1)]
            before = self._ends[at - 1] if at else 0
            share = (told - before) / max(1, self._ends[at] - before)
            was = was if at else replace(was, records=0, unreadable=0, bytes_read=0)
        size = _between(was.bytes_read, status.bytes_read, share)
        return replace(
            status,
            records=_between(was.records, status.records, share),
            unreadable=_between(was.unreadable, status.unreadable, share),
            bytes_read=size,
            size=size,
            modified=None if status.modified is None else moment,
        )


def _parts(record: Record) -> Iterator[Record]:
    """Yield a record, in two where it says how far the run is together with how long it will be:
    that was known.
    """
    is_bar = isinstance(record, Progress) and record.elapsed is not None
    if (
        isinstance(record, Progress)
        and not is_bar
        and record.total is not None
        and record.step is not None
    ):
        yield replace(record, step=None)
    yield record


def _size(record: Record) -> int:
    return len(record.steps) if isinstance(record, MetricRows) else 1


def _between(before: int, after: int, share: float) -> int:
    return before + int((after - before) * share)


class Layout:
    """Finds the moment of each piece of a source.

    What tells of a step comes with that step, wherever it was read; all else with what stands above
    it.
    """

    def __init__(self, track: Track, timing: Timing) -> None:
        self._track = track
        self._timing = timing
        self._written = track.final.modified
        self._reached = math.nan
        """Latest moment of what stands above."""
        self._last = -1
        """Place of the newest record with a moment of its own."""

    def pieces(self) -> list[TimedRecord]:
        """Return all pieces with their moments, those of each beginning in the order of time."""
        found: list[TimedRecord] = []
        for first, end, clock, over in self._passes():
            placed = [
                piece for place in range(first, end) for piece in self._place(place, clock, over)
            ]
            if found:  # a source that began anew goes on from there, whatever its clock says
                placed = [
                    one._replace(moment=_later(found[-1].moment, one.moment)) for one in placed
                ]
            found += sorted(placed, key=_moment)
        return self._ending(found)

    def _passes(self) -> list[tuple[int, int, Clock, float]]:
        """Return the passes of the source: first and end among the records, clock, end in time."""
        records = self._track.records
        cuts = [i for i, record in enumerate(records) if i and _begins_anew(record)]
        found: list[tuple[int, int, Clock, float]] = []
        over = math.inf
        for first, end in reversed(list(pairwise([0, *cuts, len(records)]))):
            told = source_pass(records[first:end])
            until = over if over < math.inf else self._written or 0.0
            clock = self._timing.clock(told, self._track.final.path, until, last=not found)
            found.append((first, end, clock, over))
            begins = [_first(records[first:end])]
            if told.steps:
                begins.append(self._timing.at(clock, told.steps[0]))
            over = min((begin for begin in begins if not math.isnan(begin)), default=over)
        return found[::-1]

    def _place(self, place: int, clock: Clock, over: float) -> Iterator[TimedRecord]:
        record = self._track.records[place]
        if isinstance(record, MetricRows):
            yield from self._place_rows(record, place, clock, over)
            return
        step = (
            record.step
            if isinstance(record, Histogram | Sample | Dump | Progress | Event)
            else None
        )
        moment = min(self._timing.at(clock, step), over) if step is not None else math.nan
        if isinstance(record, Dump) and math.isnan(moment) and record.modified is not None:
            moment = record.modified
        known = not math.isnan(moment)
        yield TimedRecord(moment if known else self._reached, place, -1)
        if known:
            self._last = place
        if not isinstance(record, Progress):  # readers hand those on before all else
            self._reached = _later(self._reached, moment)

    def _place_rows(
        self, rows: MetricRows, place: int, clock: Clock, over: float
    ) -> Iterator[TimedRecord]:
        reached = math.nan
        times = rows.times or [math.nan] * len(rows.steps)
        for row, (step, time) in enumerate(zip(rows.steps, times, strict=True)):
            reached = _later(
                reached, time if stated(time) else min(self._timing.at(clock, step), over)
            )
            yield TimedRecord(reached, place, row)
        if rows.progress:
            self._reached = _later(self._reached, reached)
            self._last = place

    def _ending(self, pieces: list[TimedRecord]) -> list[TimedRecord]:
        """Give what stands behind the last step its moment: that of the file's last change, where
        that can be.

        A source without any moment says all it has to say at its end, but for settings.
        """
        records = self._track.records
        end = max(
            (piece.moment for piece in pieces if not math.isnan(piece.moment)), default=math.inf
        )
        if self._written is not None and 0 < self._written - end <= AFTERMATH:
            end = self._written
        return [
            piece._replace(moment=end)
            if piece.record > self._last
            and not isinstance(records[piece.record], Dump | Progress | MetricRows | Settings)
            else piece
            for piece in pieces
        ]


def _moment(piece: TimedRecord) -> float:
    return -math.inf if math.isnan(piece.moment) else piece.moment


def _known(moment: float, begin: float, last: float) -> float:
    """Return a moment for what may have none of its own."""
    return begin if math.isnan(moment) else min(moment, last) if math.isinf(moment) else moment


def _later(reached: float, moment: float) -> float:
    """Return the later of two moments, of which either may not be known."""
    if math.isnan(reached):
        return moment
    return reached if math.isnan(moment) else max(reached, moment)


def _first(records: Sequence[Record]) -> float:
    """Return the first time that rows state, nan where none does."""
    times = (
        record.times[0] for record in records if isinstance(record, MetricRows) and record.times
    )
    return min(filter(stated, times), default=math.nan)


def _begins_anew(record: Record) -> bool:
    return isinstance(record, Restart) and record.step is None
