"""Values that leave their own past: jumps, surges, rises block by block, levels that shift, and
scales that change.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from verl_tui.health.conditions.condition import Spell, Terms, condition, spells
from verl_tui.health.conditions.windows import (
    first,
    means,
    medians,
    pasts,
    rolling,
    sigmas,
)
from verl_tui.health.finding import number
from verl_tui.means import median_along

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.health.conditions.condition import Column
    from verl_tui.health.conditions.windows import Numbers, Places
    from verl_tui.health.guide import Rule

_LEAST_SIGMA = 0.05
"""The spread counts as at least a twentieth of the level, so that a nearly constant past makes
nothing a jump.
"""
_LONGEST_HOLD = 300
_TAIL = 0.98
"""Share of its past below which the upper tail of a metric begins."""


@condition
def jump(column: Column, rule: Rule, limit: float) -> Iterator[Terms | Spell]:
    """A value far above the points before it; held for some points, four times as many after two,
    and so on.
    """
    floor, least = max(rule.floor, limit), rule.least or rule.window
    yield Terms(least + 1, rule.hold)
    values = column.values
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
    jumps: list[int] = []
    end = 0
    for place in usual:
        if jumps and place > end:
            yield _of_jumps(column, jumps, usual, end)
            jumps = []
        jumps.append(place)
        end = place + 1 + min(_LONGEST_HOLD, rule.hold * len(jumps) ** 2)
    if jumps:
        yield _of_jumps(column, jumps, usual, end if end < len(column) else None)


def _of_jumps(
    column: Column, jumps: Sequence[int], usual: dict[int, float], end: int | None
) -> Spell:
    steps, values = column
    one, highest = jumps[0], max(jumps, key=values.__getitem__)
    more = f"; {len(jumps)} such points since step {steps[one]}, the last at {steps[jumps[-1]]}"
    facts = {
        "value": float(values[one]),
        "usual": usual[one],
        "highest": float(values[highest]),
        "highest_step": int(steps[highest]),
        "highest_usual": usual[highest],
        "more": more if len(jumps) > 1 else "",
        "sentences": [
            f"{number(values[at])} at step {steps[at]}; the points before: "
            f"median {number(usual[at])}"
            for at in jumps[-3:]
        ],
    }
    return Spell(one, one, end, facts)


_SETTLED = 1.1
"""A surge is over when it has gained less than a tenth within a window: it is the new level."""


@condition
def surge(column: Column, rule: Rule) -> Iterator[Terms | Spell]:
    """The last points lie many times above the run's own past; holds until they are back, or the
    new level has settled.
    """
    values, recent, window = column.values, rule.recent, rule.window
    yield Terms(window + recent, window)
    low = rolling(values, recent, np.minimum)
    half = window // 2
    # No level lies below the least value of the past: that spares most of the sorting.
    least = np.append(np.full(recent, np.nan), rolling(values, half, np.minimum))[
        : len(low)
    ]
    places = np.flatnonzero((low > rule.floor) & (low > rule.factor * least))
    places = places[places >= window + recent - 1]
    past = pasts(values, places, window, recent)
    # What has grown all along, as from 0 at a run's start, has no level: its newest part serves as
    # its past.
    level = np.maximum(medians(past), medians(past[:, -half:]))
    found = low[places] > np.maximum(rule.floor, rule.factor * level)
    known = dict(zip(places[found].tolist(), level[found].tolist(), strict=True))
    newer = means(values, half)
    settled = newer <= _SETTLED * np.append(np.full(half, np.nan), newer)[: len(newer)]
    steps, newest = (one[-recent:].tolist() for one in column)
    mean = float(np.mean(newest)) if newest else 0.0

    def spell(place: int) -> Spell:
        level = known[place]
        limit = max(rule.factor * level, rule.floor)
        is_back = rolling(values > limit, recent) * 2 <= recent
        ends = (first(is_back, place + 1), first(settled, place + window))
        facts = {
            "limit": limit,
            "level": level,
            "recent": len(newest),
            "mean": mean,
            "times": f"{number(mean / level)} times" if level > 0 else "far above",
            "values": ", ".join(
                f"{number(one)} at step {at}"
                for at, one in zip(steps, newest, strict=True)
            ),
        }
        end = min((one for one in ends if one is not None), default=None)
        return Spell(place + 1 - recent, place, end, facts)

    yield from spells(known, spell)


_SIGMAS, _BACK = 5.0, 0.5
"""Standard deviations by which a level shifts, and the share of the way after which it is back."""


@condition
def shift(
    column: Column, window: int, fewest: int, recent: int, way: float
) -> Iterator[Terms | Spell]:
    """The last points lie far above (or below) the ones before, or the first ones: what creeps
    leaves its past, too.

    Args:
        column: The metric.
        window: Points of the past at most.
        fewest: Points of the past that it needs.
        recent: Points that must all have left it.
        way: How far at least, in the metric's own unit; negative to watch for a fall.
    """
    yield Terms(fewest + recent, recent)
    sign, least = math.copysign(1, way), abs(way)
    up = sign * column.values
    newest, low = means(up, recent), rolling(up, recent, np.minimum)
    places = np.arange(fewest + recent - 1, len(up))
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

    yield from spells(sorted(usual), spell)


_IN_A_ROW, _AFTER = 3, 5
"""Points in a row that must all be that high, as learning climbs there step by step; and within the
old range, after which it is over.
"""


@condition
def scaled(
    column: Column, factor: float, least: int, floor: float
) -> Iterator[Terms | Spell]:
    """From one point to the next, all values lie far above all earlier ones; over when they are
    back.

    Args:
        column: The metric.
        factor: How many times the size of all values before, or their range, a value must lie above
            them.
        least: Fewest points of the past that it needs.
        floor: Values up to here are never found, e.g. 1 for shares.
    """
    yield Terms(least + _IN_A_ROW, _AFTER)
    values = column.values
    lows, highs = (
        np.append(np.nan, of.accumulate(values))[: len(values)]
        for of in (np.minimum, np.maximum)
    )
    size = np.maximum(np.maximum(abs(highs), abs(lows)), highs - lows)
    limits = np.maximum(floor, highs + factor * size)
    ahead = rolling(values, _IN_A_ROW, np.minimum)[_IN_A_ROW - 1 :]
    places = np.flatnonzero(ahead > limits[: len(ahead)])
    highest = rolling(values, _AFTER, np.maximum)

    def spell(at: int) -> Spell:
        last = at + _IN_A_ROW - 1
        facts = {
            "low": float(lows[at]),
            "high": float(highs[at]),
            "count": f"{at:,}",
            "step": int(column.steps[at]),
            "value": float(values[at]),
            "third": float(values[last]),
        }
        return Spell(at, last, first(highest <= limits[at], last + _AFTER), facts)

    yield from spells(places[places >= least].tolist(), spell)


_BLOCKS, _STRIDES = 5, (1, 2, 4)
"""Blocks whose medians must rise; every so many blocks are looked at."""
_FOOT = 0.1
"""Share of a rise below which it has not begun."""
_VANISHED = 0.1
"""Share of the highest block so far below which a metric has all but vanished: heuristic. The
gradient norm of a task that is solved may double between a thousandth and two of what it was.
"""


@condition
def rising(column: Column, window: int, factor: float) -> Iterator[Terms | Spell]:
    """Rises continuously: the medians of five blocks each exceed the one before, the last far above
    the first.

    Medians of blocks, because gradient norms have spikes; judged when a block is full. Slow rises
    are seen in every second and every fourth block. What has all but vanished does not rise.
    """
    yield Terms(window, window)
    size = max(1, window // _BLOCKS)
    count = len(column) // size
    blocks = column.values[: count * size].reshape(count, size)
    levels = median_along(blocks) if count else np.empty(0)
    ends = size * np.arange(1, count + 1) - 1
    falls = np.append(False, np.diff(levels) < 0)
    strides = _rises(levels, factor)
    newest = zip(levels[-_BLOCKS:], column.steps[ends[-_BLOCKS:]], strict=True)
    shown = ", ".join(f"{number(level)} up to step {step}" for level, step in newest)

    def spell(block: int) -> Spell:
        stride = int(strides[block])
        rise = levels[block - (_BLOCKS - 1) * stride : block + 1 : stride]
        # The last block at the old level: chance alone may order the blocks before it.
        low, high = float(rise[0]), float(rise[-1])
        at = int(np.flatnonzero(rise <= low + _FOOT * (high - low))[-1])
        foot = block - (_BLOCKS - 1 - at) * stride
        facts = {
            "low": low,
            "high": high,
            "foot": float(levels[foot]),
            "now": float(levels[-1]),
            "size": size,
            "medians": shown,
        }
        over = first(falls, block + 1)
        end = None if over is None else int(ends[over])
        return Spell(int(ends[foot]), int(ends[block]), end, facts)

    yield from spells(np.flatnonzero(strides).tolist(), spell)


def _rises(levels: Numbers, factor: float) -> Places:
    """Return at the blocks that end a rise the least stride that shows it, 0 at others."""
    highest = np.maximum.accumulate(np.append(0.0, levels))[1:]
    strides = np.zeros(len(levels), np.int64)
    for stride in reversed(_STRIDES):
        blocks = [levels[at * stride :] for at in range(_BLOCKS)]
        low, *_, high = [one[: len(blocks[-1])] for one in blocks]
        rises = (factor * low > 0) & (factor * low <= high)
        for before, after in pairwise(blocks):
            rises &= before[: len(high)] < after[: len(high)]
        strides[(_BLOCKS - 1) * stride :][rises] = stride
    strides[levels < _VANISHED * highest] = 0
    return strides
