"""One training job: everything its sources have yielded so far. Only `verl_tui.monitor` changes
it.
"""

from __future__ import annotations

from array import array
from collections import deque
from operator import sub
from typing import TYPE_CHECKING, Any

from verl_tui.records import (
    Batch,
    Dump,
    Event,
    EventKind,
    Histogram,
    MetricRows,
    Progress,
    Pulse,
    Record,
    Restart,
    Sample,
    Settings,
    Unreadable,
)
from verl_tui.runs.cached import cached_by_revision
from verl_tui.runs.clock import Clock
from verl_tui.runs.combined import RestartMark, continued, last_record, marks, outcome
from verl_tui.runs.logged_metrics import LoggedMetrics
from verl_tui.runs.samples import Histograms, Samples
from verl_tui.runs.settings import RunSettings, planned_steps
from verl_tui.runs.source_state import SourceState
from verl_tui.runs.table import Table, precedence
from verl_tui.times import dated
from verl_tui.trainers import differences

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from verl_tui.records import GpuReading, SourceStatus
    from verl_tui.runs.series import Series

_KEPT_EVENTS = 500
_NAN = float("nan")
_ABOUT_CHECKPOINTS = frozenset(
    {EventKind.CHECKPOINT, EventKind.BEST, EventKind.SAVED, EventKind.REMOVED}
)


class LostTime:
    """The seconds lost since the newest record of training, as far as we saw."""

    def __init__(self) -> None:
        self._record: float | None = None
        """Time of the record that `_seconds` count from."""
        self._seconds = 0.0
        self._stopped: float | None = None
        """Since when the process is stopped."""

    def since(self, record: float | None, now: float) -> float:
        """Return the seconds lost since the newest record, which was at this time."""
        before = self._seconds if record == self._record else 0.0
        return before + max(
            0.0, now - (now if self._stopped is None else self._stopped)
        )

    def add(self, record: float | None, seconds: float) -> None:
        """Count seconds, unless the process is stopped: they are counted when it goes on."""
        if self._stopped is None:
            self._seconds = self.since(record, 0.0) + seconds
            self._record = record

    def note(self, record: float | None, now: float, *, stopped: bool) -> None:
        """Note whether the process is stopped now."""
        if stopped and self._stopped is None:
            self._stopped = now
        elif not stopped and self._stopped is not None:
            self._seconds, self._record = self.since(record, now), record
            self._stopped = None


