"""Distributions of lists of numbers and of histograms, as quantiles that a chart shows over steps,
and as bins.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate, pairwise
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from verl_tui.means import clamp, mean

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Floats: TypeAlias = "Sequence[float]"
"""Values of a metric, bounds of bins, counts."""
QUANTILES = {"p05": 0.05, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p95": 0.95}
"""Suffixes of a metric's name, after a `/`."""
_MEDIAN = "/p50"
BINS = 30
"""Bins that a histogram is kept in, of equal width: as many as TensorBoard shows
(`tf_histogram_dashboard`).
"""
MOST_VALUES = 1_000_000
"""Most values of a list that are read: batches have thousands."""
MOST_BINS = 65_536
"""Most bins of a histogram that are read: W&B writes 512 at most, TensorBoard some 1,500."""

_SINGLE, _ROUNDING = 1e-6, 1e-9
"""Rounding errors: of a value in single precision, as a share of it; of a division, in bins."""
_MOST_COUNTED = 1e30
"""Largest plausible count: the most that numbers of four bytes hold."""


class Bins(NamedTuple):
    """A histogram of `BINS` bins of equal width."""

    low: float
    """Where they begin."""
    high: float
    """Where they end."""
    counts: Floats
    """Count in each; all in the first bin if all values are equal."""


class Distribution(NamedTuple):
    """Figures of the distribution of many values."""

    figures: Mapping[str, float]
    """Its quantiles by the names of `QUANTILES`; `min`, `max` and `mean` where they are known
    exactly.
    """
    bins: Bins


class DistributionKeys(NamedTuple):
    """The metrics of one distribution, by their keys."""

    stem: str
    """Common beginning of their keys: the key of its histograms."""
    line: str
    """Key to draw over the steps: the metric itself, else the mean, else the median."""
    quantiles: tuple[str, ...]
    """In the order of `QUANTILES`."""
    parts: frozenset[str]
    """All of them: they are one thing."""


OF_NONE = DistributionKeys("", "", (), frozenset())
"""Of a metric that is of no distribution."""


def spreads(keys: Collection[str]) -> dict[str, DistributionKeys]:
    """Return the distributions among metrics, by the common beginning of their keys: those that
    have all the quantiles.
    """
    medians = [key for key in keys if key.endswith(_MEDIAN)]
    known = set(keys) if medians else set()
    found = {}
    for key in medians:
        stem = key.removesuffix(_MEDIAN)
        quantiles = tuple(f"{stem}/{name}" for name in QUANTILES)
        if known.issuperset(quantiles):
            names = (stem, f"{stem}/mean", key)
            line = next(name for name in names if name in known)
            all_parts = (*names, *quantiles, f"{stem}/min", f"{stem}/max")
            parts = frozenset(known.intersection(all_parts))
            found[stem] = DistributionKeys(stem, line, quantiles, parts)
    return found


def one_each(keys: Collection[str]) -> list[str]:
    """Return metrics in their order; of each distribution only the metric that is drawn as a
    line.
    """
    passed: set[str] = set()
    for spread in spreads(keys).values():
        passed |= spread.parts - {spread.line}
    return [key for key in keys if key not in passed]


def of_values(values: Floats) -> Distribution | None:
    """Return the distribution of values that are all finite, None if there are none.

    Raises:
        ValueError: They are too many; the message says so, for people.
    """
    import numpy as np

    if len(values) > MOST_VALUES:
        raise ValueError(f"a list of {len(values):,} numbers")
    if not values:
        return None
    ranked = np.sort(np.array(values, np.float64))
    low, high = ranked[[0, -1]].tolist()
    figures = {"mean": clamp(mean(values), low, high), "min": low}
    places = np.array(list(QUANTILES.values())) * (len(ranked) - 1)
    below = ranked[places.astype(int)]
    above = ranked[np.minimum(places.astype(int) + 1, len(ranked) - 1)]
    part = places % 1
    between = np.where(below == above, below, below * (1 - part) + above * part)
    figures.update(zip(QUANTILES, between.tolist(), strict=True))
    counts = np.bincount(_bins(ranked, low, high), minlength=BINS).astype(float)
    return Distribution({**figures, "max": high}, Bins(low, high, counts.tolist()))


