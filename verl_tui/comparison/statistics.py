"""Statistics of a few numbers: intervals, and how informative a run's values are.

Everything here is textbook material, and tests hold it against SciPy.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.means import clamp, mean

if TYPE_CHECKING:
    from collections.abc import Sequence

LEVEL = 0.95
"""Level of all intervals."""
_LEAST_VALUES = 5
"""Number of a run's values below which the correlation of neighbours cannot be estimated."""
_NODES = 64
"""Points at which the density of Student's t is looked at."""


class Interval(NamedTuple):
    """An estimate between two bounds."""

    estimate: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """True if zero lies outside."""
        return self.low > 0 or self.high < 0


class Spread(NamedTuple):
    """A mean with the uncertainty of it."""

    mean: float
    error: float
    """Standard error of the mean."""
    freedom: float
    """Degrees of freedom of the error."""


# -- spreads ---------------------------------------------------------------------------------------


def deviation(values: Sequence[float]) -> float | None:
    """Return the standard deviation (of a sample: n - 1), None below two values."""
    if len(values) < 2:
        return None
    centre = mean(values)
    apart = [value - centre for value in values]
    largest = max(map(abs, apart))
    if not largest or not math.isfinite(largest):
        return largest
    squares = math.fsum((difference / largest) ** 2 for difference in apart)
    return largest * math.sqrt(squares / (len(values) - 1))


def of_seeds(values: Sequence[float]) -> Spread | None:
    """Return the mean of independent values, such as those of several seeds; None below two."""
    count = len(values)
    spread = deviation(values)
    if spread is None:
        return None
    return Spread(mean(values), spread / math.sqrt(count), count - 1)


def of_one_run(values: Sequence[float]) -> Spread | None:
    """Return the mean of consecutive values of one run; None below five.

    Neighbours resemble each other, so that n values are worth only n (1 - r) / (1 + r) independent
    ones, with r the correlation of each with the next (Bartlett, Journal of the Royal Statistical
    Society 98, 1935), which short series make look too small by (1 + 3 r) / n (Kendall, Biometrika
    41, 1954).
    """
    count = len(values)
    spread = deviation(values)
    if spread is None or count < _LEAST_VALUES:
        return None
    centre = mean(values)
    if not spread or not math.isfinite(spread):
        return Spread(centre, spread, count - 1)
    scaled = [(value - centre) / spread for value in values]
    products = math.fsum(a * b for a, b in pairwise(scaled))
    squares = math.fsum(value * value for value in scaled)
    alike = products / squares
    alike += (1 + 3 * alike) / count
    alike = clamp(alike, 0.0, 1.0)
    effective = max(2.0, count * (1 - alike) / (1 + alike))
    return Spread(centre, spread / math.sqrt(effective), effective - 1)


def jitter(values: Sequence[float]) -> float | None:
    """Return the standard deviation of consecutive values apart from any trend, None below five: by
    their successive differences (von Neumann, Annals of Mathematical Statistics 12, 1941).
    """
    if len(values) < _LEAST_VALUES:
        return None
    steps = [b - a for a, b in pairwise(values)]
    return math.hypot(*steps) / math.sqrt(2 * len(steps))


def interval(one: Spread, other: Spread, level: float = LEVEL) -> Interval:
    """Return Welch's interval of how much `other` exceeds `one`: their variances may differ."""
    difference = other.mean - one.mean
    error = math.hypot(one.error, other.error)
    if not error or not math.isfinite(error):
        return Interval(difference, difference - error, difference + error)
    # By shares of the variance, so that nothing small is lost.
    first = (one.error / error) ** 2
    second = (other.error / error) ** 2
    freedom = 1 / (first**2 / one.freedom + second**2 / other.freedom)
    reach = t_quantile((1 + level) / 2, freedom) * error
    return Interval(difference, difference - reach, difference + reach)


# -- Student's t -----------------------------------------------------------------------------------


@lru_cache(1024)
def t_quantile(level: float, freedom: float) -> float:
    """Return the value that Student's t stays below with a probability from 0.5 to 1.

    With t = sqrt(freedom) tan(x), the density is proportional to cos(x) ** (freedom - 1).
    """
    import numpy as np

    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    whole = math.lgamma(freedom / 2) - math.lgamma((freedom + 1) / 2)
    wanted = (level - 0.5) * math.exp(whole) * math.sqrt(math.pi)

    def area(end: float) -> float:
        powers = np.cos((nodes + 1) * end / 2) ** (freedom - 1)
        return float(weights @ powers) * end / 2

    low = 0.0
    high = math.pi / 2
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if area(middle) < wanted else (low, middle)
    return math.sqrt(freedom) * math.tan(low)
