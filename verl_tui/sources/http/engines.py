"""Engines that consoles name, where the configuration wants them asked: their figures belong to the
console's run.

Text in a log is not trusted: no login is sent to these addresses, and only engine figures are taken
from their pages.
"""

from __future__ import annotations

import threading
from time import time
from typing import TYPE_CHECKING

from verl_tui.patterns import pattern
from verl_tui.sources.fields.row_batcher import joined_notes
from verl_tui.sources.formats.prometheus_text.scrapes import Scrape
from verl_tui.sources.http import addresses
from verl_tui.sources.http.endpoints import PageRun, PolledEndpoint
from verl_tui.sources.http.served import PageSource, Poller, settle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from verl_tui.records import Batch, SourceStatus
    from verl_tui.sources.formats.prometheus_text.scrapes import ScrapeFigures

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
        self.step = 0
        self.left_out = 0
        """Engines that are not asked, as there are too many."""
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
            self._scrapes.note,
            empty if self._empty else None,
            left_out if self.left_out else None,
        )

    def figures(
        self, pages: Mapping[str, Scrape], times: Mapping[str, float]
    ) -> ScrapeFigures:
        """Return the engines' figures at one moment; figures of training come from the logs
        alone.
        """
        own = {address: _of_engines(page) for address, page in pages.items()}
        self._empty = not any(page.samples for page in own.values())
        return (
            super()
            .figures(own, times)
            ._replace(step=self.step, total=None, stepped=None, metrics={})
        )


class EngineSource(PageSource):
    """One engine as a source of a run, until the log names it no longer."""

    kind = "engines"

    def __init__(
        self,
        run: PageRun,
        poller: Poller,
        sort: Callable[[], Sequence[str]],
        *,
        leads: bool,
    ) -> None:
        super().__init__(run, poller, sort, leads=leads)
        self.stop = threading.Event()
        """Set where it is not asked any more."""

    def start(self) -> None:
        """Begin to ask."""
        self.poller.start(self.stop)

    def status(self) -> SourceStatus:
        """Return how the source is doing: an engine answers whether training goes on or not."""
        status = super().status()
        status = status._replace(bytes_read=status.size, modified=None, absolute=False)
        if self.stop.is_set():
            gone = "no longer asked: the log does not name it any more, or is silent"
            return status._replace(problem=None, note=gone)
        if self.poller.rounds == 0:
            return status._replace(note="no answer so far")
        if self.poller.asked is None and not self.leads:
            return status._replace(note=None)
        return status


class Engines:
    """The engines of all runs. Nothing is asked that no console names."""

    def __init__(
        self, clock: Callable[[], float] = time, *, every: float | None = None
    ) -> None:
        self._clock = clock
        self._every = every
        self._runs: dict[str, EngineRun] = {}
        self._sources: dict[str, dict[str, EngineSource]] = {}
        """By run and address."""
        self._stated: dict[str, dict[str, SourceStatus]] = {}
        """By run and path: the state of the consoles that name engines."""
        self._reached: dict[str, tuple[float, int]] = {}
        """By run: its newest step, and the time of the file that states it."""

    def heed(self, batch: Batch) -> None:
        """Note the engines that a log names, and its step."""
        name = batch.run
        status = batch.status
        if status.engines or status.path in self._stated.get(name, ()):
            self._stated.setdefault(name, {})[status.path] = status
        step = batch.newest().get(True)
        written = status.modified or 0.0
        if step is not None and written >= self._reached.get(name, (0.0, 0))[0]:
            self._reached[name] = written, step
            if name in self._runs:
                self._runs[name].step = step

    def found(self, now: float) -> Iterator[tuple[str, EngineSource]]:
        """Yield new engines since the last call, each with its run; stop vanished ones."""
        for name, consoles in self._stated.items():
            fresh = [
                one
                for one in consoles.values()
                if now - (one.modified or now) < _SILENT
            ]
            wanted = list(
                dict.fromkeys(address for one in fresh for address in one.engines)
            )
            yield from self._switch(name, wanted[:MOST])
            if name in self._runs:
                self._runs[name].left_out = max(0, len(wanted) - MOST)

    def _switch(
        self, name: str, wanted: list[str]
    ) -> Iterator[tuple[str, EngineSource]]:
        """Stop a run's engines that are not wanted any more; yield the new ones."""
        known = self._sources.setdefault(name, {})
        for address, source in known.items():
            if address not in wanted:
                source.stop.set()
        for address in wanted:
            before = known.get(address)
            if before is None or before.stop.is_set():
                leads = before.leads if before is not None else not known
                known[address] = self._source(name, address, leads=leads)
                yield name, known[address]

    def ask_once(self) -> None:
        """Ask them all, and wait for the answers, but not for ever."""
        settle(
            [
                source.poller
                for known in self._sources.values()
                for source in known.values()
            ]
        )

    def end(self) -> None:
        """Stop asking."""
        for known in self._sources.values():
            for source in known.values():
                source.stop.set()

    def _source(self, name: str, address: str, *, leads: bool) -> EngineSource:
        run = self._runs.setdefault(name, EngineRun(name))
        run.step = self._reached.get(name, (0.0, 0))[1]
        poller = Poller(
            addresses.parse_address(address),
            self._clock,
            login=False,
            every=self._every,
        )
        return EngineSource(run, poller, lambda: self._collect(name), leads=leads)

    def _collect(self, name: str) -> list[str]:
        """Give the pages that wait to their run; return the addresses that do not answer."""
        silent = []
        for address, source in self._sources[name].items():
            asked = source.poller.asked
            while isinstance(asked, PolledEndpoint) and asked.pages:
                self._runs[name].put(address, *asked.pages.popleft())
            if source.poller.problem is not None or source.stop.is_set():
                silent.append(address)
        return silent


def _of_engines(page: Scrape) -> Scrape:
    """Return a page without the figures of anything but engines."""
    own = [sample for sample in page.samples if _OF_ENGINES.match(sample.name)]
    return Scrape(tuple(own), page.kinds)
