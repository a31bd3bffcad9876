"""A sparkline of any steps, also of those before step 0."""

from __future__ import annotations

from array import array

import pytest

from verl_tui.rendering.charts.sparkline import spark_column, sparkline
from verl_tui.runs.pyramid import Pyramid


class Column:
    """A series of these steps."""

    def __init__(self, steps: list[int]) -> None:
        self.steps, self.values = array("q", steps), array("d", map(float, steps))
        self.pyramid = Pyramid(self.steps, self.values)


@pytest.mark.parametrize("width", [1, 2, 7])
@pytest.mark.parametrize(
    "steps", [[-1, 0], [-5, 3], [-(2**62), 2**62], [-3, -2, -1], [0, 2**62]]
)
@pytest.mark.timeout(10)
def test_steps_on_both_sides_of_zero_fit_the_narrowest_row(
    steps: list[int], width: int
) -> None:
    line = sparkline(Column(steps), width)
    assert 0 < len(line) <= width
    assert spark_column(Column(steps), width, steps[0]) == 0
