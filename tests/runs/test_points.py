"""Points must say what reading every value would say."""

from __future__ import annotations

from array import array
from math import inf, isfinite, nan

from hypothesis import given
from hypothesis import strategies as st

from verl_tui.runs.series import Points

NUMBERS = st.one_of(
    st.floats(), st.sampled_from([nan, inf, -inf, 0.0, 1e308, -1e308, 5e-324])
)
GAPS = st.lists(st.sampled_from([0, 1, 1, 1, 1, 2, 7, 300]), min_size=1, max_size=12)


def brute(steps, values, start, stop):
    inside = [v for s, v in zip(steps, values, strict=True) if start <= s < stop]
    finite = [v for v in inside if isfinite(v)]
    return (
        min(finite, default=None),
        max(finite, default=None),
        len(finite) < len(inside),
    )


def columns(first, gaps, numbers, length):
    """Columns long enough to have several levels, repeating short drawn patterns."""
    steps, values, step = array("q"), array("d"), first
    for i in range(length):
        steps.append(step)
        values.append(numbers[i % len(numbers)] + (i if i % 3 == 0 else 0))
        step += gaps[i % len(gaps)]
    return steps, values


def assert_exact(points, first, width, buckets):
    lows, highs, odds = points.query(first, width, buckets)
    expected = [
        brute(points.steps, points.values, first + i * width, first + (i + 1) * width)
        for i in range(buckets)
    ]
    assert list(zip(lows, highs, odds, strict=True)) == expected


@given(
    first=st.integers(-3000, 3000),
    gaps=GAPS,
    numbers=st.lists(NUMBERS, min_size=1, max_size=40),
    length=st.integers(0, 1300),
    start=st.integers(-200, 1500),
    width=st.integers(1, 900),
    buckets=st.integers(0, 20),
)
def test_query_equals_reading_everything(
    first, gaps, numbers, length, start, width, buckets
):
    points = Points(*columns(first, gaps, numbers, length))
    assert_exact(points, first + start, width, buckets)
    assert_exact(points, (first + start) // 64 * 64, 64, buckets)


@given(
    gaps=GAPS,
    numbers=st.lists(NUMBERS, min_size=1, max_size=20),
    length=st.integers(0, 900),
)
def test_bounds_are_those_of_all_finite_values(gaps, numbers, length):
    steps, values = columns(5, gaps, numbers, length)
    last = steps[-1] if steps else 0
    low, high, _ = brute(steps, values, 5, last + 1)
    assert Points(steps, values).bounds == (None if low is None else (low, high))
