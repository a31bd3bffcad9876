"""Runs that addresses tell of, as sources: of pages of metrics, and of servers."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

from verl_tui.records import MetricRows
from verl_tui.sources.fields.row_batcher import KeptMetrics, RowBatcher, joined_notes
from verl_tui.sources.files.any_source import Source
from verl_tui.sources.formats.prometheus_text import reader as pages
from verl_tui.sources.formats.prometheus_text.rows import StepRows
from verl_tui.sources.http.addresses import asked_again

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from verl_tui.records import Record, SourceStatus
    from verl_tui.sources.formats.prometheus_text.names import PrometheusSeries
    from verl_tui.sources.formats.prometheus_text.reader import Page

SERVER = "Prometheus server"
"""The format of what a server tells."""


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
        return not self.rounds or self.problem is not None

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
    def note(self) -> str | None:
        """Return what should be known of its figures."""
        if not any(one.rounds for one in self.workers):
            return "no answer so far"
        count = len(self.workers)
        notes = [self._rows.note, self._metrics.note]
        if count > 1:
            notes.append(f"taken together from {count} addresses")
        for one in self.workers:
            notes.append(one.flaw)
            if one.sentence and count > 1:
                notes.append(f"{one.address}: {one.sentence}")
        return joined_notes(*notes)

    def status(self) -> SourceStatus:
        """Return how the source is doing: it has a problem where nothing comes from anywhere."""
        troubles = [one.sentence for one in self.workers]
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
            self._modified = newest if self.add(lines) else self._modified
        return super().read()
