"""Lists and histograms as quantiles and as bins of equal width."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verl_tui.distributions import (
    BINS,
    MOST_BINS,
    QUANTILES,
    DistributionKeys,
    of_bins,
    of_values,
    one_each,
    spreads,
)

NUMBERS = st.floats(-1e300, 1e300, allow_nan=False)


@given(st.lists(NUMBERS, min_size=1, max_size=200))
def test_values_in_quantiles_and_bins(values):
    found = of_values(values)
    ranked = [found.figures[name] for name in ("min", *QUANTILES, "max")]
    assert ranked == sorted(ranked)
    assert ranked[0] == found.bins.low == min(values)
    assert ranked[-1] == found.bins.high == max(values)
    assert min(values) <= found.figures["mean"] <= max(values)
    assert len(found.bins.counts) == BINS
    assert sum(found.bins.counts) == len(values)


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=50, unique=True).map(sorted),
    st.lists(st.floats(0, 1e6), min_size=49, max_size=49),
)
def test_bins_keep_what_is_in_them(edges, counts):
    counts = counts[: len(edges) - 1]
    found = of_bins(edges, counts)
    if found is None:
        assert not any(counts)
        return
    assert sum(found.bins.counts) == pytest.approx(sum(counts))
    for one, other in pairwise(found.figures.values()):
        assert one <= other or one == pytest.approx(other)
    assert edges[0] <= found.bins.low <= found.bins.high <= edges[-1]


@pytest.mark.parametrize(
    ("edges", "counts", "reason"),
    [
        ([0, 1], [1, 2], "2 counts and 2 bounds"),
        ([], [1], "1 counts and 0 bounds"),
        ([0, 2, 1], [1, 2], "do not ascend"),
        ([0, math.nan, 1], [1, 2], "do not ascend"),
        ([0, 1, math.inf], [1, 2], "do not ascend"),
        ([0, 1, 2], [1, -2], "below 0"),
        ([0, 1, 2], [1, math.nan], "below 0"),
        ([0, 1, 2], [1, 1e300], "beyond all numbers"),
        ([-1.7e308, 0, 1.7e308], [1, 1], "too wide"),
        (range(MOST_BINS + 2), [1] * (MOST_BINS + 1), "65,537 bins"),
    ],
)
def test_what_is_no_histogram(edges, counts, reason):
    with pytest.raises(ValueError, match=reason):
        of_bins(edges, counts)


def test_the_metrics_of_a_distribution_are_one():
    quantiles = [f"h/{name}" for name in QUANTILES]
    keys = ["loss", "h/min", *quantiles, "h/max", "g/p50", "g/p95"]
    h = DistributionKeys("h", "h/p50", tuple(quantiles), frozenset(keys[1:8]))
    assert spreads(keys) == {"h": h}
    assert one_each(keys) == ["loss", "h/p50", "g/p50", "g/p95"]
    assert one_each([*keys, "h/mean"]) == ["loss", "g/p50", "g/p95", "h/mean"]
    assert one_each([*keys, "h"]) == ["loss", "g/p50", "g/p95", "h"]
