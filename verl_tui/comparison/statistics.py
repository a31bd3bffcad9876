"""Statistics of a few numbers: intervals, rank correlation, and how informative a run's values
are.

Everything here is textbook material, and tests hold it against SciPy.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_left, bisect_right
from functools import lru_cache
from itertools import pairwise, permutations
from operator import mul
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.means import clamp, mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

LEVEL = 0.95
"""Level of all intervals."""
_LEAST_VALUES = 5
"""Number of a run's values below which the correlation of neighbours cannot be estimated."""
RARE = 0.05
"""How often chance alone may produce something that is called beyond chance."""
_PRINTED = 5e-4
"""Rounding of the printed table."""
_FEW = 7
"""Most ranks for which all orders are tried."""
_ORDERS = 999
"""Number of orders tried for more."""
_TRIED = 30
"""Most pairs for which orders are tried."""
_NODES = 64
"""Points at which the density of Student's t is looked at."""
_CRITICAL: dict[int, float] = {
    5: 1.0,
    6: 0.886,
    7: 0.786,
    8: 0.738,
    9: 0.700,
    10: 0.648,
}
"""Number of pairs -> rank correlation that chance alone reaches in one case of twenty, two-sided.

Exact, from all orders of so many ranks (Ramsey, Journal of Educational Statistics 14, 1989, gives
the same table).
"""


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


# -- ranks -----------------------------------------------------------------------------------------


def ranks(values: Sequence[float]) -> tuple[int, ...]:
    """Return twice the rank of each value, from 2 on, so that mean ranks of equal ones are whole
    numbers.
    """
    ordered = sorted(values)
    return tuple(
        bisect_left(ordered, value) + bisect_right(ordered, value) + 1
        for value in values
    )


def rank_correlation(xs: Sequence[int], ys: Sequence[int]) -> float | None:
    """Return Spearman's correlation, from -1 to 1, of two rows of ranks; None where one is all the
    same.
    """
    squares = _covariance(xs, xs) * _covariance(ys, ys)
    if not squares:
        return None
    return clamp(_covariance(xs, ys) / math.sqrt(squares), -1.0, 1.0)


def _covariance(xs: Sequence[int], ys: Sequence[int]) -> int:
    """Return n squared times the covariance."""
    products: Iterable[int] = map(mul, xs, ys)
    return len(xs) * sum(products) - sum(xs) * sum(ys)


def rank_biserial(ones: Sequence[float], others: Sequence[float]) -> float:
    """Return how much more often `others` exceed `ones` than the reverse, from -1 to 1, of all
    pairs.
    """
    above = sum((other > one) - (other < one) for one in ones for other in others)
    return above / (len(ones) * len(others))


def chance(count: int) -> float:
    """Return the rank correlation of so many pairs (5 at least) that chance alone reaches in one
    case of twenty, two-sided.
    """
    if count in _CRITICAL:
        return _CRITICAL[count]
    t = t_quantile(0.975, count - 2)
    return t / math.sqrt(count - 2 + t * t)


def beyond_chance(xs: tuple[int, ...], ys: tuple[int, ...]) -> bool:
    """Return whether chance alone reaches the correlation of two rows of ranks in fewer than one
    case of twenty, equal ranks considered: two values of each side are soon in order.
    """
    found = rank_correlation(xs, ys)
    count = len(xs)
    if found is None or abs(found) < chance(count) - _PRINTED:
        return False
    if count > _TRIED or len(set(xs)) == len(set(ys)) == count:
        return True
    # All orders of few ranks, a fixed sample of the orders of many.
    orders: list[Sequence[int]] = list(permutations(ys)) if count <= _FEW else [ys]
    if count > _FEW:
        chosen = random.Random(0)  # noqa: S311 - the same orders each time, nothing secret
        orders += [chosen.sample(ys, count) for _ in range(_ORDERS)]
    known = abs(_covariance(xs, ys))
    reached = sum(abs(_covariance(xs, order)) >= known for order in orders)
    return reached <= RARE * len(orders)
