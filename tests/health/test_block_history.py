"""A history of blocks tells the same as a list of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verl_tui.health.blocks import Block, BlockHistory
from verl_tui.health.blocks import history as of_columns

METRICS = 3
NUMBERS = st.tuples(*[st.floats(allow_nan=False)] * METRICS)
STEPS = st.integers(-(2**62), 2**62)
ENDS = st.none() | st.integers(-12, 12)


def history(blocks: list[Block]) -> BlockHistory:
    count = len(blocks)
    steps = np.array([(one.first, one.last, one.last + 1) for one in blocks], np.int64)
    levels = np.array([one.levels for one in blocks], float)
    levels = levels.reshape(count, METRICS)
    return of_columns(steps.reshape(count, 3), levels, -levels)


@settings(max_examples=50)
@given(
    blocks=st.lists(st.builds(Block, STEPS, STEPS, NUMBERS), max_size=9),
    start=ENDS,
    stop=ENDS,
    stride=st.sampled_from([None, 1, 2, -1]),
)
def test_any_stretch_is_that_of_the_list(
    blocks: list[Block], start: int | None, stop: int | None, stride: int | None
) -> None:
    stretch = history(blocks)[start:stop:stride]
    expected = blocks[start:stop:stride]
    assert list(stretch) == expected
    assert list(reversed(stretch)) == expected[::-1]
    assert [stretch[at] for at in range(-len(expected), 0)] == expected
    for i in range(-METRICS, METRICS) if expected else ():
        assert list(stretch.levels(i)) == [block.levels[i] for block in expected]
        assert list(stretch.errors(i)) == [-block.levels[i] for block in expected]


def test_the_extremes_are_those_since_the_beginning() -> None:
    levels = ((0.5, 0.25, math.nan), (0.75, 0.125, math.nan), (0.6, 0.2, 1.0))
    known = history([Block(i, i, one) for i, one in enumerate(levels)])
    assert known[-1:].reach(0) == (0.5, 0.75)
    assert known[:2].reach(1) == (0.125, 0.25)
    assert known.reach(2) == (1.0, 1.0)
    with pytest.raises(IndexError):
        known[3]
