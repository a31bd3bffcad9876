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
from verl_tui.sources.http.addresses import Unreached
from verl_tui.sources.http.poller import Poller, settle

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from verl_tui.records import Record, SourceStatus
    from verl_tui.sources.formats.prometheus_text.names import PrometheusSeries
    from verl_tui.sources.formats.prometheus_text.page import Page, Scrape
    from verl_tui.sources.http.prometheus_server import ServedRun


class PageRun:
    """One run that pages tell of; several of them are those of its workers. The records of all come
    through the first.
    """

    format = exposition.name
    rank = exposition.rank
    waiting = False
    modified: float | None = None
    """When it said something last."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rows = StepRows()
        self.workers: dict[Poller, str] = {}
        """Which run of its page each address has: none, where it names no run."""
        self._batcher = RowBatcher()
        self._taken = 0.0
        """When the newest page that was taken was asked for."""
        self._figures = PageFigures()

    @property
    def note(self) -> str | None:
        """Return what should be known of its figures."""
        return self.rows.note

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
            self.modified = at if records else self.modified
        return self._batcher.take()

    def own(self, page: Page, run: str, /) -> Scrape | None:
        """Return what is used of a worker's page, on which the run has a name or none."""
        return page.runs.get(run)

    def moment(
        self, pages: Mapping[str, tuple[Scrape, float | None]], at: float
    ) -> tuple[list[PrometheusSeries], dict[str, str]]:
        """Return the series that pages come to, and the log's own keys of their names."""
        return self._figures.take(pages, at)


class AddressSource(PolledSource):
    """What one address says of one run."""

    absolute = True

    def __init__(self, run: PageRun | ServedRun, poller: Poller) -> None:
        super().__init__(Path(poller.address.text))
        self.format, self.rank = run.format, run.rank
        self.poller = poller
        self._run = run
        self._metrics = KeptMetrics()

    @property
    def leads(self) -> bool:
        """True if the records of all of the run's addresses come through this one."""
        workers = getattr(self._run, "workers", {})
        return next(iter(workers), self.poller) is self.poller

    def read(self) -> tuple[tuple[Record, ...], bool]:
        """Return the next records, and whether more wait."""
        kept: list[Record] = []
        for one in self._run.take() if self.leads else ():
            if isinstance(one, MetricRows):
                self._records += len(one.steps)
                kept += filter(None, [self._metrics.of(one)])
            else:
                kept.append(one)
        return tuple(kept), self.leads and self._run.waiting

    @property
    def note(self) -> str | None:
        """Return what should be known of its figures."""
        if not self.leads:
            return "taken together with the run's other addresses"
        return joined_notes(self._run.note, self._metrics.note)

    def status(self) -> SourceStatus:
        """Return how the source is doing."""
        size = self.poller.client.received
        done = (self._records or not self.leads) and not self._run.waiting
        status = super().status()
        return status._replace(
            path=self.poller.address.text,
            bytes_read=size if done else 0,
            size=size,
            modified=self._run.modified,
            problem=self.poller.sentence,
            findings=self._run.rows.findings,
        )


class Served:
    """All addresses that a user named.

    Args:
        specs: As the user named them.
        clock: Seconds since the epoch.
        every: Seconds between two questions, None for what suits what is there.
    """

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
            try:
                address = addresses.parse_address(spec)
            except ValueError as error:  # noqa: PERF203 - the others are asked
                self.problems += (f"{addresses.without_login(spec)}: {error}",)
            else:
                self.pollers.append(Poller(address, clock, every=every))
        self._runs: dict[str, PageRun] = {}
        self._nameless: str | None = None
        """The run of pages that name no run, once that is decided."""
        self._known: set[tuple[str, Poller]] = set()
        """The sources that have been taken, by run."""
        self._started = False

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
        """A sentence for each server without a training."""
        why = "is a Prometheus server that has nothing of a training so far"
        return tuple(
            f"{one.address.text}: {why}"
            for one in self.pollers
            if one.server is not None and not one.server.runs and not one.is_silent
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

    def sources(self) -> Iterator[tuple[str, AddressSource]]:
        """Yield the sources that have come since the last call, each with the name of its run."""
        for run, poller in self._fresh():
            self._known.add((run.name, poller))
            yield run.name, AddressSource(run, poller)

    def _fresh(self) -> list[tuple[PageRun | ServedRun, Poller]]:
        """Return the sources that have not been taken yet: a run, and who tells of it."""
        found: list[tuple[PageRun | ServedRun, Poller]] = [
            (run, poller)
            for poller in self.pollers
            if poller.server is not None
            for run in list(poller.server.runs.values())
            if run.followed is not None
        ]
        if not self.awaited:
            self._find_page_runs()
        for run in self._runs.values():
            found += [(run, poller) for poller in run.workers]
        return [one for one in found if (one[0].name, one[1]) not in self._known]

    def _find_page_runs(self) -> None:
        """Find out which runs pages tell of, once every address has answered.

        A page that names no run belongs to the only run that is named; if there are several or
        none, it is a run of its own: not every process of a training names the run.
        """
        told = [(one, run) for one in self.pollers for run in one.told_runs]
        for poller, run in told:
            if run == NOBODYS and self._nameless is None:
                named = {*self._runs, *(name for _, name in told)} - {NOBODYS}
                alone = instance_of(poller.address.text)
                self._nameless = named.pop() if len(named) == 1 else alone
            name = run or self._nameless or ""
            self._runs.setdefault(name, PageRun(name)).workers.setdefault(poller, run)
