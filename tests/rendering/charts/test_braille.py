"""Dots, layers, blocks and numbers: what the widgets draw with."""

from __future__ import annotations

from array import array
from math import inf, nan

import pytest
from chart_columns import Column
from hypothesis import given
from hypothesis import strategies as st

from verl_tui.rendering.charts.axes import fit_scale, fit_window
from verl_tui.rendering.charts.chart_data import Mark
from verl_tui.rendering.charts.sparkline import gauge, sparkline, tall
from verl_tui.rendering.text.ascii_table import ascii_locale
from verl_tui.rendering.text.numbers import compact
from verl_tui.rendering.text.piece import text_of

SINGLE_PRECISION = array("f", [0.003])[0]


def text(rows):
    return [*map(text_of, rows)]


@pytest.mark.parametrize(
    ("environment", "ascii_only"),
    [
        ({}, False),
        ({"LANG": "C.UTF-8"}, False),
        ({"LANG": "en_US.utf8"}, False),
        ({"LC_ALL": "C", "LANG": "en_US.UTF-8"}, True),
        ({"LC_CTYPE": "POSIX"}, True),
        ({"LANG": "de_DE.ISO-8859-1"}, True),
    ],
)
def test_the_locale_decides_about_ascii(environment, ascii_only):
    assert ascii_locale(environment) is ascii_only


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.0231, "0.0231"),
        (1.23e-6, "1.2e-06"),
        (1e-6, "1e-06"),
        (4510, "4.51k"),
        (999.9, "1k"),
        (999_999, "1M"),
        (-0.0012345, "-0.0012"),
        (12, "12"),
        (0.1 + 0.2, "0.3"),
        (-45_123, "-45.1k"),
        (1e12, "1e+12"),
        (-1e308, "-1e+308"),
        (5e-324, "5e-324"),
        (0.0, "0"),
        (nan, "nan"),
        (inf, "inf"),
        (-inf, "-inf"),
    ],
)
def test_compact(value, expected):
    assert compact(value) == expected


@pytest.mark.parametrize(
    ("share", "bar"), [(0, "────"), (0.5, "━━──"), (0.6, "━━╸─"), (1, "━━━━")]
)
def test_gauge(share, bar):
    assert text([gauge(share, 4, "bar")]) == [bar]


def test_neighbouring_rows_of_bars_do_not_touch():
    rising = sparkline(Column(range(30), range(30)), 30, "reward")
    assert text([rising, []])[0][-1] == "▇"
    assert tall([100.0], 1, 1) == ["▇"]
    assert tall([100.0], 1, 3) == ["▇", "█", "█"]


def test_a_mark_hides_no_bar_where_there_are_colours():
    points = Column(range(6), [9.0, 0, 0, 0, 0, 0])
    for signs in (False, True):
        marks = [Mark(0, "warning")]
        drawn = sparkline(points, 6, "kl", marks=marks, signs=signs)
        assert drawn == [("▲" if signs else "▇", "warning"), ("▁▁▁▁▁", "kl")]


def test_a_value_rounded_to_single_precision_is_the_same_value():
    lo, hi = sorted((0.003, SINGLE_PRECISION))
    assert lo < hi
    assert fit_scale(lo, hi).extent > 1e-4
    assert fit_scale(lo, lo * (1 + 1e-6)).extent < 1e-7


@given(st.integers(-(10**12), 10**12), st.integers(0, 10**12), st.integers(2, 400))
def test_a_window_shows_its_steps(first, length, columns):
    window = fit_window(first, first + length, columns)
    assert 0 <= window.column(first) <= window.column(first + length) < columns
    assert window.start <= first <= first + length <= window.end
    for step in (first, first + length):
        assert (
            window.step(window.column(step))
            <= step
            < window.step(window.column(step)) + window.per
        )
    assert len(window.ticks(10)) <= columns / 20 + 2
