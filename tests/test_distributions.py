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
    Bins,
    DistributionKeys,
    added,
    of_bins,
    of_limits,
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
    assert (
        (ranked[0], ranked[-1])
        == (found.bins.low, found.bins.high)
        == (min(values), max(values))
    )
    assert min(values) <= found.figures["mean"] <= max(values)
    assert len(found.bins.counts) == BINS
    assert sum(found.bins.counts) == len(values)


def test_known_values():
    found = of_values([4.0, 0.0, 1.0, 3.0, 2.0])
    assert found.figures == {
        "mean": 2.0, "min": 0.0, "p05": 0.2, "p25": 1.0, "p50": 2.0, "p75": 3.0, "p95": 3.8, "max": 4.0
    }  # fmt: skip
    assert {at: count for at, count in enumerate(found.bins.counts) if count} == {
        0: 1,
        7: 1,
        15: 1,
        22: 1,
        29: 1,
    }


def test_all_values_alike_are_one_bar():
    assert of_values([0.5] * 7).bins == Bins(0.5, 0.5, [7.0, *[0.0] * (BINS - 1)])
    assert of_values([]) is None


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
    ranked = [*found.figures.values()]
    assert all(
        one <= other or one == pytest.approx(other) for one, other in pairwise(ranked)
    )
    assert edges[0] <= found.bins.low <= found.bins.high <= edges[-1]


def test_wide_bins_are_spread_and_narrow_ones_gathered():
    assert of_bins([0, 15, 30], [15, 30]).bins.counts == pytest.approx(
        [1.0] * 15 + [2.0] * 15
    )
    assert of_bins(
        [at / 10 for at in range(301)], [1] * 300
    ).bins.counts == pytest.approx([10.0] * 30)


def test_the_outermost_limits_are_the_least_and_the_greatest():
    found = of_limits(0.5, 2.5, [-1e9, 1.0, 2.0, 1e300, 1e301], [0, 1, 1, 2, 0])
    assert (found.bins.low, found.bins.high) == (0.5, 2.5)
    assert (found.figures["min"], found.figures["p50"], found.figures["max"]) == (
        0.5,
        2.0,
        2.5,
    )


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


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1),
    st.lists(st.floats(-1e6, 1e6), min_size=1),
)
def test_two_histograms_as_one(one, other):
    found = added(of_values(one).bins, of_values(other).bins)
    assert (found.low, found.high) == (min(one + other), max(one + other))
    assert sum(found.counts) == pytest.approx(len(one) + len(other))


def test_the_metrics_of_a_distribution_are_one():
    quantiles = [f"h/{name}" for name in QUANTILES]
    keys = ["loss", "h/min", *quantiles, "h/max", "g/p50", "g/p95"]
    assert spreads(keys) == {
        "h": DistributionKeys("h", "h/p50", tuple(quantiles), frozenset(keys[1:8]))
    }
    assert one_each(keys) == ["loss", "h/p50", "g/p50", "g/p95"]
    assert one_each([*keys, "h/mean"]) == ["loss", "g/p50", "g/p95", "h/mean"]
    assert one_each([*keys, "h"]) == ["loss", "g/p50", "g/p95", "h"]
