"""Bare `/metrics` endpoints: pages of one or several processes, which are taken together as
runs.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from verl_tui.sources.fields.row_batcher import RowBatcher, joined_notes
from verl_tui.sources.formats.prometheus_text import reader as exposition
from verl_tui.sources.formats.prometheus_text.scraped_rows import (
    ScrapedRows,
    count_left_out,
    runs_in,
)
from verl_tui.sources.formats.prometheus_text.scrapes import (
    PrometheusSample,
    Scrape,
    Scrapes,
    instance_of,
)
from verl_tui.sources.http.addresses import NoAnswerError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from verl_tui.records import Record
    from verl_tui.sources.formats.prometheus_text.scrapes import ScrapeFigures
    from verl_tui.sources.http.addresses import Address
    from verl_tui.sources.http.client import Client

INTERVAL = 5.0
"""Seconds between two pages: a training's steps take longer mostly, and a page costs its process
some milliseconds.
"""
_KEPT = 16
"""Pages that wait at most; then the oldest is dropped."""


class PolledEndpoint:
    """Asks one process for its page. `ask` is called by one thread, again and again; another takes
    from `pages`.
    """

    def __init__(self, address: Address, client: Client) -> None:
        self.address = address
        self.interval = INTERVAL
        self.pages: deque[tuple[float, Scrape]] = deque(maxlen=_KEPT)
        """The pages that wait, each with the time at which it was asked for."""
        self.unreadable = 0
        """Lines of the newest page that could not be read."""
        self._client = client

    def ask(self, now: float) -> None:
        """Ask for the page.

        Args:
            now: Seconds since the epoch.

        Raises:
            NoAnswerError: There is no answer that can be used.
        """
        try:
            page = exposition.read_page(self._body())
        except ImportError as error:
            raise NoAnswerError(exposition.MISSING) from error
        samples: dict[object, PrometheusSample] = {
            one.series: one for scrape in page.scrapes for one in scrape.samples
        }
        if not samples:
            raise NoAnswerError("answers with a page without metrics")
        self.unreadable = len(page.flaws)
        self.pages.append((now, Scrape(tuple(samples.values()), page.scrapes[0].kinds)))

    def _body(self) -> bytes:
        body = self._client.ask(self.address)
        if len(body) > exposition.LARGEST:
            raise NoAnswerError(
                f"answers with more than {exposition.LARGEST >> 20} MiB"
            )
        return body


class PageRun:
    """One run that endpoints export; several of them are its workers."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.workers: dict[str, deque[tuple[float, Scrape]]] = {}
        """By address: the pages of an endpoint that wait."""
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
        stepless = None
        if self._rows.stepless:
            stepless = "no page states a step: each page counts as one"
        others = None
        if self.left_out:
            others = f"{self.left_out:,} further runs of the page are not shown"
        return joined_notes(self._scrapes.note, stepless, others)

    @property
    def findings(self) -> tuple[tuple[str, str], ...]:
        """Return what our exporter has found."""
        return self._scrapes.findings

    def put(self, address: str, time: float, scrape: Scrape) -> None:
        """Take a page, or the part of it that is of this run."""
        self.workers.setdefault(address, deque(maxlen=_KEPT)).append((time, scrape))

    def take(self, failing: Iterable[str]) -> tuple[Record, ...]:
        """Return the figures in the pages, as soon as there is one of each worker that answers.

        Args:
            failing: Addresses that do not answer, which are not waited for.
        """
        absent = set(failing)
        while any(self.workers.values()):
            late = max(map(len, self.workers.values())) > 1
            if not late and any(
                not pages
                for address, pages in self.workers.items()
                if address not in absent
            ):
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
        pages = {
            address: waiting.popleft()
            for address, waiting in self.workers.items()
            if waiting
        }
        times = {address: time for address, (time, _) in pages.items()}
        figures = self.figures(
            {address: scrape for address, (_, scrape) in pages.items()}, times
        )
        records = list(self._rows.take(figures, max(times.values())))
        if records:
            self.modified = max(times.values())
        self._batcher.add(records)


class EndpointRuns:
    """All endpoints that were named, as runs."""

    def __init__(self) -> None:
        self.runs: dict[str, PageRun] = {}
        self._nameless: str | None = None
        """The run of pages that name no run, once that is decided."""

    def sort(self, endpoints: Iterable[PolledEndpoint]) -> None:
        """Give the pages that wait to their runs.

        A page that names no run belongs to the only run that is named; if there are several or
        none, it is a run of its own: not every process of a training names the run.
        """
        waiting = [
            (one.address.text, *page)
            for one in endpoints
            for page in _drained(one.pages)
        ]
        parts = [
            (address, time, runs_in(scrape), count_left_out(scrape))
            for address, time, scrape in waiting
        ]
        self._name_nameless(parts)
        for address, time, found, left_out in parts:
            for (run, _), scrape in found.items():
                name = run or self._nameless or instance_of(address)
                one = self.runs.setdefault(name, PageRun(name))
                one.left_out = left_out
                one.put(address, time, scrape)

    def _name_nameless(
        self, parts: Iterable[tuple[str, float, Iterable[tuple[str, str]], int]]
    ) -> None:
        """Decide once which run a page without a name is of."""
        nameless = [address for address, _, found, _ in parts if ("", "") in found]
        if self._nameless is None and nameless:
            named = set(self.runs)
            for _, _, found, _ in parts:
                named.update(run for run, _ in found if run)
            self._nameless = (
                next(iter(named)) if len(named) == 1 else instance_of(nameless[0])
            )


def _drained(pages: deque[tuple[float, Scrape]]) -> list[tuple[float, Scrape]]:
    return [pages.popleft() for _ in range(len(pages))]
