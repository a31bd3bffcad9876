"""A thread that reads for a screen, a little at a time, and says when there is something new to
draw.

A screen asks for a job at each drawing and draws what is known of it; what is not known yet is read
meanwhile. No file is touched in the caller's thread. The job asked for last is worked on first.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

_PAUSE = 0.05
"""Seconds between two notices."""


class Job(Protocol):
    """Something to read, piece by piece."""

    def waits(self) -> bool:
        """Return whether there is something to read."""
        ...

    def is_urgent(self) -> bool:
        """Return whether what is to be seen can be read at once: a notice waits for it."""
        ...

    def read_on(self) -> bool:
        """Read a little; return whether there is something new to draw. Called in the thread
        only.
        """
        ...


JobT = TypeVar("JobT", bound=Job)


class Worker(Generic[JobT]):
    """Jobs by a key, and the thread that works on them; it starts when there is the first of
    them.
    """

    def __init__(self, notify: Callable[[], object], *, name: str, kept: int) -> None:
        """Begin nothing yet.

        Args:
            notify: Called in the thread when there is something new to draw.
            name: What the thread is called.
            kept: Jobs that are remembered; those asked for least lately are forgotten.
        """
        self._notify = notify
        self._name = name
        self._kept = kept
        self._wake = threading.Condition()
        self._jobs: OrderedDict[Hashable, JobT] = OrderedDict()
        """The one asked for last at the end."""
        self._thread: threading.Thread | None = None
        self._stopped = False

    @property
    def idle(self) -> bool:
        """Whether all that was asked for has been read."""
        return self._next() is None

    def stop(self) -> None:
        """Ask the thread to end; it is not waited for, a file system may hang."""
        with self._wake:
            self._stopped = True
            self._wake.notify()

    def _recall(self, key: Hashable, make: Callable[[], JobT]) -> JobT:
        """Return the job of a key, which is made if it is not known."""
        job = self._jobs.get(key)
        if job is None:
            job = self._jobs[key] = make()
            if len(self._jobs) > self._kept:
                self._jobs.popitem(last=False)
        self._jobs.move_to_end(key)
        return job

    def _start(self) -> None:
        """Have the thread look for work."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            self._thread.start()
        self._wake.notify()

    def _work(self) -> None:
        due, news = 0.0, False
        while not self._stopped:
            job = self._next()
            urgent = False
            if job is not None:
                news = job.read_on() or news
                urgent = job.is_urgent()
            if news and not urgent and time.monotonic() >= due:
                due, news = time.monotonic() + _PAUSE, False
                self._notify()
            self._wait(due if news else None)

    def _wait(self, due: float | None) -> None:
        """Wait for work, until a notice is due at the latest."""
        with self._wake:
            if not self._stopped and self._next() is None:
                self._wake.wait(None if due is None else max(0.001, due - time.monotonic()))

    def _next(self) -> Job | None:
        """Return the job to go on with: the one asked for last, unless it is done."""
        with self._wake:
            return next((job for job in reversed(self._jobs.values()) if job.waits()), None)
