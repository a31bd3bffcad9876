"""Averages and trends of a series, up to the largest numbers that there are."""

from __future__ import annotations

import sys
from array import array
from math import isfinite

import pytest

from verl_tui.rendering.charts.downsample import Smoothed, trend
from verl_tui.runs.pyramid import Pyramid

LARGEST = sys.float_info.max


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


def test_no_arrow_tells_of_a_change_that_the_chart_cannot_show() -> None:
    creeping = [0.03 + 0.0002 * at for at in range(40)]
    assert trend(creeping) == 1
    assert trend(creeping, (0.0, 0.05)) == 1
    assert trend(creeping, (0.0, 4.7)) == 0
    assert trend([4.7 - value for value in creeping], (0.0, 4.7)) == 0
    assert trend([0.7] * 20 + [0.5] * 20, (0.0, 4.7)) == -1
    assert trend([LARGEST / 20 * at for at in range(1, 21)], (-LARGEST, LARGEST)) == 1
