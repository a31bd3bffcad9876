"""The records of one source with their times, replayed in portions of any size."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from itertools import chain, filterfalse, pairwise
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
from verl_tui.replay.timing import is_valid_time, source_pass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.replay.timing import Timing
    from verl_tui.runs.clock import Clock

_BATCH = 1000
"""Most records and rows in one batch, which takes some milliseconds to apply."""
AFTERMATH = 3600.0
"""Longest time in seconds from the last step to a file's last change: a later one is of a copy."""


_WITH_STEP = Histogram | Sample | Dump | Progress | Event
_BEFORE_END = Dump | Progress | MetricRows | Settings
"""Records that never count as the end of a source, even if nothing follows them."""


class TimedRecord(NamedTuple):
    """A record, or one row of it."""

    moment: float
    """Seconds since the epoch; nan before the first known time of its source, inf if unknown."""
    record: int
    """Index of the record."""
    row: int
    """Index of the row in the record, -1 for records without rows."""


class RunSpan(NamedTuple):
    """First and last moment of a run."""

    begin: float
    end: float


class RecordedSource:
    """One source of one run."""

    def __init__(self, run: str, batches: Sequence[Batch]) -> None:
        """Keep the batches of a source, in their order."""
        self.run = run
        self.records: list[Record] = []
        self.final = batches[-1].status
        self._statuses = [batch.status for batch in batches]
        self._ends: list[int] = []
        """Number of timed records up to the end of each batch."""
        end = 0
        for batch in batches:
            parts = list(chain.from_iterable(map(_parts, batch.records)))
            self.records += parts
            end += sum(map(_size, parts))
            self._ends.append(end)
        self.moments = array("d")
        self._indices = array("q")
        self._rows = array("q")
        self._shift = self._begin = 0.0
        self._taken: int | None = None
        """Number of timed records taken; None before the first batch."""

    def set_times(
        self, timed: Sequence[TimedRecord], span: RunSpan, shift: float
    ) -> None:
        """Set the moments.

        Args:
            timed: Records as `TimedSource` returns them.
            span: Beginning and end of the run; records without time come at its beginning.
            shift: Seconds by which the run is replayed later than it took place.
        """
        written = self.final.modified or span.end
        last = span.end if written > span.end + AFTERMATH else max(written, span.begin)
        known = [
            record._replace(moment=_known(record.moment, span.begin, last))
            for record in timed
        ]
        known.sort(key=itemgetter(0))
        self.moments = array("d", [moment + shift for moment, _, _ in known])
        self._indices = array("q", [index for _, index, _ in known])
        self._rows = array("q", [row for _, _, row in known])
        self._shift = shift
        self._begin = span.begin + shift

    def rewind(self) -> None:
        """Begin again with the first record."""
        self._taken = None

    def due(self, until: float) -> bool:
        """True if records up to a moment have not been taken."""
        if self._taken is None:
            first = self.moments[0] if self.moments else self._begin
            return first <= until
        return self._taken < len(self.moments) and self.moments[self._taken] <= until

    def take(self, until: float) -> Batch | None:
        """Return the next records up to a moment as a batch, None if there are no more."""
        if not self.due(until):
            return None
        start = self._taken or 0
        stop = min(bisect_right(self.moments, until, start), start + _BATCH)
        self._taken = stop
        moment = self.moments[stop - 1] if stop else self._begin
        status = self._status(stop, moment)
        return Batch(self.run, status, tuple(self._cut(start, stop)))

    def _cut(self, start: int, stop: int) -> Iterator[Record]:
        """Yield records, with the rows that belong to one and are taken together in one."""
        spans: dict[int, tuple[int, int]] = {}
        rows = self._rows[start:stop]
        for index, row in zip(self._indices[start:stop], rows, strict=True):
            if row >= 0:
                first, _ = spans.get(index, (row, row))
                spans[index] = (first, row + 1)
                continue
            yield from self._slices(spans)
            spans = {}
            yield self._moved(self.records[index])
        yield from self._slices(spans)

    def _slices(self, spans: dict[int, tuple[int, int]]) -> Iterator[MetricRows]:
        for index, (first, end) in spans.items():
            rows = self.records[index]
            assert isinstance(rows, MetricRows)
            is_part = (first, end) != (0, len(rows.steps))
            if is_part or (self._shift and rows.times):
                rows = rows._replace(
                    steps=rows.steps[first:end],
                    columns=tuple(column[first:end] for column in rows.columns),
                    orders=rows.orders[first:end],
                    times=[time + self._shift for time in rows.times[first:end]],
                )
            yield rows

    def _moved(self, record: Record) -> Record:
        if self._shift and isinstance(record, Dump) and record.modified is not None:
            return record._replace(modified=record.modified + self._shift)
        return record

    def _status(self, taken: int, moment: float) -> SourceStatus:
        """Return the status of the source as if its file ended after the records taken."""
        if taken >= len(self.moments):
            status = was = self.final
            share = 1.0
        else:
            at = bisect_left(self._ends, taken)
            status = self._statuses[at]
            if at:
                was = self._statuses[at - 1]
                before = self._ends[at - 1]
            else:
                was = status._replace(records=0, unreadable=0, bytes_read=0)
                before = 0
            share = (taken - before) / max(1, self._ends[at] - before)
        size = _between(was.bytes_read, status.bytes_read, share)
        return status._replace(
            records=_between(was.records, status.records, share),
            unreadable=_between(was.unreadable, status.unreadable, share),
            bytes_read=size,
            size=size,
            modified=None if status.modified is None else moment,
            to_come=taken < len(self.moments),
        )


