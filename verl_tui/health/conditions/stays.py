"""Values that stay where they should not, by a rolling window with hysteresis; that have
no trend or do not change at all; or are in breach on some records in a row.
"""

from __future__ import annotations

import math
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from verl_tui.health.conditions.column import (
    Candidates,
    Column,
    Spell,
    first,
    means,
    rolling,
    shifted,
    trend,
    trends,
)
from verl_tui.health.finding import WORDS, filled, number

if TYPE_CHECKING:
    from verl_tui.health.guide import Rule

_RISING_T, _RISING_SHARE = 3.0, 0.1
"""A rise counts as shown at three standard errors (heuristic, one chance in some hundreds) and a
tenth of the level.
"""
_STILL_RISING_T, _NOT_RISING_T = 1.0, 1.5
"""Below one standard error it no longer rises; a rise excuses a low value already when it is
likelier than not.
"""


def stays(column: Column, rule: Rule, limit: float) -> Candidates:
    """Most of the last points and their mean lie outside a range.

    Args:
        column: The metric.
        rule: Its window; the shares of it in breach at which a breach begins and, far below, ends:
            a value that oscillates around its threshold is one finding; and whether it must rise.
        limit: The end of the range, where it has one.
    """
    steps, values = column.steps, column.values
    window = rule.window
    low, high = {
        "above": (-np.inf, limit),
        "at-least": (-np.inf, np.nextafter(limit, -np.inf)),  # itself is a breach
        "below": (limit, np.inf),
        "outside": (rule.low, rule.high),
    }[rule.condition]
    out = (values > high) | (values < low)
    # Rounded up, but with tolerance for floating-point error: 0.8 × 10 is 8.
    least = math.ceil(rule.share * window - 1e-9)
    if out.sum() < least:
        return Candidates(window, (), lambda _: Spell(0, 0, 0, {}))
    hits, mean = rolling(out, window), means(values, window)
    is_out = (mean > high) | (mean < low)
    if rule.condition != "outside":
        is_out |= hits == window  # the mean of such breaches is one
    begins = is_out & (hits >= least)
    ends = ~is_out | (hits <= math.floor(rule.clear * window + 1e-9))
    if rule.climb and len(values) >= window:
        begins &= mean >= rule.climb * mean[window - 1]
    if rule.trend and begins.any():
        places = np.arange(window - 1, len(values))
        change, t = trends(values, window, places)
        rises = (t >= _RISING_T) & (change >= _RISING_SHARE * abs(mean[places]))
        is_rule = rule.trend == "rising"
        begins[places] &= rises if is_rule else t < _NOT_RISING_T
        ends[places] |= is_rule & (t < _STILL_RISING_T)

    def spell(place: int) -> Spell:
        start = place - window + 1
        begun = out[start : place + 1]
        if rule.climb:
            begun = values[start : place + 1] >= rule.climb * mean[window - 1]
        since = start + np.argmax(begun)
        ends_at = {"limit": limit, "low": float(rule.low), "high": float(rule.high)}
        where = filled(WORDS["stays"]["where"][rule.condition], ends_at, rule.unit)
        was, level = where, mean[place]
        if rule.climb and not rule.threshold:
            was = f"{number(level / mean[window - 1])} × its level at the beginning"
        facts = {"where": where, "was": was, "mean": level}
        return Spell(since, place, first(ends, place + 1), facts)

    def now(since: int) -> dict[str, object]:
        start = np.searchsorted(steps, since)
        spanned, newest = values[start:], values[-window:]
        hits = out[start:].sum()
        worst = start + np.maximum(spanned - high, low - spanned).argmax()
        is_steady = hits == len(spanned)
        mean = f", their mean {rule.written(fmean(newest.tolist()))}"
        return {
            "case": "" if is_steady else "often",
            "stayed": "stayed" if is_steady else "mostly stayed",
            "rising": " and is still rising" if rule.trend == "rising" else "",
            "mean_since": fmean(spanned.tolist()),
            "hits": hits,
            "points": len(spanned),
            "newest_hits": out[-window:].sum(),
            "count": len(newest),
            "newest_mean": mean if len(newest) > 1 else "",
            "first": spanned[0],
            "worst": values[worst],
            "worst_step": steps[worst],
        }

    places = np.flatnonzero(begins).tolist()
    return Candidates(window, places, spell, 2 * window, now=now)


