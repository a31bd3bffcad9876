"""Sources behind addresses: the runs of a Prometheus server, and those of pages of metrics.

Each address is asked in a thread of its own, so that one that hangs holds up nobody. One that does
not answer has the reason and since when, and is asked again at growing intervals.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from time import monotonic, time
from urllib.parse import urlsplit

from verl_tui.failures import in_full
from verl_tui.sources.formats.prometheus_text.reader import (
    MISSING,
    Page,
    instance_of,
    read_page,
)
from verl_tui.sources.http import addresses
from verl_tui.sources.http.addresses import AddressRun, AskedAddress, PageRun
from verl_tui.sources.http.prometheus_server import Server
from verl_tui.text import one_line

_INTERVAL = 5.0
"""Seconds between two pages: a training's steps take longer mostly, and a page costs its process
some milliseconds.
"""
_LONGEST_WAIT = 60.0
"""Seconds between two questions to what does not answer, at most."""
_METRICS = "/metrics"
_EMPTY = "answers with a page without metrics"
_PATIENCE = 60.0
"""Seconds that a single look waits for a server to load what it has."""


class Poller(AskedAddress):
    """Asks for a page of metrics, or what a Prometheus server has; others only take."""

    def __init__(
        self,
        address: str,
        clock: Callable[[], float] = time,
        *,
        every: float | None = None,
    ) -> None:
        """Ask nothing yet.

        Args:
            address: Where.
            clock: Seconds since the epoch.
            every: Seconds between two questions, None for what suits what is there.
        """
        super().__init__(address)
        self.server: Server | None = None
        """What is there, once it has answered as a Prometheus server."""
        self.pages: dict[str, PageRun] = {}
        """The runs of its pages by name, empty of what names none."""
        self._clock = clock
        self._every = every
        self._failures = 0

    @property
    def runs(self) -> list[AddressRun]:
        """The runs that it has told of."""
        served = self.server.runs if self.server else {}
        known = [one for one in [*served.values()] if one.followed is not None]
        return [*known, *self.pages.values()]

    @property
    def pause(self) -> float:
        """Seconds until it is asked again: ever more while it does not answer."""
        interval = self._every or _INTERVAL
        if self.server:
            interval = max(self._every or 0.0, self.server.interval)
        wait = interval * 2.0 ** min(self._failures, 10)
        return min(max(_LONGEST_WAIT, interval), wait)

    def start(self, stop: threading.Event) -> None:
        """Begin to ask until `stop` is set."""

        def go_on() -> None:
            while not stop.is_set():
                self.ask()
                stop.wait(self.pause)

        threading.Thread(target=go_on, name=self.address, daemon=True).start()

    def ask(self) -> None:
        """Ask once; never raises."""
        now = self._clock()
        try:
            self._ask(now)
            self.problem = self.since = None
            self._failures = 0
        except Exception as error:  # noqa: BLE001 - a net at the border
            known = isinstance(error, addresses.NoAnswerError)
            self.since = self.since or now
            why = str(error) if known else f"cannot be understood: {in_full(error)}"
            self.problem = one_line(why, 200)
            self._failures += 1
        self.rounds += 1

    def _ask(self, now: float) -> None:
        parts = urlsplit(self.address)
        is_page = parts.path.endswith(_METRICS) or parts.query
        if not (self.server or self.pages or is_page):
            server = Server(self, self._below)
            # while it loads, what there is can be taken
            self.server = server if server.is_there() else None
        if self.server:
            self.server.ask(now)
            return
        path = "" if is_page or parts.path != "/" else _METRICS
        try:
            self._apply(read_page(self._below(path)), now)
        except ModuleNotFoundError as error:
            raise addresses.NoAnswerError(MISSING) from error

    def _apply(self, page: Page, now: float) -> None:
        if not any(page.runs.values()):
            raise addresses.NoAnswerError(_EMPTY)
        self.flaw = page.flaw
        for name, samples in page.runs.items():
            if name not in self.pages:
                run = PageRun(name or instance_of(self.address), self)
                self.pages = {**self.pages, name: run}
            self.pages[name].add_page(samples, now)

    def _below(self, path: str, form: str | None = None) -> bytes:
        """Return the answer of something below the address."""
        # 40 ms, for who names an address
        from verl_tui.sources.http.client import ask

        body = ask(f"{self.address.rstrip('/')}{path}" if path else self.address, form)
        self.received += len(body)
        return body


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
        """Of the addresses that the user named."""
        self.problems: tuple[str, ...] = ()
        """Addresses that cannot be asked, and why."""
        for spec in dict.fromkeys(specs):
            try:
                address = addresses.parse_address(spec)
            except ValueError as error:  # noqa: PERF203 - the others are asked
                self.problems += (f"{addresses.without_login(spec)}: {error}",)
            else:
                self.pollers.append(Poller(address, clock, every=every))
        self._known: list[AddressRun] = []
        """The runs that have been taken."""

    def start(self, stop: threading.Event) -> None:
        """Begin to ask, each address in a thread of its own."""
        for poller in self.pollers:
            poller.start(stop)

    def settle(self) -> None:
        """Ask everything once that was not asked before, and wait for what comes of it, but not for
        ever.
        """
        threads = [
            threading.Thread(target=poller.ask, daemon=True)
            for poller in self.pollers
            if not poller.rounds
        ]
        for thread in threads:
            thread.start()
        end = monotonic() + _PATIENCE
        for thread in threads:
            thread.join(max(0.0, end - monotonic()))

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
            if one.server and not one.server.runs and one.problem is None
        )

    @property
    def unreached(self) -> tuple[addresses.Unreached, ...]:
        """Addresses that nothing has come from so far."""
        told = [run.asked for run in self._known]
        return tuple(
            addresses.Unreached(
                one.address, one.problem or "no answer so far", one.since
            )
            for one in self.pollers
            if not (one.server or one.pages) or (one.problem and one not in told)
        )

    def sources(self) -> list[AddressRun]:
        """Return the sources that have come since the last call; two addresses may have a run of
        one name, each its own.
        """
        fresh = self._fresh()
        for run in fresh:
            if any(run.name == one.name for one in self._known):
                run.name = f"{run.name} ({instance_of(run.asked.address)})"
            self._known.append(run)
        return fresh

    def _fresh(self) -> list[AddressRun]:
        """Return the runs that have not been taken yet."""
        found = (run for poller in self.pollers for run in poller.runs)
        return [run for run in found if run not in self._known]
