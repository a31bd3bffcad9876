"""Sources behind addresses: each is asked in a thread of its own, so that one that hangs holds up
nobody.

Unreachable addresses are reported with the reason and since when, and asked again at growing
intervals.
"""

from __future__ import annotations

import threading
from pathlib import Path
from time import monotonic, time
from typing import TYPE_CHECKING

from verl_tui.records import SourceStatus
from verl_tui.sources.formats.prometheus_text import reader as exposition
from verl_tui.sources.http import addresses, endpoints
from verl_tui.sources.http import prometheus_server as prometheus
from verl_tui.sources.http.addresses import NoAnswerError, Unreached, asked_again
from verl_tui.sources.http.endpoints import EndpointRuns, PolledEndpoint
from verl_tui.sources.http.prometheus_server import Server
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from verl_tui.records import Record
    from verl_tui.sources.http.addresses import Address
    from verl_tui.sources.http.endpoints import PageRun
    from verl_tui.sources.http.served_run import ServedRun

_LONGEST_WAIT = 60.0
"""Seconds between two questions to what does not answer, at most."""
_PATIENCE = 60.0
"""Seconds that a single look waits for a server to load what it has."""
_METRICS = "/metrics"


class Poller:
    """Asks at one address, again and again."""

    def __init__(
        self,
        address: Address,
        clock: Callable[[], float] = time,
        *,
        login: bool = True,
        every: float | None = None,
    ) -> None:
        """Ask nothing yet.

        Args:
            address: Where.
            clock: Seconds since the epoch.
            login: Whether the user's login may go there.
            every: Seconds between two questions, None for what suits what is there.
        """
        # 40 ms, for who names an address
        from verl_tui.sources.http.client import Client

        self.address = address
        self.client = Client(address, login=login)
        self.asked: Server | PolledEndpoint | None = None
        """Kind of server, once it has answered."""
        self.problem: str | None = None
        """Why it did not answer when it was asked last."""
        self.since: float | None = None
        """Since when it has not answered."""
        self.rounds = 0
        """Number of completed polls, with an answer or without."""
        self._clock = clock
        self._every = every
        self._failures = 0

    def start(self, stop: threading.Event) -> None:
        """Begin to ask until `stop` is set, in a thread of its own."""
        threading.Thread(
            target=self._go_on, args=(stop,), name=self.address.place, daemon=True
        ).start()

    def _go_on(self, stop: threading.Event) -> None:
        while not stop.is_set():
            self.ask()
            stop.wait(self.pause)

    def ask(self) -> None:
        """Ask once; never raises."""
        now = self._clock()
        try:
            if self.asked is None:
                self.asked = self._connect(now)
            else:
                self.asked.ask(now)
            self.problem = self.since = None
            self._failures = 0
        except NoAnswerError as error:
            self._fail(one_line(str(error), 200), now)
        except Exception as error:  # noqa: BLE001 - a net at the border
            self._fail(
                one_line(f"cannot be understood: {type(error).__name__}: {error}", 200),
                now,
            )
        self.rounds += 1

    @property
    def sentence(self) -> str | None:
        """Why nothing comes from there, and since when; None while something does."""
        if self.problem is None or self.since is None:
            return None
        return f"{self.problem}{asked_again(self.since)}"

    def _fail(self, problem: str, now: float) -> None:
        self.problem = problem
        self.since = self.since if self.since is not None else now
        self._failures += 1

    @property
    def pause(self) -> float:
        """Seconds until it is asked again: ever more while it does not answer."""
        interval = self.asked.interval if self.asked is not None else endpoints.INTERVAL
        if self._every is not None:
            interval = (
                max(self._every, interval)
                if isinstance(self.asked, Server)
                else self._every
            )
        return min(
            max(_LONGEST_WAIT, interval), interval * 2.0 ** min(self._failures, 10)
        )

    def _connect(self, now: float) -> Server | PolledEndpoint:
        """Return the kind of server: a Prometheus server, metrics at the address itself, or below
        it at `/metrics`.
        """
        path = self.address.path
        if not path.endswith(_METRICS) and "?" not in path:
            if prometheus.is_one(self.client, self.address):
                server = Server(self.address, self.client)
                self.asked = server  # while it loads, what there is can be taken
                server.ask(now)
                return server
            if path == "/":
                return self._below(now)
        return self._endpoint(self.address, now)

    def _below(self, now: float) -> PolledEndpoint:
        try:
            return self._endpoint(self.address.below(_METRICS), now)
        except NoAnswerError as error:
            from http import HTTPStatus  # 5 ms, for an address only

            if error.status == HTTPStatus.NOT_FOUND:
                raise NoAnswerError(
                    "is not a Prometheus server, and has no metrics at /metrics"
                ) from error
            raise

    def _endpoint(self, address: Address, now: float) -> PolledEndpoint:
        endpoint = PolledEndpoint(address, self.client)
        endpoint.ask(now)
        return endpoint


