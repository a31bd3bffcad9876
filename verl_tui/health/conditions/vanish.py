"""A metric that is next to nothing almost from its first points on, where there is no past to
measure it by.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from verl_tui.health.conditions.condition import (
    Condition,
    Spell,
    number,
)
from verl_tui.health.conditions.windows import first, rolling

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.health.conditions.condition import Column, HeldBreach

_OPENING = 3
"""Number of first points; the greatest of them is the value that the run began with."""


@dataclass(frozen=True)
class Vanish(Condition):
    """Within its first points a metric falls to a small share of its beginning; holds until it
    recovers.
    """

    share: float
    """Share of the beginning that the newest points must all lie at or below."""
    back: float
    """Share beyond which it has come back."""
    recent: int
    """Newest points looked at."""
    within: int
    """Points among which it must happen: later there is a past to measure by."""

    @property
    def needs(self) -> int:
        """Fewest points to judge."""
        return _OPENING + self.recent - 1

    def spells(self, column: Column) -> Iterator[Spell]:
        """Return all breaches, each with the value that the run began with."""
        values = column.values
        begun = np.maximum.accumulate(np.append(0.0, values[:_OPENING]))[1:]
        opening = float(begun[-1]) if len(begun) else 0.0
        begin = np.append(begun, np.full(max(0, len(values) - _OPENING), opening))
        is_gone = (values >= 0) & (values <= self.share * begin) & (begin > 0)
        # The newest points are measured by the whole beginning.
        gone = (values >= 0) & (values <= self.share * opening) & (opening > 0)
        low = rolling(values, self.recent, np.minimum)
        place = self.needs - 1
        while place < min(self.within, len(values)):
            if not gone[place - self.recent + 1 : place + 1].all():
                place += 1
                continue
            there = np.flatnonzero(~is_gone[:place])
            since = int(there[-1]) + 1 if len(there) else 0
            end = first(
                lambda part: low[part] > self.back * opening, place + 1, len(values)
            )
            fall = f"from {number(opening)} to {number(values[place])}"
            what = f"fell {fall} at the start"
            yield Spell(since, place, end, what, (opening,))
            if end is None:
                return
            place = end + 1

    def report(self, held: HeldBreach) -> Sequence[str]:
        """Return the message on a breach that holds, and its evidence."""
        fall = f"from {number(*held.spell.levels)} to {number(held.last)}"
        return (
            f"{held.title} fell {fall} within the first steps",
            f"next to nothing from step {held.since}, {held.newest}",
        )
