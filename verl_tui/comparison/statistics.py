"""Statistics of a few numbers: intervals, rank correlation, and how informative a run's values
are.

Everything here is textbook material, and tests hold it against SciPy; at run time neither SciPy nor
NumPy is needed.
"""

from __future__ import annotations

import math
import random
from functools import lru_cache
from itertools import pairwise, permutations
from operator import mul
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.bounds import clamp
from verl_tui.means import mean

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
_EXACT = 30
"""Most values for which the distribution is computed exactly."""
_TINY = 1e-300
_CLOSE = 1e-15
_MOST_TERMS = 10_000
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


def incomplete_beta(a: float, b: float, x: float) -> float:
    """Return the regularised incomplete beta function for a, b > 0 and x from 0 to 1."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    # where the fraction converges slowly its mirror image is quick
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(b, a, 1 - x)
    logs = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(logs + a * math.log(x) + b * math.log1p(-x)) / a
    return front * _fraction(a, b, x)


def _fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta function, by Lentz's method."""
    c = 1.0
    d = 1 / _not_zero(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _MOST_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            c = _not_zero(1 + term / c)
            d = 1 / _not_zero(1 + term * d)
            value *= c * d
        if abs(c * d - 1) < _CLOSE:
            break
    return value


def _not_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def t_tail(t: float, freedom: float) -> float:
    """Return the probability that Student's t exceeds a value of 0 or more."""
    return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t)) / 2


@lru_cache(1024)
def t_quantile(level: float, freedom: float) -> float:
    """Return the value that Student's t stays below with a probability from 0.5 to 1."""
    tail = 1 - level
    low = 0.0
    high = 1.0
    while t_tail(high, freedom) > tail:
        low = high
        high = 2 * high
    while high - low > 4 * math.ulp(high):
        middle = (low + high) / 2
        if t_tail(middle, freedom) > tail:
            low = middle
        else:
            high = middle
    return (low + high) / 2


# -- ranks -----------------------------------------------------------------------------------------


def ranks(values: Sequence[float]) -> tuple[int, ...]:
    """Return twice the rank of each value, from 2 on, so that mean ranks of equal ones are whole
    numbers.
    """
    order = sorted(range(len(values)), key=values.__getitem__)
    found = [0] * len(values)
    start = 0
    while start < len(order):
        stop = start + 1
        while stop < len(order) and values[order[stop]] == values[order[start]]:
            stop += 1
        for at in order[start:stop]:
            found[at] = start + stop + 1
        start = stop
    return tuple(found)


def rank_correlation(xs: tuple[int, ...], ys: tuple[int, ...]) -> float | None:
    """Return Spearman's correlation, from -1 to 1, of two rows of ranks; None where one is all the
    same.
    """
    x_sum, x_variance = _moments(xs)
    y_sum, y_variance = _moments(ys)
    if not x_variance or not y_variance:
        return None
    covariance = len(xs) * _product(xs, ys) - x_sum * y_sum
    return clamp(covariance / math.sqrt(x_variance * y_variance), -1.0, 1.0)


@lru_cache(2048)
def _moments(ranks: tuple[int, ...]) -> tuple[int, int]:
    """Return the sum of ranks, and n squared times their variance."""
    total = sum(ranks)
    return total, len(ranks) * _product(ranks, ranks) - total**2


def _product(xs: Sequence[int], ys: Sequence[int]) -> int:
    products: Iterable[int] = map(mul, xs, ys)  # a third of the time of a comprehension
    return sum(products)


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
    if count > _EXACT or len(set(xs)) == len(set(ys)) == count:
        return True
    return _reached_by_chance(xs, ys) <= RARE


def _reached_by_chance(xs: Sequence[int], ys: Sequence[int]) -> float:
    """Return the share of orders in which the correlation is as strong: all orders of few ranks, a
    fixed sample of the orders of many.
    """
    count = len(xs)
    product = sum(xs) * sum(ys)

    def strength(order: Sequence[int]) -> int:
        return abs(count * _product(xs, order) - product)

    if count <= _FEW:
        orders: list[Sequence[int]] = list(permutations(ys))
    else:
        chosen = random.Random(0)  # noqa: S311 - the same orders each time, nothing secret
        orders = [ys, *(chosen.sample(ys, count) for _ in range(_ORDERS))]
    known = strength(ys)
    return sum(strength(order) >= known for order in orders) / len(orders)


def by_chance(ones: int, others: int, coefficient: float) -> float:
    """Return how often chance alone reaches a rank-biserial correlation of two groups, two-sided:
    exactly for few values, by the normal distribution for many (Mann and Whitney, Annals of
    Mathematical Statistics 18, 1947).
    """
    count = ones + others
    if count > _EXACT:
        z = abs(coefficient) * math.sqrt(3 * ones * others / (count + 1))
        return math.erfc(z / math.sqrt(2))
    # the smaller of the two counts of pairs
    least = (1 - abs(coefficient)) / 2 * ones * others
    ways = _ways(ones, others)
    most = math.floor(least + 1e-9)
    reached = sum(ways[: most + 1])
    return min(1.0, 2 * reached / sum(ways))


@lru_cache(1024)
def _ways(ones: int, others: int) -> tuple[int, ...]:
    """Return in how many orders of two groups 0, 1, 2 … pairs have the first one above."""
    if not ones or not others:
        return (1,)
    # The greatest value is one of the first, above all others, or one of the second.
    above = _ways(ones - 1, others)
    below = _ways(ones, others - 1)
    found = [0] * (ones * others + 1)
    for pairs, number in enumerate(above):
        found[pairs + others] += number
    for pairs, number in enumerate(below):
        found[pairs] += number
    return tuple(found)
