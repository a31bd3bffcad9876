"""Numbers come back from a column as they were, whichever are asked for."""

from __future__ import annotations

import math
import struct
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verl_tui.runs.column import Column, may_be_odd

FLOATS = st.one_of(
    st.floats(),
    st.floats(width=32),
    st.sampled_from([0.0, -0.0, math.nan, -math.nan, math.inf]),
)
EDGES = st.integers(-2000, 2000) | st.sampled_from(
    [0, -1, 255, 256, 257, 511, 512, None]
)


def bits(numbers: object) -> bytes:
    return array("d", numbers).tobytes()  # type: ignore[arg-type]


@given(
    parts=st.lists(
        st.tuples(st.lists(FLOATS, max_size=9), st.integers(0, 90)), max_size=6
    ),
    start=EDGES,
    stop=EDGES,
    stride=st.sampled_from([None, 1, 3, -1, -2]),
)
def test_any_stretch_of_a_column_is_what_was_put_in(
    parts: list[tuple[list[float], int]],
    start: int | None,
    stop: int | None,
    stride: int | None,
) -> None:
    column, expected = Column[float]("d"), array("d")
    for numbers, times in parts:
        column.extend(numbers * times)
        expected.extend(numbers * times)
    assert len(column) == len(expected)
    assert bits(column) == bits(expected)
    assert bits(column[start:stop:stride]) == bits(expected[start:stop:stride])
    for at in {start, stop} - {None}:
        if -len(expected) <= at < len(expected):
            assert struct.pack("d", column[at]) == struct.pack("d", expected[at])
        else:
            with pytest.raises(IndexError):
                column[at]


@given(
    counts=st.lists(st.integers(0, 700), min_size=1, max_size=6), share=st.floats(0, 1)
)
def test_what_is_cut_off_makes_room_for_others(counts: list[int], share: float) -> None:
    column, expected = Column[int]("q"), []
    for count in counts:
        at = int(len(expected) * share)
        column.cut(at)
        column.extend(range(at, at + count))
        expected[at:] = range(at, at + count)
        assert list(column) == expected


@given(columns=st.lists(st.lists(FLOATS, max_size=4), max_size=4))
def test_no_number_that_is_not_finite_is_overlooked(columns: list[list[float]]) -> None:
    numbers = [number for column in columns for number in column]
    assert may_be_odd(columns) or all(map(math.isfinite, numbers))


@pytest.mark.parametrize("number", [0.0, -1.5, 1e-300, -1e200, 2**70])
def test_of_common_numbers_none_need_be_looked_for(number: float) -> None:
    assert not may_be_odd([[number, number]])


def test_integers_of_any_size_and_numbers_that_come_one_by_one() -> None:
    column = Column[int]("q")
    numbers = [(-1) ** n * 2 ** (n % 63) + n for n in range(1000)]
    for one in numbers:
        column.extend([one])
    assert list(column) == numbers
    assert [column[at] for at in range(-1000, 1000)] == numbers * 2


@given(whole=st.integers(0, 1100), count=st.integers(0, 1100), more=st.integers(0, 600))
def test_the_first_numbers_are_a_column_of_their_own(
    whole: int, count: int, more: int
) -> None:
    column, count = Column[int]("q"), min(count, whole)
    column.extend(range(whole))
    first = column.first(count)
    first.extend(range(-more, 0))
    column.cut(whole // 2)
    assert list(first) == [*range(count), *range(-more, 0)]
    assert list(column) == [*range(whole // 2)]
