"""When steps were reached, by the best evidence there is."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from verl_tui.runs.clock import Clock


def clock(*moments):
    made = Clock("test")
    for step, time in moments:
        made.note([step], [time])
    return made


def test_between_two_moments_time_runs_evenly_and_beyond_them_nothing_is_known():
    known = clock((10, 100.0), (20, 200.0))
    assert known.at_each([10, 15, 20]) == [100.0, 150.0, 200.0]
    assert all(map(math.isnan, known.at_each([9, 21])))
    assert math.isnan(*Clock("empty").at_each([1]))


def test_durations_are_counted_back_from_the_end():
    bar = clock((1, 5.0), (2, 15.0), (4, 35.0))
    known = bar.counted_back(4, 1000.0, "bar")
    assert known.at_each([1, 2, 3, 4]) == [970.0, 980.0, 990.0, 1000.0]
    assert len(Clock().counted_back(1, 1.0, "bar")) == 0


_MOMENTS = st.tuples(
    st.integers(0, 9), st.sampled_from([0.0, math.nan, 1e9, 1e9 + 1, 1.5e9 + 0.5, 2e9])
)


@given(st.lists(st.lists(_MOMENTS, max_size=6), max_size=8))
def test_many_moments_at_once_tell_what_they_tell_one_by_one(blocks):
    known, one_by_one = Clock("test"), Clock("test")
    for number, block in enumerate(blocks):
        moments = [*block, (10 + number, 1.5e9 + number)]  # the last one is always new
        known.note(*zip(*moments, strict=True))
        for step, time in moments:
            one_by_one.note([step], [time])
    assert (known.steps, known.times) == (one_by_one.steps, one_by_one.times)
