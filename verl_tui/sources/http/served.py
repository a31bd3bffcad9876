"""Sources behind addresses: the runs of a Prometheus server, and pages of metrics of one or several
processes, which are taken together as runs.
"""

from __future__ import annotations

from collections import deque
from pathlib import Path
from time import time
from typing import TYPE_CHECKING

from verl_tui.records import MetricRows
from verl_tui.sources.fields.kept_metrics import KeptMetrics
from verl_tui.sources.fields.row_batcher import RowBatcher, joined_notes
from verl_tui.sources.files.polled import PolledSource
from verl_tui.sources.formats.prometheus_text import reader as exposition
from verl_tui.sources.formats.prometheus_text.scraped_rows import ScrapedRows, runs_in
from verl_tui.sources.formats.prometheus_text.scrapes import (
    Scrape,
    Scrapes,
    instance_of,
)
from verl_tui.sources.http import addresses
from verl_tui.sources.http import prometheus_server as prometheus
from verl_tui.sources.http.addresses import Unreached
from verl_tui.sources.http.poller import KEPT, Poller, settle

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from verl_tui.records import Record, SourceStatus
    from verl_tui.sources.formats.prometheus_text.scrapes import ScrapeFigures
    from verl_tui.sources.http.prometheus_server import ServedRun, Server


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
        named = {*self.runs, *(run for _, run, *_ in parts if run)}
        for poller, run, at, scrape, left_out in parts:
            if not run and self._nameless is None:
                only = next(iter(named)) if len(named) == 1 else None
                self._nameless = only or instance_of(poller.address.text)
            name = run or self._nameless or ""
            one = self.runs.setdefault(name, PageRun(name))
            one.left_out = left_out
            one.put(poller, at, scrape)

    def _parts(self) -> Iterator[tuple[Poller, str, float, Scrape, int]]:
        """Yield the parts of all pages by run, each with how many runs of its page are left out."""
        for poller in self._pollers:
            for at, page in poller.take():
                runs, left_out = runs_in(page)
                for (run, _), scrape in runs.items():
                    yield poller, run, at, scrape, left_out


class ServedSource(PolledSource):
    """What one address says of one run."""

    format = exposition.name
    rank = exposition.rank
    absolute = True

    def __init__(self, poller: Poller) -> None:
        super().__init__(Path(poller.address.text))
        self.poller = poller

    def read(self) -> tuple[tuple[Record, ...], bool]:
        """Return the next records, and whether more wait."""
        records, more = self._next()
        self._records += sum(len(getattr(record, "steps", ())) for record in records)
        return records, more

    def _next(self) -> tuple[tuple[Record, ...], bool]:
        raise NotImplementedError

    def status(self) -> SourceStatus:
        """Return how the source is doing."""
        return (
            super()
            .status()
            ._replace(
                path=self.poller.address.text,
                size=self.poller.client.received,
                problem=self.poller.sentence,
            )
        )


class PageSource(ServedSource):
    """One endpoint as a source of one run. The records of all of a run's endpoints come through the
    first.
    """

    kind = "endpoints"
    """Names of the other addresses of the run."""

    def __init__(self, run: PageRun, poller: Poller, sort: Callable[[], None]) -> None:
        """Read nothing yet.

        Args:
            run: The run of the pages.
            poller: Asks for them.
            sort: Gives pages to their runs.
        """
        super().__init__(poller)
        self._run = run
        self._sort = sort
        self._metrics = KeptMetrics()

    @property
    def leads(self) -> bool:
        """True if the records of all of the run's endpoints come through this one."""
        return next(iter(self._run.workers), None) is self.poller

    def _next(self) -> tuple[tuple[Record, ...], bool]:
        if not self.leads:
            return (), False
        self._sort()
        found = self._run.take()
        kept = (
            self._metrics.of(one) if isinstance(one, MetricRows) else one
            for one in found
        )
        return tuple(filter(None, kept)), False

    @property
    def note(self) -> str | None:
        """Return what should be known of its figures."""
        if not self.leads:
            return f"taken together with the run's other {self.kind}"
        return joined_notes(self._run.note, self._metrics.note)

    def status(self) -> SourceStatus:
        """Return how the source is doing."""
        status = super().status()
        return status._replace(
            bytes_read=status.size if self._records or not self.leads else 0,
            modified=self._run.modified,
            findings=self._run.findings,
        )


