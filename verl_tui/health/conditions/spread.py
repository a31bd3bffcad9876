"""Values far from their own past: jumps, surges, a fall to zero, and levels that shift."""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import attrgetter
from statistics import fmean, median
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from verl_tui.health.conditions.condition import Condition, Spell
from verl_tui.health.conditions.windows import (
    TO_SIGMA,
    by_size,
    first,
    means,
    pieces,
    rolling,
    rows,
    sigmas,
)
from verl_tui.health.finding import number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.health.conditions.condition import Column
    from verl_tui.health.conditions.windows import Flags, Numbers, Places

_LEAST_SIGMA = 0.05
"""The spread counts as at least a twentieth of the level, so that a nearly constant past makes
nothing a jump.
"""
_LONGEST_HOLD = 300
_TAIL = 0.98
"""Share of its past below which the upper tail of a metric begins."""


class _JumpPoint(NamedTuple):
    """A value that is a jump."""

    place: int
    step: int
    value: float
    usual: float
    """The median of the points before."""


@dataclass
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

    def __post_init__(self) -> None:
        self.needs = self.least + 1
        self.cooldown = self.hold

    def spells(self, column: Column) -> Iterator[Spell]:
        """Return jumps, each with those that follow soon."""
        jumps: list[_JumpPoint] = []
        end = 0
        for jump in self._jumps(column):
            if jumps and jump.place > end:
                yield _of_jumps(jumps, end)
                jumps = []
            jumps.append(jump)
            end = jump.place + 1 + min(_LONGEST_HOLD, self.hold * len(jumps) ** 2)
        if jumps:
            yield _of_jumps(jumps, end if end < len(column) else None)

    def _jumps(self, column: Column) -> Iterator[_JumpPoint]:
        values = column.values
        usual = values > self.ignore
        before: Places = np.cumsum(usual) - usual
        kept = values[usual]
        places = np.flatnonzero((values > self.floor) & (before >= self.least))
        places = places[self._may_be(values[places], before[places], kept)]
        sizes = np.minimum(self.window, before[places])
        for size, some in by_size(places, sizes):
            past = rows(kept, size, before[some] - 1)
            for place, level in self._found(values[some], some, past):
                step = int(column.steps[place])
                yield _JumpPoint(place, step, float(values[place]), level)

    def _may_be(self, values: Numbers, before: Places, kept: Numbers) -> Flags:
        """Return which values may lie beyond the upper tails of their pasts: that spares most of
        the sorting.
        """
        parts = self.window - int(_TAIL * self.window)
        size = self.window // parts
        highest = rolling(kept, size, np.maximum)
        full = before >= self.window
        least = np.minimum.accumulate(kept)[before - 1]
        # Each part of a full past has a value that is no lower, so many lie in the tail.
        last = before[full, None] - 1 - size * np.arange(parts)
        least[full] = highest[last].min(axis=1)
        flags: Flags = values > self.tail * least
        return flags

    def _found(
        self, values: Numbers, places: Places, past: Numbers
    ) -> Iterator[tuple[int, float]]:
        """Yield which values are jumps, by their pasts, with the medians of these."""
        rank = int(_TAIL * past.shape[1])
        beyond = values > self.tail * np.partition(past, rank, axis=1)[:, rank]
        values, places, past = values[beyond], places[beyond], past[beyond]
        level = np.median(past, axis=1)
        spread = np.maximum(sigmas(past, level), _LEAST_SIGMA * abs(level))
        found = (values > self.factor * level) & (values - level > self.spread * spread)
        yield from zip(places[found].tolist(), level[found].tolist(), strict=True)


def _of_jumps(jumps: Sequence[_JumpPoint], end: int | None) -> Spell:
    one, highest = jumps[0], max(jumps, key=attrgetter("value"))
    more = f"; {len(jumps)} such points since step {one.step}, the last at {jumps[-1].step}"
    facts = {
        "value": one.value,
        "usual": one.usual,
        "highest": highest.value,
        "highest_step": highest.step,
        "highest_usual": highest.usual,
        "more": more if len(jumps) > 1 else "",
        "sentences": [
            f"{number(jump.value)} at step {jump.step}; the points before: "
            f"median {number(jump.usual)}"
            for jump in jumps[-3:]
        ],
    }
    return Spell(one.place, one.place, end, facts)


_SETTLED = 1.1
"""A surge is over when it has gained less than a tenth within a window: it is the new level."""


