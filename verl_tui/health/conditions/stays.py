"""Values that stay where they should not, by a rolling window with hysteresis, or swing on a scale
from 0 to 1 from point to point: noise, whatever their mean is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from verl_tui.health.conditions.condition import Column, Condition, Spell
from verl_tui.health.conditions.trend import trends
from verl_tui.health.conditions.windows import means, rows
from verl_tui.health.finding import number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import ArrayLike

    from verl_tui.health.conditions.windows import Flags, Numbers, Places

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


@dataclass
class Stays(Condition):
    """Most of the last points and their mean lie outside a range."""

    range: Range
    window: int
    """Points of the window."""
    share: float = 0.8
    """Share of them that must be in breach, as well as their mean, for the breach to begin."""
    clear: float = 0.5
    """Share at or below which it ends: far below `share`, so that a value that oscillates around
    its threshold is one finding.
    """
    trend: str = ""
    """`rising`: only while the window rises; `not rising`: only where it does not."""
    climb: float = 0.0
    """If not 0: the window's mean must be so many times that of the run's first window."""

    words = "stays"

    def __post_init__(self) -> None:
        self.needs = self.window
        self.cooldown = 2 * self.window

    def spells(self, column: Column) -> Iterator[Spell]:
        """Return all breaches."""
        values, window = column.values, self.window
        out = self.range.breached(values)
        hits: Places = np.cumsum(out)
        hits[window:] -= hits[:-window].copy()
        # Rounded up, but with tolerance for floating-point error: 0.8 × 10 is 8.
        most = math.ceil(self.share * window - 1e-9)
        places = window - 1 + np.flatnonzero(hits[window - 1 :] >= most)
        if not len(places):
            return
        mean = means(values, window)
        begins = self._begins(values, hits, mean, places)
        ends = np.flatnonzero(self._ends(values, hits, mean))
        again = 0
        for place, is_begin in zip(places.tolist(), begins.tolist(), strict=True):
            if place < again:
                continue
            if not is_begin:
                # What does not hold now will hardly hold at the very next point.
                again = place + max(1, window // 5)
                continue
            end = np.searchsorted(ends, place + 1)
            cleared = int(ends[end]) if end < len(ends) else None
            first = place - window + 1
            first += int(np.argmax(out[first : place + 1]))
            facts = {"where": self.range.words, "mean": float(mean[place])}
            yield Spell(first, place, cleared, facts)
            if cleared is None:
                return
            again = cleared + 1

    def _is_out(self, hits: Places, mean: Numbers) -> Flags:
        """Return where the mean of the window is in breach; that of breaches on one side is."""
        found = self.range.breached(mean)
        if self.range.is_one_sided:
            found |= hits == self.window
        return found

    def _begins(
        self, values: Numbers, hits: Places, mean: Numbers, places: Places
    ) -> Flags:
        """Return at which of some places a breach may begin."""
        mean = mean[places]
        found = self._is_out(hits[places], mean)
        if self.climb:
            # the mean of the run's first window
            found &= mean >= self.climb * fmean(values[: self.window].tolist())
        if self.trend:
            change, t = trends(values, self.window, places)
            if self.trend == "rising":
                found &= (t >= _RISING_T) & (change >= _RISING_SHARE * abs(mean))
            else:
                found &= t < _NOT_RISING_T
        return found

    def _ends(self, values: Numbers, hits: Places, mean: Numbers) -> Flags:
        """Return at which places a breach ends."""
        window = self.window
        fewest = math.floor(self.clear * window + 1e-9)
        # A window whose mean is back inside would contradict the message.
        found = (hits <= fewest) | ~self._is_out(hits, mean)
        if self.trend == "rising":
            places = np.arange(window - 1, len(values))
            found[places] |= trends(values, window, places)[1] < _STILL_RISING_T
        return found

    def now(self, column: Column, since: int) -> Mapping[str, object]:
        """Return what is known of a breach that holds."""
        steps, values = column
        first = int(np.searchsorted(steps, since))
        spanned, newest = values[first:], values[-self.window :]
        hits = int(self.range.breached(spanned).sum())
        worst = int(np.argmax(self.range.excess(spanned)))
        mean = f", their mean {number(fmean(newest.tolist()))}"
        return {
            "stayed": "stayed" if hits == len(spanned) else "mostly stayed",
            "rising": " and is still rising" if self.trend == "rising" else "",
            "mean_since": fmean(spanned.tolist()),
            "hits": hits,
            "points": len(spanned),
            "newest_hits": int(self.range.breached(newest).sum()),
            "count": len(newest),
            "newest_mean": mean if len(newest) > 1 else "",
            "first": float(spanned[0]),
            "worst": float(spanned[worst]),
            "worst_step": int(steps[first + worst]),
        }


class Noisy(Stays):
    """The spread of one metric between steps stays above a share of its mean, where the log has no
    spread of its own.

    The spread is taken from differences of neighbours, so that a metric that rises steadily is not
    called noisy.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self.needs = 2 * self.window

    def derived(self, column: Column) -> Column:
        """Return the spread as a share of the mean, where that is positive."""
        window = self.window
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


def swings(windows: ArrayLike) -> Numbers:
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


@dataclass
class Swings(Condition):
    """The usual difference between neighbours stays large; a rise makes none, and single bursts do
    not count.
    """

    threshold: float
    """Standard deviation between points from which on they swing, in the metric's own unit."""
    window: int
    """Points looked at."""

    def __post_init__(self) -> None:
        self.needs = self.window
        self.cooldown = 2 * self.window

    def spells(self, column: Column) -> Iterator[Spell]:
        """Return all breaches, each with its newest spread."""
        places = np.arange(self.window - 1, len(column), _OFTEN)
        sizes = swings(rows(column.values, self.window, places))
        newest = column.values[-self.window :]
        begun: Spell | None = None
        for place, size in zip(places.tolist(), sizes.tolist(), strict=True):
            if begun is None and size > self.threshold:
                facts = {
                    "size": size,
                    "now": float(sizes[-1]),
                    "low": float(newest.min()),
                    "high": float(newest.max()),
                    "limit": self.threshold,
                    "count": self.window,
                }
                begun = Spell(place - self.window + 1, place, None, facts)
            elif begun is not None and size < _CALM * self.threshold:
                yield begun._replace(cleared=place)
                begun = None
        if begun is not None:
            yield begun