class ServerSource(ServedSource):
    """One run of a Prometheus server as a source."""

    format = prometheus.name
    rank = prometheus.rank

    def __init__(self, run: ServedRun, server: Server, poller: Poller) -> None:
        super().__init__(poller)
        self._run = run
        self._server = server

    def _next(self) -> tuple[tuple[Record, ...], bool]:
        if not self._run.waiting:
            return (), False
        return self._run.waiting.popleft(), bool(self._run.waiting)

    def status(self) -> SourceStatus:
        """Return how the source is doing; as long as the past is being loaded there is more than
        was read.

        A series goes on whether its run does or not: its age shows no more than the records' own
        times.
        """
        done = self._run.loaded and not self._run.waiting
        received = self._run.received
        return (
            super()
            .status()
            ._replace(
                bytes_read=received,
                size=received if done or self.poller.problem else received + 1,
                note=self._run.note(self._server.interval),
                findings=self._run.rows.findings,
            )
        )


class Served:
    """All addresses that a user named."""

    def __init__(
        self,
        specs: Sequence[str],
        clock: Callable[[], float] = time,
        *,
        every: float | None = None,
    ) -> None:
        self.pollers: list[Poller] = []
        self.problems: tuple[str, ...] = ()
        """Addresses that cannot be asked, and why."""
        for spec in dict.fromkeys(specs):
            self._name(spec, clock, every)
        self._pages = EndpointRuns(self.pollers)
        self._known: set[tuple[str, Poller]] = set()
        """The sources that have been taken, by run."""
        self._started = False

    def _name(self, spec: str, clock: Callable[[], float], every: float | None) -> None:
        try:
            address = addresses.parse_address(spec)
        except ValueError as error:
            self.problems += (f"{addresses.without_login(spec)}: {error}",)
        else:
            self.pollers.append(Poller(address, clock, every=every))

    def start(self, stop: threading.Event) -> None:
        """Begin to ask, each address in a thread of its own; once only."""
        for poller in () if self._started else self.pollers:
            poller.start(stop)
        self._started = True

    def settle(self) -> None:
        """Ask everything once, and wait for what comes of it, but not for ever."""
        settle(self.pollers)

    @property
    def awaited(self) -> bool:
        """True if something is still asked for the first time."""
        return any(poller.rounds == 0 for poller in self.pollers)

    @property
    def grown(self) -> bool:
        """True if there are sources that have not been taken yet."""
        return bool(self._fresh())

    @property
    def waiting(self) -> tuple[str, ...]:
        """A sentence for each server without a training, or with more runs than are shown."""
        return tuple(
            f"{poller.address.text}: {words}"
            for poller in self.pollers
            if (words := _shortage(poller))
        )

    @property
    def unreached(self) -> tuple[Unreached, ...]:
        """Addresses that nothing has come from so far."""
        known = {poller for _, poller in self._known}
        return tuple(
            Unreached(one.address.text, one.problem or "no answer so far", one.since)
            for one in self.pollers
            if not (one.server or one.page) or (one.problem and one not in known)
        )

    def sources(self) -> Iterator[tuple[str, ServedSource]]:
        """Yield the sources that have come since the last call, each with the name of its run."""
        for name, source in self._fresh():
            self._known.add((name, source.poller))
            yield name, source

    def _fresh(self) -> list[tuple[str, ServedSource]]:
        """Return the sources that have not been taken yet, each with the name of its run.

        Pages that name no run can be given to one only after every address has answered.
        """
        found = [source for poller in self.pollers for source in _loaded(poller)]
        if not self.awaited:
            self._pages.sort()
            found += [
                (run.name, PageSource(run, poller, self._pages.sort))
                for run in self._pages.runs.values()
                for poller in run.workers
            ]
        return [one for one in found if (one[0], one[1].poller) not in self._known]


def _loaded(poller: Poller) -> Iterator[tuple[str, ServedSource]]:
    """Yield the runs of a server whose past has been loaded, each with its name."""
    server = poller.server
    if server is None:
        return
    for run in list(server.runs.values()):
        if run.loaded:
            yield run.name, ServerSource(run, server, poller)


def _shortage(poller: Poller) -> str | None:
    """Return what a server that answers lacks, or has too much of."""
    server = poller.server
    if server is None:
        return None
    if poller.problem is None and poller.rounds and not server.runs:
        return "is a Prometheus server that has nothing of a training so far"
    if server.left_out:
        return f"{server.left_out:,} older runs are left out"
    return None