class Run(LoggedMetrics):
    """One training job."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.sources: dict[str, SourceState] = {}
        """By path, in the order they were found."""
        self.samples = Samples()
        self.histograms = Histograms()
        self.config = RunSettings()
        self.settings: dict[str, Any] = self.config.values
        """Flat settings, e.g. `data.max_response_length`; the most trusted source that states one
        holds.
        """
        self.settings_origin: dict[str, str] = self.config.origins
        self.events: deque[Event] = deque(maxlen=_KEPT_EVENTS)
        self.checkpoints: dict[int, str] = {}
        """Step -> directory of the checkpoints seen."""
        self.called_best: list[str] = []
        """Directories of checkpoints that the trainer itself called the best."""
        self.saved_step: int | None = None
        """Step of the newest checkpoint that verl's tracker file calls complete, None where there
        is no such file.
        """
        self._restarts: list[RestartMark] = []
        self._continued: Sequence[tuple[SourceState, SourceState]] = ()
        """Sources, each with the one that goes on from it."""
        self.stated = Clock("times in the log")
        """When steps were reached, by times that records state."""
        self.watched = Clock("arrival while we watched")
        """When steps were reached, by when their records arrived."""
        self.gpus: GpuReading | None = None
        """The newest reading of this machine's GPUs, None before the first."""
        self.quiet_after_end = 0.0
        """Most seconds without a write since the run's end was logged, while we watched."""
        self._lost = LostTime()
        self.step: int | None = None
        """Step the run has reached: the highest of its newest segment; None before the first."""
        self.outcome: Event | None = None
        """The event that ended the run, None if some source shows that it went on."""
        self.last_record: float | None = None
        """Time of the newest record of training in seconds since the epoch."""
        self.dated_by_file = False
        """True if only a file's time dates the newest record; it may be that of a copy."""
        self.preview = False
        """True if it is made of parts of its logs, and another is being made of all of them."""
        self.revision = 0
        """Grows with every change."""

    # -- reading -----------------------------------------------------------------------------------

    @property
    def read_once(self) -> bool:
        """True if each of its sources has been read to its end, as far as that was then."""
        return all(state.read_once for state in self.sources.values())

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths of the sources."""
        return tuple(self.sources)

    @property
    def statuses(self) -> Sequence[SourceStatus]:
        """The states of its sources as their readers tell them."""
        return [state.status for state in self.sources.values()]

    @property
    def modified(self) -> float | None:
        """When any of its files last changed, in seconds since the epoch."""
        times = [one.modified for one in self.statuses if one.modified is not None]
        return max(times, default=None)

    @property
    @cached_by_revision
    def reach(self) -> tuple[int, int] | None:
        """First and last step of all that was logged, None before the first."""
        spans = [
            table.span
            for state in self.sources.values()
            for table in state.tables.values()
            if len(table)
        ]
        if not spans:
            return None
        firsts, lasts = zip(*spans, strict=True)
        return min(firsts), max(lasts)

    @property
    @cached_by_revision
    def restarts(self) -> Sequence[RestartMark]:
        """The restarts of the run, by step."""
        return marks(self._restarts, self._continued)

    @property
    @cached_by_revision
    def end(self) -> int | None:
        """The last step of the present segment, None without a restart: steps beyond it are old."""
        return self.step if self.restarts else None

    @property
    def total_steps(self) -> int | None:
        """Steps the whole run will take, None where unknown or where the run has gone beyond."""
        reached = self.step or 0
        for state in reversed(self.sources.values()):
            if state.total is not None and state.total >= reached:
                return state.total
        planned = self._planned_steps or 0
        return planned if planned >= max(1, reached) else None

    @property
    @cached_by_revision
    def _planned_steps(self) -> int | None:
        lengths = filter(None, [one.per_epoch for one in self.sources.values()][::-1])
        epochs = self.series("train/epoch") or self.series("epoch")
        shares = (
            zip(epochs.steps[-4:], epochs.values[-4:], strict=True) if epochs else ()
        )
        return planned_steps(self.config, next(lengths, None), shares)

    def present(self, key: str | None) -> Series | None:
        """Return the values up to the run's `end`, None where the log has none."""
        series = self.series(key or "")
        return series and (series.until(self.end) or None)

    def tail(self, key: str, count: int) -> Sequence[float]:
        """Return the last `count` values up to `end`."""
        series = self.present(key)
        return series.tail(count) if series else ()

    @property
    def unreadable(self) -> int:
        """Lines that no reader understood, over all sources."""
        return sum(status.unreadable for status in self.statuses)

    def lost(self, now: float) -> float:
        """Return the seconds since the newest record in which it was stopped or its host slept."""
        return self._lost.since(self.last_record, now)

    # -- changes, made by the monitor --------------------------------------------------------------

    def lose(self, seconds: float) -> None:
        """Count seconds in which its host may have slept: this program stood still as well."""
        self._lost.add(self.last_record, seconds)

    def apply(self, batch: Batch, now: float) -> None:
        """Take in a batch of one of this run's sources.

        Args:
            batch: The records, with the state of their source.
            now: Time of arrival in seconds since the epoch; the time of records that were appended
                as we watched.
        """
        self._note_quiet(batch)
        state = self._source(batch, now)
        arrival = now if batch.live else None
        newest = batch.newest()
        for record in _with_differences(batch.records):
            if isinstance(record, MetricRows):
                self._apply_rows(state, record, arrival, newest.get(record.progress))
            elif isinstance(record, Pulse):
                state.life.pulse(record)
            else:
                self._apply(state, record, arrival)
        stopped = any(one.writer and one.writer.stopped for one in self.statuses)
        self._lost.note(self.last_record, now, stopped=stopped)
        self._sum_up()
        self.revision += 1

    def _sum_up(self) -> None:
        """Update the facts that follow from all sources together."""
        states = self.sources.values()
        if len(states) > 1:
            self._continued = continued(states)
        self.step = self._reached()
        self.outcome = outcome(states, self.step)
        if self.outcome is None:
            self.quiet_after_end = 0.0
        places = self.samples.places
        newest = last_record(states, places[-1].step if places else None)
        self.last_record, self.dated_by_file = newest

    def _reached(self) -> int | None:
        """Return the highest step of the newest segment, among sources that no other one
        continues.
        """
        passed = {id(before) for before, _ in self._continued}
        reached = [
            (state.segment, state.step)
            for state in self.sources.values()
            if state.step is not None and id(state) not in passed
        ]
        return max(reached, default=(0, None))[1]

    def _source(self, batch: Batch, now: float) -> SourceState:
        """Return the state of a batch's source, with its status brought up to date."""
        state = self.sources.get(batch.status.path)
        if state is None:
            state = self.sources[batch.status.path] = SourceState(batch.status)
        if batch.live and batch.status.bytes_read > state.status.bytes_read:
            state.life.grew = now
        state.status = batch.status
        state.read_once |= batch.status.whole or batch.status.problem is not None
        return state

    def _note_quiet(self, batch: Batch) -> None:
        """Note for how long nothing was written before what has just been appended."""
        if batch.live and self.outcome is not None:
            quiet = (batch.status.modified or 0.0) - (self.modified or 0.0)
            self.quiet_after_end = max(self.quiet_after_end, quiet)

    def _apply(self, state: SourceState, record: Record, arrival: float | None) -> None:
        match record:
            case Histogram():
                self.histograms.add(record, _precedence(state))
            case Sample():
                self._apply_sample(state, record, arrival)
            case Dump():
                self.samples.add_dump(record)
                state.life.progress(None, None, _written(record, state.status))
            case Unreadable():
                state.unreadable.append(record)
            case Restart():
                self._apply_restart(state, record)
            case Progress() if state.advance(record):
                state.life.progress(arrival, None, state.status.modified)
            case Settings():
                self.config.apply(record)
            case Event():
                self._apply_event(state, record)

    def _apply_rows(
        self,
        state: SourceState,
        rows: MetricRows,
        arrival: float | None,
        newest: int | None,
    ) -> None:
        stated = dated(rows.times)
        if stated is not rows.times:
            rows = rows._replace(times=stated)
        times = array("d", rows.times or _arrivals(state, rows, arrival, newest))
        order = _precedence(state, estimated=rows.estimated)
        for part in state.grouping.parts(rows):
            self._table(state, part, rows).extend(part, order, times)
        if rows.progress:
            self._note_steps(state, rows, times, arrival)
        elif rows.times:
            state.life.figures(rows.times[-1])

    def _table(self, state: SourceState, part: MetricRows, rows: MetricRows) -> Table:
        """Return the table of a source's segment that holds a part of the keys of some rows."""
        kind = part.keys, part.mean, part.estimated
        table = state.tables.get(kind)
        if table is None:
            table = state.tables[kind] = self.add_table(part, state.status.path)
            state.metrics.update(part.keys if rows.progress else ())
        return table

    def _note_steps(
        self,
        state: SourceState,
        rows: MetricRows,
        times: array[float],
        arrival: float | None,
    ) -> None:
        """Note the steps of rows that show progress, and when they were reached."""
        if state.restarted is not None:
            left = state.left, state.ended
            self._restarts.append(
                RestartMark(rows.steps[0], state.restarted, state.status.path, *left)
            )
            state.restarted = None
        state.note_steps(rows)
        (self.stated if rows.times else self.watched).note(rows.steps, times)
        written = rows.times[-1] if rows.times else None
        state.life.progress(
            arrival, written, state.status.modified, absolute=state.status.absolute
        )

    def _apply_restart(self, state: SourceState, restart: Restart) -> None:
        if restart.step is None:
            state.begin_anew(restart.reason)
        else:
            self.samples.forget(
                restart.step,
                validation=restart.validation,
                format_name=state.status.format,
            )

    def _apply_sample(
        self, state: SourceState, sample: Sample, arrival: float | None
    ) -> None:
        step = sample.step
        if step is None:
            step = state.step or self._reached() or 0
        self.samples.add(sample, step, state.status.format, state.status.rank)
        state.life.progress(arrival, None, state.status.modified)

    def _apply_event(self, state: SourceState, event: Event) -> None:
        if event.kind in _ABOUT_CHECKPOINTS:
            self._apply_checkpoint(event, state.step)
            return
        event = event if event.step is not None else event._replace(step=state.step)
        if event.kind is EventKind.STARTED:
            self._apply_start(state)
        elif event.kind is EventKind.RESUMED and event.step is not None:
            state.resume(event.step)
        if event.raised or event.kind is EventKind.WARNING:
            state.troubles.add(event, state.step)
        if event.kind not in (EventKind.STAGE, EventKind.WARNING):
            self.events.append(event)
        state.end(event)

    def _apply_start(self, state: SourceState) -> None:
        """Begin a further segment where training had begun before this start."""
        if state.ending is not None:
            state.begin_anew("another start behind an end")
        elif state.rows > 0 or self._is_complete():
            state.begin_anew("another start")

    def _is_complete(self) -> bool:
        """Return whether the run has made its last step, by what has been read so far."""
        self.step = self._reached()
        total = self.total_steps
        return self.step is not None and total is not None and self.step >= total

    def _apply_checkpoint(self, event: Event, reached: int | None) -> None:
        if event.kind is EventKind.SAVED:
            self.saved_step = event.step
            return
        if event.kind is EventKind.REMOVED:
            self._forget_checkpoint(event.text)
            return
        step = event.step
        if event.kind is EventKind.BEST:
            self.called_best.append(event.text)
        else:
            self.events.append(event)
            step = reached if step is None else step
        # A path found on disk (no line mentions it) holds; a console names paths of its machine.
        if step is not None and (not event.line or step not in self.checkpoints):
            self.checkpoints[step] = event.text

    def _forget_checkpoint(self, path: str) -> None:
        known = self.checkpoints.items()
        self.checkpoints = {step: kept for step, kept in known if kept != path}
        self.called_best = [kept for kept in self.called_best if kept != path]


