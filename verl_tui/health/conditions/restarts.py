"""Conditions that begin anew where a run was restarted: a changed scale, and circuit breakers."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from verl_tui.health.conditions.condition import Condition, Spell
from verl_tui.health.conditions.windows import first, rolling
from verl_tui.health.finding import number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from verl_tui.health.conditions.condition import Column
    from verl_tui.health.conditions.windows import Flags, Numbers

_IN_A_ROW = 3
"""Points in a row that must all be that high: learning climbs there step by step."""
_BACK = 5
"""Points in a row within the old range after which it is over."""


@dataclass
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

    def __post_init__(self) -> None:
        self.needs = self.least + _IN_A_ROW

    def spells(self, column: Column) -> Iterator[Spell]:
        """Return all jumps beyond the past, with its range and how many points it had."""
        for start, stop in segments(column, self.restarts):
            over = stop if stop < len(column) else None
            for one in self._in_segment(column.values[start:stop]):
                end = over if one.cleared is None else start + one.cleared
                facts = {**one.facts, "step": int(column.steps[start + one.first])}
                yield Spell(start + one.first, start + one.raised, end, facts)

    def _in_segment(self, values: Numbers) -> Iterator[Spell]:
        lowest = rolling(values, _IN_A_ROW, np.minimum)
        ahead = np.append(lowest[_IN_A_ROW - 1 :], np.full(_IN_A_ROW, np.nan))
        highest = rolling(values, _BACK, np.maximum)
        low, high, count, at = np.inf, -np.inf, 0, 0
        while at < len(values):
            lows = np.minimum.accumulate(np.append(low, values[at:]))
            highs = np.maximum.accumulate(np.append(high, values[at:]))
            limits = self._limits(lows, highs)[:-1]
            beyond = ahead[at : len(values)] > limits
            beyond[: max(0, self.least - count)] = False
            if not beyond.any():
                return
            k = int(beyond.argmax())
            low, high, count, at = lows[k], highs[k], count + k, at + k
            last = at + _IN_A_ROW - 1
            end = first(highest, np.less_equal, limits[k], last + _BACK)
            facts = {"low": low, "high": high, "count": f"{count:,}"}
            shown = {"value": float(values[at]), "third": float(values[last])}
            yield Spell(at, last, end, {**facts, **shown})
            if end is None:
                return
            at = end + 1

    def _limits(self, low: Numbers, high: Numbers) -> Numbers:
        size = np.maximum(np.maximum(abs(high), abs(low)), high - low)
        limit: Numbers = np.maximum(self.floor, high + self.factor * size)
        return limit


def segments(column: Column, restarts: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Yield the first place of each segment, and the one behind its last."""
    starts = np.searchsorted(column.steps, sorted(restarts)).tolist()
    edges = sorted({0, *starts, len(column)})
    yield from pairwise(edges)


@dataclass
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

    words = "streak"

    def __post_init__(self) -> None:
        self.needs = self.count

    def seen(self, column: Column) -> int:
        """Return how many points there are since the last restart."""
        return max(
            [b - a for a, b in [*segments(column, self.restarts)][-1:]], default=0
        )

    def spells(self, column: Column) -> Iterator[Spell]:
        """Return the first streak of each segment."""
        for start, stop in segments(column, self.restarts):
            breached = self._breached(column.values[start:stop])
            tripped = rolling(breached, self.count) == self.count
            if tripped.any():
                last = start + int(tripped.argmax())
                begin = last - self.count + 1
                end = stop if stop < len(column) else None
                yield Spell(begin, last, end, self._facts(column, begin, last))

    def _facts(self, column: Column, begin: int, last: int) -> dict[str, object]:
        steps, values = (one[begin : last + 1].tolist() for one in column)
        tripped = [
            f"{number(value)} at step {at}"
            for at, value in zip(steps, values, strict=True)
        ]
        return {
            "where": self._where(),
            "count": self.count,
            "start": steps[0],
            "stop": steps[-1],
            "tripped": ", ".join(tripped),
        }

    def _breached(self, values: Numbers) -> Flags:
        return values > self.threshold

    def _where(self) -> str:
        return f"above {number(self.threshold)}"


class Drops(Streak):
    """Some number of drops in a row, each beyond a share of the value before it.

    A record counts when `(last − r) > threshold × last`; where `last` is not positive, it does not
    count and so ends the row, since a share of nothing means nothing.
    """

    def __post_init__(self) -> None:
        self.needs = self.count + 1

    def _breached(self, values: Numbers) -> Flags:
        last = np.append(0.0, values[:-1])
        return (last > 0) & (last - values > self.threshold * last)

    def _where(self) -> str:
        return f"more than {self.threshold:.0%} below the one before"
