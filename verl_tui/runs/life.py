"""Time of a source's last training record, and the signs that its process lived on after it.

System figures, heartbeats and bars painted anew keep a file growing while nothing is trained. Times
that a log states may be of another zone, so they are only subtracted from each other: the time of a
file's last change is that of the newest stamp in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING

from verl_tui.times import COMPUTERS, trusted_time

if TYPE_CHECKING:
    from verl_tui.records import Pulse


AGREE = 120.0
"""Seconds by which the newest stamp in a log and its file's time may differ and still be of one
moment: heuristic, twice the minute from one heartbeat of verl to the next. A copy has another time.
"""


@dataclass(slots=True)
class Life:
    """The times that one source has shown."""

    arrived: float | None = None
    """When progress arrived while we watched."""
    read: float | None = None
    """When the progress from before we watched was written, by its file's time or its own."""
    stamp: float | None = None
    """The newest time of any kind that the source states."""
    since: float | None = None
    """The first time that it states with or after the last progress."""
    grew: float | None = None
    """When it last grew while we watched."""
    counters: str = ""
    """Counters of the last heartbeat since the last progress."""
    stood: float | None = None
    """When they stopped changing, as the log states it."""
    beats: int = 0
    """Heartbeats with these counters."""
    absolute: bool = False
    """True if the time of its newest progress is one that a record states, counted from the
    epoch.
    """
    idle: float | None = None
    """The newest time of what goes on whether anything is trained or not: system figures, counters
    that stand still.
    """

    def progress(
        self,
        arrival: float | None,
        stated: float | None,
        modified: float | None,
        *,
        absolute: bool = False,
    ) -> None:
        """Note a record of training.

        Args:
            arrival: When it came, None for a record from before we watched.
            stated: When it was written as it states it.
            modified: Time of its file's last change.
            absolute: Whether what it states counts from the epoch.
        """
        stated = None if stated is None or isnan(stated) else stated
        self.absolute = absolute and stated is not None and stated > COMPUTERS
        if arrival is not None:
            self.arrived = arrival
        elif (written := trusted_time(stated, modified, absolute=absolute)) is not None:
            self.read = written if self.read is None else max(self.read, written)
        self.since = stated
        self.counters = ""
        self.stood = None
        self.beats = 0
        self.note(stated)

    def note(self, stated: float | None) -> None:
        """Note a time that stands in the source."""
        if (
            stated is not None
            and not isnan(stated)
            and (self.stamp is None or stated > self.stamp)
        ):
            self.stamp = stated

    def figures(self, stated: float | None) -> None:
        """Note the time of figures that are logged whether anything is trained or not."""
        self.note(stated)
        self.idle = self.stamp

    def pulse(self, pulse: Pulse) -> None:
        """Note a sign of life."""
        self.note(pulse.time)
        if self.since is None:
            self.since = pulse.time
        if pulse.counters and pulse.counters == self.counters:
            self.beats += 1
            self.idle = pulse.time if pulse.time is not None else self.idle
        elif pulse.counters:
            self.counters = pulse.counters
            self.stood = pulse.time
            self.beats = 1

    def last(self, modified: float | None) -> float | None:
        """Return the time of the newest record of training, None if there is none or it is
        unknown.
        """
        if self.arrived is not None or self.read is None:
            return self.arrived
        newest = trusted_time(self.stamp, modified, absolute=self.absolute)
        if self.since is None or self.stamp is None or newest is None:
            return self.read
        if self.agrees(modified):
            return min(self.read, self.since)
        return min(self.read, newest - max(0.0, self.stamp - self.since))

    def agrees(self, modified: float | None) -> bool:
        """Return whether the newest time in the source is that of its file: it is no copy then."""
        return (
            self.stamp is not None
            and modified is not None
            and abs(modified - self.stamp) <= AGREE
        )

    def explained(self) -> bool:
        """Return whether the source grows only by output that goes on without training."""
        return (
            self.idle is not None
            and self.stamp is not None
            and self.stamp - self.idle <= AGREE
        )

    def until_newest(self, stated: float | None) -> float:
        """Return the seconds from a time that it states to the newest one, 0 if not known."""
        if stated is None or self.stamp is None:
            return 0.0
        return self.stamp - stated

    @property
    def continued(self) -> bool:
        """True if it went on while we watched, or a heartbeat did."""
        return self.grew is not None or self.arrived is not None or self.stands()

    def stands(self) -> bool:
        """Return whether a heartbeat went on while its counters stood still."""
        return self.beats > 1


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