def settle(pollers: Iterable[Poller]) -> None:
    """Ask everything once, and wait for what comes of it, but not for ever."""
    threads = [threading.Thread(target=poller.ask, daemon=True) for poller in pollers]
    for thread in threads:
        thread.start()
    end = monotonic() + _PATIENCE
    for thread in threads:
        thread.join(max(0.0, end - monotonic()))


class PageSource:
    """One endpoint as a source of one run. The records of all of a run's endpoints come through the
    first.
    """

    kind = "endpoints"
    """Names of the other addresses of the run."""

    def __init__(
        self,
        run: PageRun,
        poller: Poller,
        sort: Callable[[], Sequence[str]],
        *,
        leads: bool,
    ) -> None:
        """Read nothing yet.

        Args:
            run: The run of the pages.
            poller: Asks for them.
            sort: Gives pages to their runs, and returns the addresses that do not answer.
            leads: Whether the records of all of the run's endpoints come through this one.
        """
        self.path = Path(poller.address.text)
        self.poller = poller
        self.leads = leads
        self._run = run
        self._sort = sort
        self._records = 0

    def read(self) -> tuple[tuple[Record, ...], bool]:
        """Return the records of the newest pages."""
        if not self.leads:
            return (), False
        records = self._run.take(self._sort())
        self._records += sum(len(getattr(record, "steps", ())) for record in records)
        return records, False

    def finish(self) -> tuple[Record, ...]:
        """Nothing waits."""
        return ()

    def status(self) -> SourceStatus:
        """Return how the source is doing."""
        received = self.poller.client.received
        return SourceStatus(
            path=self.poller.address.text,
            format=exposition.name,
            rank=exposition.rank,
            records=self._records,
            bytes_read=received if self._records or not self.leads else 0,
            size=received,
            modified=self._run.modified,
            problem=self.poller.sentence,
            note=self._run.note
            if self.leads
            else f"taken together with the run's other {self.kind}",
            absolute=True,
            findings=self._run.findings,
        )


