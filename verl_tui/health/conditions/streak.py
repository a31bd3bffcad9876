"""Breaches on records in a row that latch: the tutorials' circuit breakers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.health.conditions.condition import (
    Condition,
    DescribedBreach,
    Wording,
    number,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


class Streak(Condition):
    """A number of records in a row in breach; once tripped it stays so until the run is restarted.

    Records that lack the metric never come here, so they neither count nor interrupt.
    """

    def __init__(
        self, threshold: float, count: int, restarts: Sequence[int] = ()
    ) -> None:
        """Prepare a streak.

        Args:
            threshold: What a record must exceed.
            count: Breaches in a row that trip.
            restarts: First steps of the run's later segments: there it begins anew.
        """
        super().__init__()
        self.needs = count
        self._threshold = threshold
        self._count = count
        self._restarts = sorted(restarts)
        self._streak: list[tuple[int, float]] = []
        self._tripped: tuple[tuple[int, float], ...] = ()
        self._last: tuple[int, float] | None = None

    def feed(self, steps: Sequence[int], values: Sequence[float]) -> None:
        """Take in points."""
        for step, value in zip(steps, values, strict=True):
            if self._restarts and step >= self._restarts[0]:
                self._start_anew(step)
            self.seen += 1
            if self._breached(value):
                self._lengthen(step, value)
            elif self._streak:
                self._streak = []
            self._last = (step, value)

    def _lengthen(self, step: int, value: float) -> None:
        if self._tripped:
            return
        self._streak.append((step, value))
        if len(self._streak) >= self._count:
            self._tripped = tuple(self._streak)
            what = f"was {self._what()} on {self._count} records in a row"
            self._begin(self._tripped[0][0], step, what)

    def _start_anew(self, step: int) -> None:
        self._restarts = [mark for mark in self._restarts if mark > step]
        self._streak = []
        self._tripped = ()
        self._last = None
        self.seen = 0
        self._end(step)

    def _breached(self, value: float) -> bool:
        return value > self._threshold

    def _what(self) -> str:
        return f"above {number(self._threshold)}"

    def report(self, words: Wording) -> DescribedBreach | None:
        """Return the breach that holds now in words, None without one."""
        if not self._tripped or self._last is None:
            return None
        first = self._tripped[0][0]
        step = self._tripped[-1][0]
        message = (
            f"circuit breaker tripped at step {step}: {words.title} was {self._what()} "
            f"on {self._count} records in a row (steps {first} to {step}); "
            f"last {number(self._last[1])} at step {self._last[0]}"
        )
        values = ", ".join(
            f"{number(value)} at step {at}" for at, value in self._tripped
        )
        return DescribedBreach(
            message,
            first,
            (f"{words.title}: {values}", "it stays tripped until the run is restarted"),
        )

    def _detach(self) -> None:
        self._streak = self._streak.copy()


class Drops(Streak):
    """Some number of drops in a row, each beyond a share of the value before it.

    A record counts when `(last − r) > threshold × last`; where `last` is not positive, it does not
    count and so ends the row, since a share of nothing means nothing.
    """

    def __init__(
        self, threshold: float, count: int, restarts: Sequence[int] = ()
    ) -> None:
        super().__init__(threshold, count, restarts)
        self.needs = count + 1

    def _breached(self, value: float) -> bool:
        if self._last is None:
            return False
        _, last = self._last
        return last > 0 and last - value > self._threshold * last

    def _what(self) -> str:
        return f"more than {self._threshold:.0%} below the one before"
