"""Playback of a recording, a `NewsSource` with the clock of the recording."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.records import GpuReading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from verl_tui.monitor import News
    from verl_tui.replay.recording import Recording

SPEEDS = tuple(digit * 10.0**power for power in range(-1, 5) for digit in (1, 2, 5))
"""Speeds to choose from by keys: 0.1 to 50,000 times."""
_LENGTH = 180.0
"""Longest replay at the default speed, in seconds."""
_OTHERS, _HELP = 24, 15
"""Columns that other texts need in this half of the line, on a wide screen and on a narrow one."""
_ROOMY = 100
"""Width from which a screen is wide, in columns."""


class ReplayStatus(NamedTuple):
    """State of a replay, for the first line of the screen."""

    speed: float
    moment: float
    paused: bool
    over: bool
    """True at the end of the recording."""
    pace: str | None
    """Basis of the pace if the log has no times, else None."""
    estimated: bool
    """True if the times are estimated from a later one."""

    def words(self, width: int) -> str:
        """Describe the state in as much of a line as the other texts leave."""
        speed = f"{self.speed:,g}×"
        mode = "paused" if self.paused else "at its end" * self.over
        when = self.pace or _local_time(self.moment)
        how = " estimated" * (self.estimated and not self.pace)
        brief = self.pace or when[-len("00:00:00") :]
        variants = (
            (f"replay {speed}", when + how, mode),
            (f"replay {speed}", brief, mode),
            (mode or speed,),
        )
        room = width // 2 - (_OTHERS if width >= _ROOMY else _HELP)
        texts = [" · ".join(filter(None, parts)) for parts in variants]
        return next((text for text in texts if len(text) <= room), texts[-1])


def _local_time(moment: float) -> str:
    """Return a moment in the user's time zone, empty if it is out of range."""
    try:
        known = datetime.fromtimestamp(moment)  # noqa: DTZ006 - the user's own time
    except (ValueError, OverflowError, OSError):
        return ""
    return f"{known:%Y-%m-%d %H:%M:%S}"


class Playback:
    """Replays a recording at some speed, without threads: news wait until they are taken."""

    def __init__(
        self,
        recording: Recording,
        *,
        speed: float = 1.0,
        at: float | None = None,
        until: float | None = None,
        paused: bool = False,
        wall: Callable[[], float] = monotonic,
    ) -> None:
        """Prepare a playback.

        Args:
            recording: The recording.
            speed: Speed relative to the recording.
            at: Moment to begin at, the start of the recording if None.
            until: Moment to pause at.
            paused: True to begin paused.
            wall: Returns the present time in seconds.
        """
        self.recording = recording
        self.until = until
        self.speed = speed
        """Speed relative to the recording."""
        self._wall = wall
        self._anchor = (recording.start if at is None else at, wall())
        self._paused = paused
        self._delivered_until = float("-inf")
        """Moment up to which all records have been delivered, or are being delivered."""
        self.seeking = True
        """True while records are delivered up to another position."""
        self.notify: Callable[[], object] = lambda: None
        """Called when news can be taken."""
        recording.rewind()

    # -- as `NewsSource` ---------------------------------------------------------------------------

    def start(self) -> None:
        """Say that everything up to the present position can be taken."""
        self.notify()

    def stop(self) -> None:
        """Do nothing: there is no thread to stop."""

    def take(self) -> Iterator[News]:
        """Yield the news up to now; the next call goes on where this one stopped."""
        now = self._delivered_until = max(self._delivered_until, self.now())
        if self.seeking:
            yield replace(self.recording.discovery, read=False)
            yield GpuReading(
                now, problem="a replay shows only the GPU metrics that the run logged"
            )
        yield from self.recording.take(now)
        if self.seeking:
            self.seeking = False
            yield replace(self.recording.discovery, read=True)

    @property
    def waiting(self) -> bool:
        """True if news can be taken."""
        return self.seeking or self.recording.due(self.now())

    # -- the clock ---------------------------------------------------------------------------------

    def now(self) -> float:
        """Return the recorded time, in seconds since the epoch."""
        moment, since = self._anchor
        if self._paused:
            return moment
        moment += (self._wall() - since) * self.speed
        if self.until is not None and moment >= self.until:
            moment = self.until
            self.until = None
            self._paused = True
            self._anchor = moment, self._wall()
        return moment

    @property
    def paused(self) -> bool:
        """True if the clock is stopped."""
        self.now()
        return self._paused

    def pause(self, *, paused: bool) -> None:
        """Stop the clock, or let it go on."""
        self._anchor = self.now(), self._wall()
        self._paused = paused

    def change_speed(self, places: int) -> None:
        """Play at the next of `SPEEDS`, the higher one or the lower one."""
        others = [one for one in SPEEDS if (one - self.speed) * places > 0]
        self._anchor = self.now(), self._wall()
        self.speed = min(
            others, key=lambda one: abs(one - self.speed), default=self.speed
        )

    def go(self, moment: float) -> bool:
        """Go to a moment; return True if that was a step back, which needs a new monitor."""
        self._anchor = max(self.recording.start, moment), self._wall()
        if self.until is not None and moment >= self.until:
            self.until = None
        back = moment < self._delivered_until
        if back:
            self.recording.rewind()
            self.seeking = True
            self._delivered_until = float("-inf")
        self.notify()
        return back

    def status(self, run: str | None) -> ReplayStatus:
        """Return the state of the playback, with the time basis of a run."""
        recorded = self.recording.runs.get(run or "")
        now = self.now()
        basis = (recorded.pace, recorded.estimated) if recorded else (None, False)
        return ReplayStatus(
            self.speed, now, self._paused, now >= self.recording.end, *basis
        )


def usual_speed(recording: Recording) -> float:
    """Return the lowest of `SPEEDS` from 1 on that plays a recording in three minutes."""
    least = max(1.0, (recording.end - recording.start) / _LENGTH)
    return next((speed for speed in SPEEDS if speed >= least), SPEEDS[-1])
