"""One training job: everything its sources have yielded so far. Only `verl_tui.monitor` changes
it.
"""

from __future__ import annotations

from array import array
from collections import deque
from math import inf
from operator import sub
from typing import TYPE_CHECKING, Any

from verl_tui.records import (
    Batch,
    Dump,
    Event,
    EventKind,
    GpuReading,
    Histogram,
    MetricRows,
    Progress,
    Pulse,
    Record,
    Restart,
    Sample,
    Settings,
    SourceStatus,
    Unreadable,
)
from verl_tui.runs.cached import cached_by_revision
from verl_tui.runs.clock import Clock
from verl_tui.runs.combined import RestartMark, continued, last_record, marks, outcome
from verl_tui.runs.logged_metrics import LoggedMetrics
from verl_tui.runs.samples import Histograms, Samples
from verl_tui.runs.settings import RunSettings, planned_steps
from verl_tui.runs.source_state import SourceState
from verl_tui.runs.table import precedence
from verl_tui.times import dated
from verl_tui.trainers import differences

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.runs.series import Series

_KEPT_EVENTS = 500
_NAN = float("nan")
_ABOUT_CHECKPOINTS = frozenset(
    {EventKind.CHECKPOINT, EventKind.BEST, EventKind.SAVED, EventKind.REMOVED}
)


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
        """Those within one source."""
        self.restarts: Sequence[RestartMark] = ()
        """All restarts, by step."""
        self.end: int | None = None
        """The last step of the present segment, None without a restart: steps beyond it are old."""
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
        self._lost = 0.0
        """Seconds lost since the newest record, but for those in which it is stopped now."""
        self._stopped: float | None = None
        """Since when its process is stopped."""
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
        if not self.settings:
            return None
        lengths = filter(None, [one.per_epoch for one in self.sources.values()][::-1])
        epochs = self.series("train/epoch") or self.series("epoch")
        shares = (
            zip(epochs.steps[-4:], epochs.values[-4:], strict=True) if epochs else ()
        )
        return planned_steps(self.config, next(lengths, None), shares)

    def present(self, key: str | None) -> Series | None:
        """Return the values up to the run's `end`, None where the log has none."""
        series = self.series(key or "")
        return (series.until(self.end) or None) if series else None

    def tail(self, key: str, count: int) -> Sequence[float]:
        """Return the last `count` values up to `end`."""
        series = self.present(key)
        return series.tail(count) if series else ()

    @property
    def unreadable(self) -> int:
        """Lines that no reader understood, over all sources."""
        return sum(status.unreadable for status in self.statuses)

    @property
    def settings(self) -> dict[str, Any]:
        """Flat settings, e.g. `data.max_response_length`; the most trusted source that states one
        holds.
        """
        return self.config.values

    def lost(self, now: float) -> float:
        """Return the seconds since the newest record in which it was stopped or its host slept."""
        return self._lost + max(0.0, now - (self._stopped or now))

    # -- changes, made by the monitor --------------------------------------------------------------

    def lose(self, seconds: float) -> None:
        """Count seconds in which its host may have slept: this program stood still as well."""
        if self._stopped is None:  # else they are counted when it goes on
            self._lost += seconds

    def apply(self, batch: Batch, now: float) -> None:
        """Take in a batch of one of this run's sources.

        Args:
            batch: The records, with the state of their source.
            now: Time of arrival in seconds since the epoch; the time of records that were appended
                as we watched.
        """
        state = self._source(batch, now)
        arrival = now if batch.live else None
        newest = batch.newest()
        for record in batch.records:
            if isinstance(record, MetricRows):
                self._apply_rows(state, record, arrival, newest.get(record.progress))
            elif isinstance(record, Pulse):
                state.life.pulse(record)
            else:
                self._apply(state, record, arrival)
        stopped = any(one.writer and one.writer.stopped for one in self.statuses)
        self._lost = self.lost(now)
        self._stopped = now if stopped else None
        self._sum_up()
        self.revision += 1

    def _sum_up(self) -> None:
        """Update the facts that follow from all sources together."""
        states = self.sources.values()
        if sum(state.first is not None for state in states) > 1:
            self._continued = continued(states)
        self.step = self._reached()
        known = self._restarts or self._continued
        self.restarts = marks(self._restarts, self._continued) if known else []
        self.end = self.step if self.restarts else None
        self.outcome = outcome(states, self.step)
        if not self.outcome:
            self.quiet_after_end = 0.0
        places, before = self.samples.places, self.last_record
        newest = last_record(states, places[-1].step if places else None)
        self.last_record, self.dated_by_file = newest
        if self.last_record != before:
            self._lost = 0.0

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
        status = batch.status
        if batch.live and self.outcome:
            quiet = (status.modified or 0.0) - (self.modified or 0.0)
            self.quiet_after_end = max(self.quiet_after_end, quiet)
        if status.path not in self.sources:
            self.sources[status.path] = SourceState(status)
        state = self.sources[status.path]
        if batch.live and status.bytes_read > state.status.bytes_read:
            state.life.grew = now
        is_orphan = getattr(status.writer, "gone", False)
        state.life.orphaned = min(now, state.life.orphaned) if is_orphan else inf
        state.status = status
        state.read_once |= status.whole or status.problem is not None
        return state

    def _apply(self, state: SourceState, record: Record, arrival: float | None) -> None:
        match record:
            case Histogram():
                self.histograms.add(record, precedence(state.status, state.segment))
            case Sample():
                self._apply_sample(state, record, arrival)
            case Dump():
                self.samples.add_dump(record)
                # none of a replay later than it is shown, as copies are
                known = filter(None, (record.modified, state.status.modified))
                state.life.progress(None, None, min(known, default=None))
            case Unreadable():
                state.unreadable.append(record)
            case Restart(step=None):
                state.begin_anew(record.reason)
            case Restart(step=int(step)):
                self.samples.forget(step, record.validation, state.status.format)
            case Progress() if state.advance(record):
                state.life.progress(arrival, None, state.status.modified)
            case Settings():
                self.config.apply(record, state.status.path)
            case Event():
                self._apply_event(state, record)

    def _apply_rows(
        self,
        state: SourceState,
        rows: MetricRows,
        arrival: float | None,
        newest: int | None,
    ) -> None:
        for name, parts in differences().items():
            if set(parts) <= set(rows.keys):
                of = dict(zip(rows.keys, rows.columns, strict=True))
                made = [*map(sub, *map(of.__getitem__, parts))]
                keys = (*rows.keys, name)
                rows = rows._replace(keys=keys, columns=(*rows.columns, made))
        if rows.times:
            rows = rows._replace(times=dated(rows.times))
        times = array("d", rows.times or _arrivals(state, rows, arrival, newest))
        order = precedence(state.status, state.segment, estimated=rows.estimated)
        for part in state.grouping.parts(rows):
            kind = part.keys, part.mean, part.estimated
            if kind not in state.tables:
                state.tables[kind] = self.add_table(part, state.status.path)
                state.metrics.update(part.keys if rows.progress else ())
            state.tables[kind].extend(part, order, times)
        if rows.progress:
            self._note_steps(state, rows, times, arrival)
        elif rows.times:
            state.life.figures(rows.times[-1])

    def _note_steps(
        self,
        state: SourceState,
        rows: MetricRows,
        times: array[float],
        arrival: float | None,
    ) -> None:
        """Note the steps of rows that show progress, and when they were reached."""
        if state.restarted:
            left = state.before_restart, state.ended
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
        state.note_ending(event)

    def _apply_start(self, state: SourceState) -> None:
        """Begin a further segment where training had begun before this start."""
        if state.ending:
            state.begin_anew("another start behind an end")
        elif state.rows > 0 or self._is_complete():
            state.begin_anew("another start")

    def _is_complete(self) -> bool:
        """Return whether the run has made its last step, by what has been read so far."""
        self.step = self._reached()
        total = self.total_steps
        return self.step is not None and total is not None and self.step >= total

    def _apply_checkpoint(self, event: Event, reached: int | None) -> None:
        known, step = self.checkpoints, event.step
        match event.kind:
            case EventKind.SAVED:
                self.saved_step = step
                return
            case EventKind.REMOVED:
                self._forget_checkpoint(event.text)
                return
            case EventKind.BEST:
                self.called_best.append(event.text)
            case _:
                self.events.append(event)
                step = reached if step is None else step
        # A path found on disk (no line mentions it) holds; a console names paths of its machine.
        if step is not None and (not event.line or step not in known):
            known[step] = event.text

    def _forget_checkpoint(self, path: str) -> None:
        known = self.checkpoints.items()
        self.checkpoints = {step: kept for step, kept in known if kept != path}
        self.called_best = [kept for kept in self.called_best if kept != path]


def _arrivals(
    state: SourceState, rows: MetricRows, arrival: float | None, newest: int | None
) -> list[float]:
    """Return when rows without times arrived, nan if that does not date their steps."""
    # Lines far behind the progress bar were kept in a buffer for long.
    behind = newest is not None and newest < (state.step or newest) - 1
    arrived = _NAN if arrival is None or behind else arrival
    return [arrived if step == newest else _NAN for step in rows.steps]
