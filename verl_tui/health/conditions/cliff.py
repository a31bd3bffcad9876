"""A cliff: within a few points a metric falls far below its level and stays there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from verl_tui.health.conditions.condition import (
    Condition,
    Spell,
    number,
)
from verl_tui.health.conditions.windows import TO_SIGMA, first, means, rolling, rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.health.conditions.condition import Column, HeldBreach
    from verl_tui.health.conditions.windows import Flags, Numbers, Places

SIGMAS = 3.0
"""The mean of the last points must lie so many standard deviations of single points below: no batch
does that.
"""
_EACH = 0.5
"""Each of the last points must have fallen at least half as far as their mean must have."""
_BRINK, _LOST = 8, 0.25
"""The newest points of the level before must not have lost more than so much of the fall, or it is
a slide.
"""
_NEAR = 0.2
"""It begins behind the last point within so much of the fall from the level before."""
_BACK = 0.5
"""A cliff is over when half of the fall has been made up for."""


@dataclass(frozen=True)
class Cliff(Condition):
    """The last points all lie far below the level before; holds until half of the fall is made up
    for.
    """

    window: int
    """Points that make the level before."""
    recent: int
    """Points that must have fallen."""
    gap: int
    """Points between these and those, in which the fall itself may take place."""
    share: float
    """Part of the level's size that a fall must exceed."""
    sigmas: float = SIGMAS
    """Standard deviations of single points that it must exceed."""
    unlike_all: bool = False
    """Whether the first drop must also exceed every earlier drop from one point to the next: a few
    points that happen to be alike do not show how far batches differ.
    """

    @property
    def cooldown(self) -> int:  # type: ignore[override]
        """Points within which a breach that comes back is the same one."""
        return self.gap

    @property
    def needs(self) -> int:
        """Fewest points to judge."""
        return self.window // 2 + self.gap + self.recent

    def spells(self, column: Column) -> Iterator[Spell]:
        """Return all cliffs, with the level before each and at its foot."""
        values = column.values
        lost = np.maximum.accumulate(np.append(0.0, -np.diff(values)))
        feet = means(values, self.recent)
        until = -1
        is_first = True
        for place, level, foot in self._falls(values, feet):
            unlike = level - foot > lost[place - self.gap - self.recent]
            if place <= until or (self.unlike_all and is_first and not unlike):
                continue
            is_first = False
            back = foot + _BACK * (level - foot)
            end = first(
                lambda part, back=back: feet[part] > back,  # type: ignore[misc]
                place + 1,
                len(values),
            )
            what = f"dropped sharply, from {number(level)} to {number(foot)}"
            yield Spell(
                self._edge(values, place, level, foot), place, end, what, (level, foot)
            )
            if end is None:
                return
            until = end

    def _falls(
        self, values: Numbers, feet: Numbers
    ) -> Iterator[tuple[int, float, float]]:
        """Yield the places at which a cliff shows, with the levels before and after."""
        start = self.needs - 1
        full = self.window + self.gap + self.recent
        places = start + np.flatnonzero(
            values[start:] < values[start - self.recent : -self.recent]
        )
        least = np.maximum(0, places + 1 - full)
        earlier = np.maximum(values[least], values[least + (places + 1 - least) // 3])
        high = rolling(values, self.recent, np.maximum)
        places = places[high[places] < earlier]
        early = places[places < full - 1]
        for some in (*early[:, None], places[len(early) :]):
            size = (
                min(self.window, int(some[0]) + 1 - self.gap - self.recent)
                if len(some)
                else 1
            )
            past = rows(values, size, some - self.gap - self.recent)
            level, is_fall = self._shown(past, feet[some], high[some])
            for at in np.flatnonzero(is_fall):
                yield int(some[at]), float(level[at]), float(feet[some[at]])

    def _shown(
        self, past: Numbers, foot: Numbers, high: Numbers
    ) -> tuple[Numbers, Flags]:
        """Return the level of each past, and whether the last points lie far enough below."""
        found = np.zeros(len(past), bool)
        level = np.zeros(len(past))
        # No level lies above the highest point, so no fall is measured by more.
        top = past.max(axis=1, initial=-np.inf)
        deep = np.flatnonzero((top <= 0) | (foot < (1 - self.share) * top))
        past, foot, high = past[deep], foot[deep], high[deep]
        if not len(deep):
            return level, found
        level[deep] = usual = np.median(past, axis=1)
        fall = usual - foot
        has_slid = usual - np.median(past[:, -_BRINK:], axis=1) > _LOST * fall
        spread = TO_SIGMA * np.median(abs(past - usual[:, None]), axis=1)
        least = np.maximum(self.sigmas * spread, self.share * abs(usual))
        found[deep] = (
            ~has_slid & (least > 0) & (fall > least) & (usual - high > _EACH * least)
        )
        return level, found

    def _edge(self, values: Numbers, place: int, level: float, foot: float) -> int:
        """Return the first place below the level."""
        start = max(0, place - self.gap - self.recent)
        near: Places = np.flatnonzero(
            values[start : place + 1] >= level - _NEAR * (level - foot)
        )
        return min(place, start + int(near[-1]) + 1) if len(near) else start

    def report(self, held: HeldBreach) -> Sequence[str]:
        """Return the message on a breach that holds, and its evidence."""
        level, foot = held.spell.levels
        return (
            f"{held.title} dropped sharply at step {held.since}: "
            f"from {number(level)} to {number(foot)}",
            f"the level before: {number(level)}; newest {held.newest}",
        )