_OFTEN = 20
"""Points after which a trend is computed again."""


def streak(column: Column, rule: Rule, limit: float) -> Candidates:
    """A number of records in a row in breach; once tripped it stays so until the run is restarted.

    Records that lack the metric never come here, so they neither count nor interrupt; each later
    segment of the run starts over. Of `drops` a record counts when `(last − r) > threshold × last`.
    Where `last` is not positive, it does not count and so ends the row: a share of nothing means
    nothing.

    Args:
        column: The metric.
        rule: The number of records.
        limit: What a record must exceed.
    """
    count, drops = rule.count, rule.condition == "drops"
    tripped: dict[int, Spell] = {}
    starts = np.searchsorted(column.steps, sorted(column.restarts)).tolist()
    seen = len(column.steps)
    for start, stop in pairwise(sorted({0, *starts, seen})):
        values = column.values[start:stop]
        breached = values > limit
        if drops:
            last = shifted(values, 1)
            breached = (last > 0) & (last - values > limit * last)
        at = first(rolling(breached, count) == count, 0)
        if at is not None:
            place = start + at
            shown = slice(place - count + 1, place + 1)
            steps, numbers = (one[shown].tolist() for one in column[:2])
            records = zip(map(rule.written, numbers), steps, strict=True)
            share = f"more than {limit:.0%} below the one before"
            facts = {
                "where": share if drops else f"above {rule.written(limit)}",
                "count": count,
                "start": steps[0],
                "stop": steps[-1],
                "tripped": ", ".join(f"{value} at step {at}" for value, at in records),
            }
            end = stop if stop < seen else None
            tripped[place] = Spell(shown.start, place, end, facts)
    return Candidates(count + drops, tripped, tripped.__getitem__)


def opening(column: Column, _: Rule, limit: float) -> Candidates:
    """The run's very first value is beyond a limit."""
    steps, values = column.steps, column.values
    is_beyond = bool(len(values) and steps[0] <= 1 and values[0] > limit)
    facts = {"value": values[0] if len(values) else 0.0}
    return Candidates(1, [0] if is_beyond else [], lambda _: Spell(0, 0, None, facts))


def same(column: Column, rule: Rule, _: float) -> Candidates:
    """The last so many values are the same, digit by digit; over with another one."""
    values, count = column.values, rule.count
    is_other = values != shifted(values, 1)
    alike = rolling(~is_other, count - 1) == count - 1
    last = len(values)

    def spell(place: int) -> Spell:
        start, end = place - count + 1, first(is_other, place)
        times = (last if end is None else end) - start
        facts = {"value": repr(float(values[place])), "times": times, "count": count}
        return Spell(start, place, end, facts)

    return Candidates(count, np.flatnonzero(alike).tolist(), spell)


_FLAT_T = 2.0
"""Below two standard errors a slope is no trend."""


def level(column: Column, rule: Rule, _: float) -> Candidates:
    """A window without a trend; over with the first one that has one."""
    window, values = rule.window, column.values
    places = np.arange(window - 1, len(values), _OFTEN)
    change, t = trends(values, window, places)
    moves = np.zeros(len(values), bool)
    moves[places] = abs(t) >= _FLAT_T

    def spell(place: int) -> Spell:
        mean = values[places[-1] + 1 - window :][:window].mean()
        facts = {"mean": mean, "change": change[-1], "t": t[-1], "count": window}
        return Spell(place - window + 1, place, first(moves, place + 1), facts)

    return Candidates(window, places[abs(t) < _FLAT_T].tolist(), spell, 2 * window)


def course(column: Column, rule: Rule, _: float) -> Candidates:
    """All values so far: whether they are a breach is left to the rule's exemptions."""
    values, window = column.values, rule.window

    def spell(place: int) -> Spell:
        facts = {"mean": values.mean(), "count": len(values), **trend(values)._asdict()}
        return Spell(0, place, None, facts)

    return Candidates(window, range(window - 1, len(values))[:1], spell)
