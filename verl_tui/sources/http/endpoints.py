"""Pages of metrics of one or several processes, which are taken together as runs."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from verl_tui.sources.fields.row_batcher import RowBatcher, joined_notes
from verl_tui.sources.formats.prometheus_text.scraped_rows import ScrapedRows, runs_in
from verl_tui.sources.formats.prometheus_text.scrapes import (
    Scrape,
    Scrapes,
    instance_of,
)
from verl_tui.sources.http.poller import KEPT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from verl_tui.records import Record
    from verl_tui.sources.formats.prometheus_text.scrapes import ScrapeFigures
    from verl_tui.sources.http.poller import Poller


class PageRun:
    """One run that pages tell of; several of them are those of its workers."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.workers: dict[Poller, deque[tuple[float, Scrape]]] = {}
        """The pages of each that wait, with the time at which each was asked for."""
        self.modified: float | None = None
        """When the newest page that said something was asked for."""
        self.left_out = 0
        """Runs of the newest page that are not shown, since it has too many."""
        self._scrapes = Scrapes()
        self._rows = ScrapedRows()
        self._batcher = RowBatcher()

    @property
    def note(self) -> str | None:
        """Return what should be known of its figures."""
        stepless = "no page states a step: each page counts as one"
        others = f"{self.left_out:,} further runs of the page are not shown"
        return joined_notes(
            self._scrapes.note,
            stepless if self._rows.stepless else None,
            others if self.left_out else None,
        )

    @property
    def findings(self) -> tuple[tuple[str, str], ...]:
        """Return what our exporter has found."""
        return self._scrapes.findings

    def put(self, worker: Poller, time: float, scrape: Scrape) -> None:
        """Take a page, or the part of it that is of this run."""
        waiting = self.workers.setdefault(worker, deque(maxlen=KEPT))
        waiting.append((time, scrape))

    def take(self) -> tuple[Record, ...]:
        """Return the figures in the pages, as soon as there is one of each worker that answers."""
        while any(self.workers.values()):
            late = max(map(len, self.workers.values())) > 1
            awaited = [
                worker
                for worker, pages in self.workers.items()
                if not pages and not worker.is_silent
            ]
            if awaited and not late:
                break
            self._moment()
        return self._batcher.take()

    def figures(
        self, pages: Mapping[str, Scrape], times: Mapping[str, float]
    ) -> ScrapeFigures:
        """Return the combined figures of the pages of one moment.

        Args:
            pages: By address.
            times: When each was asked for, in seconds since the epoch.
        """
        return self._scrapes.take(pages, times)

    def _moment(self) -> None:
        """Take the next page of each worker that has one."""
        pages: dict[str, Scrape] = {}
        times: dict[str, float] = {}
        for worker, waiting in self.workers.items():
            if waiting:
                address = worker.address.text
                times[address], pages[address] = waiting.popleft()
        newest = max(times.values())
        records = list(self._rows.take(self.figures(pages, times), newest))
        if records:
            self.modified = newest
        self._batcher.add(records)


class EndpointRuns:
    """All runs that the pages of some pollers tell of."""

    def __init__(self, pollers: Sequence[Poller]) -> None:
        self.runs: dict[str, PageRun] = {}
        self._pollers = pollers
        self._nameless: str | None = None
        """The run of pages that name no run, once that is decided."""

    def sort(self) -> None:
        """Give the pages that wait to their runs.

        A page that names no run belongs to the only run that is named; if there are several or
        none, it is a run of its own: not every process of a training names the run.
        """
        parts = list(self._parts())
        named = {*self.runs, *(run for _, run, _, _, _ in parts if run)}
        for poller, run, time, scrape, left_out in parts:
            if not run and self._nameless is None:
                only = next(iter(named)) if len(named) == 1 else None
                self._nameless = only or instance_of(poller.address.text)
            name = run or self._nameless or ""
            one = self.runs.setdefault(name, PageRun(name))
            one.left_out = left_out
            one.put(poller, time, scrape)

    def _parts(self) -> Iterator[tuple[Poller, str, float, Scrape, int]]:
        """Yield the parts of all pages by run, each with how many runs of its page are left out."""
        for poller in self._pollers:
            while poller.pages:
                time, page = poller.pages.popleft()
                runs, left_out = runs_in(page)
                for (run, _), scrape in runs.items():
                    yield poller, run, time, scrape, left_out
