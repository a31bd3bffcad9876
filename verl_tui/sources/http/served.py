"""Sources behind addresses: the runs of a Prometheus server; pages of metrics of one or several
processes, which are taken together as runs; and the engines that consoles name, whose figures
belong to the console's run.

Text in a log is not trusted: no login is sent to the engines it names, and only engine figures are
taken from their pages.
"""

from __future__ import annotations

from itertools import chain
from time import time
from typing import TYPE_CHECKING

from verl_tui import prometheus_names
from verl_tui.sources.fields.row_batcher import joined_notes
from verl_tui.sources.formats.prometheus_text import reader as exposition
from verl_tui.sources.formats.prometheus_text.names import PrometheusSeries
from verl_tui.sources.formats.prometheus_text.page import (
    NOBODYS,
    PageFigures,
    instance_of,
)
from verl_tui.sources.http import addresses
from verl_tui.sources.http.address_run import AddressRun
from verl_tui.sources.http.addresses import Unreached
from verl_tui.sources.http.poller import Poller, settle

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence

    from verl_tui.records import Batch, Record, SourceStatus
    from verl_tui.sources.formats.prometheus_text.page import PageSample

MOST = 16
"""Engines of one run that are asked."""
_SILENT = 3600.0
"""Seconds without growth after which a console's engines are taken for gone: heuristic, steps of
large models take tens of minutes, and another program may get the port of an engine that has ended.
"""


class PageRun(AddressRun):
    """One run that pages tell of; several of them are those of its workers."""

    format = exposition.name

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._taken = 0.0
        """When the newest page that was taken was asked for."""
        self._figures = PageFigures()
        self.step: int | None = None
        """The step that it is known to have reached, where pages do not state it."""

    def read(self) -> tuple[tuple[Record, ...], bool]:
        """Return what the newest pages of all workers that answer say, if any of them is new."""
        pages: dict[str, tuple[Sequence[PageSample], float]] = {}
        keys: dict[str, str] = {}
        for worker, run in self.workers.items():
            if worker.newest is not None and not worker.is_silent:
                page, at = worker.newest
                pages[worker.address] = page.runs.get(run, ()), at
                keys |= page.keys
        newest = max((at for _, at in pages.values()), default=0.0)
        if newest > self._taken:
            self._taken = newest
            lines = self._figures.take(pages, newest)
            if self.step is not None:
                at_step = {newest: self.step}
                lines.append(PrometheusSeries(prometheus_names.STEPS, {}, at_step))
            self._modified = newest if self.add(lines, keys) else self._modified
        return super().read()


class EngineRun(PageRun):
    """The engines of one run: their figures are of the step that its logs have reached."""

    absolute = False

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.step = 0
        self._logs: dict[str, SourceStatus] = {}
        """The logs of the run by path, which name engines or do not."""
        self.pollers: dict[str, Poller] = {}
        """By address."""
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

    def look(self, now: float, poller: Callable[[str], Poller]) -> None:
        """Ask the engines that logs name, and no others; those that are too many are counted."""
        logs = self._logs.values()
        fresh = [log for log in logs if now - (log.modified or now) < _SILENT]
        named = [*dict.fromkeys(chain.from_iterable(log.engines for log in fresh))]
        self._left_out = max(0, len(named) - MOST)
        for address in named[:MOST]:
            if address not in self.pollers:
                self.pollers[address] = poller(address)
                self.workers[self.pollers[address]] = NOBODYS
        for address, one in self.pollers.items():
            one.is_paused = address not in named[:MOST]


