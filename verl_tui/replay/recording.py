"""All records of some logs, kept in memory to be replayed in the order of their times."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import replace
from itertools import chain, repeat
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from verl_tui.means import clamp, gathered
from verl_tui.records import (
    Batch,
    Dump,
    Event,
    MetricRows,
    Progress,
    Record,
    Restart,
    SourceStatus,
)
from verl_tui.runs.clock import Clock
from verl_tui.runs.run import Run
from verl_tui.runs.time.forecast import pace
from verl_tui.runs.time.step_clocks import TIMERS, clocks
from verl_tui.sources.feed import Feed
from verl_tui.times import EARLIEST, LATEST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from verl_tui.sources.discovery.finder import Discovery

_BATCH = 1000
"""Most records and rows in one batch, which takes some milliseconds to apply."""
_AFTERMATH = 3600.0
"""Longest time in seconds from the last step to a file's last change: a later one is of a copy."""
_LONGEST = 3e9
"""Seconds of a step from which its times are beyond all clocks: a century."""
_BEYOND = 10
"""Most steps extrapolated beyond the known times; farther ones belong to another count."""


# -- one source ------------------------------------------------------------------------------------


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
        self._last = batches[-1].status
        parts = [[*_parts(record)] for record in self._records]
        self._indices = np.repeat(np.arange(len(parts)), [*map(len, parts)])
        """Index of the record of each moment."""
        self._rows = np.array([row for rows in parts for row in range(len(rows))], int)
        """Index of its row in the record."""
        stated = np.array([*chain(*parts)], np.float64).reshape(-1, 2)
        self._steps = stated[:, 0]
        self.moments: Any = self._times(stated[:, 1], clock)
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
        valid = (stated > EARLIEST) & (stated < LATEST)
        times = np.where(valid, stated, clock(self._steps))
        dated = ~np.isnan(times)
        # Readers hand progress on before all else.
        leads = np.where(dated & ~self._are(Progress), np.arange(len(times)), -1)
        before = np.maximum.accumulate(leads)
        carried = np.where(before < 0, math.nan, times[before])
        times = np.where(dated, times, carried)
        end = np.fmax.reduce(times, initial=math.nan)
        written = self._last.modified or 0.0
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

    def marks(self) -> Iterator[tuple[float, float | None]]:
        """Yield moments with the step reached, None at a restart from the beginning."""
        moments, indices = self.moments.tolist(), self._indices.tolist()
        for moment, index, step in zip(
            moments, indices, self._steps.tolist(), strict=True
        ):
            if _is_restart(self._records[index]):
                yield moment, None
            elif not math.isnan(step):
                yield moment, step

    def set_times(self, span: tuple[float, float], shift: float) -> None:
        """Put the records in the order of their times.

        Args:
            span: Beginning and end of the run; records without time come at its beginning.
            shift: Seconds by which the run is replayed later than it took place.
        """
        begin, end = span
        written = self._last.modified or end
        last = end if written > end + _AFTERMATH else max(written, begin)
        moments = np.nan_to_num(self.moments, nan=begin, posinf=last)
        order = np.argsort(moments, kind="stable")
        self.moments = (moments[order] + shift).tolist()
        self._indices, self._rows = self._indices[order], self._rows[order]
        self._begin = begin + shift
        if shift:
            self._records = [_moved(record, shift) for record in self._records]

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
        rows: dict[int, list[int]] = {}
        taken = self._indices[start:stop].tolist(), self._rows[start:stop].tolist()
        for index, row in zip(*taken, strict=True):
            if isinstance(self._records[index], MetricRows):
                rows.setdefault(index, []).append(row)
            else:
                yield from self._sliced(rows)
                rows = {}
                yield self._records[index]
        yield from self._sliced(rows)

    def _sliced(self, rows: dict[int, list[int]]) -> Iterator[MetricRows]:
        """Yield neighbouring rows of records."""
        for index, own in rows.items():
            whole, part = self._records[index], slice(own[0], own[-1] + 1)
            assert isinstance(whole, MetricRows)
            yield whole._replace(
                steps=whole.steps[part],
                columns=tuple([column[part] for column in whole.columns]),
                orders=whole.orders[part],
                times=whole.times[part],
            )

    def _status(self, moment: float) -> SourceStatus:
        """Return the status of the source as if its file ended after the records taken."""
        last, count = self._last, len(self.moments)
        share = (self._taken or 0) / count if count else 1.0
        size = int(share * last.bytes_read)
        return last._replace(
            records=int(share * last.records),
            unreadable=int(share * last.unreadable),
            bytes_read=size,
            size=size,
            modified=None if last.modified is None else moment,
            to_come=share < 1,
        )