class ServerSource:
    """One run of a Prometheus server as a source."""

    def __init__(self, run: ServedRun, server: Server, poller: Poller) -> None:
        self.path = Path(server.address.text)
        self._run = run
        self._server = server
        self._poller = poller
        self._records = 0

    def read(self) -> tuple[tuple[Record, ...], bool]:
        """Return the next records."""
        if not self._run.waiting:
            return (), False
        records = self._run.waiting.popleft()
        self._records += sum(len(getattr(record, "steps", ())) for record in records)
        return records, bool(self._run.waiting)

    def finish(self) -> tuple[Record, ...]:
        """Nothing waits."""
        return ()

    def status(self) -> SourceStatus:
        """Return how the source is doing; as long as the past is being loaded there is more than
        was read.
        """
        done = self._run.loaded and not self._run.waiting
        received = self._run.received
        return SourceStatus(
            path=self._server.address.text,
            format=prometheus.name,
            rank=prometheus.rank,
            records=self._records,
            bytes_read=received,
            size=received if done or self._poller.problem else received + 1,
            # A series goes on whether its run does or not: its age shows no more than the records'
            # own times.
            modified=None,
            problem=self._poller.sentence,
            note=self._run.note(self._server.interval),
            absolute=True,
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
        self._clock = clock
        self._every = every
        self.pollers: list[Poller] = []
        self._started = False
        self.problems: tuple[str, ...] = ()
        """Addresses that cannot be asked, and why."""
        self._endpoints = EndpointRuns()
        self._known: set[tuple[str, str]] = set()
        for spec in dict.fromkeys(specs):
            self._name(spec)

    def _name(self, spec: str) -> None:
        try:
            self.pollers.append(
                Poller(addresses.parse_address(spec), self._clock, every=self._every)
            )
        except ValueError as error:
            self.problems += (f"{addresses.without_login(spec)}: {error}",)

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
        known = {address for _, address in self._known}
        pages = [one for one in self.pollers if isinstance(one.asked, PolledEndpoint)]
        if any(self._loaded()):
            return True
        return not self.awaited and any(
            page.address.text not in known for page in pages
        )

    def _loaded(self) -> Iterator[tuple[Poller, Server, ServedRun]]:
        """Yield the runs of servers that have not been taken yet."""
        for one in self.pollers:
            if isinstance(one.asked, Server):
                for run in list(one.asked.runs.values()):
                    if run.loaded and (run.name, one.address.text) not in self._known:
                        yield one, one.asked, run

    @property
    def waiting(self) -> tuple[str, ...]:
        """A sentence for each server without a training, or with more runs than are shown."""
        return tuple(self._empty())

    @property
    def unreached(self) -> tuple[Unreached, ...]:
        """Addresses that nothing has come from so far."""
        known = {address for _, address in self._known}
        silent = [
            one
            for one in self.pollers
            if one.asked is None or (one.problem and one.address.text not in known)
        ]
        return tuple(
            Unreached(one.address.text, one.problem or "no answer so far", one.since)
            for one in silent
        )

    def _empty(self) -> Iterator[str]:
        for one in self.pollers:
            server = one.asked
            if (
                isinstance(server, Server)
                and one.problem is None
                and one.rounds
                and not server.runs
            ):
                yield (
                    f"{one.address.text}: is a Prometheus server"
                    " that has nothing of a training so far"
                )
            elif isinstance(server, Server) and server.left_out:
                yield f"{one.address.text}: {server.left_out:,} older runs are left out"

    def sources(self) -> Iterator[tuple[str, PageSource | ServerSource]]:
        """Yield the sources that have come since the last call, each with the name of its run."""
        for poller, server, run in list(self._loaded()):
            self._known.add((run.name, poller.address.text))
            yield run.name, ServerSource(run, server, poller)
        if self.awaited:
            return  # whose what names no run is shows only when all have answered
        yield from self._pages()

    def _pages(self) -> Iterator[tuple[str, PageSource]]:
        self._sort()
        by_address = {
            one.asked.address.text: one
            for one in self.pollers
            if isinstance(one.asked, PolledEndpoint)
        }
        for run in self._endpoints.runs.values():
            for at, address in enumerate(run.workers):
                if self._is_new(run.name, by_address[address]):
                    yield (
                        run.name,
                        PageSource(run, by_address[address], self._sort, leads=at == 0),
                    )

    def _sort(self) -> list[str]:
        """Give pages to their runs; return the addresses that do not answer."""
        answered = [
            (one, one.asked)
            for one in self.pollers
            if isinstance(one.asked, PolledEndpoint)
        ]
        self._endpoints.sort(asked for _, asked in answered)
        return [
            asked.address.text for one, asked in answered if one.problem is not None
        ]

    def _is_new(self, run: str, poller: Poller) -> bool:
        place = run, poller.address.text
        if place in self._known:
            return False
        self._known.add(place)
        return True
