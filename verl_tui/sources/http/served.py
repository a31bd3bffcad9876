"""Sources behind addresses: the runs of a Prometheus server, and pages of metrics of one or several
processes, which are taken together as runs.
"""

from __future__ import annotations

from pathlib import Path
from time import time
from typing import TYPE_CHECKING

from verl_tui.records import MetricRows
from verl_tui.sources.fields.kept_metrics import KeptMetrics
from verl_tui.sources.fields.row_batcher import RowBatcher, joined_notes
from verl_tui.sources.files.polled import PolledSource
from verl_tui.sources.formats.prometheus_text import reader as exposition
from verl_tui.sources.formats.prometheus_text.figures import PageFigures, instance_of
from verl_tui.sources.formats.prometheus_text.page import NOBODYS
from verl_tui.sources.formats.prometheus_text.rows import StepRows
from verl_tui.sources.http import addresses
from verl_tui.sources.http import prometheus_server as prometheus
from verl_tui.sources.http.addresses import Unreached
from verl_tui.sources.http.poller import Poller, settle

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from verl_tui.records import Record, SourceStatus
    from verl_tui.sources.formats.prometheus_text.names import PrometheusSeries
    from verl_tui.sources.formats.prometheus_text.page import Page, Scrape
    from verl_tui.sources.http.prometheus_server import ServedRun, Server


class ServedSource(PolledSource):
    """What one address says of one run."""

    format = exposition.name
    rank = exposition.rank
    absolute = True

    def __init__(self, poller: Poller) -> None:
        super().__init__(Path(poller.address.text))
        self.poller = poller
        self._metrics = KeptMetrics()

    def read(self) -> tuple[tuple[Record, ...], bool]:
        """Return the next records, and whether more wait."""
        found, more = self._next()
        kept: list[Record] = []
        for one in found:
            if isinstance(one, MetricRows):
                self._records += len(one.steps)
                kept += filter(None, [self._metrics.of(one)])
            else:
                kept.append(one)
        return tuple(kept), more

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


class PageRun:
    """One run that pages tell of; several of them are those of its workers."""

    kind = "endpoints"
    """What its workers are."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.workers: dict[Poller, str] = {}
        """Which run of its page each of them has: none, where it names no run."""
        self.modified: float | None = None
        """When the newest page that said something was asked for."""
        self.rows = StepRows()
        self._taken = 0.0
        """When the newest page that was taken was asked for."""
        self._figures = PageFigures()
        self._batcher = RowBatcher()

    @property
    def note(self) -> str | None:
        """Return what should be known of its figures."""
        left_out = max(
            (one.newest.page.left_out for one in self.workers if one.newest), default=0
        )
        others = f"{left_out:,} further runs of the page are not shown"
        return joined_notes(self.rows.note, others if left_out else None)

    def take(self) -> tuple[Record, ...]:
        """Return what the newest pages of all workers that answer say, if any of them is new."""
        pages: dict[str, tuple[Scrape, float]] = {}
        for worker, name in self.workers.items():
            answer = None if worker.is_silent else worker.newest
            own = answer and self.own(answer.page, name)
            if answer and own:
                pages[worker.address.text] = own, answer.time
        at = max((time for _, time in pages.values()), default=0.0)
        if at > self._taken:
            self._taken = at
            records = list(self.rows.take(*self.moment(pages, at)))
            self._batcher.add(records)
            if records:
                self.modified = at
        return self._batcher.take()

    def own(self, page: Page, run: str, /) -> Scrape | None:
        """Return what is used of a worker's page, on which the run has a name or none."""
        return page.runs.get(run)

    def moment(
        self, pages: Mapping[str, tuple[Scrape, float | None]], at: float
    ) -> tuple[list[PrometheusSeries], dict[str, str]]:
        """Return the series that pages come to, and the log's own keys of their names."""
        return self._figures.take(pages, at)


class PageSource(ServedSource):
    """One endpoint as a source of one run. The records of all of a run's endpoints come through the
    first.
    """

    def __init__(self, run: PageRun, poller: Poller) -> None:
        super().__init__(poller)
        self._run = run

    @property
    def leads(self) -> bool:
        """True if the records of all of the run's endpoints come through this one."""
        return next(iter(self._run.workers), None) is self.poller

    def _next(self) -> tuple[tuple[Record, ...], bool]:
        return (self._run.take() if self.leads else ()), False

    @property
    def note(self) -> str | None:
        """Return what should be known of its figures."""
        if not self.leads:
            return f"taken together with the run's other {self._run.kind}"
        return joined_notes(self._run.note, self._metrics.note)

    def status(self) -> SourceStatus:
        """Return how the source is doing."""
        status = super().status()
        return status._replace(
            bytes_read=status.size if self._records or not self.leads else 0,
            modified=self._run.modified,
            findings=self._run.rows.findings,
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
        """Return how the source is doing.

        A series goes on whether its run does or not: its age shows no more than the records' own
        times.
        """
        status = super().status()
        note = self._run.note(self._server.interval, self._server.now)
        return status._replace(
            bytes_read=status.size - bool(self._run.waiting),
            note=joined_notes(note, self._metrics.note),
            findings=self._run.rows.findings,
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
            self._add(spec, clock, every)
        self._runs: dict[str, PageRun] = {}
        self._nameless: str | None = None
        """The run of pages that name no run, once that is decided."""
        self._known: set[tuple[str, Poller]] = set()
        """The sources that have been taken, by run."""
        self._started = False

    def _add(self, spec: str, clock: Callable[[], float], every: float | None) -> None:
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
            if not (one.server or one.newest) or (one.problem and one not in known)
        )

    def sources(self) -> Iterator[tuple[str, ServedSource]]:
        """Yield the sources that have come since the last call, each with the name of its run."""
        for name, source in self._fresh():
            self._known.add((name, source.poller))
            yield name, source

    def _fresh(self) -> list[tuple[str, ServedSource]]:
        """Return the sources that have not been taken yet, each with the name of its run."""
        found: list[tuple[str, ServedSource]] = [
            (run.name, ServerSource(run, poller.server, poller))
            for poller in self.pollers
            if poller.server is not None
            for run in list(poller.server.runs.values())
            if run.loaded
        ]
        if not self.awaited:
            self._find_page_runs()
        found += [
            (run.name, PageSource(run, poller))
            for run in self._runs.values()
            for poller in run.workers
        ]
        return [one for one in found if (one[0], one[1].poller) not in self._known]

    def _find_page_runs(self) -> None:
        """Find out which runs pages tell of, once every address has answered.

        A page that names no run belongs to the only run that is named; if there are several or
        none, it is a run of its own: not every process of a training names the run.
        """
        told = [(one, run) for one in self.pollers for run in one.told_runs]
        named = {*self._runs, *(run for _, run in told)} - {NOBODYS}
        for poller, run in told:
            if self._nameless is None and run == NOBODYS:
                alone = instance_of(poller.address.text)
                self._nameless = named.pop() if len(named) == 1 else alone
            name = run or self._nameless or ""
            one = self._runs.setdefault(name, PageRun(name))
            one.workers.setdefault(poller, run)


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
