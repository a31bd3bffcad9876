"""Statistics: equal to SciPy's on generated cases, and true of numbers whose answer is known."""

from __future__ import annotations

import itertools
import math
import random
from importlib import import_module
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from verl_tui.comparison.statistics import (
    Spread,
    chance,
    deviation,
    interval,
    mean,
    of_one_run,
    of_seeds,
    rank_biserial,
    rank_correlation,
    ranks,
    t_quantile,
)

numbers = st.floats(-1e6, 1e6).map(lambda value: round(value, 3))
few = st.integers(-3, 3).map(float) | numbers


@pytest.fixture(scope="module")
def scipy() -> Any:
    """What ours is held against; it takes longer to import than all else that tests import."""
    for part in ("special", "stats"):
        import_module(f"scipy.{part}")
    return import_module("scipy")


def close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)


@given(st.floats(1, 500), st.floats(0.51, 0.9999))
def test_quantiles_of_t(scipy: Any, freedom: float, level: float) -> None:
    found = t_quantile(level, freedom)
    assert math.isclose(
        found, scipy.stats.t.ppf(level, freedom), rel_tol=1e-7, abs_tol=1e-9
    )


def test_quantiles_as_tables_print_them() -> None:
    for freedom, printed in (
        (1, 12.706),
        (2, 4.303),
        (4, 2.776),
        (10, 2.228),
        (100, 1.984),
    ):
        assert round(t_quantile(0.975, freedom), 3) == printed


@given(st.lists(few, min_size=2, max_size=30), st.lists(few, min_size=2, max_size=30))
def test_the_interval_of_welch(scipy: Any, xs: list[float], ys: list[float]) -> None:
    assume(len(set(xs)) > 1 and len(set(ys)) > 1)
    one, other = of_seeds(xs), of_seeds(ys)
    assert one is not None
    assert other is not None
    found = interval(one, other)
    known = scipy.stats.ttest_ind(ys, xs, equal_var=False).confidence_interval(0.95)
    reach = max(abs(known.low), abs(known.high))
    assert math.isclose(found.low, known.low, rel_tol=1e-7, abs_tol=1e-7 * reach)
    assert math.isclose(found.high, known.high, rel_tol=1e-7, abs_tol=1e-7 * reach)
    assert found.low <= found.estimate <= found.high


def test_values_without_any_spread_differ_by_exactly_what_they_differ() -> None:
    found = interval(Spread(1.0, 0.0, 3), Spread(1.5, 0.0, 3))
    assert found == (0.5, 0.5, 0.5)
    assert found.excludes_zero
    assert not interval(Spread(1.0, 0.0, 3), Spread(1.0, 0.0, 3)).excludes_zero


@given(st.lists(st.floats(-1e300, 1e300), max_size=20))
def test_means_and_deviations(values: list[float]) -> None:
    if len(values) < 2:
        assert deviation(values) is None
        assert of_seeds(values) is None
        return
    scaled = [value / 2**40 for value in values]
    assert math.isclose(
        mean(values),
        math.fsum(scaled) / len(values) * 2**40,
        abs_tol=1e-9 * max(map(abs, values)) + 1e-300,
    )
    spread = deviation(values)
    assert spread is not None
    assert spread >= 0 or math.isnan(spread)
    if len(set(values)) == 1:
        assert spread <= 1e-15 * abs(values[0]) + 1e-300


@given(st.lists(st.tuples(few, few), min_size=2, max_size=40))
def test_rank_correlation_with_ties(
    scipy: Any, pairs: list[tuple[float, float]]
) -> None:
    xs, ys = [x for x, _ in pairs], [y for _, y in pairs]
    found = rank_correlation(ranks(xs), ranks(ys))
    if len(set(xs)) == 1 or len(set(ys)) == 1:
        assert found is None
        return
    assert found is not None
    assert close(found, scipy.stats.spearmanr(xs, ys).statistic)
    assert [rank / 2 for rank in ranks(xs)] == list(scipy.stats.rankdata(xs))


@given(st.lists(few, min_size=1, max_size=20), st.lists(few, min_size=1, max_size=20))
def test_rank_biserial_correlation(
    scipy: Any, ones: list[float], others: list[float]
) -> None:
    above = scipy.stats.mannwhitneyu(others, ones).statistic
    assert close(rank_biserial(ones, others), 2 * above / (len(ones) * len(others)) - 1)


@pytest.mark.parametrize("count", [5, 6, 7])
def test_chance_reaches_the_stated_correlation_in_one_case_of_twenty_at_most(
    count: int,
) -> None:
    known = tuple(range(count))
    found = [
        rank_correlation(ranks(known), ranks(order))
        for order in itertools.permutations(known)
    ]
    reach = sum(abs(one or 0) >= chance(count) - 5e-4 for one in found) / len(found)
    assert 0.01 < reach <= 0.05


def test_chance_shrinks_with_the_number_of_pairs() -> None:
    found = [chance(count) for count in range(5, 60)]
    assert found == sorted(found, reverse=True)
    assert 0.26 < chance(56) < 0.27


def walk(rng: random.Random, count: int, alike: float) -> list[float]:
    """Return noise in which each value keeps a share of the one before."""
    value, found = 0.0, []
    for _ in range(count + 50):
        value = alike * value + rng.gauss(0, 1)
        found.append(value)
    return found[50:]


@pytest.mark.parametrize(
    ("count", "alike"), [(10, 0.0), (20, 0.5), (50, 0.8), (100, 0.9)]
)
def test_runs_of_one_process_seldom_seem_to_differ(count: int, alike: float) -> None:
    rng, found = random.Random(7), 0
    for _ in range(200):
        one, other = (of_one_run(walk(rng, count, alike)) for _ in range(2))
        assert one is not None
        assert other is not None
        found += interval(one, other).excludes_zero
    assert found <= 20, "at a level of 95%, ten are expected"


def test_runs_that_differ_by_much_do_seem_so() -> None:
    rng = random.Random(7)
    low = of_one_run([0.3 + 0.01 * value for value in walk(rng, 20, 0.3)])
    high = of_one_run([0.4 + 0.01 * value for value in walk(rng, 20, 0.3)])
    assert low is not None
    assert high is not None
    assert interval(low, high).low > 0.05


def test_a_handful_of_values_has_no_interval_and_values_all_the_same_have_no_error() -> (
    None
):
    assert of_one_run([0.1, 0.2, 0.3, 0.4]) is None
    assert of_one_run([0.5] * 10) == Spread(0.5, 0.0, 9)
