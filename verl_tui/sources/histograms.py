"""Quantiles of histograms, which is what a chart over steps can show of them."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

QUANTILES = {"p05": 0.05, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p95": 0.95}
"""What a metric's name is followed by, after a `/`."""


def quantiles(edges: Sequence[float], counts: Sequence[float]) -> dict[str, float]:
    """Return the quantiles of a histogram, taking what lies in a bin as spread evenly; none of an empty one.

    Args:
        edges: Bounds of the bins, ascending: one more than there are bins.
        counts: How much lies in each bin.
    """
    bins = len(counts)
    if len(edges) != bins + 1 or any(count < 0 for count in counts):
        return {}
    below = [0, *accumulate(counts)]
    if not below[-1] > 0:
        return {}
    found = {}
    at = 0
    for name, share in QUANTILES.items():
        wanted = share * below[-1]
        while at < bins - 1 and below[at + 1] < wanted:
            at += 1
        part = (wanted - below[at]) / counts[at] if counts[at] else 0.0
        found[name] = edges[at] + part * (edges[at + 1] - edges[at])
    return found
