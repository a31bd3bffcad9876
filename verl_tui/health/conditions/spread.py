"""Values far from their own recent past: jumps, surges, and a fall to zero."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import deque
from statistics import fmean, median
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.health.conditions.condition import (
    Condition,
    DescribedBreach,
    Wording,
    number,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

_TO_SIGMA = 1.4826
"""Median absolute deviation times this is the standard deviation of normal noise."""
_LEAST_SIGMA = 0.05
"""The spread counts as at least a twentieth of the level, so that a nearly constant past makes
nothing a jump.
"""


class _Past:
    """The last values, and their median at any time at little cost."""

    def __init__(self, size: int) -> None:
        self._order: deque[float] = deque(maxlen=size)
        self._sorted: list[float] = []

    @property
    def full(self) -> bool:
        return len(self._order) == self._order.maxlen

    @property
    def count(self) -> int:
        return len(self._order)

    def add(self, value: float) -> None:
        if self.full:
            del self._sorted[bisect_left(self._sorted, self._order[0])]
        self._order.append(value)
        insort(self._sorted, value)

    def refill(self, values: Sequence[float]) -> None:
        """Take over at least as many values as there is room for: the same as adding them, at
        once.
        """
        self._order.extend(values)
        self._sorted = sorted(self._order)

    def median(self) -> float:
        middle = len(self._sorted) // 2
        if len(self._sorted) % 2:
            return self._sorted[middle]
        return (self._sorted[middle - 1] + self._sorted[middle]) / 2

    def sigma(self) -> float:
        level = self.median()
        deviation = median(abs(value - level) for value in self._sorted)
        return max(_TO_SIGMA * deviation, _LEAST_SIGMA * abs(level))

    def lately(self) -> float:
        """Return the median of the newer half."""
        values = list(self._order)
        return median(values[len(values) // 2 :])

    def tail(self) -> float:
        """Return where the upper tail begins."""
        return self._sorted[int(_TAIL * len(self._sorted))]

    def copy(self) -> _Past:
        twin = _Past(0)
        twin._order = self._order.copy()
        twin._sorted = self._sorted.copy()
        return twin


_SETTLED = 1.1
"""A surge is over when it has gained less than a tenth within a window: it is the new level."""
_LONGEST_HOLD = 300
_TAIL = 0.98
"""Share of its past below which the upper tail of a metric begins."""


class Leap(NamedTuple):
    """How far above its past a value must lie to be a jump."""

    factor: float
    """Times the past's median."""
    spread: float
    """Standard deviations of the past above its median."""
    floor: float
    """Values below are never a jump."""
    tail: float = 0.0
    """Times the upper tail of the past, so that what comes again and again is no jump."""
    ignore: float = -math.inf
    """Values up to here are left out of the past, as the gradients of dead groups."""


class Jump(Condition):
    """A value far above the points before it; held for some points, longer if it happens often."""

    def __init__(self, leap: Leap, *, window: int, least: int, hold: int) -> None:
        """Prepare the watch for jumps.

        Args:
            leap: What makes a jump.
            window: Points that make the past at most.
            least: Fewest points of the past that it needs.
            hold: Points for which a single jump is reported; four times as many after two, and so
                on.
        """
        super().__init__(cooldown=hold)
        self.needs = least + 1
        self._leap = leap
        self._window = window
        self._hold = hold
        self._past = _Past(window)
        self._jumps: list[tuple[int, float, float]] = []
        self._quiet = 0

    def feed(self, steps: Sequence[int], values: Sequence[float]) -> None:
        """Take in points."""
        past = self._past
        leap = self._leap
        if len(values) > self._window and not self._jumps and self._is_calm(values):
            self.seen += len(values)
            self._quiet += len(values)
            past.refill(values[-self._window :])
            return
        for step, value in zip(steps, values, strict=True):
            self.seen += 1
            self._quiet += 1
            if (
                value > leap.floor
                and past.count >= self.needs - 1
                and self._is_jump(value)
            ):
                self._note_jump(step, value)
            elif self._jumps:
                self._end_if_quiet(step)
            if value > leap.ignore:
                past.add(value)

    def _end_if_quiet(self, step: int) -> None:
        hold = self._hold * len(self._jumps) ** 2
        if self._quiet > min(_LONGEST_HOLD, hold):
            self._jumps = []
            self._end(step)

    def _is_calm(self, values: Sequence[float]) -> bool:
        """Return whether none of many values can be a jump, and all of them count as usual."""
        return max(values) <= self._leap.floor and min(values) > self._leap.ignore

    def _note_jump(self, step: int, value: float) -> None:
        usual = self._past.median()
        self._jumps.append((step, value, usual))
        self._quiet = 0
        if self.breaches.open is None:
            what = f"jumped to {number(value)} from its usual {number(usual)}"
            self._begin(step, step, what)

    def _is_jump(self, value: float) -> bool:
        leap = self._leap
        level = self._past.median()
        return (
            value > leap.factor * level
            and value > leap.tail * self._past.tail()
            and value - level > leap.spread * self._past.sigma()
        )

    def report(self, words: Wording) -> DescribedBreach | None:
        """Return the breach that holds now in words, None without one."""
        if not self._jumps:
            return None
        step, value, level = max(self._jumps, key=lambda jump: jump[1])
        since = self._first()
        count = len(self._jumps)
        jump = (
            f"jumped to {number(value)} at step {step}, from its usual {number(level)}"
        )
        message = f"{words.title} {jump}"
        if count > 1:
            last = self._jumps[-1][0]
            message += f"; {count} such points since step {since}, the last at {last}"
        evidence = [
            f"{number(value)} at step {step}; the points before: median {number(usual)}"
            for step, value, usual in self._jumps[-3:]
        ]
        return DescribedBreach(message, since, tuple(evidence))

    def _detach(self) -> None:
        self._past = self._past.copy()
        self._jumps = self._jumps.copy()


