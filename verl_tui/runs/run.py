"""One training job: everything its sources have said so far. Only `verl_tui.monitor` changes it."""

from __future__ import annotations

from array import array
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from verl_tui.distributions import one_each, spreads
from verl_tui.indicators import dialect, resolve
from verl_tui.records import (
    Batch,
    Dump,
    Event,
    EventKind,
    Histogram,
    Progress,
    Pulse,
    Record,
    Restart,
    Rows,
    Sample,
    Settings,
    Unreadable,
)
from verl_tui.runs.cached import cached_by_revision
from verl_tui.runs.clock import Clock
from verl_tui.runs.histograms import Histograms
from verl_tui.runs.last_record import LastRecord, last_record
from verl_tui.runs.newest import measured, newest, since
from verl_tui.runs.restarts import SLACK, RestartMark, continued, marks, starts
from verl_tui.runs.samples import Samples
from verl_tui.runs.series import Series
from verl_tui.runs.settings import RunSettings
from verl_tui.runs.source_state import SourceState, surest
from verl_tui.runs.spelling import Spellings
from verl_tui.runs.table import Table, precedence
from verl_tui.runs.total_steps import planned_steps
from verl_tui.times import dated

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from verl_tui.distributions import Spread
    from verl_tui.records import GpuReading

_KEPT_EVENTS = 500
_NAN = float("nan")
_REASONS = (EventKind.STOPPED, EventKind.FATAL, EventKind.TRACEBACK)
"""Events that say why a run failed."""
_ABOUT_CHECKPOINTS = frozenset(
    {EventKind.CHECKPOINT, EventKind.BEST, EventKind.SAVED, EventKind.REMOVED}
)


