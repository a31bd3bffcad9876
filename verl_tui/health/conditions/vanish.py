"""A metric that is next to nothing almost from its first points on, where there is no past to
measure it by.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from verl_tui.health.conditions.condition import (
    Condition,
    DescribedBreach,
    Wording,
    number,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

_OPENING = 3
"""Number of first points; the greatest of them is the value that the run began with."""


class Vanish(Condition):
    """Within its first points a metric falls to a small share of its beginning; holds until it
    recovers.
    """

    def __init__(self, *, share: float, back: float, recent: int, within: int) -> None:
        """Prepare the watch.

        Args:
            share: Share of the beginning that the newest points must all lie at or below.
            back: Share beyond which it has come back.
            recent: Newest points looked at.
            within: Points among which it must happen: later there is a past to measure by.
        """
        super().__init__()
        self.needs = _OPENING + recent - 1
        self._share = share
        self._back = back
        self._within = within
        self._recent: deque[tuple[int, float]] = deque(maxlen=recent)
        self._low: list[int] = []
        """First and newest step of those next to nothing, in a row."""
        self.opening = 0.0
        self.since: int | None = None
        """First step next to nothing, while that holds."""

    def feed(self, steps: Sequence[int], values: Sequence[float]) -> None:
        """Take in points."""
        for at, (step, value) in enumerate(zip(steps, values, strict=True)):
            if self.since is None and self.seen >= self._within:
                self.seen += len(values) - at
                return
            self.seen += 1
            self._recent.append((step, value))
            if self.seen <= _OPENING:
                self.opening = max(self.opening, value)
            self._low = [*self._low[:1], step] if self._is_gone(value) else []
            if self.since is not None:
                self._follow(step)
            elif self.needs <= self.seen <= self._within and self._gone():
                self.since = self._low[0]
                fall = f"from {number(self.opening)} to {number(value)}"
                self._begin(self.since, step, f"fell {fall} at the start")

    def _follow(self, step: int) -> None:
        if min(last for _, last in self._recent) > self._back * self.opening:
            self.since = None
            self._end(step)

    def _gone(self) -> bool:
        return all(self._is_gone(value) for _, value in self._recent)

    def _is_gone(self, value: float) -> bool:
        return 0 <= value <= self._share * self.opening and self.opening > 0

    def report(self, words: Wording) -> DescribedBreach | None:
        """Return the breach that holds now in words, None without one."""
        if self.since is None:
            return None
        step, last = self._recent[-1]
        fall = f"from {number(self.opening)} to {number(last)}"
        return DescribedBreach(
            f"{words.title} fell {fall} within the first steps",
            self.since,
            (f"next to nothing from step {self.since}, {number(last)} at step {step}",),
        )

    def _detach(self) -> None:
        self._recent = self._recent.copy()