class Surge(Condition):
    """The last points lie many times above the run's own past; the past is held while that is
    so.
    """

    def __init__(
        self, *, window: int, recent: int, factor: float, floor: float
    ) -> None:
        super().__init__(cooldown=window)
        self.needs = window + recent
        self._factor = factor
        self._floor = floor
        self._size = recent
        self._past = _Past(window)
        self._recent: deque[tuple[int, float]] = deque(maxlen=recent)
        self._since: tuple[int, float] | None = None
        """Step at which it began, and the level before."""
        self._held: deque[float] = deque(maxlen=window)
        """The points since then."""

    def feed(self, steps: Sequence[int], values: Sequence[float]) -> None:
        """Take in points."""
        recent = self._recent
        if (
            len(values) > self.needs
            and self._since is None
            and max(values) <= self._floor
        ):
            # Nothing here can be a surge.
            self.seen += len(values)
            self._past.refill(values[-self.needs : -self._size])
            recent.extend(zip(steps[-self._size :], values[-self._size :], strict=True))
            return
        for step, value in zip(steps, values, strict=True):
            self.seen += 1
            if len(recent) == recent.maxlen and self._since is None:
                self._past.add(recent[0][1])
            recent.append((step, value))
            if self._since is not None:
                self._follow(step, value, self._since[1])
            elif value > self._floor and self._past.full:
                self._consider()

    def _follow(self, step: int, value: float, level: float) -> None:
        self._held.append(value)
        limit = self._limit(level)
        above = sum(value > limit for _, value in self._recent)
        if above * 2 <= len(self._recent) or self._settled():
            self._since = None
            self._end(step)

    def _settled(self) -> bool:
        """Return whether the new level has become the past: it no longer rises."""
        half = (self._held.maxlen or 0) // 2
        if len(self._held) < 2 * half:
            return False
        held = list(self._held)
        if median(held[-half:]) > _SETTLED * median(held[:half]):
            return False
        self._past.refill(held)
        return True

    def _consider(self) -> None:
        level = self._past.median()
        if not self._is_surge(level):
            return
        # A metric that has grown all along, as from 0 at a run's start, has no level: its newest
        # part serves as its past.
        level = max(level, self._past.lately())
        if not self._is_surge(level):
            return
        self._since = (self._recent[0][0], level)
        self._held.clear()
        what = (
            f"rose beyond {number(self._limit(level))}, from its usual {number(level)}"
        )
        self._begin(self._since[0], self._recent[-1][0], what)

    def _limit(self, level: float) -> float:
        """Return the value up to which there is no surge above a level."""
        return max(self._factor * level, self._floor)

    def _is_surge(self, level: float) -> bool:
        limit = self._limit(level)
        return all(value > limit for _, value in self._recent)

    def report(self, words: Wording) -> DescribedBreach | None:
        """Return the breach that holds now in words, None without one."""
        if self._since is None:
            return None
        since = self._first()
        level = self._since[1]
        step, last = self._recent[-1]
        mean = fmean(value for _, value in self._recent)
        times = f"{number(mean / level)} times" if level > 0 else "far above"
        long = words.duration(step - since + 1)
        message = (
            f"{words.title} has been {times} its own past for {long}: "
            f"mean of the last {len(self._recent)} points {number(mean)}, "
            f"before step {since} {number(level)}, last {number(last)}"
        )
        values = ", ".join(
            f"{number(value)} at step {at}" for at, value in self._recent
        )
        return DescribedBreach(message, since, (values,))

    def _detach(self) -> None:
        self._past = self._past.copy()
        self._recent = self._recent.copy()
        self._held = self._held.copy()


