"""Values that leave their own past: falls within a few points, for long, right at the start, where
there is no past yet, or to zero; jumps, surges, levels that shift, and scales that change.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from verl_tui.health.conditions.column import (
    Candidates,
    Column,
    Flags,
    Numbers,
    Places,
    Spell,
    behind_last,
    first,
    lately,
    means,
    medians,
    pasts,
    rolling,
    shifted,
    sigmas,
)
from verl_tui.health.finding import number
from verl_tui.means import median_along

if TYPE_CHECKING:
    from verl_tui.health.guide import Rule


def _where(found: Flags, places: Places, levels: Numbers) -> dict[int, float]:
    """Return the places at which something is found, with their levels."""
    return dict(zip(places[found].tolist(), levels[found].tolist(), strict=True))


_BACK = 0.5
"""A fall, or a shift, is over when half of it has been made up for."""
SIGMAS, _EACH = 3.0, 0.5
"""The mean of the last points must lie so many standard deviations of single points below, each of
them half as far: no batch does that.
"""
_BRINK, _LOST = 8, 0.25
"""The newest points of the level before must not have lost more than so much of the fall, or it is
a slide.
"""
_EDGE = 0.2
"""It begins after the last point within so much of the fall from the level before."""


def cliff(
    column: Column,
    window: int,
    recent: int,
    gap: int,
    share: float,
    deviations: float = SIGMAS,
    *,
    unlike_all: bool = False,
) -> Candidates:
    """The last points all lie far below the level before; holds until half of the fall is made up
    for.

    Args:
        column: The metric.
        window: Points that make the level before.
        recent: Points that must have fallen.
        gap: Points between these and those, in which the fall itself may take place.
        share: Part of the level's size that a fall must exceed.
        deviations: Standard deviations of single points that it must exceed.
        unlike_all: Whether it must also exceed every earlier drop from one point to the next: a few
            points that happen to be alike do not show how far batches differ.
    """
    ago = gap + recent
    needs = window // 2 + ago
    values = column.values
    feet, high = means(values, recent), rolling(values, recent, np.maximum)
    # No level lies above the highest point of its past: that spares most of the sorting.
    top = shifted(lately(values, window, np.fmax), ago)
    near = (top <= 0) | (feet < (1 - share) * top)
    places = needs - 1 + np.flatnonzero(near[needs - 1 :])
    past = pasts(values, places, window, ago)
    level = medians(past)
    fall = level - feet[places]
    least = np.maximum(deviations * sigmas(past, level), share * abs(level))
    found = (fall > least) & (level - high[places] > _EACH * least)
    found &= (least > 0) & (level - medians(past[:, -_BRINK:]) <= _LOST * fall)
    if unlike_all:
        drops = np.fmax.accumulate(shifted(values, 1) - values)
        found &= fall > drops[places - ago]
    known = _where(found, places, level)

    def spell(place: int) -> Spell:
        foot, level = feet[place], known[place]
        start = max(0, place - ago)
        is_near = values[start : place + 1] >= level - _EDGE * (level - foot)
        edge = start + behind_last(is_near)
        end = first(feet > foot + _BACK * (level - foot), place + 1)
        return Spell(min(edge, place), place, end, {"level": level, "foot": foot})

    return Candidates(needs, known, spell, gap)


_SIZE = 5
"""Points a block."""
_STRETCHES = (6, 12, 24, 48)
"""Blocks over which a fall is searched for: 30 to 240 points."""
_SURE, _CLEAR, _LESS = 5.0, 8.0, 0.625
"""Standard errors between the first and the last third: heuristic, high because it is tested often.
Beyond eight, five eighths of the share are enough, so that a long fall is found while it goes on.
"""
_EARLY, _STEEP = 0.2, 0.6
"""The middle third must lie at least a fifth of the fall below the first, and less than so much of
it happen within two blocks, or it is a cliff.
"""
_BEGINNING = 9
"""Blocks within which a steep fall counts, too: a cliff wants 40 points before it."""
_FOOT = 0.15
"""It began where it was last within so much of the fall from the level before."""


def slide(column: Column, rule: Rule, share: float) -> Candidates:
    """A slow fall by a share of its level, over 30 to 240 points; holds until half of it is made up
    for.

    Args:
        column: The metric.
        rule: With the condition `fall`, a sudden one counts, too.
        share: Part of the level's size, and of its height above the lowest so far, that a fall must
            exceed.
    """
    steep = rule.condition == "fall"
    count = len(column.steps) // _SIZE
    blocks = column.values[: count * _SIZE].reshape(count, _SIZE)
    levels = blocks.mean(axis=1)
    noise = np.square(np.diff(blocks, axis=1)).sum(axis=1) / (2 * (_SIZE - 1))
    found: dict[int, tuple[int, float, float]] = {}
    for size in reversed(_STRETCHES):
        level, fall, is_fall = _falls(levels, noise, share, size, steep=steep)
        for at in np.flatnonzero(is_fall).tolist():
            found[_SIZE * (at + 1) - 1] = size, level[at], fall[at]
    course = means(levels, 2)

    def spell(place: int) -> Spell:
        at, (size, level, fall) = place // _SIZE, found[place]
        start = at - size + 1
        begin = start + behind_last(levels[start : at + 1] >= level - _FOOT * fall)
        after = course[at:]
        lows = np.minimum.accumulate(after)
        back = first(after[1:] > (lows + _BACK * (level - lows))[:-1], 0)
        facts = {
            "level": level,
            "foot": course[at],
            "low": lows[-1],
            "now": after[-1],
            "size": 2 * _SIZE,
        }
        end = None if back is None else place + _SIZE * (back + 1)
        return Spell(_SIZE * begin - 1, place, end, facts)

    return Candidates(_STRETCHES[0] * _SIZE, sorted(found), spell, 4 * _SIZE)


def _falls(
    levels: Numbers, noise: Numbers, share: float, count: int, *, steep: bool
) -> tuple[Numbers, Numbers, Flags]:
    """Return the level before and the fall over so many blocks up to each, and where it shows."""
    third = count // 3
    last = means(levels, third)
    level, middle = shifted(last, 2 * third), shifted(last, third)
    fall = level - last
    size = share * np.maximum(abs(level), level - np.minimum.accumulate(levels))
    error = np.sqrt(2 * means(noise, count) / (third * _SIZE))
    sure = np.where(fall > size, _SURE, _CLEAR)
    found: Flags = (fall > np.maximum(0.0, _LESS * size)) & (fall >= sure * error)
    if not steep:
        drops = shifted(levels, 2) - levels
        steady = rolling(drops, count - 2, np.maximum) <= _STEEP * fall
        steady &= level - middle >= _EARLY * fall
        steady[:_BEGINNING] = True
        found &= steady
    return level, fall, found


_OPENING = 3
"""Number of first points; the greatest of them is the value that the run began with."""


def vanish(
    column: Column, share: float, back: float, recent: int, within: int
) -> Candidates:
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
    values = column.values
    begin = float(values[:_OPENING].max(initial=0.0))
    gone = (begin > 0) & (values >= 0) & (values <= share * begin)
    low = rolling(values, recent, np.minimum)
    places = np.flatnonzero(rolling(gone, recent)[:within] == recent)

    def spell(place: int) -> Spell:
        since = behind_last(~gone[:place])
        end = first(low > back * begin, place + 1)
        return Spell(since, place, end, {"level": begin, "low": values[place]})

    return Candidates(needs, places[places >= needs - 1].tolist(), spell)


_ZERO, _STEADY = 0.005, 0.25
"""A value counts as zero up to this share of those before: logs print few digits. If an earlier
value was below a quarter of the usual, a zero is no surprise.
"""
_BEFORE = 40
"""Values before it that show from where it came, as those of a cliff do."""
_MEMORY, _CHANCE = 100, 1e-5
"""Points that show how often zero comes by chance, and the highest probability of that many zeros
in a row: heuristic, once in a hundred runs of a thousand steps.
"""


def zero(column: Column, rule: Rule, _: float) -> Candidates:
    """Falls to zero, at once or at the end of a slide, from points that were clearly positive, none
    near zero; holds while it is zero.

    Where values lie between 0 and 1 it takes more zeros than come by chance: small batches score 0
    at times. The rule's window is that of positive points before it, its count that of the fewest
    zeros in a row that make it a fall; 1 to report it at once on scales beyond 1.
    """
    window, count = rule.window, rule.count
    values = column.values
    highest = np.maximum.accumulate(np.append(0.0, values))[:-1]
    is_zero = abs(values) <= _ZERO * highest
    known = {}
    for at in np.flatnonzero(is_zero & (shifted(is_zero, 1) == 0)).tolist():
        end = first(~is_zero, at)
        before = values[:at][~is_zero[:at]][-_BEFORE:]
        past = before[-window:]
        level = float(median_along(past)) if len(past) == window else 0.0
        most = _enough(values[max(0, at - _MEMORY) : at], count)
        is_fall = level > 0 and past.min() >= _STEADY * level
        if is_fall and (len(values) if end is None else end) - at >= most:
            facts = {"level": level, "least": past.min(), "count": window}
            usual, begin = float(median_along(before)), at
            if past.min() < _STEADY * usual:
                begin = behind_last(values[:at] >= (1 - _EDGE) * usual)
                facts = {**facts, "case": "slid", "usual": usual}
            known[at] = Spell(begin, at + most - 1, end, facts)
    return Candidates(window + count, known, known.__getitem__, window)


def _enough(known: Numbers, count: int) -> int:
    """Return how many zeros in a row cannot be chance, by the zeros so far and the spread of the
    values.
    """
    if count == 1 and known.max() > 1:
        return 1
    level, spread = float(known.mean()), float(known.var())
    zeros = (abs(known) <= _ZERO * level).sum()
    # With no zero among n values, a share of about 1/n is still likely; with a normal spread, the
    # tail beyond the mean.
    share = (zeros + 0.5) / (len(known) + 1)
    if spread > 0:
        share = max(share, math.exp(-level * level / (2 * spread)))
    return max(count, math.ceil(math.log(_CHANCE) / math.log(min(share, 0.9))))


_LEAST_SIGMA = 0.05
"""The spread counts as at least a twentieth of the level, so that a nearly constant past makes
nothing a jump.
"""
_LONGEST_HOLD = 300
_TAIL = 0.98
"""Share of its past below which the upper tail of a metric begins."""


def jump(column: Column, rule: Rule, limit: float) -> Candidates:
    """A value far above the points before it; held for some points, four times as many after two,
    and so on.
    """
    floor, least = max(rule.floor, limit), rule.least or rule.window
    steps, values = column.steps, column.values
    is_kept = values > rule.ignore * floor
    before: Places = np.cumsum(is_kept) - is_kept
    kept = values[is_kept]
    places = np.flatnonzero((values > floor) & (before >= least))
    # No level lies below the least value of its past: that spares most of the sorting.
    low = rolling(kept, rule.window, np.fmin)[before[places] - 1]
    places = places[~(values[places] <= rule.factor * low)]
    past = pasts(kept, np.asarray(before[places] - 1), rule.window, 0)
    level, new = medians(past), values[places]
    spread = np.maximum(sigmas(past, level), _LEAST_SIGMA * abs(level))
    found = (new > rule.tail * medians(past, _TAIL)) & (new > rule.factor * level)
    found &= new - level > rule.spread * spread
    usual = _where(found, places, level)

    def spell(place: int) -> Spell:
        jumps: list[int] = []
        end = place
        for at in usual:
            if place <= at <= end:
                jumps.append(at)
                end = at + 1 + min(_LONGEST_HOLD, rule.hold * len(jumps) ** 2)
        top, last = max(jumps, key=values.__getitem__), jumps[-1]
        many = f"{len(jumps)} such points since step {steps[place]}"
        facts = {
            "value": values[place],
            "usual": usual[place],
            "highest": values[top],
            "highest_step": steps[top],
            "highest_usual": usual[top],
            "more": f"; {many}, the last at {steps[last]}" if len(jumps) > 1 else "",
            "newest_jump": f"{rule.written(values[last])} at step {steps[last]}",
            "newest_usual": usual[last],
        }
        return Spell(place, place, end if end < len(steps) else None, facts)

    return Candidates(least + 1, usual, spell, rule.hold)


_SETTLED = 1.1
"""A surge is over when it has gained less than a tenth within a window: it is the new level."""


def surge(column: Column, rule: Rule, _: float) -> Candidates:
    """The last points lie many times above the run's own past; holds until they are back, or the
    new level has settled.
    """
    values, recent, window = column.values, rule.recent, rule.window
    low, half = rolling(values, recent, np.minimum), window // 2
    # No level lies below the least value of the past: that spares most of the sorting.
    least = shifted(rolling(values, half, np.minimum), recent)
    places = np.flatnonzero((low > rule.floor) & (low > rule.factor * least))
    places = places[places >= window + recent - 1]
    past = pasts(values, places, window, recent)
    # What has grown all along, as from 0 at a run's start, has no level: its newest part serves as
    # its past.
    level = np.maximum(medians(past), medians(past[:, -half:]))
    found = low[places] > np.maximum(rule.floor, rule.factor * level)
    known = _where(found, places, level)
    newer = means(values, half)
    settled = newer <= _SETTLED * shifted(newer, half)
    mean = values[-recent:].mean() if len(values) else 0.0

    def spell(place: int) -> Spell:
        level = known[place]
        limit = max(rule.factor * level, rule.floor)
        is_back = rolling(values > limit, recent) * 2 <= recent
        ends = (first(is_back, place + 1), first(settled, place + window))
        facts = {
            "limit": limit,
            "level": level,
            "recent": recent,
            "mean": mean,
            "times": f"{number(mean / level)} times" if level > 0 else "far above",
        }
        end = min((one for one in ends if one is not None), default=None)
        return Spell(place + 1 - recent, place, end, facts)

    return Candidates(window + recent, known, spell, window)


_SIGMAS = 5.0
"""Standard deviations by which a level shifts."""


def shift(column: Column, rule: Rule, way: float) -> Candidates:
    """The last points lie far above (or below) the ones before, or the first ones: what creeps
    leaves its past, too.

    Args:
        column: The metric.
        rule: Its window, the most points of the past, and `least` of these.
        way: How far at least, in the metric's own unit; negative to watch for a fall.
    """
    window, recent = rule.window, rule.recent
    needs = rule.least + recent
    sign, least = math.copysign(1, way), abs(way)
    up = sign * column.values
    newest, low = means(up, recent), rolling(up, recent, np.minimum)
    places = np.arange(needs - 1, len(up))
    later = places[places + 1 >= 2 * window]
    begun = np.repeat(up[None, :window], len(later), axis=0)
    usual: dict[int, float] = {}
    for at, past in ((places, pasts(up, places, window, recent)), (later, begun)):
        level = medians(past)
        found = low[at] - level > np.maximum(least, _SIGMAS * sigmas(past, level))
        usual |= _where(found, at, level)

    def spell(place: int) -> Spell:
        level = usual[place]
        facts = {
            "rose": "rose" if way > 0 else "fell",
            "risen": "risen" if way > 0 else "fallen",
            "usual": sign * level,
            "level": sign * newest[place],
            "now": sign * newest[-1],
        }
        end = first(newest < level + _BACK * least, place + 1)
        return Spell(place + 1 - recent, place, end, facts)

    return Candidates(needs, sorted(usual), spell, recent)


_IN_A_ROW, _AFTER = 3, 5
"""Points in a row that must all be that high, as learning climbs there step by step; and within the
old range, after which it is over.
"""


def scaled(column: Column, rule: Rule, _: float) -> Candidates:
    """From one point to the next, all values lie far above all earlier ones, by so many times their
    size or range, and above a floor, e.g. 1 for shares; over when they are back.
    """
    values = column.values
    lows, highs = (shifted(of.accumulate(values), 1) for of in (np.minimum, np.maximum))
    size = np.maximum(np.maximum(abs(highs), abs(lows)), highs - lows)
    limits = np.maximum(rule.floor, highs + rule.factor * size)
    ahead = rolling(values, _IN_A_ROW, np.minimum)[_IN_A_ROW - 1 :]
    places = np.flatnonzero(ahead > limits[: len(ahead)])
    highest = rolling(values, _AFTER, np.maximum)

    def spell(at: int) -> Spell:
        last = at + _IN_A_ROW - 1
        facts = {
            "low": lows[at],
            "high": highs[at],
            "count": f"{at:,}",
            "value": values[at],
            "third": values[last],
        }
        return Spell(at, last, first(highest <= limits[at], last + _AFTER), facts)

    needs = rule.window + _IN_A_ROW
    return Candidates(needs, places[places >= rule.window].tolist(), spell, _AFTER)
