"""Moments: those that a calendar has."""

from __future__ import annotations

from datetime import datetime, timezone
from math import inf, isnan, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verl_tui.times import LATEST, age, dated


def test_times_of_a_calendar_are_kept_as_they_are():
    times = [0.0, 1.7e9, LATEST - 1]
    assert dated(times) is times
    assert not dated(())


def test_times_beyond_the_calendar_are_none():
    result = dated([1.7e9, 1.7e12, -1e300, inf, nan])
    assert result[0] == 1.7e9
    assert all(map(isnan, result[1:]))
    assert not dated([1e300, nan])


@given(st.lists(st.floats()))
def test_whatever_is_left_is_a_date(times):
    result = dated(times)
    assert len(result) in (0, len(times))
    for moment in result:
        assert isnan(moment) or datetime.fromtimestamp(moment, timezone.utc)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (None, "–"),
        (9.0, "now"),
        (59.0, "50s"),
        (3 * 3600.0, "3h 00m"),
        (9.5 * 86_400, "9d 12h"),
        (344.9 * 86_400, "344d"),
        (1705.7 * 86_400, "4.7y"),
        (float("inf"), "∞"),
        (-1.0, "–"),
    ],
)
def test_of_a_great_age_only_what_matters_is_said(seconds, said):
    assert age(seconds) == said
