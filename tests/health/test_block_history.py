"""Blocks: a stretch of them is a view, and extremes are those since the beginning."""

from __future__ import annotations

import math

from verl_tui.health.blocks import blocks
from verl_tui.runs.series import Series

NAN = math.nan


def series(key: str, *values: float) -> Series:
    one = Series(key)
    one.steps.extend(range(1, len(values) + 1))
    one.values.extend(values)
    return one


def test_the_extremes_are_those_since_the_beginning() -> None:
    metrics = [
        series("a", 0.5, 0.75, 0.6, 0.0),
        series("b", 0.25, 0.125, 0.2),
        series("c", NAN, NAN, 1.0),
        None,
    ]
    known = blocks(metrics, 1, 3)
    assert (known.first.tolist(), known.settled.tolist()) == ([1, 2, 3], [2, 3, 4])
    assert known[-1:].reach(0) == (0.5, 0.75)
    assert known[:2].reach(1) == (0.125, 0.25)
    assert known.reach(2) == (1.0, 1.0)
    assert [known.known(i) for i in (2, 3)] == [[1.0], []]
    assert known[1:].levels[0].tolist() == [0.75, 0.6]
