"""Statistics: equal to SciPy's, and true of numbers whose answer is known."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verl_tui.comparison.statistics import (
    combined,
    deviation,
    of_one_run,
    of_seeds,
    t_quantile,
)


@pytest.mark.parametrize(
    ("level", "freedom", "expected"),
    [
        # `scipy.stats.t.ppf`
        (0.975, 1, 12.706204736),
        (0.975, 1.7, 5.118838988),
        (0.975, 2, 4.30265273),
        (0.975, 5, 2.570581836),
        (0.975, 12.5, 2.169185943),
        (0.975, 30, 2.042272456),
        (0.975, 300, 1.967903011),
        (0.95, 3, 2.353363435),
        (0.6, 4, 0.270722295),
        (0.9999, 8, 6.441999821),
    ],
)
def test_quantiles_of_t(level, freedom, expected):
    assert t_quantile(level, freedom) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize(
    ("xs", "ys", "low", "high"),
    [
        # `scipy.stats.ttest_ind(ys, xs, equal_var=False).confidence_interval(0.95)`
        ([0.5, 0.52, 0.51], [0.7, 0.72, 0.76, 0.71], 0.172792123, 0.252207877),
        ([1e6, 1e6 + 3, 1e6 - 2], [1.0, -5.0], -1000022.70721838, -999981.95944829),
    ],
)
def test_the_interval_of_welch(xs, ys, low, high):
    one, other = of_seeds(xs), of_seeds(ys)
    assert one is not None
    assert other is not None
    found = combined((-1, one), (1, other))
    assert found.mean - found.reach == pytest.approx(low, rel=1e-8)
    assert found.mean + found.reach == pytest.approx(high, rel=1e-8)


@given(st.lists(st.floats(-1e300, 1e300), max_size=20))
def test_deviations(values):
    spread = deviation(values)
    if spread is None:
        assert len(values) < 2
        assert of_seeds(values) is None
        return
    assert spread >= 0
    if len({*values}) == 1:
        assert spread == 0


def test_numbers_of_any_size_have_a_mean_and_an_error():
    found = of_one_run([1.7e308, *[-3e307] * 29])
    assert found is not None
    assert found.error > 0


def walk(rng: random.Random, count: int, alike: float) -> list[float]:
    """Return noise in which each value keeps a share of the one before."""
    value, found = 0.0, []
    for _ in range(count + 50):
        value = alike * value + rng.gauss(0, 1)
        found.append(value)
    return found[50:]


@pytest.mark.parametrize(("count", "alike"), [(10, 0.0), (50, 0.8)])
def test_runs_of_one_process_seldom_seem_to_differ(count, alike):
    rng, found = random.Random(7), 0
    for _ in range(200):
        one, other = (of_one_run(walk(rng, count, alike)) for _ in range(2))
        assert one is not None
        assert other is not None
        apart = combined((-1, one), (1, other))
        found += abs(apart.mean) > apart.reach
    assert found <= 20, "at a level of 95%, ten are expected"


def test_the_deviation_of_a_sample():
    assert deviation([1.0, 2.0, 4.0]) == pytest.approx(math.sqrt(7 / 3))
