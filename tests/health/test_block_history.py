"""A history of blocks tells the same as a list of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verl_tui.health.blocks import Block, BlockHistory

METRICS = 3
NUMBERS = st.tuples(*[st.floats(allow_nan=False)] * METRICS)
STEPS = st.integers(-(2**62), 2**62)
ENDS = st.none() | st.integers(-12, 12)


def history(blocks: list[Block]) -> BlockHistory:
    count = len(blocks)
    steps = [(one.first, one.last, one.settled_step) for one in blocks]
    levels, errors = (
        (
            np.array(rows, float).reshape(count, -1 if count else 0)
            for rows in zip(*((one.levels, one.errors) for one in blocks), strict=True)
        )
        if blocks
        else np.empty((2, 0, METRICS))
    )
    return BlockHistory(np.array(steps, np.int64).reshape(count, 3), levels, errors)


@settings(max_examples=50)
@given(
    blocks=st.lists(
        st.builds(Block, STEPS, STEPS, NUMBERS, STEPS, NUMBERS), max_size=9
    ),
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
        assert list(stretch.errors(i)) == [block.errors[i] for block in expected]


def test_blocks_without_errors_have_none_in_a_history() -> None:
    known = history([Block(1, 10, (0.5, 0.25), 11), Block(11, 20, (0.75, 0.125), 21)])
    assert known[-1] == Block(11, 20, (0.75, 0.125), 21)
    assert not len(known.errors(1))
    with pytest.raises(IndexError):
        known[2]
