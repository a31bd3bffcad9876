"""A run that addresses tell of, as a source."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

from verl_tui.records import MetricRows
from verl_tui.sources.fields.row_batcher import KeptMetrics, RowBatcher, joined_notes
from verl_tui.sources.files.any_source import Source
from verl_tui.sources.formats.prometheus_text.rows import StepRows
from verl_tui.sources.http.addresses import asked_again

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from verl_tui.records import Record, SourceStatus
    from verl_tui.sources.formats.prometheus_text.names import PrometheusSeries
    from verl_tui.sources.formats.prometheus_text.page import Page

SERVER = "Prometheus server"
"""The format of what a server tells."""


class AskedAddress:
    """What an address has answered."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.received = 0
        """Bytes of all answers."""
        self.newest: tuple[Page, float] | None = None
        """Its newest page and when it was asked for, once it has answered with one."""
        self.problem: str | None = None
        """Why it did not answer when it was asked last."""
        self.since: float | None = None
        """Since when it has not answered."""
        self.rounds = 0
        """Number of completed polls, with an answer or without."""
        self.is_paused = False
        """True while it is not to be asked."""

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
        if self.problem is None:
            return None
        return f"{self.problem}{asked_again(self.since)}"


class AddressRun(Source):
    """One run that one or several addresses tell of, as a source: its records are made in one
    thread and taken in another.
    """

    format = SERVER
    rank = 1  # any log of the run knows more
    absolute = True

    def __init__(self, called: str) -> None:
        super().__init__(Path())
        self.name = called
        self.workers: dict[AskedAddress, str] = {}
        """Who asks at its addresses, and which run of its page each has: none, where it names no
        run.
        """
        self._rows = StepRows()
        self._batcher = RowBatcher()
        self._metrics = KeptMetrics()
        self._ready: deque[tuple[Record, ...]] = deque()

    def add(self, lines: list[PrometheusSeries], keys: Mapping[str, str]) -> bool:
        """Make rows of new series, given the log's own keys by the names that our exporter gives
        them; return whether there are any.
        """
        self._batcher.add(self._rows.take(lines, keys))
        records = self._batcher.take()
        if records:
            self._ready.append(records)
        return bool(records)

    def read(self) -> tuple[tuple[Record, ...], bool]:
        """Return the next records, and whether more wait."""
        kept: list[Record] = []
        for one in self._ready.popleft() if self._ready else ():
            if isinstance(one, MetricRows):
                self._records += len(one.steps)
                kept += filter(None, [self._metrics.of(one)])
            else:
                kept.append(one)
        return tuple(kept), bool(self._ready)

    @property
    def _asked(self) -> list[AskedAddress]:
        return [one for one in self.workers if not one.is_paused]

    @property
    def note(self) -> str | None:
        """Return what should be known of its figures."""
        if not any(one.rounds for one in self.workers):
            return "no answer so far"
        count = len(self.workers)
        return joined_notes(
            self._rows.note,
            self._metrics.note,
            f"taken together from {count} addresses" if count > 1 else None,
            *(one.flaw for one in self._asked),
            *(
                f"{one.address}: {one.sentence}"
                for one in self._asked
                if one.sentence and count > 1
            ),
        )

    def status(self) -> SourceStatus:
        """Return how the source is doing: it has a problem where nothing comes from anywhere."""
        troubles = [one.sentence for one in self._asked]
        size = sum(one.received for one in self.workers)
        return (
            super()
            .status()
            ._replace(
                path=next(iter(self.workers)).address,
                bytes_read=size if self._records and not self._ready else 0,
                size=size,
                problem=troubles[0] if troubles and all(troubles) else None,
                findings=self._rows.findings,
            )
        )