class Run:
    """One training job."""

    def __init__(self, name: str) -> None:
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
        self._behind: set[int] = set()
        """Sources that others go on from."""
        self.stated = Clock("times in the log")
        """When steps were reached, by times that records state."""
        self.watched = Clock("arrival while we watched")
        """When steps were reached, by when their records arrived."""
        self._last: tuple[int, LastRecord] = (-1, LastRecord())
        """The newest record of training, and at which revision it was: it is asked for often."""
        self.gpus: GpuReading | None = None
        """The newest reading of this machine's GPUs, None where nobody looked at them."""
        self.hushed = 0.0
        """For how many seconds at most nothing was written since something told how it ended, while
        we watched.
        """
        self._lost: tuple[float | None, float] = (None, 0.0)
        """Time of a record, and the seconds since then in which no further one could be made."""
        self._stopped: float | None = None
        """Since when it is stopped, as far as we saw it."""
        self.revision = 0
        """Grows with every change."""
        self._planned: tuple[int, int | None] = (-1, None)
        """What the settings let the whole run take, and at which revision that was reckoned: it is
        asked for often.
        """
        self._tables: dict[str, list[tuple[Table, int]]] = {}
        self._spellings = Spellings()
        self._series: dict[str, Series] = {}
        self._told: tuple[int, dict[str, Spread], Sequence[str]] = (-1, {}, ())
        """Number of keys, the distributions among them, and what is a metric of its own."""
        self._resolved: tuple[int, dict[str, str], str] = (-1, {}, "other")

    # -- what there is to read ---------------------------------------------------------------------

    @property
    def keys(self) -> tuple[str, ...]:
        """The log's own metric keys, in the order of first appearance; of two spellings of one
        metric the first.
        """
        return tuple(self._tables)

    @property
    def spreads(self) -> Mapping[str, Spread]:
        """The distributions among the metrics, by the key of what is drawn of them as a line."""
        return self._grouped()[0]

    @property
    def metrics(self) -> Sequence[str]:
        """The keys of which each is a metric of its own: of a distribution that of its line
        alone.
        """
        return self._grouped()[1]

    @property
    def odd(self) -> Sequence[str]:
        """Keys that may have had a value that is not finite; all others have not."""
        found = (
            key
            for key, tables in self._tables.items()
            for table, at in tables
            if table.keys[at] in table.odd
        )
        return tuple(dict.fromkeys(found))

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths of the sources."""
        return tuple(self.sources)

    @property
    def step(self) -> int | None:
        """Step the run has reached: the highest of its newest segment; None before the first."""
        known = [state for state in self.sources.values() if id(state) not in self._behind]
        reached = [(state.segment, state.step) for state in known if state.step is not None]
        return max(reached, default=(0, None))[1]

    @property
    def reach(self) -> tuple[int, int] | None:
        """First and last step of all that was logged, None before the first."""
        logged = [
            table
            for state in self.sources.values()
            for table in state.tables.values()
            if len(table)
        ]
        ends = [
            (table.steps[0], table.steps[-1])
            if table.ascending
            else (min(table.steps), max(table.steps))
            for table in logged
        ]
        return (min(first for first, _ in ends), max(last for _, last in ends)) if ends else None

    @property
    @cached_by_revision
    def restarts(self) -> Sequence[RestartMark]:
        """Where the run began anew, by step."""
        return marks(self._restarts, self.sources.values())

    @property
    @cached_by_revision
    def end(self) -> int | None:
        """The last step that tells how the run is now, None where all do: after a restart, those
        beyond are old.
        """
        return self.step if self.restarts else None

    @property
    def total_steps(self) -> int | None:
        """Steps the whole run will take, None where nothing tells, or only what the run has gone
        beyond.
        """
        reached = self.step or 0
        stated = [state.total for state in self.sources.values() if state.total is not None]
        for total in reversed(stated):
            if total >= reached:
                return total
        if self._planned[0] != self.revision:
            self._planned = (self.revision, self._plan())
        planned = self._planned[1]
        return planned if planned is not None and planned >= reached else None

    def _plan(self) -> int | None:
        lengths = [
            state.per_epoch for state in self.sources.values() if state.per_epoch is not None
        ]
        return planned_steps(self.config, self.series, lengths[-1] if lengths else None)

    @property
    def outcome(self) -> Event | None:
        """The event that tells how the run ended, unless some source shows that it went on."""
        valid = [
            state.ending
            for state in self.sources.values()
            if state.ending and self._holds(state, state.ending)
        ]
        found = surest(valid)
        if found is None or not found.bare:
            return found
        # It has failed: what some log says of why is believed, wherever that log has got to.
        told = (
            state.ending
            for state in self.sources.values()
            if state.ending and not state.ending.bare
        )
        return surest(one for one in told if one.kind in _REASONS) or found

    def _holds(self, state: SourceState, ending: Event) -> bool:
        if starts(self.sources.values(), state.status.modified or 0.0):
            return False
        if ending.step is not None:
            return self.step is None or self.step <= ending.step
        written = [
            other.status.modified or 0.0
            for other in self.sources.values()
            if other.step is not None
        ]
        return max(written, default=0.0) <= (state.status.modified or 0.0) + SLACK

    @property
    def dialect(self) -> str:
        """Whose names the log uses: `tutorial`, `verl` or `other`."""
        return self._resolve()[1]

    @property
    def indicators(self) -> dict[str, str]:
        """Indicator id -> the log's own key."""
        return self._resolve()[0]

    def series(self, key: str) -> Series | None:
        """Return the values of a metric by any of its spellings, None where the log has no such
        key.
        """
        key = self._spellings.known(key)
        tables = self._tables.get(key)
        if tables is None:
            return None
        series = self._series.get(key)
        if series is None:
            series = self._series[key] = Series(key)
        series.catch_up(tables)
        return series

    def present(self, key: str | None) -> Series | None:
        """Return the values that tell how the run is now, those up to its `end`; None where the log
        has none.
        """
        series = self.series(key) if key is not None else None
        return (series.until(self.end) or None) if series is not None else None

    def tail(self, key: str, count: int) -> Sequence[float]:
        """Return the last `count` present values; unlike `present` it makes no series where it can
        do without.
        """
        key = self._spellings.known(key)
        found = (
            newest(self._tables.get(key, ()), count, self.end) if key not in self._series else None
        )
        series = self.present(key) if found is None else None
        return series.tail(count) if series is not None else found or ()

    def since(self, key: str, step: int) -> Mapping[int, float]:
        """Return the values from a step on, by step; unlike `series` it makes none where it can do
        without.
        """
        key = self._spellings.known(key)
        found = since(self._tables.get(key, ()), step) if key not in self._series else None
        series = self.series(key) if found is None else None
        return series.since(step) if series is not None else found or {}

    def measured(self, key: str, count: int) -> Sequence[float]:
        """Return the last `count` values of a metric as they were measured: of several in one step
        each.
        """
        return measured(self._tables.get(self._spellings.known(key), ()), count)

    def precedences(self) -> Iterator[int]:
        """Yield the highest precedence among the rows of each metric, see
        `verl_tui.runs.table.precedence`.
        """
        for tables in self._tables.values():
            yield max(table.orders[0] for table, _ in tables if len(table))

    def indicator(self, indicator: str) -> Series | None:
        """Return the values of an indicator, None where the log has nothing of that meaning."""
        key = self.indicators.get(indicator)
        return self.series(key) if key is not None else None

    @property
    def last_record(self) -> float | None:
        """Time of the newest record of training in seconds since the epoch."""
        return self._newest_record().time

    @property
    def dated_by_file(self) -> bool:
        """Whether only a file's time tells of the newest record, which may be that of a copy."""
        return self._newest_record().by_file

    def _newest_record(self) -> LastRecord:
        if self._last[0] != self.revision:
            places = self.samples.places
            self._last = (
                self.revision,
                last_record(self.sources.values(), places[-1].step if places else None),
            )
        return self._last[1]

    @property
    def unreadable(self) -> int:
        """Lines that no reader understood, over all sources."""
        return sum(state.status.unreadable for state in self.sources.values())

    def lost(self, now: float) -> float:
        """Return the seconds since the newest record in which it was stopped or its host slept, as
        far as we saw.
        """
        at, seconds = self._lost
        before = seconds if at == self.last_record else 0.0
        return before + (max(0.0, now - self._stopped) if self._stopped is not None else 0.0)

    # -- what the monitor does ---------------------------------------------------------------------

    def lose(self, seconds: float) -> None:
        """Note that for some seconds nobody was there to see it, nor perhaps it itself: the host
        slept.
        """
        if self._stopped is None:
            at, before = self._lost
            self._lost = self.last_record, seconds + (before if at == self.last_record else 0.0)

    def apply(self, batch: Batch, now: float) -> None:
        """Take in a batch of one of this run's sources.

        Args:
            batch: The records, with the state of their source.
            now: Time of arrival in seconds since the epoch; the time of records that were appended
                as we watched.
        """
        self._note_hush(batch)
        state = self.sources.setdefault(batch.status.path, SourceState(batch.status))
        if batch.live and batch.status.bytes_read > state.status.bytes_read:
            state.life.grew = now
        state.status = batch.status
        arrival = now if batch.live else None
        newest = batch.newest()
        for record in batch.records:
            if isinstance(record, Rows):
                self._apply_rows(state, record, arrival, newest.get(record.progress))
            elif isinstance(record, Pulse):
                state.life.pulse(record)
            else:
                self._take(state, record, arrival)
        self._note_stop(now)
        if self.hushed and self.outcome is None:
            self.hushed = 0.0
        self.revision += 1
        if len(self.sources) > 1:
            self._behind = {id(before) for before, _ in continued(self.sources.values())}

    def _note_hush(self, batch: Batch) -> None:
        """Note for how long nothing was written before what has just been appended."""
        if batch.live and self.outcome is not None:
            before = max(
                (state.status.modified or 0.0 for state in self.sources.values()), default=0.0
            )
            self.hushed = max(self.hushed, (batch.status.modified or 0.0) - before)

    def _note_stop(self, now: float) -> None:
        """Note when its process is stopped, and when it goes on."""
        stopped = any(
            one.status.writer is not None and one.status.writer.stopped
            for one in self.sources.values()
        )
        if stopped and self._stopped is None:
            self._stopped = now
        elif not stopped and self._stopped is not None:
            since, self._stopped = self._stopped, None
            self.lose(max(0.0, now - since))

    def _take(self, state: SourceState, record: Record, arrival: float | None) -> None:
        match record:
            case Histogram():
                self.histograms.add(
                    record, precedence(state.status.rank, state.status.ordinal, state.segment)
                )
            case Sample():
                self._apply_sample(state, record, arrival)
            case Dump():
                self.samples.add_dump(record)
                state.life.progress(None, None, record.modified)
            case Unreadable():
                state.unreadable.append(record)
            case Restart(step=None):
                state.begin_anew(record.reason)
            case Restart():
                self.samples.forget(record.step or 0, validation=record.validation)
            case Progress():
                self._apply_progress(state, record, arrival)
            case Settings():
                self.config.apply(record)
            case Event():
                self._apply_event(state, record)

    def _apply_rows(
        self, state: SourceState, rows: Rows, arrival: float | None, newest: int | None
    ) -> None:
        if (stated := dated(rows.times)) is not rows.times:
            rows = replace(rows, times=stated)
        kind = rows.keys, rows.mean, rows.estimated
        table = state.tables.get(kind)
        if table is None:
            table = state.tables[kind] = Table(rows.keys, mean=rows.mean, reckoned=rows.estimated)
            for column, key in enumerate(rows.keys):
                name = self._spellings.name(key, rows.keys, state.status.path)
                self._tables.setdefault(name, []).append((table, column))
            state.metrics.update(rows.keys if rows.progress else ())
        arrived = arrival if arrival is not None else _NAN
        # Lines far behind the progress bar were kept back by a buffer: they tell nothing of when
        # their step was.
        least = newest if newest is None or state.step is None else max(newest, state.step - 1)
        times = array(
            "d", rows.times or [arrived if step == newest == least else _NAN for step in rows.steps]
        )
        table.extend(rows, self._precedence(state, rows), times)
        if not rows.progress:
            if rows.times:
                state.life.figures(rows.times[-1])
            return
        if state.restarted is not None:
            self._restarts.append(RestartMark(rows.steps[0], state.restarted, state.status.path))
            state.restarted = None
        state.tell(rows)
        if rows.times:
            self.stated.note(rows.steps, rows.times)
        else:
            self.watched.note(rows.steps, times)
        written = rows.times[-1] if rows.times else None
        state.life.progress(arrival, written, state.status.modified, absolute=state.status.absolute)

    def _precedence(self, state: SourceState, rows: Rows) -> int:
        return precedence(
            state.status.rank, state.status.ordinal, state.segment, reckoned=rows.estimated
        )

    def _apply_sample(self, state: SourceState, sample: Sample, arrival: float | None) -> None:
        step = sample.step if sample.step is not None else (state.step or self.step or 0)
        self.samples.add(sample, step)
        state.life.progress(arrival, None, state.status.modified)

    def _apply_progress(
        self, state: SourceState, progress: Progress, arrival: float | None
    ) -> None:
        if state.advance(progress):
            state.life.progress(arrival, None, state.status.modified)

    def _apply_event(self, state: SourceState, event: Event) -> None:
        if event.kind in _ABOUT_CHECKPOINTS:
            self._apply_checkpoint(event, state.step)
            return
        event = event if event.step is not None else replace(event, step=state.step)
        if event.kind is EventKind.STARTED and (
            state.ending is not None or state.rows or self._complete
        ):
            state.begin_anew(
                "another start behind an end" if state.ending is not None else "another start"
            )
        if event.kind is EventKind.RESUMED and event.step is not None:
            state.resume(event.step)
        if event.actor or event.kind is EventKind.WARNING:
            state.errors.add(event, state.step)
        if event.kind is not EventKind.STAGE:
            self.events.append(event)
        state.end(event)

    @property
    def _complete(self) -> bool:
        return (
            self.step is not None and self.total_steps is not None and self.step >= self.total_steps
        )

    def _apply_checkpoint(self, event: Event, reached: int | None) -> None:
        step = event.step
        if event.kind is EventKind.SAVED:
            self.saved_step = step
        elif event.kind is EventKind.REMOVED:
            self.checkpoints = {
                at: path for at, path in self.checkpoints.items() if path != event.text
            }
            self.called_best = [path for path in self.called_best if path != event.text]
        elif event.kind is EventKind.BEST:
            self.called_best.append(event.text)
        else:
            self.events.append(event)
            step = step if step is not None else reached
        # What lies on disk (no line tells of it) is where it is; the console names it as its own
        # machine does.
        new = step is not None and (not event.line or step not in self.checkpoints)
        if new and step is not None and event.kind in (EventKind.BEST, EventKind.CHECKPOINT):
            self.checkpoints[step] = event.text

    def _grouped(self) -> tuple[Mapping[str, Spread], Sequence[str]]:
        count, found, metrics = self._told
        if count != len(self._tables):
            found = {spread.line: spread for spread in spreads(self._tables).values()}
            metrics = tuple(one_each(self._tables))
            self._told = (len(self._tables), found, metrics)
        return found, metrics

    def _resolve(self) -> tuple[dict[str, str], str]:
        count, indicators, spoken = self._resolved
        if count != len(self._tables):
            indicators, spoken = resolve(self._tables), dialect(self._tables)
            self._resolved = (len(self._tables), indicators, spoken)
        return indicators, spoken
