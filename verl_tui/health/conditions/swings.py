"""A metric on a scale from 0 to 1 that swings from point to point: noise, whatever its mean is."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from verl_tui.health.conditions.condition import (
    Condition,
    Spell,
    number,
)
from verl_tui.health.conditions.windows import rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.health.conditions.condition import Column, HeldBreach

_TO_SIGMA = 1.0484
"""Median size of the differences between neighbours times this is the standard deviation of normal
noise.
"""
_RANGE = 2.5
"""Between their lowest and their highest tenth the values must span so many standard deviations
(2.56 of normal noise): a zigzag has large differences in a small span.
"""
_CALM = 0.8
"""It is over when the spread has fallen below four fifths of the threshold (hysteresis)."""
_OFTEN = 20
"""Points after which the spread is computed again."""


def swing(values: Sequence[float]) -> float:
    """Return the standard deviation between neighbours, in the values' own unit; two values at
    least.
    """
    differences = [abs(after - before) for before, after in pairwise(values)]
    return min(spread_of(values), _TO_SIGMA * median(differences))


def spread_of(values: Sequence[float]) -> float:
    """Return how far values spread, as a standard deviation; 0 for a single one."""
    ordered = sorted(values)
    tenth = len(values) // 10
    return (ordered[-1 - tenth] - ordered[tenth]) / _RANGE


@dataclass(frozen=True)
class Swings(Condition):
    """The usual difference between neighbours stays large; a rise makes none, and single bursts do
    not count.
    """

    threshold: float
    """Standard deviation between points from which on they swing, in the metric's own unit."""
    window: int
    """Points looked at."""

    @property
    def cooldown(self) -> int:  # type: ignore[override]
        """Points within which a breach that comes back is the same one."""
        return 2 * self.window

    @property
    def needs(self) -> int:
        """Fewest points to judge."""
        return self.window

    def spells(self, column: Column) -> Iterator[Spell]:
        """Return all breaches, each with its newest spread."""
        places = np.arange(self.window - 1, len(column), _OFTEN)
        some = rows(column.values, self.window, places)
        ordered = np.sort(some, axis=1)
        tenth = self.window // 10
        spread = (ordered[:, -1 - tenth] - ordered[:, tenth]) / _RANGE
        near = np.zeros(len(places))
        # Most metrics swing so little that there is no need to look at neighbours.
        wide = spread >= _CALM * self.threshold
        differences = np.abs(np.diff(some[wide], axis=1))
        near[wide] = _TO_SIGMA * np.median(differences, axis=1)
        swings = np.minimum(spread, near)
        begun: Spell | None = None
        for place, size in zip(places.tolist(), swings.tolist(), strict=True):
            if begun is None and size > self.threshold:
                what = f"swung by {number(size)} from point to point"
                begun = Spell(place - self.window + 1, place, None, what)
            elif begun is not None and size < _CALM * self.threshold:
                yield begun._replace(cleared=place)
                begun = None
        if begun is not None:
            yield begun._replace(levels=(float(swings[-1]),))

    def report(self, held: HeldBreach) -> Sequence[str]:
        """Return the message on a breach that holds, and its evidence."""
        values = held.column.values[-self.window :]
        return (
            f"{held.title} swings between {number(values.min())} and {number(values.max())}: "
            f"its spread between points is {number(*held.spell.levels)}, "
            f"above {number(self.threshold)} on a scale from 0 to 1",
            f"the last {len(values)} points; newest {held.newest}",
        )
