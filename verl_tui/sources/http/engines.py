"""Engines that consoles name, where the configuration wants them asked: their figures belong to the
console's run.

Text in a log is not trusted: no login is sent to these addresses, and only engine figures are taken
from their pages.
"""

from __future__ import annotations

from itertools import chain
from threading import Event
from time import time
from typing import TYPE_CHECKING

from verl_tui import prometheus_names
from verl_tui.patterns import pattern
from verl_tui.sources.fields.row_batcher import joined_notes
from verl_tui.sources.formats.prometheus_text.names import PrometheusSeries
from verl_tui.sources.formats.prometheus_text.page import NOBODYS
from verl_tui.sources.http import addresses
from verl_tui.sources.http.poller import Poller, settle
from verl_tui.sources.http.served import AddressSource, PageRun

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from verl_tui.records import Batch, SourceStatus
    from verl_tui.sources.formats.prometheus_text.page import Page, Scrape

MOST = 16
"""Engines of one run that are asked."""
_SILENT = 3600.0
"""Seconds without growth after which a console's engines are taken for gone: heuristic, steps of
large models take tens of minutes, and another program may get the port of an engine that has ended.
"""
_OF_ENGINES = pattern(r"(?:vllm|sglang)[:_]")


class EngineRun(PageRun):
    """The engines of one run: their figures are of the step that its logs have reached."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.logs: dict[str, SourceStatus] = {}
        """The logs of the run by path, which name engines or do not."""
        self.sources: dict[str, EngineSource] = {}
        """By address."""
        self.left_out = 0
        """Engines that are not asked, since there are too many."""
        self._step = 0
        self._written = 0.0
        """When the log that states its step was written."""
        self._empty = False

    @property
    def note(self) -> str | None:
        """Return what should be known of the figures."""
        empty = (
            "the page holds no figures of an engine:"
            " verl has them with rollout.disable_log_stats=false"
        )
        left_out = f"{self.left_out:,} further engines are not asked"
        return joined_notes(
            empty if self._empty else None, left_out if self.left_out else None
        )

    def heed(self, batch: Batch) -> None:
        """Note the engines that a log names, and its step if no newer log states one."""
        self.logs[batch.status.path] = batch.status
        step = batch.newest().get(True)
        written = batch.status.modified or 0.0
        if step is not None and written >= self._written:
            self._written, self._step = written, step

    def named(self, now: float) -> list[str]:
        """Return the engines to be asked; those that are too many are counted."""
        found = dict.fromkeys(
            address
            for log in self.logs.values()
            if now - (log.modified or now) < _SILENT
            for address in log.engines
        )
        self.left_out = max(0, len(found) - MOST)
        return [*found][:MOST]

    def own(self, page: Page, _: str, /) -> Scrape | None:
        """Return the figures of engines on a page: those of training come from the logs alone."""
        scrapes = [*page.runs.values()]
        every = chain.from_iterable(one.samples.items() for one in scrapes)
        own = {series: at for series, at in every if _OF_ENGINES.match(series[0])}
        return scrapes[0]._replace(samples=own, keys={})

    def moment(
        self, pages: Mapping[str, tuple[Scrape, float | None]], at: float
    ) -> tuple[list[PrometheusSeries], dict[str, str]]:
        """Return the engines' series, with the step that the logs have reached."""
        self._empty = not any(page.samples for page, _ in pages.values())
        lines, keys = super().moment(pages, at)
        return [
            *lines,
            PrometheusSeries(prometheus_names.STEPS, {}, {at: self._step}),
        ], keys


class EngineSource(AddressSource):
    """One engine as a source of a run, until the log names it no longer."""

    absolute = False

    def start(self) -> None:
        """Begin to ask."""
        self.poller.start(self.poller.stop)

    @property
    def note(self) -> str | None:
        """Return what should be known of its figures."""
        if self.poller.stop.is_set():
            return "no longer asked: the log does not name it any more, or is silent"
        if self.poller.rounds == 0:
            return "no answer so far"
        return super().note if self.poller.newest or self.leads else None

    def status(self) -> SourceStatus:
        """Return how the source is doing: an engine answers whether training goes on or not."""
        status = super().status()
        problem = None if self.poller.stop.is_set() else status.problem
        return status._replace(bytes_read=status.size, modified=None, problem=problem)


class Engines:
    """The engines of all runs. Nothing is asked that no console names."""

    def __init__(
        self, clock: Callable[[], float] = time, *, every: float | None = None
    ) -> None:
        self._clock = clock
        self._every = every
        self._runs: dict[str, EngineRun] = {}

    def heed(self, batch: Batch) -> None:
        """Note the engines that a log names, and its step."""
        if batch.run not in self._runs:
            self._runs[batch.run] = EngineRun(batch.run)
        self._runs[batch.run].heed(batch)

    def found(self, now: float) -> Iterator[tuple[str, EngineSource]]:
        """Yield new engines since the last call, each with its run; stop vanished ones."""
        for run in self._runs.values():
            named = run.named(now)
            for address in run.sources.keys() - set(named):
                run.sources[address].poller.stop.set()
            for address in named:
                source = run.sources.get(address)
                if source is None:
                    source = run.sources[address] = self._source(run, address)
                elif source.poller.stop.is_set():
                    source.poller.stop = Event()
                else:
                    continue
                yield run.name, source

    def _source(self, run: EngineRun, address: str) -> EngineSource:
        place = addresses.parse_address(address)
        poller = Poller(place, self._clock, login=False, every=self._every)
        run.workers[poller] = NOBODYS
        return EngineSource(run, poller)

    def ask_once(self) -> None:
        """Ask them all, and wait for the answers, but not for ever."""
        settle(poller for run in self._runs.values() for poller in run.workers)

    def end(self) -> None:
        """Stop asking."""
        for run in self._runs.values():
            for poller in run.workers:
                poller.stop.set()
