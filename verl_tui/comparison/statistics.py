"""Statistics of a few numbers: intervals, and how informative a run's values are.

Everything here is textbook material, and tests compare it with figures of SciPy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from verl_tui.means import clamp, mean

_LEVEL = 0.975
"""Share of Student's t below the upper end of an interval: all are of 95%."""
_LEAST_VALUES = 5
"""Number of a run's values below which the correlation of neighbours cannot be estimated."""
_NODES = 64
"""Points at which the density of Student's t is looked at."""


class Spread(NamedTuple):
    """A mean with its uncertainty."""

    mean: float
    error: float
    """Standard error of the mean."""
    freedom: float
    """Degrees of freedom of the error."""

    @property
    def reach(self) -> float:
        """How far the interval goes to either side of the mean."""
        return t_quantile(_LEVEL, self.freedom) * self.error


def deviation(values: Sequence[float]) -> float | None:
    """Return the standard deviation (of a sample: n - 1), None below two values."""
    import numpy as np

    if len(values) < 2:
        return None
    size = max(map(abs, values)) or 1.0  # squares of large numbers are not finite
    scaled = np.array(values) / size
    return float(np.std(scaled - scaled[0], ddof=1)) * size


def of_seeds(values: Sequence[float]) -> Spread | None:
    """Return the mean of independent values, such as those of several seeds; None below two."""
    spread = deviation(values)
    if spread is None:
        return None
    return Spread(mean(values), spread / math.sqrt(len(values)), len(values) - 1)


def of_one_run(values: Sequence[float]) -> Spread | None:
    """Return the mean of consecutive values of one run; None below five.

    Neighbours resemble each other, so that n values are worth only n (1 - r) / (1 + r) independent
    ones, with r the correlation of each with the next (Bartlett, Journal of the Royal Statistical
    Society 98, 1935), which short series make look too small by (1 + 3 r) / n (Kendall, Biometrika
    41, 1954).
    """
    import numpy as np

    count, centre, spread = len(values), mean(values), deviation(values)
    if spread is None or count < _LEAST_VALUES:
        return None
    if not spread or not math.isfinite(spread):
        return Spread(centre, spread, count - 1)
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = (np.array(values) - centre) / spread
        alike = float(scaled[1:] @ scaled[:-1] / (scaled @ scaled))
    alike = clamp(alike + (1 + 3 * alike) / count, 0.0, 1.0)
    effective = max(2.0, count * (1 - alike) / (1 + alike))
    return Spread(centre, spread / math.sqrt(effective), effective - 1)


def combined(*weighted: tuple[float, Spread]) -> Spread:
    """Return a sum of independent means, each times its weight (Welch, Biometrika 34, 1947)."""
    centre = sum(weight * one.mean for weight, one in weighted)
    error = math.hypot(*(weight * one.error for weight, one in weighted))
    if not error or not math.isfinite(error):
        return Spread(centre, error, sum(one.freedom for _, one in weighted))
    # by shares of the variance, so that nothing small is lost
    shares = sum(
        (weight * one.error / error) ** 4 / one.freedom for weight, one in weighted
    )
    return Spread(centre, error, 1 / shares)


@lru_cache(1024)
def t_quantile(level: float, freedom: float) -> float:
    """Return the value that Student's t stays below with a probability from 0.5 to 1.

    With t = sqrt(freedom) tan(x), the density is proportional to cos(x) ** (freedom - 1).
    """
    import numpy as np

    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    whole = math.lgamma(freedom / 2) - math.lgamma((freedom + 1) / 2)
    wanted = (level - 0.5) * math.exp(whole) * math.sqrt(math.pi)
    low, high = 0.0, math.pi / 2
    while (middle := (low + high) / 2) not in (low, high):
        powers = np.cos((nodes + 1) * middle / 2) ** (freedom - 1)
        below = weights @ powers * middle / 2 < wanted
        low, high = (middle, high) if below else (low, middle)
    return math.sqrt(freedom) * math.tan(low)
