"""Falls: within a few points, for long, or right at the start, where there is no past yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from verl_tui.health.conditions.condition import Condition, Spell, number
from verl_tui.health.conditions.windows import TO_SIGMA, first, means, rolling, rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.health.conditions.condition import Column, HeldBreach
    from verl_tui.health.conditions.windows import Flags, Numbers, Places

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
            values[start : place + 1] >= level - _EDGE * (level - foot)
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


@dataclass(frozen=True)
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
    cooldown = 4 * _SIZE

    @property
    def needs(self) -> int:
        """Fewest points to judge."""
        return _STRETCHES[0] * _SIZE

    def spells(self, column: Column) -> Iterator[Spell]:
        """Return all falls, with the level before each, the lowest since and the newest one."""
        blocks = _blocks(column)
        level = blocks.mean(axis=1)
        if len(level) < _STRETCHES[0]:
            return
        noise = np.square(np.diff(blocks, axis=1)).sum(axis=1) / (2 * (_SIZE - 1))
        found = [self._falls(level, noise, count) for count in _STRETCHES]
        base = 0
        while base < len(level):
            known = []
            for count, (places, _) in zip(_STRETCHES, found, strict=True):
                at = int(np.searchsorted(places, base + count - 1))
                known += [(places[at], count)] if at < len(places) else []
            if not known:
                return
            block, count = min(known)
            before, fall = found[_STRETCHES.index(count)][1][:, block].tolist()
            spell = _spell(level, int(block), count, before, fall)
            yield spell
            if spell.cleared is None:
                return
            base = spell.cleared // _SIZE + 1

    def _falls(
        self, level: Numbers, noise: Numbers, count: int
    ) -> tuple[Places, Numbers]:
        """Return the blocks at which a fall over so many blocks shows, and for all blocks the level
        before and the fall.
        """
        third = count // 3
        last = means(level, third)
        first, middle = (_before(last, at * third) for at in (2, 1))
        fall = first - last
        lowest = np.minimum.accumulate(level)
        size = self.share * np.maximum(abs(first), first - lowest)
        error = np.sqrt(2 * means(noise, count) / (third * _SIZE))
        sure = np.where(fall > size, _SURE, _CLEAR)
        found = (fall > np.maximum(0.0, _LESS * size)) & (fall >= sure * error)
        if not self.steep:
            drops = np.append(np.full(2, np.nan), level[:-2] - level[2:])
            steepest = rolling(drops, count - 2, np.maximum)
            steady = (first - middle >= _EARLY * fall) & (steepest <= _STEEP * fall)
            found &= steady | ((np.arange(len(level)) + 1) * _SIZE <= _BEGINNING)
        return np.flatnonzero(found), np.array((first, fall))

    def report(self, held: HeldBreach) -> Sequence[str]:
        """Return the message on a breach that holds, and its evidence."""
        level, foot, now = held.spell.levels
        fall = f"from {number(level)} to {number(now)}"
        lowest = f"lowest since {number(foot)} (means of {2 * _SIZE} points)"
        return (
            f"{held.title} has fallen since step {held.since}, {fall}",
            f"the level before: {number(level)}; {lowest}; newest {held.newest}",
        )


def _blocks(column: Column) -> Numbers:
    count = len(column) // _SIZE
    return column.values[: count * _SIZE].reshape(count, _SIZE)


def _before(values: Numbers, count: int) -> Numbers:
    """Return what each value was so many places before."""
    return np.append(np.full(count, np.nan), values)[: len(values)]


def _spell(levels: Numbers, block: int, count: int, level: float, fall: float) -> Spell:
    """Return a fall that shows at a block, up to where half of it was made up for."""
    stretch = levels[block - count + 1 : block + 1]
    now = foot = float(stretch[-2:].mean())
    what = f"fell from {number(level)} to {number(foot)}"
    high = np.flatnonzero(stretch >= level - _FOOT * fall)
    edge = block - count + 1 + (int(high[-1]) if len(high) else 0)
    begin, raised = ((at + 1) * _SIZE - 1 for at in (edge, block))
    later = (levels[block:-1] + levels[block + 1 :]) / 2
    for at, now in enumerate(later.tolist(), block + 1):
        if now > foot + _BACK * (level - foot):
            return Spell(begin, raised, (at + 1) * _SIZE - 1, what)
        foot = min(foot, now)
    return Spell(begin, raised, None, what, (level, foot, now))


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