class Zero(Condition):
    """Falls to zero at once, from points that were clearly positive, none near zero; holds while it
    is zero.

    Where values lie between 0 and 1 it takes more zeros than come by chance: small batches score 0
    at times.
    """

    _NEAR = 0.005
    """A value counts as zero up to this share of those before: logs print few digits."""
    _STEADY = 0.25
    """If an earlier value was below a quarter of the usual, a zero is no surprise."""
    _MEMORY = 100
    """Points that show how often zero comes by chance."""
    _CHANCE = 1e-5
    """Highest probability of that many zeros in a row: heuristic, once in a hundred runs of a
    thousand steps.
    """

    def __init__(self, *, window: int, count: int) -> None:
        """Prepare the watch for a fall.

        Args:
            window: Positive points before it.
            count: Fewest zeros in a row that make it a fall; 1 to report it at once on scales
                beyond 1.
        """
        super().__init__(cooldown=window)
        self.needs = window + count
        self._least = count
        self._most = count
        """Zeros in a row that make the present one a fall."""
        self._zeros = 0
        self._past: deque[float] = deque(maxlen=window)
        self._known: deque[float] = deque(maxlen=self._MEMORY)
        self._since: tuple[int, float] | None = None
        self._last: tuple[int, float] = (0, 0.0)

    def feed(self, steps: Sequence[int], values: Sequence[float]) -> None:
        """Take in points."""
        for step, value in zip(steps, values, strict=True):
            self.seen += 1
            self._last = (step, value)
            if self._since is None:
                self._consider(step, value)
            elif abs(value) <= self._NEAR * self._since[1]:
                self._zeros += 1
                self._begin_if_enough(step)
            else:
                self._come_back(step)
            if self._since is None:
                self._past.append(value)
                self._known.append(value)

    def _come_back(self, step: int) -> None:
        if self._zeros < self._most:
            self._known.extend([0.0] * self._zeros)
        self._since = None
        self._end(step)

    def _consider(self, step: int, value: float) -> None:
        if len(self._past) != self._past.maxlen or value >= self._past[-1]:
            return
        level = median(self._past)
        if level <= 0 or abs(value) > self._NEAR * level:
            return
        if min(self._past) < self._STEADY * level:
            return
        self._since = (step, level)
        self._zeros = 1
        self._most = self._enough()
        self._begin_if_enough(step)

    def _enough(self) -> int:
        """Return how many zeros in a row cannot be chance, by the zeros so far and the spread of
        the values.
        """
        known = [*self._known]
        if self._least == 1 and max(known) > 1:
            return 1
        level = fmean(known)
        size = len(known)
        spread = fmean((value - level) ** 2 for value in known)
        zeros = sum(abs(value) <= self._NEAR * level for value in known)
        # With no zero among n values, a share of about 1/n is still likely; with a normal spread,
        # the tail beyond the mean.
        share = (zeros + 0.5) / (size + 1)
        if spread > 0:
            share = max(share, math.exp(-level * level / (2 * spread)))
        in_a_row = math.log(self._CHANCE) / math.log(min(share, 0.9))
        return max(self._least, math.ceil(in_a_row))

    def _begin_if_enough(self, step: int) -> None:
        if self._since is not None and self._zeros == self._most:
            since, level = self._since
            self._begin(since, step, f"fell to 0 from {number(level)}")

    def report(self, words: Wording) -> DescribedBreach | None:
        """Return the breach that holds now in words, None without one."""
        if self._since is None or self._zeros < self._most:
            return None
        since = self._first()
        level = self._since[1]
        long = words.duration(self._last[0] - since + 1)
        message = (
            f"{words.title} fell to 0 at once at step {since}, from {number(level)}, "
            f"and has been 0 for {long}"
        )
        before = ", ".join(number(value) for value in self._past)
        return DescribedBreach(message, since, (f"the points before: {before}",))

    def _detach(self) -> None:
        self._past = self._past.copy()
        self._known = self._known.copy()
