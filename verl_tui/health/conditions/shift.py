"""A metric leaves its own past: the last points all lie far from where it used to be."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean, median
from typing import TYPE_CHECKING

import numpy as np

from verl_tui.health.conditions.condition import (
    Condition,
    Spell,
    number,
)
from verl_tui.health.conditions.windows import first, means, sigma

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.health.conditions.condition import Column, HeldBreach
    from verl_tui.health.conditions.windows import Numbers

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
