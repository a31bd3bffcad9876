"""How much to smooth a curve: as much as its noise requires, and no more than its length allows.

This is a heuristic: the noise is the median difference between neighbouring values, which neither a
trend nor a few spikes change much; it is compared with the differences between the averages of
blocks, the trend.
"""

from __future__ import annotations

from itertools import pairwise
from math import isfinite
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

WEIGHTS = (0.6, 0.9, 0.97)
"""Weights of the past to choose from; they average over 4, 19 and 66 values: (1 + w) / (1 - w)."""
_NOISE = (0.04, 0.1, 0.5)
"""Noise, as a share of the trend, from which on each is chosen. Below the first it is hardly two of
the forty dots that a chart is high.
"""
_PARTS = 6
"""A series is at least so many times as long as what is averaged over: else the trend goes, too."""
_BLOCKS = 16
_FEWEST = 32
ENOUGH = 4096
"""Most values that are looked at, the last ones."""


def weight_for(values: Sequence[float]) -> float:
    """Return the weight of the past that a curve is smoothed with, 0 where it is clean or short."""
    # Parts: sums and differences of the largest numbers would overflow.
    known = [value / ENOUGH for value in values[-ENOUGH:] if isfinite(value)]
    if len(known) < _FEWEST:
        return 0.0
    noise = median(abs(b - a) for a, b in pairwise(known))
    size = -(-len(known) // _BLOCKS)
    blocks = [known[i : i + size] for i in range(0, len(known), size)]
    means = [sum(block) / len(block) for block in blocks]
    trend = max(means) - min(means)
    weight = 0.0
    for choice, share in zip(WEIGHTS, _NOISE, strict=True):
        bears = (1 + choice) / (1 - choice) * _PARTS <= len(known)
        if noise > trend * share and bears:
            weight = choice
    return weight
