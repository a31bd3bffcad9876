"""Base of all conditions: causal functions of a metric's whole column."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

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


class Column(NamedTuple):
    """Finite numbers by ascending step."""

    steps: NDArray[np.int64]
    values: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.steps)


class Spell(NamedTuple):
    """A breach in a column, by places; one that comes back soon is the same breach."""

    first: int
    raised: int
    """Where it was certain."""
    cleared: int | None
    what: str
    """A few words to follow the metric's title."""
    levels: tuple[float, ...] = ()
    """Numbers that its report needs, each condition's own."""


class Condition(ABC):
    """A causal check of a whole column: what it finds up to a point depends on nothing after it."""

    cooldown = 0
    """Points within which a breach that comes back is the same one."""

    @property
    @abstractmethod
    def needs(self) -> int:
        """Fewest points to judge."""

    @abstractmethod
    def spells(self, column: Column) -> Iterable[Spell]:
        """Return all breaches, oldest first; the last one may hold."""

    @abstractmethod
    def report(self, words: Wording, judged: Judged) -> DescribedBreach:
        """Return the breach that holds in words."""

    def derived(self, column: Column) -> Column:
        """Return the numbers that are judged; a condition may derive others."""
        return column

    def seen(self, column: Column) -> int:
        """Return how many points count."""
        return len(column)


class Judged:
    """What a condition finds in a column."""

    def __init__(self, condition: Condition, column: Column) -> None:
        self.condition = condition
        self.seen = condition.seen(column)
        self.column = condition.derived(column)
        self.breaches = Breaches(condition.cooldown)
        self.held: Spell | None = None
        """The spell that holds now."""
        steps = self.column.steps
        with np.errstate(over="raise", divide="ignore", invalid="ignore"):
            for one in condition.spells(self.column):
                since, raised = int(steps[one.first]), int(steps[one.raised])
                self.breaches.begin(since, raised, one.what, one.raised + 1)
                self.held = one if one.cleared is None else None
                if one.cleared is not None:
                    self.breaches.end(int(steps[one.cleared]), one.cleared + 1)

    @property
    def has_enough(self) -> bool:
        """True if there are enough points to judge."""
        return self.seen >= self.condition.needs

    @property
    def since(self) -> int:
        """First step of the breach that holds."""
        assert self.breaches.open is not None
        return self.breaches.open.since

    @property
    def newest(self) -> tuple[int, float]:
        """The last step and its value."""
        steps, values = self.column
        return int(steps[-1]), float(values[-1])

    def report(self, words: Wording) -> DescribedBreach | None:
        """Return the breach that holds now in words, None without one."""
        return None if self.held is None else self.condition.report(words, self)


def number(value: float) -> str:
    """Return a number in few characters: `0.214`, `400`, `12,345`, `1.2e-05`."""
    if abs(value) >= 1e6:
        return f"{value:.3g}"
    if abs(value) >= 1000 or (value == int(value) and abs(value) >= 100):
        return f"{value:,.0f}"
    return f"{value:.3g}"
