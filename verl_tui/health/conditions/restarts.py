"""Conditions that begin anew where a run was restarted: a changed scale, and circuit breakers."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from verl_tui.health.conditions.condition import Condition, Spell, number
from verl_tui.health.conditions.windows import first, rolling

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.health.conditions.condition import Column, HeldBreach
    from verl_tui.health.conditions.windows import Flags, Numbers

_IN_A_ROW = 3
"""Points in a row that must all be that high: learning climbs there step by step."""
_BACK = 5
"""Points in a row within the old range after which it is over."""


@dataclass(frozen=True)
class Scaled(Condition):
    """From one point to the next, all values lie far above all earlier ones; over when they are
    back, or at a restart.
    """

    factor: float
    """How many times the size of all values before, or their range, a value must lie above them."""
    least: int
    """Fewest points of the past that it needs."""
    floor: float
    """Values up to here are never found, e.g. 1 for shares."""
    restarts: tuple[int, ...] = ()
    """First steps of the run's later segments, where a new scale is no surprise."""
    cooldown = _BACK

    @property
    def needs(self) -> int:
        """Fewest points to judge."""
        return self.least + _IN_A_ROW

    def spells(self, column: Column) -> Iterator[Spell]:
        """Return all jumps beyond the past, with its range and how many points it had."""
        for start, stop in segments(column, self.restarts):
            over = stop if stop < len(column) else None
            for one in self._in_segment(column.values[start:stop]):
                end = over if one.cleared is None else start + one.cleared
                yield one._replace(
                    first=start + one.first, raised=start + one.raised, cleared=end
                )

    def _in_segment(self, values: Numbers) -> Iterator[Spell]:
        low, high, count = np.inf, -np.inf, 0
        at, size = 0, 4096
        while at < len(values):
            some = values[at : at + size]
            lows = np.minimum.accumulate(np.append(low, some))
            highs = np.maximum.accumulate(np.append(high, some))
            limits = self._limits(lows, highs)[: len(some)]
            ahead = [values[at + k : at + k + size] for k in range(_IN_A_ROW)]
            known = len(ahead[-1])
            beyond = np.arange(count, count + known) >= self.least
            for one in ahead:
                beyond &= one[:known] > limits[:known]
            if not beyond.any():
                low, high, count = lows[len(some)], highs[len(some)], count + len(some)
                at += size
                size *= 4
                continue
            k = int(beyond.argmax())
            low, high, count = lows[k], highs[k], count + k
            begin, limit = at + k, limits[k]
            end = _end(values, begin + _IN_A_ROW, limit)
            last = begin + _IN_A_ROW - 1
            what = f"jumped from {number(high)} at most to {number(values[last])}"
            yield Spell(
                begin, last, end, what, (float(values[begin]), low, high, count)
            )
            if end is None:
                return
            at, size = end + 1, 64

    def _limits(self, low: Numbers, high: Numbers) -> Numbers:
        size = np.maximum(np.maximum(abs(high), abs(low)), high - low)
        limit: Numbers = np.maximum(self.floor, high + self.factor * size)
        return limit

    def report(self, held: HeldBreach) -> Sequence[str]:
        """Return the message on a breach that holds, and its evidence."""
        at, low, high, count = held.spell.levels
        since = int(held.column.steps[held.spell.first])
        return (
            f"{held.title} jumped at step {since} to {number(at)}, from {number(high)} "
            "at most in all steps before: its scale seems to have changed",
            f"between {number(low)} and {number(high)} in {count:,} points before; "
            f"newest {held.newest}",
        )


def _end(values: Numbers, start: int, limit: float) -> int | None:
    """Return where values have been back within a limit for long enough."""
    least = start + _BACK - 1

    def is_back(part: slice) -> Flags:
        some = values[part.start - _BACK + 1 : part.stop]
        found: Flags = rolling(some, _BACK, np.maximum)[_BACK - 1 :] <= limit
        return found

    return first(is_back, least, len(values))


def segments(column: Column, restarts: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Yield the first place of each segment, and the one behind its last."""
    starts = np.searchsorted(column.steps, sorted(restarts)).tolist()
    edges = sorted({0, *starts, len(column)})
    yield from pairwise(edges)


@dataclass(frozen=True)
class Streak(Condition):
    """A number of records in a row in breach; once tripped it stays so until the run is restarted.

    Records that lack the metric never come here, so they neither count nor interrupt.
    """

    threshold: float
    """What a record must exceed."""
    count: int
    """Breaches in a row that trip."""
    restarts: tuple[int, ...] = ()
    """First steps of the run's later segments: there it begins anew."""

    @property
    def needs(self) -> int:
        """Fewest points to judge."""
        return self.count

    def seen(self, column: Column) -> int:
        """Return how many points there are since the last restart."""
        return max(
            [b - a for a, b in [*segments(column, self.restarts)][-1:]], default=0
        )

    def spells(self, column: Column) -> Iterator[Spell]:
        """Return the first streak of each segment."""
        what = f"was {self._what()} on {self.count} records in a row"
        for start, stop in segments(column, self.restarts):
            breached = self._breached(column.values[start:stop])
            tripped = rolling(breached, self.count) == self.count
            if tripped.any():
                last = start + int(tripped.argmax())
                end = stop if stop < len(column) else None
                yield Spell(last - self.count + 1, last, end, what)

    def _breached(self, values: Numbers) -> Flags:
        return values > self.threshold

    def _what(self) -> str:
        return f"above {number(self.threshold)}"

    def report(self, held: HeldBreach) -> Sequence[str]:
        """Return the message on a breach that holds, and its evidence."""
        steps, values = (
            one[held.spell.first : held.spell.raised + 1].tolist()
            for one in held.column
        )
        tripped = ", ".join(
            f"{number(value)} at step {at}"
            for at, value in zip(steps, values, strict=True)
        )
        return (
            f"circuit breaker tripped at step {steps[-1]}: {held.title} was {self._what()} "
            f"on {self.count} records in a row (steps {steps[0]} to {steps[-1]}); "
            f"last {held.newest}",
            f"{held.title}: {tripped}",
            "it stays tripped until the run is restarted",
        )


class Drops(Streak):
    """Some number of drops in a row, each beyond a share of the value before it.

    A record counts when `(last − r) > threshold × last`; where `last` is not positive, it does not
    count and so ends the row, since a share of nothing means nothing.
    """

    @property
    def needs(self) -> int:
        """Fewest points to judge."""
        return self.count + 1

    def _breached(self, values: Numbers) -> Flags:
        last = np.append(0.0, values[:-1])
        return (last > 0) & (last - values > self.threshold * last)

    def _what(self) -> str:
        return f"more than {self.threshold:.0%} below the one before"
