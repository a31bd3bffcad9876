"""Questions about a series that cost only what is new."""

from __future__ import annotations

import math

from verl_tui.records import Batch, MetricRows, SourceStatus
from verl_tui.runs.run import Run

STATUS = SourceStatus(path="x", format="f")


def put(run: Run, step: int, value: float, order: int) -> None:
    rows = MetricRows(keys=("x",), steps=(step,), columns=((value,),), orders=(order,))
    run.apply(Batch("r", STATUS, (rows,)), now=0.0)


def test_the_highest_and_the_first_beyond_a_value_as_points_come_and_change() -> None:
    run = Run("r")
    points = [
        (0.5, 0.5, None),
        (math.nan, 0.5, None),
        (1.5, 1.5, 3),
        (0.2, 1.5, 3),
        (2.0, 2.0, 3),
    ]
    for step, (value, highest, first) in enumerate(points, 1):
        put(run, step, value, step)
        series = run.series("x")
        assert series is not None
        assert series.highest == highest
        found = series.first_beyond(1.0)
        assert (found.step if found else None) == first
    assert series.first_beyond(0.3, down=True) == (4, 0.2)
    put(run, 5, 0.4, 6)  # the newest point is replaced
    run.series("x")
    assert series.highest == 1.5
    put(run, 3, 0.1, 7)  # an earlier one is
    run.series("x")
    assert series.highest == 0.5
    assert series.first_beyond(1.0) is None
    assert series.first_beyond(0.3, down=True) == (3, 0.1)
