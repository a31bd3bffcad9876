"""A metric on a scale from 0 to 1 that swings from point to point: noise, whatever its mean is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from verl_tui.health.conditions.condition import Condition, Spell
from verl_tui.health.conditions.windows import rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike

    from verl_tui.health.conditions.condition import Column
    from verl_tui.health.conditions.windows import Numbers

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


def swings(windows: ArrayLike) -> Numbers:
    """Return the standard deviation between neighbours of each row of values, two at least."""
    differences = np.median(abs(np.diff(windows, axis=1)), axis=1)
    found: Numbers = np.minimum(spreads(windows), _TO_SIGMA * differences)
    return found


def spreads(windows: ArrayLike) -> Numbers:
    """Return how far the values of each row spread, as a standard deviation; 0 for a single one."""
    ordered = np.sort(windows, axis=1)
    tenth = ordered.shape[1] // 10
    found: Numbers = (ordered[:, -1 - tenth] - ordered[:, tenth]) / _RANGE
    return found


@dataclass
class Swings(Condition):
    """The usual difference between neighbours stays large; a rise makes none, and single bursts do
    not count.
    """

    threshold: float
    """Standard deviation between points from which on they swing, in the metric's own unit."""
    window: int
    """Points looked at."""
    what = "swung by {size} from point to point"
    words = (
        "{title} swings between {low} and {high}: its spread between points is {now}, above "
        "{limit} on a scale from 0 to 1",
        "the last {count} points; newest {newest}",
    )

    def __post_init__(self) -> None:
        self.needs = self.window
        self.cooldown = 2 * self.window

    def spells(self, column: Column) -> Iterator[Spell]:
        """Return all breaches, each with its newest spread."""
        places = np.arange(self.window - 1, len(column), _OFTEN)
        sizes = swings(rows(column.values, self.window, places))
        newest = column.values[-self.window :]
        begun: Spell | None = None
        for place, size in zip(places.tolist(), sizes.tolist(), strict=True):
            if begun is None and size > self.threshold:
                facts = {
                    "size": size,
                    "now": float(sizes[-1]),
                    "low": float(newest.min()),
                    "high": float(newest.max()),
                    "limit": self.threshold,
                    "count": self.window,
                }
                begun = Spell(place - self.window + 1, place, None, facts)
            elif begun is not None and size < _CALM * self.threshold:
                yield begun._replace(cleared=place)
                begun = None
        if begun is not None:
            yield begun