class Served:
    """All addresses that a user named, and the engines that logs name if these are to be asked.

    Args:
        specs: As the user named them.
        clock: Seconds since the epoch.
        every: Seconds between two questions, None for what suits what is there.
        engines: Whether to ask engines.
    """

    def __init__(
        self,
        specs: Sequence[str],
        clock: Callable[[], float] = time,
        *,
        every: float | None = None,
        engines: bool = False,
    ) -> None:
        self.pollers: list[Poller] = []
        """Of the addresses that the user named."""
        self.problems: tuple[str, ...] = ()
        """Addresses that cannot be asked, and why."""
        self._clock = clock
        self._every = every
        for spec in dict.fromkeys(specs):
            try:
                address = addresses.parse_address(spec)
            except ValueError as error:  # noqa: PERF203 - the others are asked
                self.problems += (f"{addresses.without_login(spec)}: {error}",)
            else:
                self.pollers.append(Poller(address, clock, every=every))
        self._runs: dict[str, PageRun] = {}
        self._engines: dict[str, EngineRun] = {}
        self._asks_engines = engines
        self._nameless: str | None = None
        """The run of pages that name no run, once that is decided."""
        self._known: set[AddressRun] = set()
        """Those that have been taken."""
        self._stop: threading.Event | None = None
        """Ends all questions, once they have begun."""

    def start(self, stop: threading.Event) -> None:
        """Begin to ask, each address in a thread of its own; once only."""
        if self._stop is None:
            self._stop = stop
            for poller in self.pollers:
                poller.start(stop)

    def settle(self) -> None:
        """Ask everything once that was not asked before, and wait for what comes of it, but not for
        ever.
        """
        engines = (run.pollers.values() for run in self._engines.values())
        every = chain(self.pollers, *engines)
        settle(one for one in every if not one.rounds)

    def heed(self, batch: Batch) -> None:
        """Note the engines that a log names, and its step."""
        if self._asks_engines:
            if batch.run not in self._engines:
                self._engines[batch.run] = EngineRun(batch.run)
            self._engines[batch.run].heed(batch)

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
            f"{one.address}: {why}"
            for one in self.pollers
            if one.server is not None and not one.server.runs and not one.is_silent
        )

    @property
    def unreached(self) -> tuple[Unreached, ...]:
        """Addresses that nothing has come from so far."""
        known = {poller for run in self._known for poller in run.workers}
        return tuple(
            Unreached(one.address, one.problem or "no answer so far", one.since)
            for one in self.pollers
            if not (one.server or one.newest) or (one.problem and one not in known)
        )

    def look(self, now: float) -> None:
        """Ask the engines that logs name by now, and no others."""
        for engines in self._engines.values():
            engines.look(now, self._engine)

    def sources(self) -> list[AddressRun]:
        """Return the sources that have come since the last call."""
        fresh = self._fresh()
        self._known |= {*fresh}
        return fresh

    def _engine(self, address: str) -> Poller:
        poller = Poller(address, self._clock, engine=True, every=self._every)
        if self._stop is not None:
            poller.start(self._stop)
        return poller

    def _fresh(self) -> list[AddressRun]:
        """Return the runs that have not been taken yet."""
        if not self.awaited:
            self._find_page_runs()
        found: list[AddressRun] = [*self._runs.values(), *self._engines.values()]
        for poller in self.pollers:
            for run in list(poller.server.runs.values() if poller.server else ()):
                if run.followed is not None:
                    run.workers[poller] = NOBODYS
                    found.append(run)
        return [one for one in found if one.workers and one not in self._known]

    def _find_page_runs(self) -> None:
        """Find out which runs pages tell of, once every address has answered.

        A page that names no run belongs to the only run that is named; if there are several or
        none, it is a run of its own: not every process of a training names the run.
        """
        told = [(one, run) for one in self.pollers for run in one.told_runs]
        named = {*self._runs, *(run for _, run in told)} - {NOBODYS}
        for poller, run in told:
            if run == NOBODYS and self._nameless is None:
                alone = instance_of(poller.address)
                self._nameless = named.pop() if len(named) == 1 else alone
            name = run or self._nameless or ""
            self._runs.setdefault(name, PageRun(name)).workers.setdefault(poller, run)
