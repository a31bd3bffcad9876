"""Falls: within a few points, for long, or right at the start, where there is no past yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from verl_tui.health.conditions.condition import Condition, Spell
from verl_tui.health.conditions.windows import (
    by_size,
    first,
    means,
    rolling,
    rows,
    sigmas,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from verl_tui.health.conditions.condition import Column
    from verl_tui.health.conditions.windows import Numbers

_BACK = 0.5
"""A fall is over when half of it has been made up for."""
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
_EDGE = 0.2
"""It begins behind the last point within so much of the fall from the level before."""


@dataclass
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

    def __post_init__(self) -> None:
        self.needs = self.window // 2 + self.gap + self.recent
        self.cooldown = self.gap

    def spells(self, column: Column) -> Iterator[Spell]:
        """Return all cliffs, with the level before each and at its foot."""
        values = column.values
        lost = np.maximum.accumulate(np.append(0.0, -np.diff(values)))
        feet = means(values, self.recent)
        until = -1
        must_differ = self.unlike_all
        for place, level, foot in self._falls(values, feet):
            fall = level - foot
            alike = fall <= lost[place - self.gap - self.recent]
            if place <= until or (must_differ and alike):
                continue
            must_differ = False
            end = first(feet, np.greater, foot + _BACK * fall, place + 1)
            edge = self._edge(values, place, level - _EDGE * fall)
            yield Spell(edge, place, end, {"level": level, "foot": foot})
            if end is None:
                return
            until = end

    def _falls(
        self, values: Numbers, feet: Numbers
    ) -> Iterator[tuple[int, float, float]]:
        """Yield the places at which a cliff shows, with the levels before and after."""
        start, gap = self.needs - 1, self.gap + self.recent
        fell = values[start:] < values[start - self.recent : -self.recent]
        places = start + np.flatnonzero(fell)
        high = rolling(values, self.recent, np.maximum)
        begin = np.maximum(0, places + 1 - gap - self.window)
        a_third_in = begin + (places + 1 - begin) // 3
        places = places[high[places] < np.maximum(values[begin], values[a_third_in])]
        sizes = np.minimum(self.window, places + 1 - gap)
        for size, some in by_size(places, sizes):
            # No level lies above the highest point, so no fall is measured by more.
            top = rows(values, size, some - gap).max(axis=1)
            deep = some[(top <= 0) | (feet[some] < (1 - self.share) * top)]
            if not len(deep):
                continue
            past = rows(values, size, deep - gap)
            level = np.median(past, axis=1)
            fall = level - feet[deep]
            has_slid = level - np.median(past[:, -_BRINK:], axis=1) > _LOST * fall
            spread = self.sigmas * sigmas(past, level)
            least = np.maximum(spread, self.share * abs(level))
            all_fell = level - high[deep] > _EACH * least
            found = ~has_slid & (least > 0) & (fall > least) & all_fell
            for place, before in zip(deep[found], level[found], strict=True):
                yield int(place), float(before), float(feet[place])

    def _edge(self, values: Numbers, place: int, high: float) -> int:
        """Return the first place below the level."""
        start = max(0, place - self.gap - self.recent)
        near = np.flatnonzero(values[start : place + 1] >= high)
        return min(place, start + int(near[-1]) + 1) if len(near) else start


_SIZE = 5
"""Points a block."""
_STRETCHES = (6, 12, 24, 48)
"""Blocks over which a fall is searched for: 30 to 240 points."""
_SURE = 5.0
"""Standard errors between the first and the last third: heuristic, high because it is tested often.
"""
_CLEAR, _LESS = 8.0, 0.625
"""Beyond this many standard errors five eighths of the share are enough, so that a long fall is
found while it goes on: heuristic.
"""
_EARLY = 0.2
"""The middle third must lie at least a fifth of the fall below the first."""
_STEEP = 0.6
"""A fall is a cliff if this share of it happens within two blocks."""
_BEGINNING = 45
"""Points within which a steep fall counts, too: a cliff wants 40 before it."""
_FOOT = 0.15
"""It began where it was last within so much of the fall from the level before."""


@dataclass
class Slide(Condition):
    """Falls by a share of its level over 30 to 240 points; holds until half of it is made up
    for.
    """

    share: float
    """Part of the level's size, and of its height above the lowest so far, that a fall must
    exceed.
    """
    steep: bool
    """Whether a fall at once counts, too."""
    needs = _STRETCHES[0] * _SIZE
    cooldown = 4 * _SIZE

    def spells(self, column: Column) -> Iterator[Spell]:
        """Return all falls, with the level before each, the lowest since and the newest one."""
        count = len(column) // _SIZE
        blocks = column.values[: count * _SIZE].reshape(count, _SIZE)
        levels = blocks.mean(axis=1)
        noise = np.square(np.diff(blocks, axis=1)).sum(axis=1) / (2 * (_SIZE - 1))
        found = [one for size in _STRETCHES for one in self._falls(levels, noise, size)]
        base = 0
        for block, size, level, fall in sorted(found):
            if block - size + 1 < base:
                continue
            spell = _spell(levels, block, size, level, fall)
            yield spell
            if spell.cleared is None:
                return
            base = spell.cleared // _SIZE + 1

    def _falls(
        self, levels: Numbers, noise: Numbers, count: int
    ) -> Iterator[tuple[int, int, float, float]]:
        """Yield the blocks at which a fall over so many blocks shows, with that number, the level
        before and the fall.
        """
        third = count // 3
        last = means(levels, third)
        before = np.append(np.full(2 * third, np.nan), last)
        first, middle = before[: len(last)], before[third:][: len(last)]
        fall = first - last
        size = self.share * np.maximum(
            abs(first), first - np.minimum.accumulate(levels)
        )
        error = np.sqrt(2 * means(noise, count) / (third * _SIZE))
        sure = np.where(fall > size, _SURE, _CLEAR)
        found = (fall > np.maximum(0.0, _LESS * size)) & (fall >= sure * error)
        if not self.steep:
            drops = np.append(np.full(2, np.nan), levels[:-2] - levels[2:])[
                : len(levels)
            ]
            steepest = rolling(drops, count - 2, np.maximum)
            steady = (first - middle >= _EARLY * fall) & (steepest <= _STEEP * fall)
            found &= steady | ((np.arange(len(levels)) + 1) * _SIZE <= _BEGINNING)
        for block in np.flatnonzero(found).tolist():
            yield block, count, float(first[block]), float(fall[block])


def _spell(levels: Numbers, block: int, count: int, level: float, fall: float) -> Spell:
    """Return a fall that shows at a block, up to where half of it was made up for."""
    stretch = levels[block - count + 1 : block + 1]
    foot = float(stretch[-2:].mean())
    high = np.flatnonzero(stretch >= level - _FOOT * fall)
    edge = block - count + 1 + (int(high[-1]) if len(high) else 0)
    course = np.append(foot, (levels[block:-1] + levels[block + 1 :]) / 2)
    lows = np.minimum.accumulate(course)
    back = np.flatnonzero(course[1:] > (lows + _BACK * (level - lows))[:-1])
    begin, raised, *end = (
        (at + 1) * _SIZE - 1 for at in (edge, block, *(block + 1 + back[:1]).tolist())
    )
    facts = {
        "level": level,
        "foot": foot,
        "low": float(lows[-1]),
        "now": float(course[-1]),
        "size": 2 * _SIZE,
    }
    return Spell(begin, raised, end[0] if end else None, facts)


_OPENING = 3
"""Number of first points; the greatest of them is the value that the run began with."""


@dataclass
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

    def __post_init__(self) -> None:
        self.needs = _OPENING + self.recent - 1

    def spells(self, column: Column) -> Iterator[Spell]:
        """Return all breaches, each with the value that the run began with."""
        values = column.values
        opening = np.maximum(values, 0.0) * (np.arange(len(values)) < _OPENING)
        begin = np.maximum.accumulate(opening)
        gone = (begin > 0) & (values >= 0) & (values <= self.share * begin)
        low = rolling(values, self.recent, np.minimum)
        until = self.needs - 2
        for place in np.flatnonzero(rolling(gone, self.recent) == self.recent).tolist():
            if place >= self.within:
                return
            if place <= until:
                continue
            there = np.flatnonzero(~gone[:place])
            since = int(there[-1]) + 1 if len(there) else 0
            level = float(begin[-1])
            end = first(low, np.greater, self.back * level, place + 1)
            yield Spell(
                since, place, end, {"level": level, "low": float(values[place])}
            )
            if end is None:
                return
            until = end
