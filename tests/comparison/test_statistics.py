"""Statistics: equal to SciPy's on generated cases, and true of numbers whose answer is known."""

from __future__ import annotations

import math
import random
from importlib import import_module
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from verl_tui.comparison.statistics import (
    combined,
    deviation,
    of_one_run,
    of_seeds,
    t_quantile,
)
from verl_tui.means import mean

numbers = st.floats(-1e6, 1e6).map(lambda value: round(value, 3))
few = st.integers(-3, 3).map(float) | numbers


@pytest.fixture(scope="module")
def scipy() -> Any:
    """What ours is held against; it takes longer to import than all else that tests import."""
    for part in ("special", "stats"):
        import_module(f"scipy.{part}")
    return import_module("scipy")


@given(st.floats(1, 500), st.floats(0.51, 0.9999))
def test_quantiles_of_t(scipy: Any, freedom: float, level: float) -> None:
    found = t_quantile(level, freedom)
    assert math.isclose(
        found, scipy.stats.t.ppf(level, freedom), rel_tol=1e-7, abs_tol=1e-9
    )


@given(st.lists(few, min_size=2, max_size=30), st.lists(few, min_size=2, max_size=30))
def test_the_interval_of_welch(scipy: Any, xs: list[float], ys: list[float]) -> None:
    assume(len(set(xs)) > 1 and len(set(ys)) > 1)
    one, other = of_seeds(xs), of_seeds(ys)
    assert one is not None
    assert other is not None
    found = combined((-1, one), (1, other))
    low, high = found.mean - found.reach, found.mean + found.reach
    known = scipy.stats.ttest_ind(ys, xs, equal_var=False).confidence_interval(0.95)
    reach = max(abs(known.low), abs(known.high))
    assert math.isclose(low, known.low, rel_tol=1e-7, abs_tol=1e-7 * reach)
    assert math.isclose(high, known.high, rel_tol=1e-7, abs_tol=1e-7 * reach)


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


def walk(rng: random.Random, count: int, alike: float) -> list[float]:
    """Return noise in which each value keeps a share of the one before."""
    value, found = 0.0, []
    for _ in range(count + 50):
        value = alike * value + rng.gauss(0, 1)
        found.append(value)
    return found[50:]


@pytest.mark.parametrize(("count", "alike"), [(10, 0.0), (50, 0.8)])
def test_runs_of_one_process_seldom_seem_to_differ(count: int, alike: float) -> None:
    rng, found = random.Random(7), 0
    for _ in range(200):
        one, other = (of_one_run(walk(rng, count, alike)) for _ in range(2))
        assert one is not None
        assert other is not None
        apart = combined((-1, one), (1, other))
        found += abs(apart.mean) > apart.reach
    assert found <= 20, "at a level of 95%, ten are expected"
