"""Values that stay where they should not, by a rolling window with hysteresis; that swing from
point to point; or are in breach on some records in a row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from verl_tui.health.conditions.condition import (
    Spell,
    Terms,
    condition,
    segments,
    spells,
)
from verl_tui.health.conditions.windows import first, means, rolling, rows, trends
from verl_tui.health.finding import number
from verl_tui.means import median_along

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike

    from verl_tui.health.conditions.condition import Column
    from verl_tui.health.conditions.windows import Flags, Numbers
    from verl_tui.health.guide import Rule

_RISING_T, _RISING_SHARE = 3.0, 0.1
"""A rise counts as shown at three standard errors (heuristic, one chance in some hundreds) and a
tenth of the level.
"""
_STILL_RISING_T, _NOT_RISING_T = 1.0, 1.5
"""Below one standard error it no longer rises; a rise excuses a low value already when it is
likelier than not.
"""


@dataclass(frozen=True, slots=True)
class Range:
    """The range in which values should lie."""

    low: float = -math.inf
    high: float = math.inf
    inclusive: bool = False
    """True if the limits themselves are breaches."""

    def breached(self, values: Numbers) -> Flags:
        """Return which values lie outside."""
        excess = self.excess(values)
        return excess >= 0 if self.inclusive else excess > 0

    @property
    def is_one_sided(self) -> bool:
        """True if it has one limit only, so that the mean of breaches is one, too."""
        return self.low == -math.inf or self.high == math.inf

    @property
    def words(self) -> str:
        """The range of a breach in words, e.g. `above 0.1`."""
        if not self.is_one_sided:
            return f"outside {number(self.low)}–{number(self.high)}"
        at_or = "at or " if self.inclusive else ""
        if self.high < math.inf:
            return f"{at_or}above {number(self.high)}"
        return f"{at_or}below {number(self.low)}"

    def excess(self, values: Numbers) -> Numbers:
        """Return how far outside values lie; negative inside."""
        found: Numbers = np.maximum(values - self.high, self.low - values)
        return found


@condition
def stays(column: Column, rule: Rule, outside: Range) -> Iterator[Terms | Spell]:
    """Most of the last points and their mean lie outside a range.

    Args:
        column: The metric.
        rule: Its window; the shares of it in breach at which a breach begins and, far below, ends:
            a value that oscillates around its threshold is one finding; and whether it must rise.
        outside: The range.
    """
    window = rule.window
    yield Terms(window, 2 * window, now=partial(_now, column, rule, outside))
    values = column.values
    out = outside.breached(values)
    hits, mean = rolling(out, window), means(values, window)
    is_out = outside.breached(mean)
    if outside.is_one_sided:
        is_out |= hits == window  # the mean of such breaches is one
    # Rounded up, but with tolerance for floating-point error: 0.8 × 10 is 8.
    begins = is_out & (hits >= math.ceil(rule.share * window - 1e-9))
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
        since = start + int(np.argmax(out[start : place + 1]))
        facts = {"where": outside.words, "mean": float(mean[place])}
        return Spell(since, place, first(ends, place + 1), facts)

    yield from spells(np.flatnonzero(begins).tolist(), spell)


def _now(column: Column, rule: Rule, outside: Range, since: int) -> dict[str, object]:
    """Return what is known of a breach that holds."""
    steps, values = column
    first = int(np.searchsorted(steps, since))
    spanned, newest = values[first:], values[-rule.window :]
    hits = int(outside.breached(spanned).sum())
    worst = int(np.argmax(outside.excess(spanned)))
    mean = f", their mean {number(fmean(newest.tolist()))}"
    return {
        "stayed": "stayed" if hits == len(spanned) else "mostly stayed",
        "rising": " and is still rising" if rule.trend == "rising" else "",
        "mean_since": fmean(spanned.tolist()),
        "hits": hits,
        "points": len(spanned),
        "newest_hits": int(outside.breached(newest).sum()),
        "count": len(newest),
        "newest_mean": mean if len(newest) > 1 else "",
        "first": float(spanned[0]),
        "worst": float(spanned[worst]),
        "worst_step": int(steps[first + worst]),
    }


_TO_SIGMA = 1.0484
"""Median size of the differences between neighbours times this is the standard deviation of normal
noise.
"""
_RANGE = 2.5
"""Between their lowest and their highest tenth the values must span so many standard deviations
(2.56 of normal noise): a zigzag has large differences in a small span.
"""
_CALM = 0.8
"""It is over when the spread has fallen below four fifths of the threshold (hysteresis)."""
_OFTEN = 20
"""Points after which the spread is computed again."""


def swing(windows: ArrayLike) -> Numbers:
    """Return the standard deviation between neighbours of each row of values, two at least."""
    ordered = np.sort(windows, axis=1)
    tenth = ordered.shape[1] // 10
    spreads = (ordered[:, -1 - tenth] - ordered[:, tenth]) / _RANGE
    differences = median_along(abs(np.diff(windows, axis=1)))
    found: Numbers = np.minimum(spreads, _TO_SIGMA * differences)
    return found


@condition
def swings(column: Column, threshold: float, window: int) -> Iterator[Terms | Spell]:
    """The usual difference between neighbours stays large; a rise makes none, and single bursts do
    not count.

    Args:
        column: The metric.
        threshold: Standard deviation between points from which on they swing, in its own unit.
        window: Points looked at.
    """
    yield Terms(window, 2 * window)
    places = np.arange(window - 1, len(column), _OFTEN)
    sizes = swing(rows(column.values, window, places))
    newest = column.values[-window:]
    calm = np.zeros(len(column), bool)
    calm[places] = sizes < _CALM * threshold
    known = dict(zip(places.tolist(), sizes.tolist(), strict=True))

    def spell(place: int) -> Spell:
        facts = {
            "size": known[place],
            "now": float(sizes[-1]),
            "low": float(newest.min()),
            "high": float(newest.max()),
            "limit": threshold,
            "count": window,
        }
        return Spell(place - window + 1, place, first(calm, place + 1), facts)

    yield from spells(places[sizes > threshold].tolist(), spell)


@condition
def streak(
    column: Column,
    threshold: float,
    count: int,
    restarts: tuple[int, ...],
    *,
    drops: bool = False,
) -> Iterator[Terms | Spell]:
    """A number of records in a row in breach; once tripped it stays so until the run is restarted.

    Records that lack the metric never come here, so they neither count nor interrupt.

    Args:
        column: The metric.
        threshold: What a record must exceed.
        count: Breaches in a row that trip.
        restarts: First steps of the run's later segments: there it begins anew.
        drops: Whether a record counts when `(last − r) > threshold × last`. Where `last` is not
            positive, it does not count and so ends the row: a share of nothing means nothing.
    """
    pieces = [*segments(column, restarts)]
    newest = max([stop - start for start, stop in pieces[-1:]], default=0)
    yield Terms(count + drops, seen=newest)
    where = f"above {number(threshold)}"
    if drops:
        where = f"more than {threshold:.0%} below the one before"
    for start, stop in pieces:
        values = column.values[start:stop]
        breached = values > threshold
        if drops:
            last = np.append(0.0, values[:-1])
            breached = (last > 0) & (last - values > threshold * last)
        tripped = first(rolling(breached, count) == count, 0)
        if tripped is not None:
            at = start + tripped
            steps, shown = (one[at - count + 1 : at + 1].tolist() for one in column)
            facts = {
                "where": where,
                "count": count,
                "start": steps[0],
                "stop": steps[-1],
                "tripped": ", ".join(
                    f"{number(value)} at step {step}"
                    for step, value in zip(steps, shown, strict=True)
                ),
            }
            yield Spell(at - count + 1, at, stop if stop < len(column) else None, facts)
