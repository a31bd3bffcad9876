"""A metric that falls for long, and not within a few points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from verl_tui.health.conditions.condition import (
    Condition,
    Spell,
    number,
)
from verl_tui.health.conditions.windows import means, rolling

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.health.conditions.condition import Column, HeldBreach
    from verl_tui.health.conditions.windows import Numbers, Places

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
_NEAR = 0.15
"""It began where it was last within so much of the fall from the level before."""
_BACK = 0.5
"""It is over when half of the fall has been made up for."""


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
    high = np.flatnonzero(stretch >= level - _NEAR * fall)
    edge = block - count + 1 + (int(high[-1]) if len(high) else 0)
    begin, raised = ((at + 1) * _SIZE - 1 for at in (edge, block))
    later = (levels[block:-1] + levels[block + 1 :]) / 2
    for at, now in enumerate(later.tolist(), block + 1):
        if now > foot + _BACK * (level - foot):
            return Spell(begin, raised, (at + 1) * _SIZE - 1, what)
        foot = min(foot, now)
    return Spell(begin, raised, None, what, (level, foot, now))
