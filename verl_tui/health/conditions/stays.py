"""Values that stay where they should not: a rolling window with hysteresis."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING

from verl_tui.health.conditions.condition import (
    Condition,
    DescribedBreach,
    Wording,
    number,
)
from verl_tui.health.conditions.trend import trend

if TYPE_CHECKING:
    from collections.abc import Sequence

_STRETCH = 256
"""Points that are checked together for any breach."""
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

    def breached(self, value: float) -> bool:
        """Return whether a value lies outside."""
        if self.inclusive:
            return value >= self.high or value <= self.low
        return value > self.high or value < self.low

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

    def excess(self, value: float) -> float:
        """Return how far outside a value lies; negative inside."""
        return max(value - self.high, self.low - value)


@dataclass(frozen=True, slots=True)
class Steadiness:
    """The condition for a breach to last."""

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


class Stays(Condition):
    """Most of the last points and their mean lie outside a range."""

    def __init__(self, range: Range, steady: Steadiness) -> None:
        super().__init__(cooldown=2 * steady.window)
        self.needs = steady.window
        self._range = range
        self._steady = steady
        # Rounded up, but with tolerance for floating-point error: 0.8 × 10 is 8.
        self._most = math.ceil(steady.share * steady.window - 1e-9)
        self._fewest = math.floor(steady.clear * steady.window + 1e-9)
        self._ring: deque[tuple[int, float]] = deque(maxlen=steady.window)
        self._breaches = 0
        self._opening = 0.0
        """Mean of the run's first window."""
        self._opening_at = steady.window if steady.climb else 0
        """Points after which that is known, 0 where it is not needed."""
        self._again = 0
        """Number of points at which mean and trend are computed again."""
        self._breached = False
        self._since: tuple[int, float] = (0, 0.0)
        """First point of the breach; one that comes back soon is the same."""
        self._worst: tuple[int, float] = (0, 0.0)
        self._sum = 0.0
        self._spanned = 0
        self._hits = 0
        """Points since then, their sum, and those of them in breach."""

    def feed(self, steps: Sequence[int], values: Sequence[float]) -> None:
        """Take in points."""
        for start in range(0, len(values), _STRETCH):
            some = values[start : start + _STRETCH]
            points = steps[start : start + _STRETCH]
            if self._calm(some):
                self.seen += len(some)
                self._spanned += len(some)
                self._sum += math.fsum(some)
                self._ring.extend(zip(points, some, strict=True))
                continue
            for step, value in zip(points, some, strict=True):
                self._take(step, value)

    def _calm(self, values: Sequence[float]) -> bool:
        """Return whether nothing was in breach: a long healthy history costs next to nothing."""
        if self._breaches or self._breached or self.seen < self._steady.window:
            return False
        breached = self._range.breached
        return not breached(max(values)) and not breached(min(values))

    def _take(self, step: int, value: float) -> None:
        ring = self._ring
        breached = self._range.breached
        if len(ring) == ring.maxlen and breached(ring[0][1]):
            self._breaches -= 1
        ring.append((step, value))
        if breached(value):
            self._note_breach(step, value)
        self._spanned += 1
        self._sum += value
        self.seen += 1
        if self.seen == self._opening_at:
            self._opening = fmean(value for _, value in ring)
        if self._breached:
            self._follow(step)
        elif (
            self._breaches >= self._most
            and len(ring) == ring.maxlen
            and self.seen >= self._again
        ):
            self._consider()

    def _note_breach(self, step: int, value: float) -> None:
        self._breaches += 1
        self._hits += 1
        if self._range.excess(value) > self._range.excess(self._worst[1]):
            self._worst = (step, value)

    def _follow(self, step: int) -> None:
        over = self._steady.trend == "rising" and self._trend() < _STILL_RISING_T
        # A window whose mean is back inside would contradict the message.
        if self._breaches <= self._fewest or over or self._is_mean_back():
            self._breached = False
            self._end(step)

    def _is_mean_back(self) -> bool:
        all_out = self._breaches == len(self._ring) and self._range.is_one_sided
        return not all_out and not self._range.breached(self._mean())

    def _mean(self) -> float:
        return fmean([value for _, value in self._ring])

    def _consider(self) -> None:
        mean = self._mean()
        if not self._range.breached(mean) or not self._goes_the_way(mean):
            # A condition that does not hold now will hardly hold at the very next point, and
            # looking again costs the whole window.
            self._again = self.seen + max(1, self._steady.window // 5)
            return
        points = list(self._ring)
        breached = self._range.breached
        first = next(i for i, (_, value) in enumerate(points) if breached(value))
        stretch = points[first:]
        self._breached = True
        known = self._newest_breach()
        what = f"was {self._range.words}, mean {number(mean)}"
        self._begin(stretch[0][0], self._ring[-1][0], what)
        if self._newest_breach() != known:
            self._count_from(stretch)

    def _newest_breach(self) -> tuple[int, int]:
        """Return how many breaches there are, and since when the newest one is."""
        known = self.breaches.all
        return len(known), known[-1].since if known else 0

    def _count_from(self, stretch: list[tuple[int, float]]) -> None:
        self._since = stretch[0]
        self._worst = max(stretch, key=lambda point: self._range.excess(point[1]))
        self._sum = math.fsum(value for _, value in stretch)
        self._spanned = len(stretch)
        self._hits = sum(self._range.breached(value) for _, value in stretch)

    def _goes_the_way(self, mean: float) -> bool:
        if self._steady.climb and not mean >= self._steady.climb * self._opening:
            return False
        if self._steady.trend == "rising":
            line = trend([value for _, value in self._ring])
            return line.t >= _RISING_T and line.change >= _RISING_SHARE * abs(mean)
        return self._steady.trend != "not rising" or self._trend() < _NOT_RISING_T

    def _trend(self) -> float:
        return trend([value for _, value in self._ring]).t

    def report(self, words: Wording) -> DescribedBreach | None:
        """Return the breach that holds now in words, None without one."""
        if not self._breached:
            return None
        step, last = self._ring[-1]
        where = self._range.words + (f" ({words.note})" if words.note else "")
        rising = " and is still rising" if self._steady.trend == "rising" else ""
        mean = self._sum / self._spanned
        since = self._first()
        if words.says and self._hits < self._spanned:
            message = (
                f"{words.says} at {self._hits:,} of {self._spanned:,} points "
                f"since step {since}"
            )
        elif words.says:
            message = f"{words.says} for {words.duration(step - since + 1)}"
        else:
            stayed = "stayed" if self._hits == self._spanned else "mostly stayed"
            duration = words.duration(step - since + 1)
            message = f"{words.title} has {stayed} {where} for {duration}{rising}"
            message += f": mean {number(mean)}, last {number(last)}"
        return DescribedBreach(message, since, self._evidence())

    def _evidence(self) -> tuple[str, ...]:
        first, opening = self._since
        step, last = self._ring[-1]
        worst, extreme = self._worst
        count = len(self._ring)
        share = f"{self._breaches} of the last {count} points are {self._range.words}"
        if count > 1:
            share += f", their mean {number(self._mean())}"
        points = f"{number(opening)} at step {first}, furthest {number(extreme)} at step {worst}"
        return (share, f"{points}, newest {number(last)} at step {step}")

    def _detach(self) -> None:
        self._ring = self._ring.copy()


class Noisy(Condition):
    """The spread of one metric between steps stays above a share of its mean, where the log has no
    spread of its own.

    The spread is taken from differences of neighbours, so that a metric that rises steadily is not
    called noisy.
    """

    def __init__(self, threshold: float, steady: Steadiness) -> None:
        super().__init__()
        self._values: deque[float] = deque(maxlen=steady.window + 1)
        self._stays = Stays(Range(high=threshold), steady)
        self.needs = 2 * steady.window
        self.breaches = self._stays.breaches

    def feed(self, steps: Sequence[int], values: Sequence[float]) -> None:
        """Take in points."""
        for step, value in zip(steps, values, strict=True):
            self.seen += 1
            self._values.append(value)
            if len(self._values) == self._values.maxlen:
                self._derive(step)

    def _derive(self, step: int) -> None:
        values = list(self._values)
        mean = fmean(values)
        if mean <= 0:
            return
        squares = fmean((b - a) ** 2 for a, b in pairwise(values))
        self._stays.feed((step,), (math.sqrt(squares / 2) / mean,))

    def report(self, words: Wording) -> DescribedBreach | None:
        """Return the breach that holds now in words, None without one."""
        return self._stays.report(words)

    def _detach(self) -> None:
        self._values = self._values.copy()
        self._stays = self._stays.clone()
        self.breaches = self._stays.breaches
