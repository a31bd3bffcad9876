"""Values far from their own past: jumps, surges, a fall to zero, and levels that shift."""

from __future__ import annotations

import math
from operator import attrgetter
from statistics import fmean, median
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from verl_tui.health.conditions.condition import Spell, Terms, condition
from verl_tui.health.conditions.windows import (
    TO_SIGMA,
    by_size,
    first,
    means,
    pieces,
    rolling,
    rows,
    sigmas,
)
from verl_tui.health.finding import number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.health.conditions.condition import Column
    from verl_tui.health.conditions.windows import Flags, Numbers, Places
    from verl_tui.health.guide import Rule

_LEAST_SIGMA = 0.05
"""The spread counts as at least a twentieth of the level, so that a nearly constant past makes
nothing a jump.
"""
_LONGEST_HOLD = 300
_TAIL = 0.98
"""Share of its past below which the upper tail of a metric begins."""


class _JumpPoint(NamedTuple):
    """A value that is a jump."""

    place: int
    step: int
    value: float
    usual: float
    """The median of the points before."""


@condition
def jump(column: Column, rule: Rule, limit: float) -> Iterator[Terms | Spell]:
    """A value far above the points before it; held for some points, four times as many after two,
    and so on.
    """
    floor, least = max(rule.floor, limit), rule.least or rule.window
    yield Terms(least + 1, rule.hold)
    jumps: list[_JumpPoint] = []
    end = 0
    for one in _jumps(column, rule, floor, least):
        if jumps and one.place > end:
            yield _of_jumps(jumps, end)
            jumps = []
        jumps.append(one)
        end = one.place + 1 + min(_LONGEST_HOLD, rule.hold * len(jumps) ** 2)
    if jumps:
        yield _of_jumps(jumps, end if end < len(column) else None)


def _jumps(
    column: Column, rule: Rule, floor: float, least: int
) -> Iterator[_JumpPoint]:
    values = column.values
    usual = values > rule.ignore * floor
    before: Places = np.cumsum(usual) - usual
    kept = values[usual]
    places = np.flatnonzero((values > floor) & (before >= least))
    # No level lies below the least value of its past: that spares most of the sorting.
    low = rolling(kept, rule.window, np.minimum)[before[places] - 1]
    places = places[~(values[places] <= rule.factor * low)]
    for size, some in by_size(places, np.minimum(rule.window, before[places])):
        past, beyond = rows(kept, size, before[some] - 1), values[some]
        tail = np.partition(past, int(_TAIL * size), axis=1)[:, int(_TAIL * size)]
        level = np.median(past, axis=1)
        spread = np.maximum(sigmas(past, level), _LEAST_SIGMA * abs(level))
        found = (beyond > rule.tail * tail) & (beyond > rule.factor * level)
        found &= beyond - level > rule.spread * spread
        for place, was in zip(some[found].tolist(), level[found].tolist(), strict=True):
            step = int(column.steps[place])
            yield _JumpPoint(place, step, float(values[place]), was)


def _of_jumps(jumps: Sequence[_JumpPoint], end: int | None) -> Spell:
    one, highest = jumps[0], max(jumps, key=attrgetter("value"))
    more = f"; {len(jumps)} such points since step {one.step}, the last at {jumps[-1].step}"
    facts = {
        "value": one.value,
        "usual": one.usual,
        "highest": highest.value,
        "highest_step": highest.step,
        "highest_usual": highest.usual,
        "more": more if len(jumps) > 1 else "",
        "sentences": [
            f"{number(jump.value)} at step {jump.step}; the points before: "
            f"median {number(jump.usual)}"
            for jump in jumps[-3:]
        ],
    }
    return Spell(one.place, one.place, end, facts)


_SETTLED = 1.1
"""A surge is over when it has gained less than a tenth within a window: it is the new level."""


