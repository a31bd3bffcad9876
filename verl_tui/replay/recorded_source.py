"""The records of one source with their times, replayed in portions of any size."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from itertools import accumulate, chain, repeat, starmap
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from verl_tui.records import Batch, Dump, MetricRows, Progress, Restart, Settings
from verl_tui.times import LATEST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from verl_tui.records import Record, SourceStatus

_BATCH = 1000
"""Most records and rows in one batch, which takes some milliseconds to apply."""
AFTERMATH = 3600.0
"""Longest time in seconds from the last step to a file's last change: a later one is of a copy."""
_EARLIEST = 1e8
"""Seconds since the epoch; earlier times are invalid, as in `verl_tui.times.parse_time`."""
_BEFORE_END = Dump | Progress | MetricRows | Settings
"""Records that never count as the end of a source, even if nothing follows them."""


class RunSpan(NamedTuple):
    """First and last moment of a run."""

    begin: float
    end: float


class RecordedSource:
    """One source of one run: its records, with a moment for each, and for each row of metrics."""

    def __init__(
        self, run: str, batches: Sequence[Batch], clock: Callable[[Any], Any]
    ) -> None:
        """Find the moments of a source's records.

        Args:
            run: Name of its run.
            batches: All of the source's, in their order.
            clock: Returns the times of an array of steps, nan where unknown.
        """
        self._run = run
        self._records = [record for batch in batches for record in batch.records]
        self._statuses = [batch.status for batch in batches]
        sizes = [[_size(record) for record in batch.records] for batch in batches]
        self._ends = [*accumulate(map(sum, sizes))]
        """Number of moments up to the end of each batch."""
        counts = np.array([size for some in sizes for size in some], np.int64)
        self._indices = np.repeat(np.arange(len(counts)), counts)
        """Index of the record of each moment."""
        begins = np.cumsum(counts) - counts
        self._rows = np.arange(len(self._indices)) - begins[self._indices]
        """Index of its row in the record."""
        self.moments: Any = self._times(clock)
        """Seconds since the epoch. Before `set_times` in the order of the records, nan where
        nothing before has a time, inf if unknown.
        """
        self._begin = 0.0
        self._taken: int | None = None
        """Number of moments taken; None before the first batch."""

    def _times(self, clock: Callable[[Any], Any]) -> Any:
        """Return the moments: a record with a step has the time of that step wherever it was read,
        others have the time of the record before them, those at the end that of the file's last
        change; nothing comes later than what follows a restart.
        """
        pairs = [*chain.from_iterable(map(_stated, self._records))]
        steps, stated = np.array(pairs, np.float64).reshape(-1, 2).T
        times = np.where((stated > _EARLIEST) & (stated < LATEST), stated, clock(steps))
        kinds = [isinstance(one, Progress) for one in self._records]
        dated = ~np.isnan(times)
        # Readers hand progress on before all else.
        leads = dated & ~np.array(kinds, bool)[self._indices]
        at = np.maximum.accumulate(np.where(leads, np.arange(len(times)), -1))
        carried = np.where(at < 0, math.nan, times[at])
        times = np.where(dated, times, carried)
        end = np.fmax.reduce(times, initial=math.nan)
        written = self._statuses[-1].modified or 0.0
        if 0 < written - end <= AFTERMATH:
            end = written
        end = np.nan_to_num(end, nan=math.inf)
        last = self._indices[dated].max(initial=-1)
        for place, index in enumerate(self._indices.tolist()):
            if index > last and not isinstance(self._records[index], _BEFORE_END):
                times[place] = end
        for index in reversed(range(1, len(self._records))):
            if is_restart(self._records[index]):
                cut = np.searchsorted(self._indices, index, side="right")
                over = np.fmin.reduce(times[cut:], initial=math.inf)
                times[:cut] = np.minimum(times[:cut], over)
        return times

    def marks(self, *, dumps: bool) -> Iterator[tuple[float, int | None]]:
        """Yield moments with the step reached, None at a restart from the beginning.

        Args:
            dumps: Whether dumps and all rows show steps, for want of anything better.
        """
        rows = zip(
            self.moments.tolist(),
            self._indices.tolist(),
            self._rows.tolist(),
            strict=True,
        )
        for moment, index, row in rows:
            record = self._records[index]
            if is_restart(record):
                yield moment, None
            elif isinstance(record, MetricRows):
                if record.progress or dumps:
                    yield moment, record.steps[row]
            elif (
                isinstance(record, Dump if dumps else Progress)
                and record.step is not None
            ):
                yield moment, record.step

    def set_times(self, span: RunSpan, shift: float) -> None:
        """Put the records in the order of their times.

        Args:
            span: Beginning and end of the run; records without time come at its beginning.
            shift: Seconds by which the run is replayed later than it took place.
        """
        written = self._statuses[-1].modified or span.end
        last = span.end if written > span.end + AFTERMATH else max(written, span.begin)
        moments = np.nan_to_num(self.moments, nan=span.begin, posinf=last)
        order = np.argsort(moments, kind="stable")
        self.moments = (moments[order] + shift).tolist()
        self._indices = self._indices[order]
        self._rows = self._rows[order]
        self._begin = span.begin + shift
        if shift:
            self._records = [_moved(record, shift) for record in self._records]

    # -- replaying ---------------------------------------------------------------------------------

    def rewind(self) -> None:
        """Begin again with the first record."""
        self._taken = None

    def due(self, until: float) -> bool:
        """True if records up to a moment have not been taken."""
        taken = self._taken or 0
        if taken < len(self.moments):
            return bool(self.moments[taken] <= until)
        return self._taken is None and self._begin <= until

    def take(self, until: float) -> Batch | None:
        """Return the next records up to a moment as a batch, None if there are no more."""
        if not self.due(until):
            return None
        start = self._taken or 0
        stop = min(bisect_right(self.moments, until, start), start + _BATCH)
        self._taken = stop
        moment = self.moments[stop - 1] if stop else self._begin
        return Batch(self._run, self._status(moment), tuple(self._cut(start, stop)))

    def _cut(self, start: int, stop: int) -> Iterator[Record]:
        """Yield records, with the rows that belong to one and are taken together in one."""
        parts: dict[int, tuple[MetricRows, list[int]]] = {}
        rows = self._rows[start:stop].tolist()
        for index, row in zip(self._indices[start:stop].tolist(), rows, strict=True):
            record = self._records[index]
            if isinstance(record, MetricRows):
                parts.setdefault(index, (record, []))[1].append(row)
            else:
                yield from starmap(_sliced, parts.values())
                parts.clear()
                yield record
        yield from starmap(_sliced, parts.values())

    def _status(self, moment: float) -> SourceStatus:
        """Return the status of the source as if its file ended after the records taken."""
        taken = self._taken or 0
        over = taken >= len(self.moments)
        status = self._statuses[-1 if over else bisect_left(self._ends, taken)]
        records, unreadable, size = (
            int(
                np.interp(taken, [0, *self._ends], [0, *map(attribute, self._statuses)])
            )
            for attribute in (
                lambda one: one.records,
                lambda one: one.unreadable,
                lambda one: one.bytes_read,
            )
        )
        return status._replace(
            records=records,
            unreadable=unreadable,
            bytes_read=size,
            size=size,
            modified=None if status.modified is None else moment,
            to_come=not over,
        )


