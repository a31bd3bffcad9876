"""A thread that reads for a screen, a little at a time, and notifies it of news to draw.

A screen requests a job at each drawing and draws its current state while the thread reads on. No
file is touched in the caller's thread. The newest request is served first.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from verl_tui.given_files import why

PAUSE = 0.05
"""Seconds from news to the notice of it while there is more to read."""
RETRY = 2.0
"""Seconds after which an unreadable file is tried again."""


class Job:
    """Something to read, piece by piece."""

    def waits(self) -> bool:
        """Return True if there is something to read."""
        raise NotImplementedError

    def read_on(self) -> bool:
        """Read a little, in the thread; return True if there is news to draw."""
        raise NotImplementedError


class FileJob(Job):
    """Something to read from a file, in pieces that a screen asks for."""

    def __init__(self, wake: threading.Condition, most: int) -> None:
        """Begin with nothing.

        Args:
            wake: Has the thread look for work; locks what both threads change.
            most: Most pieces that wait to be read; the oldest requests are dropped.
        """
        self.problem: str | None = None
        """Why the file cannot be read, None if it can."""
        self._wake = wake
        self._most = most
        self._wanted: dict[int, None] = {}
        """Pieces to read, the newest request last."""
        self._failed = 0.0
        """Time of the last failure."""

    def _want(self, piece: int) -> None:
        self._wanted.pop(piece, None)
        self._wanted[piece] = None
        if len(self._wanted) > self._most:
            del self._wanted[next(iter(self._wanted))]
        self._wake.notify()

    def _may_try(self) -> bool:
        """Return whether the file can be read, or failed long enough ago."""
        return self.problem is None or time.monotonic() - self._failed > RETRY

    def read_on(self) -> bool:
        """Read a little, in the thread; return True if there is news to draw."""
        try:
            return self._read_on()
        except OSError as error:
            with self._wake:
                self.problem = why(error)
                self._failed = time.monotonic()
            return True

    def _read_on(self) -> bool:
        """Read a little; raise OSError where that cannot be done."""
        raise NotImplementedError


JobT = TypeVar("JobT", bound=Job)


class Worker(Generic[JobT]):
    """Jobs by key, and the thread that works on them, from the first job on."""

    def __init__(self, notify: Callable[[], object], *, name: str, kept: int) -> None:
        """Prepare the worker.

        Args:
            notify: Called in the thread when there is news to draw.
            name: Name of the thread.
            kept: Most jobs kept; the least recently requested are dropped.
        """
        self._notify = notify
        self._kept = kept
        self._wake = threading.Condition()
        """Has the thread look for work."""
        self._jobs: dict[Hashable, JobT] = {}
        """Jobs by key, the newest request last."""
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._stopped = False
        self._rests = True
        """True while the thread waits for a request, with no notice to give."""

    @property
    def idle(self) -> bool:
        """True once everything requested has been read and been notified of."""
        with self._wake:
            return self._rests and not self._next()

    def stop(self) -> None:
        """Ask the thread to end without waiting for it, since a file system may hang."""
        with self._wake:
            self._stopped = True
            self._wake.notify()

    def _recall(self, key: Hashable, make: Callable[[], JobT]) -> JobT:
        """Return the job of a key, made if there is none."""
        job = self._jobs[key] = self._jobs.pop(key, None) or make()
        if len(self._jobs) > self._kept:
            del self._jobs[next(iter(self._jobs))]
        self._begin()
        return job

    def _begin(self) -> None:
        """Start the thread, unless it was started before."""
        if self._thread.ident is None:
            self._thread.start()

    def _work(self) -> None:
        due = 0.0  # time of the next notice, 0 without news
        self._rests = False
        while not self._stopped:
            job = self._next()
            if job and job.read_on():
                due = due or time.monotonic() + PAUSE
            if due and (not job or time.monotonic() >= due):
                due = 0.0
                self._notify()
            if not job:
                self._wait()

    def _wait(self) -> None:
        with self._wake:
            if not self._stopped and not self._next():
                self._rests = True
                self._wake.wait()
                self._rests = False

    def _next(self) -> Job | None:
        """Return the newest requested job that is not done."""
        with self._wake:
            return next(
                (job for job in reversed(self._jobs.values()) if job.waits()), None
            )