@condition
def surge(column: Column, rule: Rule) -> Iterator[Terms | Spell]:
    """The last points lie many times above the run's own past; the past is held while that is
    so.
    """
    values, recent, window = column.values, rule.recent, rule.window
    needs = window + recent
    yield Terms(needs, window)
    low = rolling(values, recent, np.minimum)
    places = needs - 1 + np.flatnonzero(low[needs - 1 :] > rule.floor)
    is_high = _far_above(values, low, places, rule)
    past = values[:0]
    until: int | None = recent - 1
    while until is not None:
        near = is_high | (places <= until + window)
        for place in places[near & (places > until)].tolist():
            # After a surge the points before lack those of the surge.
            begin = place + 1 - recent
            start = max(begin - window, until + 1 - recent)
            known = np.append(past, values[start:begin])[-window:]
            # What has grown all along, as from 0 at a run's start, has no level: its newest part
            # serves as its past.
            level = float(max(np.median(known), np.median(known[len(known) // 2 :])))
            limit = max(rule.factor * level, rule.floor)
            if low[place] > limit:
                until, past = _end(values, place, limit, known, rule)
                facts = {"limit": limit, "level": level}
                yield Spell(
                    begin, place, until, {**facts, **_newest(column, level, recent)}
                )
                break
        else:
            return


def _far_above(values: Numbers, low: Numbers, places: Places, rule: Rule) -> Flags:
    """Return at which places the last points lie far above the newer half of the points before;
    the least of these spares most of the sorting.
    """
    half = rule.window - rule.window // 2
    least = rolling(values, half, np.minimum)[places - rule.recent]
    found: Flags = low[places] > rule.factor * least
    (some,) = np.nonzero(found)
    newer = [
        np.median(rows(values, half, part - rule.recent), axis=1)
        for part in pieces(places[some], half)
    ]
    found[some] = low[places[some]] > rule.factor * np.concatenate(newer)
    return found


def _end(
    values: Numbers, start: int, limit: float, past: Numbers, rule: Rule
) -> tuple[int | None, Numbers]:
    """Return where a surge ends, and the points before the next one."""
    half = rule.window // 2
    for place in range(start + 1, len(values)):
        newest = values[place + 1 - rule.recent : place + 1]
        if (newest > limit).sum() * 2 <= rule.recent:
            return place, past
        held = values[max(start + 1, place + 1 - rule.window) : place + 1].tolist()
        if len(held) < 2 * half:
            continue
        if median(held[-half:]) <= _SETTLED * median(held[:half]):
            # The new level has become the past: it no longer rises.
            return place, np.array(held)
    return None, past


def _newest(column: Column, level: float, recent: int) -> dict[str, object]:
    steps, newest = (one[-recent:].tolist() for one in column)
    mean = fmean(newest)
    values = zip(steps, newest, strict=True)
    return {
        "recent": len(newest),
        "mean": mean,
        "times": f"{number(mean / level)} times" if level > 0 else "far above",
        "values": ", ".join(f"{number(one)} at step {at}" for at, one in values),
    }


_NEAR = 0.005
"""A value counts as zero up to this share of those before: logs print few digits."""
_STEADY = 0.25
"""If an earlier value was below a quarter of the usual, a zero is no surprise."""
_MEMORY = 100
"""Points that show how often zero comes by chance."""
_CHANCE = 1e-5
"""Highest probability of that many zeros in a row: heuristic, once in a hundred runs of a thousand
steps.
"""


@condition
def zero(column: Column, window: int, count: int) -> Iterator[Terms | Spell]:
    """Falls to zero at once, from points that were clearly positive, none near zero; holds while it
    is zero.

    Where values lie between 0 and 1 it takes more zeros than come by chance: small batches score 0
    at times.

    Args:
        column: The metric.
        window: Positive points before it.
        count: Fewest zeros in a row that make it a fall; 1 to report it at once on scales beyond 1.
    """
    yield Terms(window + count, window)
    values = column.values
    size = abs(values)
    highest = np.maximum.accumulate(np.append(0.0, values))[:-1]
    falls = np.append(False, np.diff(values) < 0) & (size <= _NEAR * highest)
    past: list[float] = []  # the points before, without the zeros
    known: list[float] = []
    at = 0
    for place in np.flatnonzero(falls).tolist():
        if place < at:
            continue
        past += values[at:place].tolist()
        known += values[at:place].tolist()
        at = place
        level = _level(past[-window:], float(values[place]), window)
        if level is None:
            continue
        most = _enough(known[-_MEMORY:], count)
        end = first(size, np.greater, _NEAR * level, place + 1)
        at = len(values) if end is None else end
        if at - place < most:
            known += [0.0] * (at - place)
            continue
        shown = ", ".join(map(number, past[-window:]))
        yield Spell(place, place + most - 1, end, {"level": level, "past": shown})


def _level(past: list[float], value: float, window: int) -> float | None:
    """Return the level that a value has fallen to zero from, None where it has not."""
    if len(past) < window or value >= past[-1]:
        return None
    level = median(past)
    if level <= 0 or abs(value) > _NEAR * level:
        return None
    return level if min(past) >= _STEADY * level else None


def _enough(known: list[float], count: int) -> int:
    """Return how many zeros in a row cannot be chance, by the zeros so far and the spread of the
    values.
    """
    if count == 1 and max(known) > 1:
        return 1
    level = fmean(known)
    spread = fmean((value - level) ** 2 for value in known)
    zeros = sum(abs(value) <= _NEAR * level for value in known)
    # With no zero among n values, a share of about 1/n is still likely; with a normal spread, the
    # tail beyond the mean.
    share = (zeros + 0.5) / (len(known) + 1)
    if spread > 0:
        share = max(share, math.exp(-level * level / (2 * spread)))
    return max(count, math.ceil(math.log(_CHANCE) / math.log(min(share, 0.9))))


_SIGMAS = 5.0
_WAYS = {1.0: ("rose", "risen"), -1.0: ("fell", "fallen")}
_BACK = 0.5
"""It is over when half of the way is made up for."""


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
    sign = math.copysign(1, way)
    up, least = sign * column.values, abs(way)
    newest = means(up, recent)
    low = rolling(up, recent, np.minimum)
    # No usual level lies beyond the least value so far.
    places = np.flatnonzero(low - np.minimum.accumulate(up) > least)
    base = 0
    for place in places.tolist():
        start = place + 1 - recent
        pasts = [up[max(base, start - window) : start]]
        if place + 1 >= 2 * window:
            pasts.append(up[:window])
        if place + 1 - base < fewest + recent:
            continue
        usual = _usual(pasts, float(low[place]), least)
        if usual is None:
            continue
        end = first(newest, np.less, usual + _BACK * least, place + 1)
        levels = [sign * one + 0.0 for one in (usual, newest[place], newest[-1])]
        figures = zip(("usual", "level", "now"), map(float, levels), strict=True)
        facts = dict(zip(("rose", "risen"), _WAYS[sign], strict=True))
        yield Spell(start, place, end, {**facts, **dict(figures)})
        if end is None:
            return
        base = end + 1


def _usual(pasts: Sequence[Numbers], low: float, least: float) -> float | None:
    """Return the usual level that the last points have left, None where they have not."""
    for past in pasts:
        level: float = median(past.tolist())
        spread = TO_SIGMA * median(abs(past - level).tolist())
        if low - level > max(least, _SIGMAS * spread):
            return level
    return None
