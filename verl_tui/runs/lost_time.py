"""The time in which a run could make no step: its process was stopped, or its host slept."""

from __future__ import annotations


class LostTime:
    """The seconds lost since the newest record of training, as far as we saw."""

    def __init__(self) -> None:
        self._record: float | None = None
        """Time of the record that `_seconds` count from."""
        self._seconds = 0.0
        self._stopped: float | None = None
        """Since when the process is stopped."""

    def since(self, record: float | None, now: float) -> float:
        """Return the seconds lost since the newest record, which was at this time."""
        before = self._seconds if record == self._record else 0.0
        return before + (
            max(0.0, now - self._stopped) if self._stopped is not None else 0.0
        )

    def add(self, record: float | None, seconds: float) -> None:
        """Count seconds, unless the process is stopped: they are counted when it goes on."""
        if self._stopped is None:
            before = self._seconds if record == self._record else 0.0
            self._record = record
            self._seconds = seconds + before

    def note(self, record: float | None, now: float, *, stopped: bool) -> None:
        """Note whether the process is stopped now."""
        if stopped and self._stopped is None:
            self._stopped = now
        elif not stopped and self._stopped is not None:
            since = self._stopped
            self._stopped = None
            self.add(record, max(0.0, now - since))