@dataclass
class Surge(Condition):
    """The last points lie many times above the run's own past; the past is held while that is
    so.
    """

    window: int
    recent: int
    factor: float
    floor: float

    def __post_init__(self) -> None:
        self.needs = self.window + self.recent
        self.cooldown = self.window

    def spells(self, column: Column) -> Iterator[Spell]:
        """Return all surges, each with the level before."""
        values, recent, window = column.values, self.recent, self.window
        low = rolling(values, recent, np.minimum)
        places = self.needs - 1 + np.flatnonzero(low[self.needs - 1 :] > self.floor)
        is_high = self._may_be(values, low, places)
        past = values[:0]
        until: int | None = recent - 1
        while until is not None:
            near = is_high | (places <= until + window)
            for place in places[near & (places > until)].tolist():
                # After a surge the points before lack those of the surge.
                begin = place + 1 - recent
                start = max(begin - window, until + 1 - recent)
                known = np.append(past, values[start:begin])[-window:]
                level = float(_usual(known[None])[0])
                limit = max(self.factor * level, self.floor)
                if low[place] > limit:
                    until, past = self._end(values, place, limit, known)
                    facts = {"limit": limit, "level": level}
                    newest = self._newest(column, level)
                    yield Spell(begin, place, until, {**facts, **newest})
                    break
            else:
                return

    def _may_be(self, values: Numbers, low: Numbers, places: Places) -> Flags:
        """Return at which places the last points lie far above the newer half of the points before;
        the least of these spares most of the sorting.
        """
        half = self.window - self.window // 2
        least = rolling(values, half, np.minimum)[places - self.recent]
        found: Flags = low[places] > self.factor * least
        (some,) = np.nonzero(found)
        newer = [
            np.median(rows(values, half, part - self.recent), axis=1)
            for part in pieces(places[some], half)
        ]
        found[some] = low[places[some]] > self.factor * np.concatenate(newer)
        return found

    def _end(
        self, values: Numbers, start: int, limit: float, past: Numbers
    ) -> tuple[int | None, Numbers]:
        """Return where a surge ends, and the points before the next one."""
        half = self.window // 2
        for place in range(start + 1, len(values)):
            newest = values[place + 1 - self.recent : place + 1]
            if (newest > limit).sum() * 2 <= self.recent:
                return place, past
            held = values[max(start + 1, place + 1 - self.window) : place + 1].tolist()
            if len(held) < 2 * half:
                continue
            if median(held[-half:]) <= _SETTLED * median(held[:half]):
                # The new level has become the past: it no longer rises.
                return place, np.array(held)
        return None, past

    def _newest(self, column: Column, level: float) -> dict[str, object]:
        steps, newest = (one[-self.recent :].tolist() for one in column)
        mean = fmean(newest)
        values = zip(steps, newest, strict=True)
        return {
            "recent": len(newest),
            "mean": mean,
            "times": f"{number(mean / level)} times" if level > 0 else "far above",
            "values": ", ".join(f"{number(one)} at step {at}" for at, one in values),
        }


def _usual(past: Numbers) -> Numbers:
    """Return the level of each past: that of its newer half if that is higher.

    A metric that has grown all along, as from 0 at a run's start, has no level: its newest part
    serves as its past.
    """
    newer = past[:, past.shape[1] // 2 :]
    found: Numbers = np.maximum(np.median(past, axis=1), np.median(newer, axis=1))
    return found


@dataclass
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

    def __post_init__(self) -> None:
        self.needs = self.window + self.count
        self.cooldown = self.window

    def spells(self, column: Column) -> Iterator[Spell]:
        """Return all falls, each with the level before and the points that show it."""
        values = column.values
        size = abs(values)
        highest = np.maximum.accumulate(np.append(0.0, values))[:-1]
        falls = np.append(False, np.diff(values) < 0) & (size <= self._NEAR * highest)
        past: list[float] = []  # the points before, without the zeros
        known: list[float] = []
        at = 0
        for place in np.flatnonzero(falls).tolist():
            if place < at:
                continue
            past += values[at:place].tolist()
            known += values[at:place].tolist()
            at = place
            level = self._level(past[-self.window :], float(values[place]))
            if level is None:
                continue
            most = self._enough(known[-self._MEMORY :])
            end = first(size, np.greater, self._NEAR * level, place + 1)
            at = len(values) if end is None else end
            if at - place < most:
                known += [0.0] * (at - place)
                continue
            shown = ", ".join(map(number, past[-self.window :]))
            yield Spell(place, place + most - 1, end, {"level": level, "past": shown})

    def _level(self, past: list[float], value: float) -> float | None:
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
        spread = fmean((value - level) ** 2 for value in known)
        zeros = sum(abs(value) <= self._NEAR * level for value in known)
        # With no zero among n values, a share of about 1/n is still likely; with a normal spread,
        # the tail beyond the mean.
        share = (zeros + 0.5) / (len(known) + 1)
        if spread > 0:
            share = max(share, math.exp(-level * level / (2 * spread)))
        in_a_row = math.log(self._CHANCE) / math.log(min(share, 0.9))
        return max(self.count, math.ceil(in_a_row))


_SIGMAS = 5.0
_WAYS = {1.0: ("rose", "risen"), -1.0: ("fell", "fallen")}
_BACK = 0.5
"""It is over when half of the way is made up for."""


@dataclass
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

    def __post_init__(self) -> None:
        self.needs = self.least + self.recent
        self.cooldown = self.recent

    def spells(self, column: Column) -> Iterator[Spell]:
        """Return all shifts, each with the usual level before."""
        sign = math.copysign(1, self.way)
        up, least = sign * column.values, abs(self.way)
        newest = means(up, self.recent)
        low = rolling(up, self.recent, np.minimum)
        # No usual level lies beyond the least value so far.
        places = np.flatnonzero(low - np.minimum.accumulate(up) > least)
        base = 0
        for place in places.tolist():
            if place + 1 - base < self.needs:
                continue
            usual = self._usual(up, base, place, float(low[place]))
            if usual is None:
                continue
            end = first(newest, np.less, usual + _BACK * least, place + 1)
            levels = [sign * one + 0.0 for one in (usual, newest[place], newest[-1])]
            figures = dict(
                zip(("usual", "level", "now"), map(float, levels), strict=True)
            )
            rose, risen = _WAYS[sign]
            facts = {**figures, "rose": rose, "risen": risen}
            yield Spell(place + 1 - self.recent, place, end, facts)
            if end is None:
                return
            base = end + 1

    def _usual(
        self, values: Numbers, base: int, place: int, low: float
    ) -> float | None:
        """Return the usual level that the last points have left, None where they have not."""
        start = place + 1 - self.recent
        pasts = [values[max(base, start - self.window) : start]]
        if place + 1 >= 2 * self.window:
            pasts.append(values[: self.window])
        for past in pasts:
            level: float = median(past.tolist())
            spread = TO_SIGMA * median(abs(past - level).tolist())
            if low - level > max(abs(self.way), _SIGMAS * spread):
                return level
        return None
