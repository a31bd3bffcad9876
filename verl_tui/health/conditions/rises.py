"""Values that leave their own past: jumps, surges, levels that shift, and scales that
change.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from verl_tui.health.conditions.condition import Column, Shown, Spell
from verl_tui.health.conditions.windows import (
    first,
    means,
    medians,
    pasts,
    rolling,
    sigmas,
)
from verl_tui.health.finding import number

if TYPE_CHECKING:
    from verl_tui.health.conditions.windows import Numbers, Places
    from verl_tui.health.guide import Rule

_LEAST_SIGMA = 0.05
"""The spread counts as at least a twentieth of the level, so that a nearly constant past makes
nothing a jump.
"""
_LONGEST_HOLD = 300
_TAIL = 0.98
"""Share of its past below which the upper tail of a metric begins."""


def jump(column: Column, rule: Rule, limit: float, *_: object) -> Shown:
    """A value far above the points before it; held for some points, four times as many after two,
    and so on.
    """
    floor, least = max(rule.floor, limit), rule.least or rule.window
    steps, values = column
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
    usual = dict(zip(places[found].tolist(), level[found].tolist(), strict=True))

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
            "value": float(values[place]),
            "usual": usual[place],
            "highest": float(values[top]),
            "highest_step": int(steps[top]),
            "highest_usual": usual[top],
            "more": f"; {many}, the last at {steps[last]}" if len(jumps) > 1 else "",
            "newest_jump": f"{number(values[last])} at step {steps[last]}",
            "newest_usual": usual[last],
        }
        return Spell(place, place, end if end < len(column) else None, facts)

    return Shown(least + 1, usual, spell, rule.hold)


_SETTLED = 1.1
"""A surge is over when it has gained less than a tenth within a window: it is the new level."""


def surge(column: Column, rule: Rule, *_: object) -> Shown:
    """The last points lie many times above the run's own past; holds until they are back, or the
    new level has settled.
    """
    values, recent, window = column.values, rule.recent, rule.window
    low, half = rolling(values, recent, np.minimum), window // 2
    # No level lies below the least value of the past: that spares most of the sorting.
    least = _before(rolling(values, half, np.minimum), recent)
    places = np.flatnonzero((low > rule.floor) & (low > rule.factor * least))
    places = places[places >= window + recent - 1]
    past = pasts(values, places, window, recent)
    # What has grown all along, as from 0 at a run's start, has no level: its newest part serves as
    # its past.
    level = np.maximum(medians(past), medians(past[:, -half:]))
    found = low[places] > np.maximum(rule.floor, rule.factor * level)
    known = dict(zip(places[found].tolist(), level[found].tolist(), strict=True))
    newer = means(values, half)
    settled = newer <= _SETTLED * _before(newer, half)
    mean = float(values[-recent:].mean()) if len(values) else 0.0

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

    return Shown(window + recent, known, spell, window)


def _before(figures: Numbers, count: int) -> Numbers:
    """Return the figure so many points before each."""
    return np.append(np.full(count, np.nan), figures)[: len(figures)]


_SIGMAS, _BACK = 5.0, 0.5
"""Standard deviations by which a level shifts, and the share of the way after which it is back."""


def shift(column: Column, rule: Rule, way: float, *_: object) -> Shown:
    """The last points lie far above (or below) the ones before, or the first ones: what creeps
    leaves its past, too.

    Args:
        column: The metric.
        rule: Its window, the most points of the past, and `least` of these.
        way: How far at least, in the metric's own unit; negative to watch for a fall.
        *_: The rest that a condition gets.
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
        usual |= dict(zip(at[found].tolist(), level[found].tolist(), strict=True))

    def spell(place: int) -> Spell:
        level = usual[place]
        facts = {
            "rose": "rose" if way > 0 else "fell",
            "risen": "risen" if way > 0 else "fallen",
            "usual": sign * level,
            "level": float(sign * newest[place]),
            "now": float(sign * newest[-1]),
        }
        end = first(newest < level + _BACK * least, place + 1)
        return Spell(place + 1 - recent, place, end, facts)

    return Shown(needs, sorted(usual), spell, recent)


_IN_A_ROW, _AFTER = 3, 5
"""Points in a row that must all be that high, as learning climbs there step by step; and within the
old range, after which it is over.
"""


def scaled(column: Column, rule: Rule, *_: object) -> Shown:
    """From one point to the next, all values lie far above all earlier ones, by so many times their
    size or range, and above a floor, e.g. 1 for shares; over when they are back.
    """
    values = column.values
    lows, highs = (_before(of.accumulate(values), 1) for of in (np.minimum, np.maximum))
    size = np.maximum(np.maximum(abs(highs), abs(lows)), highs - lows)
    limits = np.maximum(rule.floor, highs + rule.factor * size)
    ahead = rolling(values, _IN_A_ROW, np.minimum)[_IN_A_ROW - 1 :]
    places = np.flatnonzero(ahead > limits[: len(ahead)])
    highest = rolling(values, _AFTER, np.maximum)

    def spell(at: int) -> Spell:
        last = at + _IN_A_ROW - 1
        facts = {
            "low": float(lows[at]),
            "high": float(highs[at]),
            "count": f"{at:,}",
            "value": float(values[at]),
            "third": float(values[last]),
        }
        return Spell(at, last, first(highest <= limits[at], last + _AFTER), facts)

    needs = rule.window + _IN_A_ROW
    return Shown(needs, places[places >= rule.window].tolist(), spell, _AFTER)
