"""Runs that addresses tell of, as sources: of pages of metrics, those of a log's engines among
them, and of servers (`prometheus_server`).

Text in a log is not trusted: no login is sent to the engines it names, and only engine figures are
taken from their pages.
"""

from __future__ import annotations

from collections import deque
from itertools import chain, filterfalse
from pathlib import Path
from typing import TYPE_CHECKING

from verl_tui import prometheus_names
from verl_tui.records import MetricRows
from verl_tui.sources.fields.row_batcher import KeptMetrics, RowBatcher, joined_notes
from verl_tui.sources.files.any_source import Source
from verl_tui.sources.formats.prometheus_text import reader as pages
from verl_tui.sources.formats.prometheus_text.names import PrometheusSeries
from verl_tui.sources.formats.prometheus_text.rows import StepRows
from verl_tui.sources.http.addresses import asked_again

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from verl_tui.records import Batch, Record, SourceStatus
    from verl_tui.sources.formats.prometheus_text.reader import Page

SERVER = "Prometheus server"
"""The format of what a server tells."""
MOST = 16
"""Engines of one run that are asked."""
_SILENT = 3600.0
"""Seconds without growth after which a console's engines are taken for gone: heuristic, steps of
large models take tens of minutes, and another program may get the port of an engine that has ended.
"""


class AskedAddress:
    """What an address has answered."""

    problem: str | None = None
    """Why it did not answer when it was asked last."""
    since: float | None = None
    """Since when it has not answered."""
    newest: tuple[Page, float] | None = None
    """Its newest page and when it was asked for, once it has answered with one."""
    received = 0
    """Bytes of all answers."""
    rounds = 0
    """Number of completed polls, with an answer or without."""
    is_paused = False
    """True while it is not to be asked."""

    def __init__(self, address: str) -> None:
        self.address = address

    @property
    def told_runs(self) -> Iterable[str]:
        """The runs of its newest page, by name."""
        return self.newest[0].runs if self.newest else ()

    @property
    def flaw(self) -> str | None:
        """Where its newest page could not be read, and why."""
        flaw = self.newest[0].flaw if self.newest else None
        return f"line {flaw[0]:,} of the page {flaw[1]}" if flaw else None

    @property
    def is_silent(self) -> bool:
        """True if nothing comes from there at present."""
        return not self.rounds or self.problem is not None or self.is_paused

    @property
    def sentence(self) -> str | None:
        """Why nothing comes from there, and since when; None while something does."""
        return self.problem and f"{self.problem}{asked_again(self.since)}"


class AddressRun(Source):
    """One run that one or several addresses tell of, as a source: its records are made in one
    thread and taken in another.
    """

    format = SERVER
    rank = 1  # any log of the run knows more
    absolute = True

    def __init__(self, name: str) -> None:
        super().__init__(Path())
        self.name = name
        self.workers: dict[AskedAddress, str] = {}
        """Who asks at its addresses, and which run of its page each has: none, where it names no
        run.
        """
        self._rows = StepRows()
        self._batcher = RowBatcher()
        self._metrics = KeptMetrics()
        self._ready: deque[tuple[Record, ...]] = deque()

    def add(self, lines: Sequence[PrometheusSeries]) -> bool:
        """Make rows of new series; return whether there are any."""
        self._batcher.add(self._rows.take(lines))
        records = self._batcher.take()
        if records:
            self._ready.append(records)
        return bool(records)

    def read(self) -> tuple[tuple[Record, ...], bool]:
        """Return the next records, and whether more wait."""
        records = self._ready.popleft() if self._ready else ()
        kept = (
            self._metrics.of(one) if isinstance(one, MetricRows) else one
            for one in records
        )
        return self.counted(tuple(filter(None, kept))), bool(self._ready)

    @property
    def _asked(self) -> list[AskedAddress]:
        return [one for one in self.workers if not one.is_paused]

    @property
    def note(self) -> str | None:
        """Return what should be known of its figures."""
        if not any(one.rounds for one in self.workers):
            return "no answer so far"
        count = len(self.workers)
        notes = [self._rows.note, self._metrics.note]
        if count > 1:
            notes.append(f"taken together from {count} addresses")
        for one in self._asked:
            notes.append(one.flaw)
            if one.sentence and count > 1:
                notes.append(f"{one.address}: {one.sentence}")
        return joined_notes(*notes)

    def status(self) -> SourceStatus:
        """Return how the source is doing: it has a problem where nothing comes from anywhere."""
        troubles = [one.sentence for one in self._asked]
        size = sum(one.received for one in self.workers)
        status = super().status()
        return status._replace(
            path=next(iter(self.workers)).address,
            bytes_read=size if self._records and not self._ready else 0,
            size=size,
            problem=troubles[0] if troubles and all(troubles) else None,
            findings=self._rows.findings,
        )


class PageRun(AddressRun):
    """One run that pages tell of; several of them are those of its workers."""

    format = pages.name
    step: int | None = None
    """The step that it is known to have reached, where pages do not state it."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._taken = 0.0
        """When the newest page that was taken was asked for."""
        self._figures = pages.PageFigures()

    def read(self) -> tuple[tuple[Record, ...], bool]:
        """Return what the newest pages of all workers that answer say, if any of them is new."""
        found = {
            worker.address: (worker.newest[0].runs.get(run, ()), worker.newest[1])
            for worker, run in self.workers.items()
            if worker.newest is not None and not worker.is_silent
        }
        newest = max((at for _, at in found.values()), default=0.0)
        if newest > self._taken:
            self._taken = newest
            lines = self._figures.take(found, newest)
            if self.step is not None:
                at_step = {newest: self.step}
                lines.append(PrometheusSeries(prometheus_names.STEPS, {}, at_step))
            self._modified = newest if self.add(lines) else self._modified
        return super().read()


class EngineRun(PageRun):
    """The engines of one run: their figures are of the step that its logs have reached."""

    absolute = False
    step = 0

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._logs: dict[str, SourceStatus] = {}
        """The logs of the run by path, which name engines or do not."""
        self._left_out = 0
        """Engines that are not asked, since there are too many."""
        self._written = 0.0
        """When the log that states its step was written."""

    @property
    def note(self) -> str | None:
        """Return what should be known of the figures."""
        if not self._asked:
            return "no longer asked: the log names none any more, or is silent"
        left_out = f"{self._left_out:,} further engines are not asked"
        return joined_notes(super().note, left_out if self._left_out else None)

    def status(self) -> SourceStatus:
        """Return how they are doing: engines answer whether training goes on or not."""
        status = super().status()
        return status._replace(bytes_read=status.size, modified=None)

    def heed(self, batch: Batch) -> None:
        """Note the engines that a log names, and its step if no newer log states one."""
        self._logs[batch.status.path] = batch.status
        step = batch.newest().get(True)
        written = batch.status.modified or 0.0
        if step is not None and written >= self._written:
            self._written, self.step = written, step

    def look(self, now: float, poller: Callable[[str], AskedAddress]) -> None:
        """Ask the engines that logs name, and no others; those that are too many are counted."""
        logs = self._logs.values()
        fresh = [log for log in logs if now - (log.modified or now) < _SILENT]
        named = [*dict.fromkeys(chain.from_iterable(log.engines for log in fresh))]
        self._left_out = max(0, len(named) - MOST)
        known = {one.address for one in self.workers}
        for address in filterfalse(known.__contains__, named[:MOST]):
            self.workers[poller(address)] = pages.NOBODYS
        for one in self.workers:
            one.is_paused = one.address not in named[:MOST]
