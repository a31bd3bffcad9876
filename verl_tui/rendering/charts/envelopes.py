"""Whether what is shaded behind a curve says anything beside it."""

from __future__ import annotations

from statistics import median_low
from typing import TYPE_CHECKING

from verl_tui.rendering.charts.downsample import sampled
from verl_tui.rendering.charts.ranges import values_between

if TYPE_CHECKING:
    from collections.abc import Iterable

    from verl_tui.rendering.charts.chart_data import ChartData, Points

_ALIKE = 0.9
"""Share of its points from which on an edge of the envelope that has one value says nothing. A
heuristic: scores of 0 and 1 have a 0 and a 1 in nearly every batch, while spreads that mean
something differ from step to step.
"""
_LEAST_SHARE = 0.25
"""Share of the height below which a curve says too little: a heuristic."""
_FEW = 3
"""Values of a quantile, and half of those of all, up to which they tell nothing that the mean does
not: where scores are 0 or 1 they jump between these and what lies between two values. A heuristic.
"""


def are_uniform(edges: Iterable[Points], first: int, last: int) -> bool:
    """Return whether each series has one value at nearly all points between two steps; of a single
    point it is not known.
    """
    return all(_is_uniform(points, first, last) for points in edges)


def _is_uniform(points: Points, first: int, last: int) -> bool:
    known = sampled(points, first, last)
    if len(known) < 2:
        return False
    most_common = median_low(known)  # what most have stands in the middle
    return known.count(most_common) >= len(known) * _ALIKE


def have_few_values(quantiles: Iterable[Points], first: int, last: int) -> bool:
    """Return whether quantiles have so few values between two steps that they jump between these,
    as those of scores of 0 and 1.
    """
    values = [set(sampled(points, first, last)) for points in quantiles]
    all_values = set[float]().union(*values)
    return max(map(len, values)) <= _FEW and len(all_values) <= 2 * _FEW


def presses_flat(data: ChartData, first: int, last: int) -> bool:
    """Return whether the curve would take little of the height beside its envelope."""
    whole = values_between(data, first, last)
    curve = values_between(data._replace(envelope=None), first, last)
    if data.log_y or whole is None or curve is None:
        return False
    # halves: the difference of two may be too large
    height = curve[1] / 2 - curve[0] / 2
    return 0 < height < _LEAST_SHARE * (whole[1] / 2 - whole[0] / 2)
