"""Values that stay where they should not, by a rolling window with hysteresis, or swing on a scale
from 0 to 1 from point to point: noise, whatever their mean is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from verl_tui.health.conditions.condition import Column, Spell, Terms, condition
from verl_tui.health.conditions.trend import trends
from verl_tui.health.conditions.windows import means, rows
from verl_tui.health.finding import number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike

    from verl_tui.health.conditions.windows import Flags, Numbers, Places
    from verl_tui.health.guide import Rule

_RISING_T = 3.0
"""A rise counts as shown at three standard errors: heuristic, one chance in some hundreds."""
_STILL_RISING_T = 1.0
"""Below one standard error it no longer rises."""
_NOT_RISING_T = 1.5
"""A rise excuses a low value already when it is likelier than not."""
_RISING_SHARE = 0.1
"""A rise must be at least a tenth of the level within the window, or it does not count."""


@dataclass(frozen=True, slots=True)
class Range:
    """The range in which values should lie."""

    low: float = -math.inf
    high: float = math.inf
    inclusive: bool = False
    """True if the limits themselves are breaches."""

    def breached(self, values: Numbers) -> Flags:
        """Return which values lie outside."""
        if self.inclusive:
            return (values >= self.high) | (values <= self.low)
        return (values > self.high) | (values < self.low)

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
def stays(
    column: Column, rule: Rule, outside: Range, *, noise: bool = False
) -> Iterator[Terms | Spell]:
    """Most of the last points and their mean lie outside a range.

    Args:
        column: The metric.
        rule: Its window; the shares of it in breach at which a breach begins and, far below, ends:
            a value that oscillates around its threshold is one finding; and whether it must rise.
        outside: The range.
        noise: Whether its spread between steps is judged instead, as a share of its mean.
    """
    window = rule.window
    judged = _noise(column, window) if noise else column
    now = partial(_now, judged, rule, outside)
    yield Terms((1 + noise) * window, 2 * window, judged, now=now)
    values = judged.values
    out = outside.breached(values)
    hits: Places = np.cumsum(out)
    hits[window:] -= hits[:-window].copy()
    # Rounded up, but with tolerance for floating-point error: 0.8 × 10 is 8.
    most = math.ceil(rule.share * window - 1e-9)
    places = window - 1 + np.flatnonzero(hits[window - 1 :] >= most)
    if not len(places):
        return
    mean = means(values, window)
    is_out = outside.breached(mean)
    if outside.is_one_sided:
        is_out |= hits == window  # the mean of such breaches is one
    begins = is_out[places] & _may_begin(values, mean, places, rule)
    ends = np.flatnonzero(_ends(values, hits, rule) | ~is_out)
    again = 0
    for place, is_begin in zip(places.tolist(), begins.tolist(), strict=True):
        if place < again:
            continue
        if not is_begin:
            # What does not hold now will hardly hold at the very next point.
            again = place + max(1, window // 5)
            continue
        end = ends[ends > place][:1].tolist()
        first = place - window + 1
        first += int(np.argmax(out[first : place + 1]))
        facts = {"where": outside.words, "mean": float(mean[place])}
        yield Spell(first, place, end[0] if end else None, facts)
        if not end:
            return
        again = end[0] + 1


def _may_begin(values: Numbers, mean: Numbers, places: Places, rule: Rule) -> Flags:
    """Return at which places the trend of the window, and its mean compared with the first one, let
    a breach begin.
    """
    found = np.ones(len(places), bool)
    mean = mean[places]
    if rule.climb:
        found &= mean >= rule.climb * fmean(values[: rule.window].tolist())
    if rule.trend:
        change, t = trends(values, rule.window, places)
        rises = (t >= _RISING_T) & (change >= _RISING_SHARE * abs(mean))
        found &= rises if rule.trend == "rising" else t < _NOT_RISING_T
    return found


def _ends(values: Numbers, hits: Places, rule: Rule) -> Flags:
    """Return at which places so few points are in breach, or it rises so little, that it ends."""
    found = hits <= math.floor(rule.clear * rule.window + 1e-9)
    if rule.trend == "rising":
        places = np.arange(rule.window - 1, len(values))
        found[places] |= trends(values, rule.window, places)[1] < _STILL_RISING_T
    return found


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


def _noise(column: Column, window: int) -> Column:
    """Return the spread between steps as a share of the mean, where that is positive.

    It is taken from differences of neighbours, so that a metric that rises steadily is not noisy.
    """
    mean = means(column.values, window + 1)[window:]
    changes = np.square(np.diff(column.values))
    spread = np.sqrt(means(changes, window)[window - 1 :] / 2)
    known = mean > 0
    return Column(column.steps[window:][known], spread[known] / mean[known])


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
    differences = np.median(abs(np.diff(windows, axis=1)), axis=1)
    found: Numbers = np.minimum(spreads(windows), _TO_SIGMA * differences)
    return found


def spreads(windows: ArrayLike) -> Numbers:
    """Return how far the values of each row spread, as a standard deviation; 0 for a single one."""
    ordered = np.sort(windows, axis=1)
    tenth = ordered.shape[1] // 10
    found: Numbers = (ordered[:, -1 - tenth] - ordered[:, tenth]) / _RANGE
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
    begun: Spell | None = None
    for place, size in zip(places.tolist(), sizes.tolist(), strict=True):
        if begun is None and size > threshold:
            facts = {
                "size": size,
                "now": float(sizes[-1]),
                "low": float(newest.min()),
                "high": float(newest.max()),
                "limit": threshold,
                "count": window,
            }
            begun = Spell(place - window + 1, place, None, facts)
        elif begun is not None and size < _CALM * threshold:
            yield begun._replace(cleared=place)
            begun = None
    if begun is not None:
        yield begun
