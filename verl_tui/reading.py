"""Read in threads, and queue a bounded amount for the front end."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from queue import Empty, Full, Queue
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from verl_tui import debug_log
from verl_tui.failures import in_full
from verl_tui.sources.discovery.finder import Discovery

if TYPE_CHECKING:
    from verl_tui.config import Config
    from verl_tui.monitor import Monitor, News
    from verl_tui.sources.feed import Feed

_WAITING = 2
"""Batches that may wait for the screen's loop; then the reading waits for it."""
_AFTER_ERROR = 1.0
"""Seconds until reading goes on after an error that was not contained within a source."""
_SWITCH = 0.001
"""Seconds after which a busy thread hands over: at Python's 5 ms the screen stutters while a log
loads.
"""


class NewsSource(Protocol):
    """Source of news for a front end."""

    def start(self) -> None:
        """Begin."""
        ...

    def stop(self) -> None:
        """End."""
        ...

    def take(self) -> Iterator[News]:
        """Yield what waits, without waiting."""
        ...

    @property
    def waiting(self) -> bool:
        """True if something can be taken."""
        ...


class ReadingThreads:
    """The threads behind a front end. What they find waits in a queue until its loop takes it."""

    def __init__(
        self,
        specs: Sequence[str],
        config: Config,
        *,
        shown: Callable[[], str | None] = lambda: None,
        clock: Callable[[], float],
        notify: Callable[[], object],
    ) -> None:
        """Start nothing yet.

        Args:
            specs: Paths, directories, globs and addresses.
            config: Says how often and with what is read.
            shown: Returns the name of the run that is shown, to be read before all others.
            clock: Seconds since the epoch.
            notify: Called whenever something can be taken.
        """
        self._make_feed = partial(_feed, tuple(specs), config, shown)
        self._gpu_interval = config.gpu_interval
        self._clock = clock
        self._notify = notify
        self._queue: Queue[News] = Queue(_WAITING)
        self._stop = threading.Event()
        self._trouble: tuple[str, ...] = ()
        """The error in the thread that reads logs, in words."""

    def start(self) -> None:
        """Start reading logs and GPUs."""
        sys.setswitchinterval(_SWITCH)
        threading.Thread(target=self._follow, name="logs", daemon=True).start()
        threading.Thread(target=self._poll, name="gpus", daemon=True).start()

    def stop(self) -> None:
        """Ask the threads to end; they are not waited for, a driver may hang."""
        self._stop.set()

    def take(self) -> Iterator[News]:
        """Yield what waits, without waiting."""
        with suppress(Empty):
            while True:
                yield self._queue.get_nowait()

    @property
    def waiting(self) -> bool:
        """True if something can be taken."""
        return not self._queue.empty()

    def _follow(self) -> None:
        """Follow the logs, on and on after errors that were not contained within a source."""
        feed = None
        while not self._stop.is_set():
            try:
                feed = feed or self._make_feed()
                for news in feed.follow(self._stop, self._clock):
                    self._deliver(news)
                    if self._stop.is_set():
                        return
            except Exception as error:  # noqa: BLE001, PERF203 - else all stood still in silence
                debug_log.note_error("following the logs", error)
                why = f"reading was interrupted, and goes on: {in_full(error)}"
                self._trouble = (why,)
                if not feed:  # it would have said so with what it finds
                    self._deliver(Discovery((), (), (), read=True))
                self._stop.wait(_AFTER_ERROR)

    def _poll(self) -> None:
        from verl_tui.sources.host.gpus import (
            GpuSource,  # before the first frame it would cost
        )

        GpuSource().poll(self._stop, self._deliver, self._gpu_interval, self._clock)

    def _deliver(self, news: News) -> None:
        if isinstance(news, Discovery) and self._trouble:
            news = replace(news, problems=(*news.problems, *self._trouble))
        while not self._stop.is_set():
            with suppress(Full):
                self._queue.put(news, timeout=0.2)
                self._notify()
                return


def _feed(
    specs: Sequence[str], config: Config, shown: Callable[[], str | None]
) -> Feed:
    """Make the feed; import it, and the judge, in the thread that reads: the screen's loop would
    stand still meanwhile.
    """
    with suppress(ImportError):  # whoever judges says so
        import verl_tui.health.judge  # noqa: F401
    from verl_tui.sources.feed import Feed

    return Feed(
        specs,
        poll_interval=config.poll_interval,
        shown=shown,
    )


def refreshes(
    specs: Sequence[str],
    monitor: Monitor,
    *,
    between: float = 0.5,
    clock: Callable[[], float],
    stop: Callable[[], object],
) -> Generator[None, None, None]:
    """Follow runs without a screen; yield after each refresh, once all logs have been read.

    Args:
        specs: Paths, directories and globs; runs that appear later are followed, too.
        monitor: Takes what is read.
        between: Seconds from one look to the next; a signal is heeded within them. Without news a
            look costs next to nothing, and a run may hang without a word.
        clock: Seconds since the epoch.
        stop: Says whether to end.
    """
    news = threading.Event()
    reading = ReadingThreads(specs, monitor.config, clock=clock, notify=news.set)
    reading.start()
    looked = monotonic() - between
    try:
        while not stop():
            news.wait(between)
            news.clear()
            monitor.awake(clock())
            until = monotonic() + between
            for one in reading.take():
                monitor.apply(one, clock())
                if monotonic() > until:
                    break
            loaded = monitor.runs and not monitor.is_loading and not reading.waiting
            if loaded and monotonic() - looked >= between:
                looked = monotonic()
                yield
    finally:
        reading.stop()
