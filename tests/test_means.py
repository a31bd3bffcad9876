"""Means of numbers of any size."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verl_tui.means import mean


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20)
)
def test_a_mean_is_right_for_numbers_of_any_size(values):
    exact = sum(map(Fraction, values)) / len(values)
    assert mean(values) == pytest.approx(
        float(exact), rel=1e-9, abs=max(map(abs, values)) * 1e-12
    )