def _size(record: Record) -> int:
    return len(record.steps) if isinstance(record, MetricRows) else 1


def _stated(record: Record) -> Iterator[tuple[float, float]]:
    """Yield the step and the time that a record, or each row of it, states; nan for none."""
    if isinstance(record, MetricRows):
        times = record.times or repeat(math.nan, len(record.steps))
        yield from zip(record.steps, times, strict=True)
    else:
        step = None if isinstance(record, Restart) else getattr(record, "step", None)
        yield math.nan if step is None else step, math.nan


def is_restart(record: Record) -> bool:
    """Return whether a source begins anew with a record."""
    return isinstance(record, Restart) and record.step is None


def _moved(record: Record, shift: float) -> Record:
    """Return a record whose times are later by some seconds."""
    if isinstance(record, MetricRows) and record.times:
        return record._replace(times=[time + shift for time in record.times])
    if isinstance(record, Dump) and record.modified is not None:
        return record._replace(modified=record.modified + shift)
    return record


def _sliced(whole: MetricRows, rows: Sequence[int]) -> MetricRows:
    """Return neighbouring rows."""
    if len(rows) == len(whole.steps):
        return whole
    part = slice(rows[0], rows[-1] + 1)
    return whole._replace(
        steps=whole.steps[part],
        columns=tuple(column[part] for column in whole.columns),
        orders=whole.orders[part],
        times=whole.times[part],
    )
