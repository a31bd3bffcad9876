"""Watch in a thread which processes write the files that are read."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from verl_tui import debug_log
from verl_tui.sources.host.writers import Writers, WriterState

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_FRESH = 24 * 3600.0
"""Files that changed within a day may have a writer; others are not watched."""
_MOST_FILES = 512
_POLL = 0.5
_RESCAN = 10.0
"""Seconds between two looks through all processes while the writer of some file is not known."""
_SHARE = 50.0
"""The wait for the next look, as a multiple of how long it took: two per cent of a core at most."""
_MOMENT = 0.3
"""Seconds in which a process runs that is only slowed down: `cpulimit` stops and continues it ten
times a second.
"""


class WriterWatch:
    """A thread that keeps finding the writers of the files that are read."""

    def __init__(self, writers: Writers | None = None) -> None:
        self._writers = writers or Writers()
        self._wanted: tuple[Path, ...] = ()
        self._held: dict[Path, WriterState] = {}
        self._started = False
        self._next_scan = 0.0
        """Monotonic seconds of the next search among all processes."""

    def want(self, files: Iterable[tuple[Path, float | None]], now: float) -> None:
        """Say which files are read, each with the time of its last change; the newest of the fresh
        ones are watched.
        """
        self._wanted = fresh(files, now)

    def held(self, path: Path) -> WriterState:
        """Return what is known of a file's writer, without looking."""
        return self._held.get(path, WriterState())

    def look(self) -> None:
        """Look once, here and now."""
        if self._wanted:
            self._writers.scan(self._wanted)
            if self._writers.may_stand():
                time.sleep(_MOMENT)
                self._writers.refresh()
        self._publish()

    def start(self, stop: threading.Event) -> None:
        """Begin to look, until `stop` is set."""
        if not self._started:
            self._started = True
            threading.Thread(
                target=self._watch, args=(stop,), name="writers", daemon=True
            ).start()

    def _watch(self, stop: threading.Event) -> None:
        while not stop.wait(_POLL):
            self._look_again()

    def _look_again(self) -> None:
        """Look at the writers that are known, and for others when it is time."""
        wanted = self._wanted
        begun = time.monotonic()
        try:
            changed = self._writers.refresh()
            missing = self._writers.unknown(wanted)
            if missing and (changed or begun >= self._next_scan):
                self._writers.scan(missing, pause=0.002)
                took = time.monotonic() - begun
                self._next_scan = begun + max(_RESCAN, _SHARE * took)
            self._publish()
        except Exception as error:  # noqa: BLE001 - processes come, go and change meanwhile
            debug_log.note_error("looking for writers", error)
            self._held = {}  # nothing is known now: what was found may be over

    def _publish(self) -> None:
        self._held = {path: self._writers.held(path) for path in self._wanted}


def fresh(files: Iterable[tuple[Path, float | None]], now: float) -> tuple[Path, ...]:
    """Return those files that changed lately enough to have a writer, the newest first, not too
    many.
    """
    known = sorted(
        ((at, path) for path, at in files if at is not None and abs(now - at) < _FRESH),
        reverse=True,
    )
    return tuple(path for _, path in known[:_MOST_FILES])
