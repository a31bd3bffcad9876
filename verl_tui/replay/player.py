"""Plays a tape: the recorded clock, and what a front end asks of `verl_tui.reading.Reading`."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.records import GpuReading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from verl_tui.monitor import News
    from verl_tui.replay.tape import Tape

SPEEDS = tuple(digit * 10.0**power for power in range(-1, 5) for digit in (1, 2, 5))
"""Speeds that keys lead to: 0.1 to 50,000 times."""
_LENGTH = 180.0
"""Seconds that a replay takes at most where nobody has said how fast it is to be."""
_OTHERS, _HELP = 24, 15
"""Columns that others need of the half of the line that is theirs together, where there is room for
them, and else.
"""
_ROOMY = 100
"""Columns of the screen from which on there is."""


class ReplayStatus(NamedTuple):
    """State of a replay, for the first line of the screen."""

    speed: float
    moment: float
    paused: bool
    over: bool
    """Whether nothing more is to come."""
    pace: str | None
    """The basis of the pace, if the log has no times."""
    estimated: bool
    """Whether the times are counted back from another."""

    def words(self, width: int) -> str:
        """Return as many words as fit beside the rest of a line of this width."""
        speed = f"{self.speed:,g}×"
        mode = self._mode()
        brief = self.pace or self._time(date=False)
        full = self.pace or self._time(date=True)
        how = " estimated" if self.estimated and not self.pace else ""
        variants = (
            (f"replay {speed}", full + how, mode),
            (f"replay {speed}", brief + how, mode),
            (f"replay {speed}", brief, mode),
            (speed, brief, mode),
            (speed, mode),
        )
        room = width // 2 - (_OTHERS if width >= _ROOMY else _HELP)
        for parts in variants:
            words = " · ".join(filter(None, parts))
            if len(words) <= room:
                return words
        return mode or speed

    def _mode(self) -> str:
        if self.paused:
            return "paused"
        return "at its end" if self.over else ""

    def _time(self, *, date: bool) -> str:
        """Return the recorded time of day where the user is."""
        try:
            known = datetime.fromtimestamp(self.moment)  # noqa: DTZ006 - the user's own time
        except (ValueError, OverflowError, OSError):
            return ""
        return known.strftime("%Y-%m-%d %H:%M:%S" if date else "%H:%M:%S")


class Player:
    """Plays a tape at some speed. One caller, no threads: news wait until they are taken."""

    def __init__(
        self,
        tape: Tape,
        *,
        speed: float = 1.0,
        at: float | None = None,
        until: float | None = None,
        paused: bool = False,
        wall: Callable[[], float] = monotonic,
    ) -> None:
        """Put a tape in.

        Args:
            tape: What to play.
            speed: How many times as fast as it was.
            at: Moment to begin at, the tape's start if it is None.
            until: Moment to pause at.
            paused: Whether to stand still at first.
            wall: Seconds of the present.
        """
        self.tape = tape
        self.until = until
        self._speed = speed
        self._wall = wall
        self._anchor = (tape.start if at is None else at, wall())
        self._paused = paused
        self._told = float("-inf")
        """Until when everything has been told, or is being told."""
        self.seeking = True
        """Whether something further away is still being told."""
        self.notify: Callable[[], object] = lambda: None
        """Called when something can be taken."""

    # -- what a front end reads from ---------------------------------------------------------------

    def start(self) -> None:
        """Begin at the present position, with nothing told so far."""
        self.tape.rewind()
        self.seeking = True
        self._told = float("-inf")
        self.notify()

    def stop(self) -> None:
        """Nothing is to be stopped."""

    def take(self) -> Iterator[News]:
        """Yield what has happened until now; whoever stops early goes on with the next call."""
        now = self._told = max(self._told, self.now())
        if self.seeking:
            yield replace(self.tape.discovery, read=False)
            yield GpuReading(now, problem="a replay: of GPUs only what the run logged")
        yield from self.tape.take(now)
        if self.seeking:
            self.seeking = False
            yield replace(self.tape.discovery, read=True)

    @property
    def waiting(self) -> bool:
        """Whether something can be taken."""
        return self.seeking or self.tape.due(self.now())

    # -- the clock ---------------------------------------------------------------------------------

    def now(self) -> float:
        """Return the recorded time, in seconds since the epoch."""
        moment, since = self._anchor
        if self._paused:
            return moment
        moment += (self._wall() - since) * self._speed
        if self.until is not None and moment >= self.until:
            moment, self.until, self._paused = self.until, None, True
            self._anchor = moment, self._wall()
        return moment

    @property
    def speed(self) -> float:
        """Speed relative to the recording."""
        return self._speed

    @speed.setter
    def speed(self, speed: float) -> None:
        self._anchor = self.now(), self._wall()
        self._speed = speed

    @property
    def paused(self) -> bool:
        """Whether the clock stands still."""
        self.now()
        return self._paused

    @paused.setter
    def paused(self, paused: bool) -> None:
        self._anchor = self.now(), self._wall()
        self._paused = paused

    def faster(self) -> None:
        """Play at the next higher of the usual speeds."""
        self.speed = next((speed for speed in SPEEDS if speed > self._speed), self._speed)

    def slower(self) -> None:
        """Play at the next lower of the usual speeds."""
        self.speed = next((speed for speed in reversed(SPEEDS) if speed < self._speed), self._speed)

    def go(self, moment: float) -> bool:
        """Go to a moment; return whether that lies before what was told: then begin with a fresh
        monitor.
        """
        self._anchor = max(self.tape.start, moment), self._wall()
        if self.until is not None and moment >= self.until:
            self.until = None
        if back := moment < self._told:
            self.start()
        else:
            self.notify()
        return back

    def standing(self, run: str | None) -> ReplayStatus:
        """Return where the replay is, with what sets the pace of a run."""
        reel = self.tape.reels.get(run or "")
        now = self.now()
        return ReplayStatus(
            self._speed,
            now,
            self._paused,
            now >= self.tape.end,
            reel.pace if reel is not None else None,
            reel.estimated if reel is not None else False,
        )


def usual_speed(tape: Tape) -> float:
    """Return the lowest of the usual speeds, from 1 on, at which a tape takes three minutes at
    most.
    """
    least = max(1.0, (tape.end - tape.start) / _LENGTH)
    return next((speed for speed in SPEEDS if speed >= least), SPEEDS[-1])