def of_bins(
    edges: Floats, counts: Floats, *, ends: bool = False
) -> Distribution | None:
    """Return the distribution that a histogram describes, None for an empty one.

    Args:
        edges: Bounds of the bins, ascending: one more than there are bins.
        counts: How much lies in each bin.
        ends: Whether the outermost bounds are the least and the greatest value.

    Raises:
        ValueError: It is no histogram; the message says why, for people.
    """
    import numpy as np

    _check(edges, counts)
    filled = [at for at, count in enumerate(counts) if count > 0]
    if not filled:
        return None
    edges = edges[filled[0] : filled[-1] + 2]
    counts = counts[filled[0] : filled[-1] + 1]
    low, high = edges[0], edges[-1]
    if not isfinite(high - low):
        raise ValueError("a histogram too wide for numbers")
    figures = quantiles(edges, counts)
    if ends:
        figures = {"min": low, **figures, "max": high}
    # What lies in a bin is spread over those of equal width; what has no width is all in one.
    bounds, amounts = np.array(edges, np.float64), np.array(counts, np.float64)
    is_wide = bounds[1:] > bounds[:-1]
    below = np.cumsum([0.0, *np.where(is_wide, amounts, 0.0)])
    limits = np.append(low + (high / BINS - low / BINS) * np.arange(BINS), high)
    found = np.diff(np.interp(limits, bounds, below))
    np.add.at(found, _bins(bounds[:-1][~is_wide], low, high), amounts[~is_wide])
    return Distribution(figures, Bins(low, high, found.tolist()))


def of_limits(
    low: float, high: float, limits: Floats, counts: Floats
) -> Distribution | None:
    """Return the distribution of a histogram whose bins have upper limits only, the outermost ones
    far outside.

    As TensorBoard does, empty bins at both ends are left out, the first bin left begins at the
    least value and the last one ends at the greatest.

    Raises:
        ValueError: It is no histogram; the message says why, for people.
    """
    if len(limits) != len(counts):
        raise ValueError(
            f"a histogram of {len(limits)} limits and {len(counts)} counts"
        )
    filled = [at for at, count in enumerate(counts) if count > 0]
    if not filled:
        return None
    first = filled[0]
    last = filled[-1]
    edges = [low, *limits[first:last], high]
    return of_bins(edges, counts[first : last + 1], ends=True)


def quantiles(edges: Floats, counts: Floats) -> dict[str, float]:
    """Return the quantiles of a histogram, taking what lies in a bin as spread evenly; none of an
    empty one.

    Args:
        edges: Bounds of the bins, ascending: one more than there are bins.
        counts: How much lies in each bin.
    """
    import numpy as np

    bounds, amounts = np.array(edges, np.float64), np.array(counts, np.float64)
    below = np.append(0.0, np.cumsum(amounts))
    if len(bounds) != len(below) or not below[-1] > 0 or amounts.min() < 0:
        return {}
    wanted = np.array([*QUANTILES.values()]) * below[-1]
    at = np.searchsorted(below[1:-1], wanted)
    part = (wanted - below[at]) / amounts[at]
    found = bounds[at] + part * (bounds[at + 1] - bounds[at])
    return dict(zip(QUANTILES, found.tolist(), strict=True))


def shares(bins: Bins, limits: Floats) -> list[float]:
    """Return which share of a histogram lies below the first of ascending limits, between each and
    the next, and from the last on. A bin in which a limit lies counts above it: scores are round
    numbers, as limits are.
    """
    below = [0.0, *accumulate(bins.counts)]
    ends = [0, *(_bins_below(bins, limit) for limit in limits), len(bins.counts)]
    whole = below[-1] or 1.0
    return [(below[last] - below[first]) / whole for first, last in pairwise(ends)]


def _bins_below(bins: Bins, limit: float) -> int:
    """Return how many bins lie below a limit, but for the rounding of single precision."""
    limit -= abs(limit) * _SINGLE
    count = len(bins.counts)
    if limit <= bins.low or limit > bins.high:
        return count * (limit > bins.high)
    each = bins.high / count - bins.low / count
    return min(count - 1, int((limit - bins.low) / each + _ROUNDING))


def _check(edges: Floats, counts: Floats) -> None:
    if len(edges) != len(counts) + 1:
        raise ValueError(
            f"a histogram of {len(counts):,} counts and {len(edges):,} bounds"
        )
    if len(counts) > MOST_BINS:
        raise ValueError(f"a histogram of {len(counts):,} bins")
    descends = any(one > other for one, other in pairwise(edges))
    if descends or not all(map(isfinite, edges)):
        raise ValueError("a histogram whose bounds do not ascend")
    if not sum(counts) < _MOST_COUNTED or min(counts, default=0) < 0:
        raise ValueError("a histogram with a count below 0 or beyond all numbers")


def _bins(values: NDArray[np.float64], low: float, high: float) -> NDArray[np.int64]:
    """Return the bins of equal width that values lie in, the first where they have no width."""
    import numpy as np

    width = high / BINS - low / BINS
    if not (width > 0 and isfinite(high - low)):
        return np.zeros(len(values), np.int64)
    return np.clip((values - low) / width + _ROUNDING, 0, BINS - 1).astype(np.int64)
