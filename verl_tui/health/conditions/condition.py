"""Base of all conditions: streaming checks that are fed a metric's points in order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from typing_extensions import Self

_KEPT_SPANS = 100
"""Breaches remembered of one metric: a history is read by people."""


@dataclass(frozen=True, slots=True)
class Wording:
    """The words of a rule in its messages."""

    title: str
    """The metric in a few words, e.g. `policy KL`."""
    duration: Callable[[int], str]
    """Formats a number of steps, with minutes where the pace is known."""
    note: str = ""
    """The quantity that the threshold is relative to, e.g. `128% of the limit 512, assumed`."""
    says: str = ""
    """A sentence's beginning that replaces `<title> has stayed <where>`."""


@dataclass(frozen=True, slots=True)
class DescribedBreach:
    """A breach in words, while it holds."""

    message: str
    since: int
    """Step at which the breach began."""
    evidence: tuple[str, ...] = ()


class Breach(NamedTuple):
    """A breach from its first step until it was over."""

    since: int
    """First step of the breach."""
    raised: int
    """Step at which it was certain."""
    what: str
    """A few words to follow the metric's title: `was above 0.1, mean 0.14`."""
    cleared: int | None = None
    """Step at which it was over, None while it lasts."""


class Breaches:
    """The breaches of one metric, one after the other.

    One that comes back soon after it was over is the same breach, so that a value that oscillates
    around its threshold is reported once.
    """

    def __init__(self, cooldown: int) -> None:
        """Begin without a breach.

        Args:
            cooldown: Points within which a breach that comes back is the same one.
        """
        self.cooldown = cooldown
        self.all: deque[Breach] = deque(maxlen=_KEPT_SPANS)
        self._cleared_at = 0

    @property
    def open(self) -> Breach | None:
        """The breach that holds now."""
        if self.all and self.all[-1].cleared is None:
            return self.all[-1]
        return None

    def begin(self, since: int, step: int, what: str, at: int) -> None:
        """Note a breach that has become certain.

        Args:
            since: Its first step.
            step: The present step.
            what: What happened, in words that follow the metric's title.
            at: Number of points seen so far.
        """
        if self.recent(at) is not None:
            self.all[-1] = self.all[-1]._replace(cleared=None)
        else:
            self.all.append(Breach(since, step, what))

    def recent(self, at: int) -> Breach | None:
        """Return the latest breach if one that begins now continues it, None for a new one."""
        if self.all and at - self._cleared_at <= self.cooldown:
            return self.all[-1]
        return None

    def end(self, step: int, at: int) -> None:
        """Note that it is over; without a breach nothing happens."""
        if self.open is not None:
            self.all[-1] = self.all[-1]._replace(cleared=step)
            self._cleared_at = at

    def copy(self) -> Breaches:
        """Return an independent copy."""
        twin = copy(self)
        twin.all = self.all.copy()
        return twin


class Condition(ABC):
    """A streaming check of one stream of finite numbers.

    Points are fed in ascending step, each once; feeding them one by one or all together gives the
    same state.
    """

    needs = 1
    """Fewest points to judge."""

    def __init__(self, cooldown: int = 0) -> None:
        self.seen = 0
        """Points fed so far."""
        self.breaches = Breaches(cooldown)

    @abstractmethod
    def feed(self, steps: Sequence[int], values: Sequence[float]) -> None:
        """Take in points."""

    @abstractmethod
    def report(self, words: Wording) -> DescribedBreach | None:
        """Return the breach that holds now in words, None without one."""

    def clone(self) -> Self:
        """Return an independent copy, for a look at a point that may still change."""
        twin = copy(self)
        twin.breaches = self.breaches.copy()
        twin._detach()
        return twin

    @abstractmethod
    def _detach(self) -> None:
        """Replace the containers shared with the original by copies."""

    def _begin(self, since: int, step: int, what: str) -> None:
        self.breaches.begin(since, step, what, self.seen)

    def _end(self, step: int) -> None:
        self.breaches.end(step, self.seen)

    def _first(self) -> int:
        """Return the first step of the breach that holds now."""
        breach = self.breaches.open
        assert breach is not None
        return breach.since


def number(value: float) -> str:
    """Return a number in few characters: `0.214`, `400`, `12,345`, `1.2e-05`."""
    if abs(value) >= 1e6:
        return f"{value:.3g}"
    if abs(value) >= 1000 or (value == int(value) and abs(value) >= 100):
        return f"{value:,.0f}"
    return f"{value:.3g}"
