"""Asks at one address, again and again, in a thread of its own, so that one that hangs holds up
nobody.

An address that does not answer has the reason and since when, and is asked again at growing
intervals.
"""

from __future__ import annotations

import threading
from itertools import chain
from time import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from verl_tui.patterns import pattern
from verl_tui.sources.formats.prometheus_text.reader import (
    MISSING,
    NOBODYS,
    Page,
    read_page,
)
from verl_tui.sources.http.address_run import AskedAddress
from verl_tui.sources.http.addresses import NoAnswerError
from verl_tui.sources.http.prometheus_server import Server
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable

_INTERVAL = 5.0
"""Seconds between two pages: a training's steps take longer mostly, and a page costs its process
some milliseconds.
"""
_LONGEST_WAIT = 60.0
"""Seconds between two questions to what does not answer, at most."""
_METRICS = "/metrics"
_OF_ENGINES = pattern(r"(?:vllm|sglang)[:_]")
_EMPTY = "answers with a page without metrics"
_OF_VERL = " of an engine: verl has them with rollout.disable_log_stats=false"


class Poller(AskedAddress):
    """Asks for a page of metrics, or what a Prometheus server has; others only take."""

    def __init__(
        self,
        address: str,
        clock: Callable[[], float] = time,
        *,
        engine: bool = False,
        every: float | None = None,
    ) -> None:
        """Ask nothing yet.

        Args:
            address: Where.
            clock: Seconds since the epoch.
            engine: Whether a log names it as an engine, which is no reason to trust it: no login
                goes there, and only figures of engines are taken.
            every: Seconds between two questions, None for what suits what is there.
        """
        super().__init__(address)
        self.server: Server | None = None
        """What is there, once it has answered as a Prometheus server."""
        self._clock = clock
        self._is_engine = engine
        self._every = every
        self._failures = 0

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

        def go_on() -> None:
            while not stop.is_set():
                if not self.is_paused:
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
            known = isinstance(error, NoAnswerError)
            why = "" if known else f"cannot be understood: {type(error).__name__}: "
            self.since = self.since or now
            self.problem = one_line(f"{why}{error}", 200)
            self._failures += 1
        self.rounds += 1

    def _ask(self, now: float) -> None:
        parts = urlsplit(self.address)
        is_page = parts.path.endswith(_METRICS) or parts.query
        if not (self.server or self.newest or is_page):
            server = Server(parts.netloc, self._below)
            # while it loads, what there is can be taken
            self.server = server if server.is_there() else None
        if self.server is not None:
            self.server.ask(now)
            return
        page = self._page("" if is_page or parts.path != "/" else _METRICS)
        if not any(page.runs.values()):
            raise NoAnswerError(_EMPTY + _OF_VERL * self._is_engine)
        self.newest = page, now

    def _page(self, path: str) -> Page:
        try:
            page = read_page(self._below(path))
        except ModuleNotFoundError as error:
            raise NoAnswerError(MISSING) from error
        if not self._is_engine:
            return page
        every = chain.from_iterable(page.runs.values())
        own = [one for one in every if _OF_ENGINES.match(one.name)]
        return Page({NOBODYS: own}, page.flaw)

    def _below(self, path: str, form: str | None = None) -> bytes:
        """Return the answer of something below the address."""
        # 40 ms, for who names an address
        from verl_tui.sources.http.client import ask

        where = f"{self.address.rstrip('/')}{path}" if path else self.address
        body = ask(where, form, login=not self._is_engine)
        self.received += len(body)
        return body
