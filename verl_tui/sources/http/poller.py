"""Asks at one address, again and again, in a thread of its own, so that one that hangs holds up
nobody.

An address that does not answer has the reason and since when, and is asked again at growing
intervals.
"""

from __future__ import annotations

import threading
from time import monotonic, time
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.sources.formats.prometheus_text.page import read_page
from verl_tui.sources.http.addresses import NoAnswerError, asked_again
from verl_tui.sources.http.prometheus_server import Server
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from verl_tui.sources.formats.prometheus_text.page import Page
    from verl_tui.sources.http.addresses import Address

_INTERVAL = 5.0
"""Seconds between two pages: a training's steps take longer mostly, and a page costs its process
some milliseconds.
"""
_LONGEST_WAIT = 60.0
"""Seconds between two questions to what does not answer, at most."""
_PATIENCE = 60.0
"""Seconds that a single look waits for a server to load what it has."""
_METRICS = "/metrics"
_NOT_FOUND = 404


class PolledPage(NamedTuple):
    """A page, and when it was asked for."""

    time: float
    page: Page


class Poller:
    """Asks for a page of metrics, or what a Prometheus server has; others only take."""

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
        self.client = Client(login=login)
        self.server: Server | None = None
        """What is there, once it has answered as a Prometheus server."""
        self.newest: PolledPage | None = None
        """Its newest page, once it has answered with one."""
        self.problem: str | None = None
        """Why it did not answer when it was asked last."""
        self.since: float | None = None
        """Since when it has not answered."""
        self.rounds = 0
        """Number of completed polls, with an answer or without."""
        self.stop = threading.Event()
        """Set where it is not asked any more."""
        self._clock = clock
        self._every = every
        self._failures = 0

    @property
    def told_runs(self) -> tuple[str, ...]:
        """The runs of its newest page, by name."""
        return tuple(self.newest.page.runs) if self.newest is not None else ()

    @property
    def is_silent(self) -> bool:
        """True if nothing comes from there at present."""
        return not self.rounds or self.problem is not None or self.stop.is_set()

    @property
    def sentence(self) -> str | None:
        """Why nothing comes from there, and since when; None while something does."""
        if self.problem is None or self.since is None:
            return None
        return f"{self.problem}{asked_again(self.since)}"

    @property
    def pause(self) -> float:
        """Seconds until it is asked again: ever more while it does not answer."""
        interval = self._every or _INTERVAL
        if self.server is not None:
            interval = max(self._every or 0.0, self.server.interval)
        wait = interval * 2.0 ** min(self._failures, 10)
        return min(max(_LONGEST_WAIT, interval), wait)

    def start(self, stop: threading.Event) -> None:
        """Begin to ask until `stop` is set."""
        self.stop = stop
        threading.Thread(
            target=self._go_on, args=(stop,), name=self.address.netloc, daemon=True
        ).start()

    def _go_on(self, stop: threading.Event) -> None:
        while not stop.is_set():
            self.ask()
            stop.wait(self.pause)

    def ask(self) -> None:
        """Ask once; never raises."""
        now = self._clock()
        try:
            self._ask(now)
            problem = None
        except NoAnswerError as error:
            problem = one_line(str(error), 200)
        except Exception as error:  # noqa: BLE001 - a net at the border
            why = f"cannot be understood: {type(error).__name__}: {error}"
            problem = one_line(why, 200)
        if problem is None:
            self.since = None
        elif self.since is None:
            self.since = now
        self.problem = problem
        self._failures = 0 if problem is None else self._failures + 1
        self.rounds += 1

    def _ask(self, now: float) -> None:
        if self.server is None and self.newest is None and self._may_be_server():
            server = Server(self.address, self.client)
            # while it loads, what there is can be taken
            self.server = server if server.is_there() else None
        if self.server is not None:
            self.server.ask(now)
            return
        page = read_page(self._body())
        if not any(run.samples for run in page.runs.values()):
            raise NoAnswerError("answers with a page without metrics")
        self.newest = PolledPage(now, page)

    def _body(self) -> bytes:
        """Return the page that is there."""
        if self.address.path != "/" or self.address.query:
            return self.client.ask(self.address)
        try:
            return self.client.ask(self.address.below(_METRICS))
        except NoAnswerError as error:
            if error.status != _NOT_FOUND or self.newest is not None:
                raise
            raise NoAnswerError(
                "is not a Prometheus server, and has no metrics at /metrics"
            ) from error

    def _may_be_server(self) -> bool:
        return not self.address.path.endswith(_METRICS) and not self.address.query


def settle(pollers: Iterable[Poller]) -> None:
    """Ask everything once, and wait for what comes of it, but not for ever."""
    threads = [threading.Thread(target=poller.ask, daemon=True) for poller in pollers]
    for thread in threads:
        thread.start()
    end = monotonic() + _PATIENCE
    for thread in threads:
        thread.join(max(0.0, end - monotonic()))
