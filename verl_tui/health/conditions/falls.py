"""Falls: within a few points, for long, or right at the start, where there is no past yet."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from verl_tui.health.conditions.condition import Spell, Terms, condition
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


@condition
def cliff(
    column: Column,
    window: int,
    recent: int,
    gap: int,
    share: float,
    sigmas: float = SIGMAS,
    *,
    unlike_all: bool = False,
) -> Iterator[Terms | Spell]:
    """The last points all lie far below the level before; holds until half of the fall is made up
    for.

    Args:
        column: The metric.
        window: Points that make the level before.
        recent: Points that must have fallen.
        gap: Points between these and those, in which the fall itself may take place.
        share: Part of the level's size that a fall must exceed.
        sigmas: Standard deviations of single points that it must exceed.
        unlike_all: Whether the first drop must also exceed every earlier drop from one point to the
            next: a few points that happen to be alike do not show how far batches differ.
    """
    yield Terms(window // 2 + gap + recent, gap)
    values, ago = column.values, gap + recent
    lost = np.maximum.accumulate(np.append(0.0, -np.diff(values)))
    feet = means(values, recent)
    until = -1
    for place, level, foot in _drops(values, feet, window, recent, gap, share, sigmas):
        fall = level - foot
        if place <= until or (unlike_all and fall <= lost[place - ago]):
            continue
        unlike_all = False
        end = first(feet, np.greater, foot + _BACK * fall, place + 1)
        # It begins behind the last point that is near the level before.
        start = max(0, place - ago)
        near = np.flatnonzero(values[start : place + 1] >= level - _EDGE * fall)
        edge = min(place, start + int(near[-1]) + 1) if len(near) else start
        yield Spell(edge, place, end, {"level": level, "foot": foot})
        if end is None:
            return
        until = end


def _drops(
    values: Numbers,
    feet: Numbers,
    window: int,
    recent: int,
    gap: int,
    share: float,
    deviations: float,
) -> Iterator[tuple[int, float, float]]:
    """Yield the places at which a cliff shows, with the levels before and after."""
    start, ago = window // 2 + gap + recent - 1, gap + recent
    fell = values[start:] < values[start - recent : -recent]
    places = start + np.flatnonzero(fell)
    high = rolling(values, recent, np.maximum)
    # No level before lies above the highest point so far, so no fall is measured by more.
    top = np.maximum.accumulate(values)[places - ago]
    places = places[(top <= 0) | (feet[places] < (1 - share) * top)]
    for size, some in by_size(places, np.minimum(window, places + 1 - ago)):
        past = rows(values, size, some - ago)
        level = np.median(past, axis=1)
        fall = level - feet[some]
        has_slid = level - np.median(past[:, -_BRINK:], axis=1) > _LOST * fall
        spread = deviations * sigmas(past, level)
        least = np.maximum(spread, share * abs(level))
        all_fell = level - high[some] > _EACH * least
        found = ~has_slid & (least > 0) & (fall > least) & all_fell
        for place, before in zip(some[found], level[found], strict=True):
            yield int(place), float(before), float(feet[place])


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


@condition
def slide(column: Column, share: float, *, steep: bool) -> Iterator[Terms | Spell]:
    """Falls by a share of its level over 30 to 240 points; holds until half of it is made up for.

    Args:
        column: The metric.
        share: Part of the level's size, and of its height above the lowest so far, that a fall must
            exceed.
        steep: Whether a fall at once counts, too.
    """
    yield Terms(_STRETCHES[0] * _SIZE, 4 * _SIZE)
    count = len(column) // _SIZE
    blocks = column.values[: count * _SIZE].reshape(count, _SIZE)
    levels = blocks.mean(axis=1)
    noise = np.square(np.diff(blocks, axis=1)).sum(axis=1) / (2 * (_SIZE - 1))
    falls = partial(_falls, levels, noise, share, steep=steep)
    base = 0
    for block, size, level, fall in sorted(one for n in _STRETCHES for one in falls(n)):
        if block - size + 1 < base:
            continue
        spell = _spell(levels, block, size, level, fall)
        yield spell
        if spell.cleared is None:
            return
        base = spell.cleared // _SIZE + 1


def _falls(
    levels: Numbers, noise: Numbers, share: float, count: int, *, steep: bool
) -> Iterator[tuple[int, int, float, float]]:
    """Yield the blocks at which a fall over so many blocks shows, with that number, the level
    before and the fall.
    """
    third = count // 3
    last = means(levels, third)
    before = np.append(np.full(2 * third, np.nan), last)
    first, middle = before[: len(last)], before[third:][: len(last)]
    fall = first - last
    size = share * np.maximum(abs(first), first - np.minimum.accumulate(levels))
    error = np.sqrt(2 * means(noise, count) / (third * _SIZE))
    sure = np.where(fall > size, _SURE, _CLEAR)
    found = (fall > np.maximum(0.0, _LESS * size)) & (fall >= sure * error)
    if not steep:
        drops = np.append(np.full(2, np.nan), levels[:-2] - levels[2:])[: len(levels)]
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


@condition
def vanish(
    column: Column, share: float, back: float, recent: int, within: int
) -> Iterator[Terms | Spell]:
    """Within its first points a metric falls to a small share of its beginning; holds until it
    recovers.

    Args:
        column: The metric.
        share: Share of the beginning that the newest points must all lie at or below.
        back: Share beyond which it has come back.
        recent: Newest points looked at.
        within: Points among which it must happen: later there is a past to measure by.
    """
    needs = _OPENING + recent - 1
    yield Terms(needs)
    values = column.values
    opening = np.maximum(values, 0.0) * (np.arange(len(values)) < _OPENING)
    begin = np.maximum.accumulate(opening)
    gone = (begin > 0) & (values >= 0) & (values <= share * begin)
    low = rolling(values, recent, np.minimum)
    until = needs - 2
    for place in np.flatnonzero(rolling(gone, recent) == recent).tolist():
        if place >= within:
            return
        if place <= until:
            continue
        there = np.flatnonzero(~gone[:place])
        since = int(there[-1]) + 1 if len(there) else 0
        level = float(begin[-1])
        end = first(low, np.greater, back * level, place + 1)
        yield Spell(since, place, end, {"level": level, "low": float(values[place])})
        if end is None:
            return
        until = end