def _parts(record: Record) -> Iterator[tuple[float, float]]:
    """Yield the step and the time that a record, or each row of it, states; nan for none."""
    if isinstance(record, MetricRows):
        times = record.times or repeat(math.nan)
        yield from zip(record.steps, times, strict=bool(record.times))
    else:
        step = None if isinstance(record, Restart) else getattr(record, "step", None)
        yield math.nan if step is None else step, math.nan


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


# -- one run ---------------------------------------------------------------------------------------


class RecordedRun:
    """One run of a recording: when it reached its steps, and its sources.

    Args:
        name: Name of the run.
        batches: All batches of its sources, in their order.
    """

    def __init__(self, name: str, batches: Sequence[Batch]) -> None:
        run = Run(name)
        for batch in batches:
            run.apply(batch, 0.0)
        usual = pace(run)
        self._usual = min(usual.seconds, _LONGEST) if usual else 1.0
        self._clock = next(iter(clocks(run)), None) or self._paced(run, batches)
        self.estimated = self._clock.estimated
        """True if the times of the steps are estimated."""
        self.pace: str | None = None
        """Basis of the pace if the log has no times, else None."""
        if not self._clock.origin or self._clock.origin.startswith(TIMERS):
            self.pace = f"paced by {usual.origin}" if usual else "a second a step"
        own = gathered((batch.status.path, batch) for batch in batches).values()
        self.sources = [RecordedSource(name, one, self._at) for one in own]
        marks = _marks(self.sources)
        self.moments = [*marks]
        """Moments at which the run reached further steps."""
        self.steps = [*marks.values()]
        """These steps."""
        dated = np.concatenate([[], *map(attrgetter("moments"), self.sources)])
        dated = dated[np.isfinite(dated)]
        self.span = (float(dated.min()), float(dated.max())) if len(dated) else None
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


def _marks(sources: Iterable[RecordedSource]) -> dict[float, int]:
    """Return moments at which further steps were reached, with these steps; after a restart they
    are reached again.
    """
    found: dict[float, int] = {}
    top = -math.inf
    marks = chain.from_iterable(source.marks() for source in sources)
    for moment, step in sorted(marks, key=itemgetter(0)):
        if step is None:
            top = -math.inf
        elif step > top and math.isfinite(moment):
            top = step
            found[moment] = int(step)
    return found


# -- all runs --------------------------------------------------------------------------------------


class Recording:
    """The runs of some paths. Keeps all records in memory, beside those that the app keeps.

    Args:
        discovery: The sources found.
        batches: All batches of the sources.
    """

    def __init__(self, discovery: Discovery, batches: Iterable[Batch]) -> None:
        self.discovery = replace(discovery, runs=())
        by_run = gathered((batch.run, batch) for batch in batches)
        self.runs = {name: RecordedRun(name, own) for name, own in by_run.items()}
        """Runs by name, in the order found."""
        going = [*filter(attrgetter("moments"), self.runs.values())]
        self.together = _at_once(going)
        """True if runs are replayed at their true times, else all start at once."""
        spans = [*filter(None, map(attrgetter("span"), going))]
        begin, end = map(max, zip(*spans, strict=True)) if spans else (0.0, 0.0)
        for recorded in self.runs.values():
            span = recorded.span or (begin, end)
            recorded.set_times(span, 0.0 if self.together else begin - span[0])
        self._sources = [
            *chain.from_iterable(map(attrgetter("sources"), self.runs.values()))
        ]
        self.start = min((recorded.moments[0] for recorded in going), default=begin)
        lasts = (one.moments[-1] for one in self._sources if len(one.moments))
        self.end = max(lasts, default=end)

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
            if progress:
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

    def ahead(self, moment: float, share: float) -> float:
        """Return the moment that lies a share of the recording behind another, within it."""
        return clamp(moment + share * (self.end - self.start), self.start, self.end)

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
            while batch := source.take(until):
                yield batch


def _at_once(runs: Sequence[RecordedRun]) -> bool:
    """True if the runs overlapped in time, as far as their logs have times."""
    if len(runs) > 1 and any(recorded.pace for recorded in runs):
        return False
    spans = sorted(one.span for one in runs if one.span)
    latest = math.inf
    for begin, end in spans:
        if begin > latest:
            return False
        latest = end if latest == math.inf else max(latest, end)
    return True