def _with_differences(records: Iterable[Record]) -> Iterator[Record]:
    """Yield records with what a trainer logs only as the difference of two metrics of a record."""
    for record in records:
        found = differences(record.keys) if isinstance(record, MetricRows) else ()
        if not isinstance(record, MetricRows) or not found:
            yield record
            continue
        columns = record.columns
        made = [[*map(sub, columns[more], columns[less])] for _, more, less in found]
        names = [name for name, _, _ in found]
        yield record._replace(keys=(*record.keys, *names), columns=(*columns, *made))


def _precedence(state: SourceState, *, estimated: bool = False) -> int:
    status = state.status
    return precedence(status.rank, status.ordinal, state.segment, estimated=estimated)


def _written(dump: Dump, status: SourceStatus) -> float | None:
    """Return when a dump was written: none of a replay later than it is shown, as copies are."""
    known = (dump.modified, status.modified)
    return min([time for time in known if time is not None], default=None)


def _arrivals(
    state: SourceState, rows: MetricRows, arrival: float | None, newest: int | None
) -> list[float]:
    """Return when rows without times arrived, nan if that does not date their steps."""
    # Lines far behind the progress bar were kept in a buffer for long.
    behind = newest is not None and newest < (state.step or newest) - 1
    arrived = _NAN if arrival is None or behind else arrival
    return [arrived if step == newest else _NAN for step in rows.steps]