def _parts(record: Record) -> Iterator[Record]:
    """Yield a record, in two parts if it has step and total: the total was known from the start."""
    if isinstance(record, Progress) and _states_total(record):
        yield record._replace(step=None)
    yield record


def _states_total(record: Progress) -> bool:
    """True for step and total that are not a progress bar's."""
    states_both = record.total is not None and record.step is not None
    return states_both and record.elapsed is None


def _size(record: Record) -> int:
    if not isinstance(record, MetricRows):
        return 1
    return len(record.steps)


def _between(before: int, after: int, share: float) -> int:
    return before + int((after - before) * share)


class TimedSource:
    """Finds the time of each record of a source.

    A record with a step takes the time of that step wherever it was read, others take the time of
    the record before them.
    """

    def __init__(self, source: RecordedSource, timing: Timing) -> None:
        self._source = source
        self._timing = timing
        self._written = source.final.modified
        self._reached = math.nan
        """Latest moment of the records before the current one."""
        self._last = -1
        """Index of the newest record with a time of its own."""

    def records(self) -> list[TimedRecord]:
        """Return all records with their times, those of each pass in the order of time."""
        timed: list[TimedRecord] = []
        for first, end, clock, over in self._passes():
            own: list[TimedRecord] = []
            for index in range(first, end):
                own += self._timed(index, clock, over)
            if timed:  # a restarted source goes on from there, whatever its clock says
                begin = timed[-1].moment
                own = [
                    record._replace(moment=_later(begin, record.moment))
                    for record in own
                ]
            timed += sorted(own, key=_moment)
        return self._with_end(timed)

    def _passes(self) -> list[tuple[int, int, Clock, float]]:
        """Return first and end index of each pass, its clock, and the time at which it ended."""
        records = self._source.records
        cuts = [i for i, record in enumerate(records) if i and _is_restart(record)]
        found: list[tuple[int, int, Clock, float]] = []
        over = math.inf
        passes = list(pairwise([0, *cuts, len(records)]))
        path = self._source.final.path
        for first, end in reversed(passes):
            steps = source_pass(records[first:end])
            until = over if over < math.inf else self._written or 0.0
            clock = self._timing.clock(steps, path, until, last=not found)
            found.append((first, end, clock, over))
            begins = [_first(records[first:end])]
            if steps.steps:
                begins.append(self._timing.at(clock, steps.steps[0]))
            known = [begin for begin in begins if not math.isnan(begin)]
            over = min(known, default=over)
        return found[::-1]

    def _timed(self, index: int, clock: Clock, over: float) -> Iterator[TimedRecord]:
        record = self._source.records[index]
        if isinstance(record, MetricRows):
            yield from self._timed_rows(record, index, clock, over)
            return
        moment = math.nan
        if isinstance(record, _WITH_STEP) and record.step is not None:
            moment = min(self._timing.at(clock, record.step), over)
        if isinstance(record, Dump) and record.modified is not None:
            moment = record.modified if math.isnan(moment) else moment
        if math.isnan(moment):
            yield TimedRecord(self._reached, index, -1)
        else:
            yield TimedRecord(moment, index, -1)
            self._last = index
        if not isinstance(record, Progress):  # readers hand those on before all else
            self._reached = _later(self._reached, moment)

    def _timed_rows(
        self, rows: MetricRows, index: int, clock: Clock, over: float
    ) -> Iterator[TimedRecord]:
        reached = math.nan
        times = rows.times or [math.nan] * len(rows.steps)
        for row, (step, time) in enumerate(zip(rows.steps, times, strict=True)):
            moment = time
            if not is_valid_time(time):
                moment = min(self._timing.at(clock, step), over)
            reached = _later(reached, moment)
            yield TimedRecord(reached, index, row)
        if rows.progress:
            self._reached = _later(self._reached, reached)
            self._last = index

    def _with_end(self, timed: list[TimedRecord]) -> list[TimedRecord]:
        """Give records after the last step the time of the file's last change, if plausible.

        In a source without any time all but settings come at its end.
        """
        moments = [record.moment for record in timed]
        end = max(filterfalse(math.isnan, moments), default=math.inf)
        if self._written is not None and 0 < self._written - end <= AFTERMATH:
            end = self._written
        found: list[TimedRecord] = []
        for one in timed:
            record = self._source.records[one.record]
            if one.record > self._last and not isinstance(record, _BEFORE_END):
                found.append(one._replace(moment=end))
            else:
                found.append(one)
        return found


def _moment(timed: TimedRecord) -> float:
    if math.isnan(timed.moment):
        return -math.inf
    return timed.moment


def _known(moment: float, begin: float, last: float) -> float:
    """Return the moment, or a limit of the run's span if it is unknown."""
    if math.isnan(moment):
        return begin
    if math.isinf(moment):
        return min(moment, last)
    return moment


def _later(reached: float, moment: float) -> float:
    """Return the later of two moments, either of which may be nan."""
    if math.isnan(reached):
        return moment
    if math.isnan(moment):
        return reached
    return max(reached, moment)


def _first(records: Sequence[Record]) -> float:
    """Return the first time stated by rows, nan if none is."""
    times = (
        record.times[0]
        for record in records
        if isinstance(record, MetricRows) and record.times
    )
    return min(filter(is_valid_time, times), default=math.nan)


def _is_restart(record: Record) -> bool:
    return isinstance(record, Restart) and record.step is None
