"""Averages and trends of a series, up to the largest numbers that there are."""

from __future__ import annotations

import sys
from array import array
from math import isfinite

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verl_tui.rendering.charts.downsample import Smoothed, trend
from verl_tui.runs.pyramid import Pyramid

LARGEST = sys.float_info.max
FINITE = st.floats(allow_nan=False, allow_infinity=False)


class Column:
    """A series with a point at every step."""

    def __init__(self, values: list[float]) -> None:
        self.steps, self.values = array("q", range(len(values))), array("d", values)
        self.pyramid = Pyramid(self.steps, self.values)


@pytest.mark.parametrize("weight", [0.6, 0.9, 0.97])
def test_the_average_of_the_largest_numbers_is_one(weight: float) -> None:
    """Rounding must not take it to infinity, where it would stay."""
    column = Column([LARGEST] * 2000 + [0.0] * 500)
    average = Smoothed(column, weight)

    assert average.pyramid.bounds(0, 1999) == pytest.approx((LARGEST, LARGEST))
    assert all(map(isfinite, average.values))
    assert average.values[-1] < LARGEST / 1000


@given(st.lists(FINITE | st.sampled_from([LARGEST, -LARGEST]), max_size=60))
def test_an_average_of_numbers_lies_between_them(values: list[float]) -> None:
    average = Smoothed(Column(values), 0.9)
    average.pyramid  # noqa: B018 - it reads what there is
    assert all(isfinite(one) for one in average.values)


def test_no_arrow_rises_beside_a_value_that_has_collapsed() -> None:
    risen = [0.02 * at for at in range(30)]
    assert trend([*risen, 0.0]) == 0  # one may be an outlier
    assert trend([*risen, 0.0, 0.6]) == 1
    assert trend([*risen, 0.0, 0.0]) == -1
    assert trend([0.6 - value for value in [*risen, 0.0, 0.0]]) == 1


def test_what_has_risen_and_is_back_where_it_was_falls() -> None:
    hill = [0.0, 0.01] * 4 + [0.05, 0.1, 0.15, 0.2, 0.25, 0.2, 0.15, 0.03]
    assert trend([*hill, 0.25, 0.2]) == 1
    assert trend([*hill, 0.005, 0.005, 0.0]) == -1
    assert trend([1 - value for value in [*hill, 0.005, 0.005, 0.0]]) == 1


def test_the_trend_of_huge_values_is_that_of_small_ones() -> None:
    assert trend([LARGEST] * 8) == 0
    assert trend([LARGEST / 20 * at for at in range(1, 21)]) == 1
    assert trend([LARGEST / 20 * at for at in range(20, 0, -1)]) == -1
    assert trend([LARGEST, -LARGEST] * 8) == 0


@given(st.lists(st.integers(-(2**20), 2**20), max_size=50))
def test_a_trend_does_not_depend_on_the_unit(values: list[int]) -> None:
    assert trend([value * 2.0**1000 for value in values]) == trend(values)


def test_no_arrow_tells_of_a_change_that_the_chart_cannot_show() -> None:
    creeping = [0.03 + 0.0002 * at for at in range(40)]
    assert trend(creeping) == 1
    assert trend(creeping, (0.0, 0.05)) == 1
    assert trend(creeping, (0.0, 4.7)) == 0
    assert trend([4.7 - value for value in creeping], (0.0, 4.7)) == 0
    assert trend([0.7] * 20 + [0.5] * 20, (0.0, 4.7)) == -1
    assert trend([LARGEST / 20 * at for at in range(1, 21)], (-LARGEST, LARGEST)) == 1
