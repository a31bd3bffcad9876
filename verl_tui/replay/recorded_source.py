"""The records of one source with their times, replayed in portions of any size."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from itertools import accumulate, pairwise, repeat, starmap
from typing import TYPE_CHECKING, Any, NamedTuple

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
)
from verl_tui.times import LATEST

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from verl_tui.records import SourceStatus
    from verl_tui.replay.timing import Timing

_BATCH = 1000
"""Most records and rows in one batch, which takes some milliseconds to apply."""
AFTERMATH = 3600.0
"""Longest time in seconds from the last step to a file's last change: a later one is of a copy."""
_EARLIEST = 1e8
"""Seconds since the epoch; earlier times are invalid, as in `verl_tui.times.parse_time`."""

_WITH_STEP = Histogram | Sample | Dump | Progress | Event
_BEFORE_END = Dump | Progress | MetricRows | Settings
"""Records that never count as the end of a source, even if nothing follows them."""


class RunSpan(NamedTuple):
    """First and last moment of a run."""

    begin: float
    end: float


class RecordedSource:
    """One source of one run: its records, with a moment for each, and for each row of metrics."""

    def __init__(self, run: str, batches: Sequence[Batch]) -> None:
        """Keep the batches of a source, in their order."""
        import numpy as np

        self.run = run
        parts = [list(_parts(batch.records)) for batch in batches]
        self.records = [record for some in parts for record in some]
        self._statuses = [batch.status for batch in batches]
        self._final = self._statuses[-1]
        self._ends = [*accumulate(sum(map(_size, some)) for some in parts)]
        """Number of moments up to the end of each batch."""
        sizes = np.array([*map(_size, self.records)], np.int64)
        self._indices = np.repeat(np.arange(len(sizes)), sizes)
        """Index of the record of each moment."""
        begins = np.cumsum(sizes) - sizes
        self._rows = np.arange(len(self._indices)) - begins[self._indices]
        """Index of its row in the record."""
        self.moments: Any = np.full(len(self._indices), math.nan)
        """Seconds since the epoch. Before `set_times` in the order of the records, nan where
        nothing before has a time, inf if unknown.
        """
        self._begin = 0.0
        self._taken: int | None = None
        """Number of moments taken; None before the first batch."""

    def marks(self, *, dumps: bool) -> Iterator[tuple[float, int | None]]:
        """Yield moments with the step reached, None at a restart from the beginning.

        Args:
            dumps: Whether dumps and all rows show steps, for want of anything better.
        """
        indices, rows = self._indices.tolist(), self._rows.tolist()
        moments = self.moments.tolist()
        for moment, index, row in zip(moments, indices, rows, strict=True):
            record = self.records[index]
            if _is_restart(record):
                yield moment, None
            elif steps := _steps(record, dumps=dumps):
                yield moment, steps[row]

    # -- times -------------------------------------------------------------------------------------

    def find_times(self, timing: Timing) -> None:
        """Find the moments.

        A record with a step has the time of that step wherever it was read, others have the time of
        the record before them. A restarted source goes on from there, whatever its clock says.
        """
        import numpy as np

        times = self._times(timing)
        begin = reached = math.nan
        last, stop = -1, 0
        for index, record in enumerate(self.records):
            start, stop = stop, stop + _size(record)
            if _is_restart(record):
                begin = np.fmax.reduce(self.moments[:start], initial=math.nan)
            own = np.fmax.accumulate(times[start:stop])
            if isinstance(record, MetricRows):
                dated = record.progress
            else:
                dated = not math.isnan(own[0])
                own = own if dated else np.array([reached])
            last = index if dated else last
            if dated and not isinstance(record, Progress):
                # readers hand progress on before all else
                reached = np.fmax(reached, own[-1])
            self.moments[start:stop] = np.fmax(begin, own)
        self._find_end(last)

    def _times(self, timing: Timing) -> Any:
        """Return the times as rows state them, else those of their steps, nan where there is none:
        those before a restart no later than the first time after it.
        """
        import numpy as np

        pairs = [pair for record in self.records for pair in _stated(record)]
        steps, stated = np.array(pairs, np.float64).reshape(-1, 2).T
        valid = (stated > _EARLIEST) & (stated < LATEST)
        times = np.where(valid, stated, timing.at(steps))
        restarts = [i for i, one in enumerate(self.records) if i and _is_restart(one)]
        cuts = np.searchsorted(self._indices, restarts).tolist()
        for first, cut in reversed([*pairwise([0, *cuts])]):
            over = np.fmin.reduce(times[cut:], initial=math.inf)
            early = times[first:cut]
            early[~valid[first:cut]] = np.minimum(early, over)[~valid[first:cut]]
        return times

    def _find_end(self, last: int) -> None:
        """Give records behind the last step the time of the file's last change, if plausible.

        In a source without any time all but settings come at its end.

        Args:
            last: Index of the newest record with a time of its own.
        """
        import numpy as np

        end = np.fmax.reduce(self.moments, initial=math.nan)
        end = math.inf if math.isnan(end) else end
        if 0 < (self._final.modified or 0.0) - end <= AFTERMATH:
            end = self._final.modified or 0.0
        for at, index in enumerate(self._indices.tolist()):
            if index > last and not isinstance(self.records[index], _BEFORE_END):
                self.moments[at] = end

    def set_times(self, span: RunSpan, shift: float) -> None:
        """Put the records in the order of their times.

        Args:
            span: Beginning and end of the run; records without time come at its beginning.
            shift: Seconds by which the run is replayed later than it took place.
        """
        import numpy as np

        written = self._final.modified or span.end
        last = span.end if written > span.end + AFTERMATH else max(written, span.begin)
        moments = np.nan_to_num(self.moments, nan=span.begin, posinf=last)
        order = np.argsort(moments, kind="stable")
        self.moments = (moments[order] + shift).tolist()
        self._indices = self._indices[order]
        self._rows = self._rows[order]
        self._begin = span.begin + shift
        if shift:
            self.records = [_moved(record, shift) for record in self.records]

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
        return Batch(self.run, self._status(moment), tuple(self._cut(start, stop)))

    def _cut(self, start: int, stop: int) -> Iterator[Record]:
        """Yield records, with the rows that belong to one and are taken together in one."""
        parts: dict[int, tuple[MetricRows, list[int]]] = {}
        rows = self._rows[start:stop].tolist()
        for index, row in zip(self._indices[start:stop].tolist(), rows, strict=True):
            record = self.records[index]
            if isinstance(record, MetricRows):
                parts.setdefault(index, (record, []))[1].append(row)
            else:
                yield from starmap(_sliced, parts.values())
                parts.clear()
                yield record
        yield from starmap(_sliced, parts.values())

    def _status(self, moment: float) -> SourceStatus:
        """Return the status of the source as if its file ended after the records taken."""
        import numpy as np

        taken = self._taken or 0
        over = taken >= len(self.moments)
        status = self._statuses[-1 if over else bisect_left(self._ends, taken)]

        def so_far(name: str) -> int:
            known = [0, *(getattr(one, name) for one in self._statuses)]
            return int(np.interp(taken, [0, *self._ends], known))

        return status._replace(
            records=so_far("records"),
            unreadable=so_far("unreadable"),
            bytes_read=so_far("bytes_read"),
            size=so_far("bytes_read"),
            modified=None if status.modified is None else moment,
            to_come=not over,
        )


def _parts(records: Iterable[Record]) -> Iterator[Record]:
    """Yield records, in two parts what has step and total but is no bar: the total was known from
    the start.
    """
    for record in records:
        match record:
            case Progress(step=int(), total=int(), elapsed=None):
                yield record._replace(step=None)
        yield record


def _size(record: Record) -> int:
    return len(record.steps) if isinstance(record, MetricRows) else 1


def _steps(record: Record, *, dumps: bool = False) -> Sequence[int]:
    """Return the steps that training has reached by a record, in a run of nothing else by a
    dump.
    """
    if isinstance(record, MetricRows):
        return record.steps if record.progress or dumps else ()
    if not isinstance(record, Dump if dumps else Progress) or record.step is None:
        return ()
    return (record.step,)


def _stated(record: Record) -> Iterator[tuple[float, float]]:
    """Yield the step and the time that a record, or each row of it, states; nan for none."""
    if isinstance(record, MetricRows):
        times = record.times or repeat(math.nan, len(record.steps))
        yield from zip(record.steps, times, strict=True)
    elif isinstance(record, _WITH_STEP) and record.step is not None:
        yield record.step, math.nan
    else:
        yield math.nan, math.nan


def _is_restart(record: Record) -> bool:
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
