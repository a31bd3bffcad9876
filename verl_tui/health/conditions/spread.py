"""Values far from their own past: jumps, surges, a fall to zero, and levels that shift."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from statistics import fmean, median
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from verl_tui.health.conditions.condition import (
    Condition,
    Spell,
    number,
)
from verl_tui.health.conditions.windows import first, means, rolling, rows, sigma

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.health.conditions.condition import Column, HeldBreach
    from verl_tui.health.conditions.windows import Flags, Numbers, Places

_LEAST_SIGMA = 0.05
"""The spread counts as at least a twentieth of the level, so that a nearly constant past makes
nothing a jump.
"""
_SETTLED = 1.1
"""A surge is over when it has gained less than a tenth within a window: it is the new level."""
_LONGEST_HOLD = 300
_TAIL = 0.98
"""Share of its past below which the upper tail of a metric begins."""
_CORES = 10
"""Windows that begin within a tenth of their size of each other are looked at together."""


@dataclass(frozen=True)
class Jump(Condition):
    """A value far above the points before it; held for some points, longer if it happens often."""

    factor: float
    """Times the past's median that a jump exceeds."""
    spread: float
    """Standard deviations of the past above its median."""
    floor: float
    """Values below are never a jump."""
    tail: float
    """Times the upper tail of the past, so that what comes again and again is no jump."""
    ignore: float
    """Values up to here are left out of the past, as the gradients of dead groups."""
    window: int
    """Points that make the past at most."""
    least: int
    """Fewest points of the past that it needs."""
    hold: int
    """Points for which a single jump is reported; four times as many after two, and so on."""

    @property
    def cooldown(self) -> int:  # type: ignore[override]
        """Points within which a breach that comes back is the same one."""
        return self.hold

    @property
    def needs(self) -> int:
        """Fewest points to judge."""
        return self.least + 1

    def spells(self, column: Column) -> Iterator[Spell]:
        """Return jumps; those that follow soon belong together. With each come places, values and
        usual values of its jumps, three numbers a jump.
        """
        jumps: list[tuple[int, float, float]] = []
        end = 0
        for jump in self._jumps(column.values):
            if jumps and jump[0] > end:
                yield self._spell(jumps, end)
                jumps = []
            jumps.append(jump)
            end = jump[0] + 1 + min(_LONGEST_HOLD, self.hold * len(jumps) ** 2)
        if jumps:
            yield self._spell(jumps, end if end < len(column) else None)

    def _spell(self, jumps: list[tuple[int, float, float]], end: int | None) -> Spell:
        place, value, usual = jumps[0]
        what = f"jumped to {number(value)} from its usual {number(usual)}"
        return Spell(place, place, end, what, tuple([x for one in jumps for x in one]))

    def _jumps(self, values: Numbers) -> Iterator[tuple[int, float, float]]:
        """Yield places of jumps, their values, and the medians of the points before."""
        usual = values > self.ignore
        counts: Places = np.cumsum(usual) - usual
        kept = values[usual]
        places = np.flatnonzero((values > self.floor) & (counts >= self.least))
        may_be = self._may_be(values[places], counts[places], kept)
        for place in places[may_be].tolist():
            value, count = float(values[place]), int(counts[place])
            past = np.sort(kept[max(0, count - self.window) : count])
            level = median(past.tolist())
            if value <= self.factor * level:
                continue
            tail = past[int(_TAIL * len(past))]
            spread = max(sigma(past, level), _LEAST_SIGMA * abs(level))
            if value > self.tail * tail and value - level > self.spread * spread:
                yield place, value, level

    def _may_be(self, values: Numbers, counts: Places, kept: Numbers) -> Flags:
        """Return which values may be jumps by what their pasts have in common with the pasts next
        to them: that spares most of the sorting.
        """
        stride = max(1, self.window // _CORES)
        core = self.window - stride + 1
        groups = counts // stride
        found = np.ones(len(values), bool)
        full = groups * stride >= self.window
        if not full.any():
            return found
        known, group = np.unique(groups[full], return_inverse=True)
        # The past of each value in a group holds these, and less than a stride of others.
        cores = rows(kept, core, known * stride - 1)
        ranks = [
            max(0, rank - stride + 1)
            for rank in ((self.window - 1) // 2, int(_TAIL * self.window))
        ]
        level, tail = np.partition(cores, ranks, axis=1)[:, ranks].T
        least = np.maximum(self.factor * level, self.tail * tail)
        found[full] = values[full] > least[group]
        return found

    def report(self, held: HeldBreach) -> Sequence[str]:
        """Return the message on a breach that holds, and its evidence."""
        numbers = held.spell.levels
        steps = [int(held.column.steps[int(place)]) for place in numbers[::3]]
        jumps = list(zip(steps, numbers[1::3], numbers[2::3], strict=True))
        step, value, level = max(jumps, key=lambda jump: jump[1])
        message = (
            f"{held.title} jumped to {number(value)} at step {step}, "
            f"from its usual {number(level)}"
        )
        if len(jumps) > 1:
            since = f"since step {held.since}"
            message += f"; {len(jumps)} such points {since}, the last at {steps[-1]}"
        evidence = [
            f"{number(value)} at step {step}; the points before: median {number(usual)}"
            for step, value, usual in jumps[-3:]
        ]
        return message, *evidence


@dataclass(frozen=True)
class Surge(Condition):
    """The last points lie many times above the run's own past; the past is held while that is
    so.
    """

    window: int
    recent: int
    factor: float
    floor: float

    @property
    def cooldown(self) -> int:  # type: ignore[override]
        """Points within which a breach that comes back is the same one."""
        return self.window

    @property
    def needs(self) -> int:
        """Fewest points to judge."""
        return self.window + self.recent

    def spells(self, column: Column) -> Iterator[Spell]:
        """Return all surges, each with the level before."""
        values = column.values
        low = rolling(values, self.recent, np.minimum)
        past: deque[float] = deque(maxlen=self.window)
        place = self.needs - 1
        while place < len(values):
            found = self._next(values, low, past, place)
            if found is None:
                return
            place, level = found
            end = self._end(values, place, level, past)
            start = place + 1 - self.recent
            limit = number(self._limit(level))
            what = f"rose beyond {limit}, from its usual {number(level)}"
            yield Spell(start, place, end, what, (level,))
            if end is None:
                return
            place = end + 1

    def _next(
        self, values: Numbers, low: Numbers, past: deque[float], start: int
    ) -> tuple[int, float] | None:
        """Return the next place at which a surge shows, with the level before; `past` are the
        points before it.
        """
        # After a surge the points before lack those of the surge.
        stop = min(len(values), start + self.window) if past else start
        for place in range(start, stop):
            past.append(float(values[place - self.recent]))
            level = self._level(list(past), float(low[place]))
            if level is not None:
                return place, level
        places = stop + np.flatnonzero(low[stop:] > self.floor)
        for some in np.split(places, range(512, len(places), 4096)):
            before = rows(values, self.window, some - self.recent)
            high = low[some] > self.factor * np.median(before, axis=1)
            for place, known in zip(
                some[high].tolist(), before[high].tolist(), strict=True
            ):
                level = self._level(known, float(low[place]))
                if level is not None:
                    past.extend(known)
                    return place, level
        return None

    def _level(self, past: list[float], low: float) -> float | None:
        """Return the level of a past that the least of the last points lies far above, None where
        it does not.
        """
        level = median(past)
        if low <= self._limit(level):
            return None
        # A metric that has grown all along, as from 0 at a run's start, has no level: its newest
        # part serves as its past.
        level = max(level, median(past[len(past) // 2 :]))
        return level if low > self._limit(level) else None

    def _end(
        self, values: Numbers, start: int, level: float, past: deque[float]
    ) -> int | None:
        """Return where a surge ends; `past` becomes the points before the next one."""
        limit, half = self._limit(level), self.window // 2
        above = values > limit
        for place in range(start + 1, len(values)):
            if above[place + 1 - self.recent : place + 1].sum() * 2 <= self.recent:
                return place
            held = values[max(start + 1, place + 1 - self.window) : place + 1].tolist()
            if len(held) < 2 * half:
                continue
            if median(held[-half:]) <= _SETTLED * median(held[:half]):
                # The new level has become the past: it no longer rises.
                past.extend(held)
                return place
        return None

    def _limit(self, level: float) -> float:
        """Return the value up to which there is no surge above a level."""
        return max(self.factor * level, self.floor)

    def report(self, held: HeldBreach) -> Sequence[str]:
        """Return the message on a breach that holds, and its evidence."""
        (level,) = held.spell.levels
        steps, recent = (one[-self.recent :].tolist() for one in held.column)
        mean = fmean(recent)
        times = f"{number(mean / level)} times" if level > 0 else "far above"
        values = ", ".join(
            f"{number(value)} at step {at}"
            for at, value in zip(steps, recent, strict=True)
        )
        return (
            f"{held.title} has been {times} its own past for {held.long}: "
            f"mean of the last {len(recent)} points {number(mean)}, "
            f"before step {held.since} {number(level)}, last {number(held.last)}",
            values,
        )


@dataclass(frozen=True)
class Zero(Condition):
    """Falls to zero at once, from points that were clearly positive, none near zero; holds while it
    is zero.

    Where values lie between 0 and 1 it takes more zeros than come by chance: small batches score 0
    at times.
    """

    window: int
    """Positive points before it."""
    count: int
    """Fewest zeros in a row that make it a fall; 1 to report it at once on scales beyond 1."""

    _NEAR: ClassVar = 0.005
    """A value counts as zero up to this share of those before: logs print few digits."""
    _STEADY: ClassVar = 0.25
    """If an earlier value was below a quarter of the usual, a zero is no surprise."""
    _MEMORY: ClassVar = 100
    """Points that show how often zero comes by chance."""
    _CHANCE: ClassVar = 1e-5
    """Highest probability of that many zeros in a row: heuristic, once in a hundred runs of a
    thousand steps.
    """

    @property
    def cooldown(self) -> int:  # type: ignore[override]
        """Points within which a breach that comes back is the same one."""
        return self.window

    @property
    def needs(self) -> int:
        """Fewest points to judge."""
        return self.window + self.count

    def spells(self, column: Column) -> Iterator[Spell]:
        """Return all falls, each with the level before and the points that show it."""
        values = column.values
        highest = np.maximum.accumulate(np.append(0.0, values))[:-1]
        falls = np.append(False, np.diff(values) < 0)
        kept: deque[float] = deque(maxlen=self.window)
        known: deque[float] = deque(maxlen=self._MEMORY)
        at = 0
        near_zero = abs(values) <= self._NEAR * highest
        for place in np.flatnonzero(falls & near_zero).tolist():
            if place < at:
                continue
            _take(values[at:place], kept, known)
            at = place
            level = self._level(kept, float(values[place]))
            if level is None:
                continue
            most = self._enough(list(known))
            near = self._NEAR * level
            end = first(
                lambda part, near=near: abs(values[part]) > near,  # type: ignore[misc]
                place + 1,
                len(values),
            )
            at = len(values) if end is None else end
            if at - place >= most:
                what = f"fell to 0 from {number(level)}"
                yield Spell(place, place + most - 1, end, what, (level, *kept))
            else:
                known.extend([0.0] * (at - place))

    def _level(self, past: deque[float], value: float) -> float | None:
        """Return the level that a value has fallen to zero from, None where it has not."""
        if len(past) < self.window or value >= past[-1]:
            return None
        level = median(past)
        if level <= 0 or abs(value) > self._NEAR * level:
            return None
        return level if min(past) >= self._STEADY * level else None

    def _enough(self, known: list[float]) -> int:
        """Return how many zeros in a row cannot be chance, by the zeros so far and the spread of
        the values.
        """
        if self.count == 1 and max(known) > 1:
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
        return max(self.count, math.ceil(in_a_row))

    def report(self, held: HeldBreach) -> Sequence[str]:
        """Return the message on a breach that holds, and its evidence."""
        level, *past = held.spell.levels
        return (
            f"{held.title} fell to 0 at once at step {held.since}, from {number(level)}, "
            f"and has been 0 for {held.long}",
            f"the points before: {', '.join(map(number, past))}",
        )


def _take(values: Numbers, *into: deque[float]) -> None:
    """Append to each of some queues the values that it has room for."""
    for one in into:
        one.extend(values[-(one.maxlen or 0) :].tolist())


_SIGMAS = 5.0
_BACK = 0.5
"""It is over when half of the way is made up for."""


@dataclass(frozen=True)
class Shift(Condition):
    """The last points lie far above (or below) the ones before, or the first ones: what creeps
    leaves its past, too.
    """

    window: int
    """Points of the past at most."""
    least: int
    """Fewest points of the past that it needs."""
    recent: int
    """Points that must all have left it."""
    way: float
    """How far at least, in the metric's own unit; negative to watch for a fall."""

    @property
    def cooldown(self) -> int:  # type: ignore[override]
        """Points within which a breach that comes back is the same one."""
        return self.recent

    @property
    def needs(self) -> int:
        """Fewest points to judge."""
        return self.least + self.recent

    def spells(self, column: Column) -> Iterator[Spell]:
        """Return all shifts, each with the usual level before."""
        up = column.values if self.way > 0 else -column.values
        least = abs(self.way)
        newest = means(up, self.recent)
        # No usual level lies beyond the least value so far.
        places = np.flatnonzero(up - np.minimum.accumulate(up) > least)
        base = 0
        for place in places.tolist():
            if place + 1 - base < self.needs:
                continue
            usual = self._usual(up, base, place)
            if usual is None:
                continue
            end = first(
                lambda part, back=usual + _BACK * least: newest[part] < back,  # type: ignore[misc]
                place + 1,
                len(up),
            )
            start = place + 1 - self.recent
            sign = math.copysign(1, self.way)
            levels = [sign * one + 0.0 for one in (usual, newest[place])]
            verb = "rose" if self.way > 0 else "fell"
            way = "from its usual {} to {}".format(*map(number, levels))
            yield Spell(start, place, end, f"{verb} {way}", (levels[0],))
            if end is None:
                return
            base = end + 1

    def _usual(self, values: Numbers, base: int, place: int) -> float | None:
        """Return the usual level that the last points have left, None where they have not."""
        start = place + 1 - self.recent
        last = values[start : place + 1]
        pasts = [values[max(base, start - self.window) : start]]
        if place + 1 >= 2 * self.window:
            pasts.append(values[: self.window])
        for past in pasts:
            usual: float = median(past.tolist())
            least = max(abs(self.way), _SIGMAS * sigma(past, usual))
            if (last - usual > least).all():
                return usual
        return None

    def report(self, held: HeldBreach) -> Sequence[str]:
        """Return the message on a breach that holds, and its evidence."""
        (usual,) = held.spell.levels
        verb = "risen" if self.way > 0 else "fallen"
        now = fmean(held.column.values[-self.recent :].tolist())
        way = f"from its usual {number(usual)} to {number(now)}"
        return (
            f"{held.title} has {verb} {way} since step {held.since}",
            f"usual {number(usual)} before, newest {held.newest}",
        )
