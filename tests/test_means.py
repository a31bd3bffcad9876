"""Numbers of any size: their means, and those that are finite."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verl_tui.means import finite, mean

LARGEST = 1.7976931348623157e308


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20)
)
def test_a_mean_is_right_for_numbers_of_any_size(values: list[float]) -> None:
    exact = sum(map(Fraction, values)) / len(values)
    assert mean(values) == pytest.approx(
        float(exact), rel=1e-9, abs=max(map(abs, values)) * 1e-12
    )


@pytest.mark.parametrize("count", [1, 2, 3, 7, 1000])
def test_the_mean_of_the_largest_numbers_is_one(count: int) -> None:
    assert mean([LARGEST] * count) == LARGEST


def test_only_what_is_no_number_is_left_out() -> None:
    values = [2.0, math.nan, -LARGEST, math.inf, 0.0, -math.inf, 2.0]
    assert finite(values) == [2.0, -LARGEST, 0.0, 2.0]
