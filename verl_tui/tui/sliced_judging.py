"""Long histories, judged a few milliseconds at a time: in between the screen answers."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from textual.timer import Timer

    from verl_tui.monitor import Monitor

JUDGING = 0.05
"""Seconds of judging before the screen answers: a small log is judged before it is seen."""
_SLICE = 0.01
"""Seconds of further judging at a stretch."""
_BREATH = 0.002
"""Seconds between two stretches, in which keys are heard."""


class SlicedJudging:
    """Judges the histories of a monitor's runs, rule by rule."""

    def __init__(
        self,
        after: Callable[[float, Callable[[], None]], Timer],
        done: Callable[[], None],
    ) -> None:
        """Begin with nothing to judge.

        Args:
            after: Has something called after so many seconds.
            done: Called when judging has ended that took more than one stretch.
        """
        self._after = after
        self._done = done
        self._rest: Iterator[None] | None = None
        """Judges what is left, None where that is nothing."""
        self._timer: Timer | None = None

    def is_complete(self, monitor: Monitor, now: float) -> bool:
        """Judge for a moment; return whether that was all, else go on soon."""
        if self._rest is None:
            self._rest = monitor.catch_up(now)
            self._judge_for(JUDGING)
        else:  # on a busy machine the timer may have been dropped
            self._judge_for(_SLICE)
        return self._rest is None

    def forget(self) -> None:
        """Judge no further: the runs are dropped."""
        self._rest = None

    def _judge_for(self, seconds: float) -> None:
        until = monotonic() + seconds
        if self._timer is not None:
            self._timer.stop()
        for _ in self._rest or ():
            if monotonic() > until:
                self._timer = self._after(_BREATH, self._go_on)
                return
        self._rest = None

    def _go_on(self) -> None:
        self._judge_for(_SLICE)
        if self._rest is None:
            self._done()
