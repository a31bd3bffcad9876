"""The records of one source with their times, replayed in portions of any size."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from itertools import accumulate, repeat, starmap
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from verl_tui.records import Batch, Dump, Event, MetricRows, Progress, Restart
from verl_tui.times import EARLIEST, LATEST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from verl_tui.records import Record, SourceStatus

_BATCH = 1000
"""Most records and rows in one batch, which takes some milliseconds to apply."""
_AFTERMATH = 3600.0
"""Longest time in seconds from the last step to a file's last change: a later one is of a copy."""


class RecordedSource:
    """One source of one run: its records, with a moment for each, and for each row of metrics.

    Args:
        run: Name of its run.
        batches: All of the source's, in their order.
        clock: Returns the times of an array of steps, nan where unknown.
    """

    def __init__(
        self, run: str, batches: Sequence[Batch], clock: Callable[[Any], Any]
    ) -> None:
        self._run = run
        self._records = [record for batch in batches for record in batch.records]
        self._statuses = [batch.status for batch in batches]
        parts = [[*_parts(record)] for record in self._records]
        counts = np.array([*map(len, parts)], np.int64)
        ends = np.cumsum(counts)
        whole = [0, *accumulate(len(batch.records) for batch in batches)]
        self._ends = [0, *(int(ends[last - 1]) if last else 0 for last in whole[1:])]
        """Number of moments up to the end of each batch, from 0 on."""
        self._indices = np.repeat(np.arange(len(counts)), counts)
        """Index of the record of each moment."""
        self._rows = np.arange(len(self._indices)) - (ends - counts)[self._indices]
        """Index of its row in the record."""
        stated = [part for some in parts for part in some]
        self._steps, times = np.array(stated, np.float64).reshape(-1, 2).T
        self.moments: Any = self._times(times, clock)
        """Seconds since the epoch. Before `set_times` in the order of the records, nan where
        nothing before has a time, inf if unknown.
        """
        self._begin = 0.0
        self._taken: int | None = None
        """Number of moments taken; None before the first batch."""

    def _are(self, what: type) -> Any:
        """Return for each moment whether it is of such a record."""
        kinds = np.array([isinstance(one, what) for one in self._records], bool)
        return kinds[self._indices]

    def _times(self, stated: Any, clock: Callable[[Any], Any]) -> Any:
        """Return the moments: a record with a step has the time of that step wherever it was read,
        others have the time of the record before them, events at the end that of the file's last
        change; nothing comes later than what follows a restart.
        """
        times = np.where(
            (stated > EARLIEST) & (stated < LATEST), stated, clock(self._steps)
        )
        dated = ~np.isnan(times)
        # Readers hand progress on before all else.
        leads = np.where(dated & ~self._are(Progress), np.arange(len(times)), -1)
        before = np.maximum.accumulate(leads)
        carried = np.where(before < 0, math.nan, times[before])
        times = np.where(dated, times, carried)
        end = np.fmax.reduce(times, initial=math.nan)
        written = self._statuses[-1].modified or 0.0
        if 0 < written - end <= _AFTERMATH:
            end = written
        last = self._indices[dated].max(initial=-1)
        tail = (self._indices > last) & self._are(Event)
        times[tail] = math.inf if math.isnan(end) else end
        for index in reversed(range(1, len(self._records))):
            if _is_restart(self._records[index]):
                cut = np.searchsorted(self._indices, index, side="right")
                over = np.fmin.reduce(times[cut:], initial=math.inf)
                times[:cut] = np.minimum(times[:cut], over)
        return times

    def marks(self, *, weak: bool) -> Iterator[tuple[float, int | None]]:
        """Yield moments with the step reached, None at a restart from the beginning.

        Args:
            weak: Whether dumps and all rows show steps, for want of anything better.
        """
        known = [_shows_step(record, weak=weak) for record in self._records]
        for moment, index, step in zip(
            self.moments.tolist(),
            self._indices.tolist(),
            self._steps.tolist(),
            strict=True,
        ):
            if _is_restart(self._records[index]):
                yield moment, None
            elif known[index] and not math.isnan(step):
                yield moment, int(step)

    def set_times(self, span: tuple[float, float], shift: float) -> None:
        """Put the records in the order of their times.

        Args:
            span: Beginning and end of the run; records without time come at its beginning.
            shift: Seconds by which the run is replayed later than it took place.
        """
        begin, end = span
        written = self._statuses[-1].modified or end
        last = end if written > end + _AFTERMATH else max(written, begin)
        moments = np.nan_to_num(self.moments, nan=begin, posinf=last)
        order = np.argsort(moments, kind="stable")
        self.moments = (moments[order] + shift).tolist()
        self._indices = self._indices[order]
        self._rows = self._rows[order]
        self._begin = begin + shift
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
        status = self._statuses[-1 if over else bisect_left(self._ends, taken, 1) - 1]
        records, unreadable, size = (
            int(np.interp(taken, self._ends, [0, *map(figure, self._statuses)]))
            for figure in map(attrgetter, ("records", "unreadable", "bytes_read"))
        )
        return status._replace(
            records=records,
            unreadable=unreadable,
            bytes_read=size,
            size=size,
            modified=None if status.modified is None else moment,
            to_come=not over,
        )


def _parts(record: Record) -> Iterator[tuple[float, float]]:
    """Yield the step and the time that a record, or each row of it, states; nan for none."""
    if isinstance(record, MetricRows):
        yield from zip(
            record.steps, record.times or repeat(math.nan), strict=bool(record.times)
        )
    else:
        step = None if isinstance(record, Restart) else getattr(record, "step", None)
        yield math.nan if step is None else step, math.nan


def _shows_step(record: Record, *, weak: bool) -> bool:
    """Return whether a record shows that training has reached its step."""
    if isinstance(record, MetricRows):
        return record.progress or weak
    return isinstance(record, Dump if weak else Progress)


def _is_restart(record: Record) -> bool:
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
