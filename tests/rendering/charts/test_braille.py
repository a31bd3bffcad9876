"""Dots, layers, blocks and numbers: what the widgets draw with."""

from __future__ import annotations

from array import array
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verl_tui.rendering.charts.axes import fit_scale, fit_window, sliding_window
from verl_tui.rendering.charts.braille import (
    DotLayer,
    Glyph,
    ascii_locale,
    compose,
    connect,
    fill_gaps,
)
from verl_tui.rendering.charts.sparkline import gauge, sparkline
from verl_tui.rendering.text.numbers import compact, exact_step
from verl_tui.runs.pyramid import Pyramid

FINITE = st.floats(allow_nan=False, allow_infinity=False)
SINGLE_PRECISION = array("f", [0.003])[0]
RUNS = st.lists(
    st.none()
    | st.tuples(st.integers(0, 40), st.integers(0, 9)).map(
        lambda r: (r[0], r[0] + r[1])
    )
)


class Column:
    """A series as the widgets want it."""

    def __init__(self, steps, values):
        self.steps, self.values = array("q", steps), array("d", values)
        self._pyramid = Pyramid(self.steps, self.values)

    @property
    def pyramid(self):
        self._pyramid.catch_up()
        return self._pyramid


def text(rows):
    return ["".join(part for part, _ in row) for row in rows]


def test_a_diagonal_of_dots():
    layer = DotLayer(2, 1, "line")
    layer.line([(3, 3), (2, 2), (1, 1), (0, 0)])
    assert compose([layer]) == [(("⡠⠊", "line"),)]


def test_nothing_is_spaces_not_empty_braille():
    assert text(compose([DotLayer(3, 2)])) == ["   ", "   "]


@pytest.mark.parametrize(("width", "height"), [(0, 0), (0, 3), (3, 0), (-1, -1)])
def test_no_room(width, height):
    layer = DotLayer(width, height)
    layer.line([(0, 3)] * 8)
    layer.dot(0, 0)
    layer.shade([(0, 9)] * 4)
    assert text(compose([layer])) == [""] * max(0, height)


def test_the_later_layer_wins_the_colour_and_dots_add_up():
    first = DotLayer(1, 1, "first")
    second = DotLayer(1, 1, "second")
    first.line([(0, 0), None])
    second.line([None, (3, 3)])
    assert compose([first, second]) == [(("⢁", "second"),)]


def test_a_backdrop_gives_way():
    shade = DotLayer(2, 1, "shade", backdrop=True)
    line = DotLayer(2, 1, "line")
    shade.line([(0, 3)] * 4)
    line.line([(3, 3), (3, 3)])
    assert compose([shade, line]) == [(("⣀", "line"), ("⣿", "shade"))]


def test_glyphs_stand_on_dots_or_give_way_to_them():
    layer = DotLayer(3, 1, "line")
    layer.line([(3, 3), (3, 3)])
    marks = {
        0: {
            0: Glyph("│", "cursor", yields=True),
            1: Glyph("│", "cursor", yields=True),
            2: Glyph("!", "odd"),
        }
    }
    assert compose([layer], marks) == [(("⣀│", "cursor"), ("!", "odd"))]


def test_ascii_is_ascii():
    layer = DotLayer(6, 2, "line")
    layer.line(
        [(0, 7), (0, 7), (0, 0), (1, 1), (5, 6), None, (3, 3), (3, 3), (7, 7), (0, 1)]
    )
    assert all(
        c.isascii() for row in text(compose([layer], ascii_only=True)) for c in row
    )


@given(runs=RUNS, breaks=st.lists(st.booleans()))
def test_a_connected_line_has_no_holes(runs, breaks):
    joined = connect(runs, breaks)
    previous = None
    for x, run in enumerate(joined):
        if x < len(breaks) and breaks[x]:
            previous = None
        if runs[x] is not None:
            assert run[0] <= runs[x][0] <= runs[x][1] <= run[1]
        if run is not None and previous is not None:
            assert run[0] <= previous[1] + 1
            assert previous[0] <= run[1] + 1
        previous = run


@given(runs=RUNS)
def test_an_area_is_filled_from_its_first_to_its_last_column(runs):
    known = [x for x, run in enumerate(runs) if run is not None]
    filled = fill_gaps(runs)
    assert [x for x, run in enumerate(filled) if run is not None] == (
        list(range(known[0], known[-1] + 1)) if known else []
    )


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


@given(st.floats())
def test_compact_is_at_most_seven_characters_and_near(value):
    written = compact(value)
    assert len(written) <= 7
    if value - value == 0 and "e" in written:
        assert float(written) == pytest.approx(value, rel=0.51) or abs(value) > 1e308


def test_steps_are_exact_while_they_fit():
    assert [exact_step(1200), exact_step(9_999_999), exact_step(12_345_678)] == [
        "1200",
        "9999999",
        "12.3M",
    ]


@pytest.mark.parametrize("ascii_only", [False, True])
@given(fraction=st.floats(), width=st.integers(-2, 30))
def test_a_gauge_is_as_wide_as_asked(fraction, width, ascii_only):
    assert len(gauge(fraction, width, ascii_only=ascii_only)) == max(0, width)


def test_gauge():
    assert [
        gauge(0, 4),
        gauge(0.5, 4),
        gauge(0.53125, 4),
        gauge(1, 4),
        gauge(nan, 2),
    ] == [
        "    ",
        "██  ",
        "██▏ ",
        "████",
        "  ",
    ]
    assert gauge(0.5, 4, ascii_only=True) == "##.."


def test_sparkline():
    assert sparkline(Column(range(8), range(8)), 8) == "▁▂▃▄▅▆▇█"
    assert sparkline(Column(range(8), [0, 1, nan, 3, 4, inf, 6, 7]), 8) == "▁▂!▄▅!▇█"
    assert sparkline(Column([5], [3.0]), 8) == "", "one point has no shape"
    assert (
        sparkline(Column(range(8), [0.003] * 4 + [SINGLE_PRECISION] * 4), 8) == "▄" * 8
    )
    assert sparkline(Column(range(0, 80, 10), range(8)), 8).count(" ") <= 3
    assert sparkline(Column([], []), 8) == ""
    assert sparkline(Column([1], [1]), 0) == ""
    assert sparkline(Column(range(8), range(8)), 8, ascii_only=True).isascii()


@given(st.lists(st.floats(), max_size=60), st.integers(0, 20))
def test_sparkline_takes_any_number(values, width):
    assert len(sparkline(Column(range(len(values)), values), width)) <= width


@given(FINITE, FINITE, st.booleans())
def test_a_scale_shows_its_range(a, b, log):
    lo, hi = min(a, b), max(a, b)
    scale = fit_scale(lo, hi, log=log)
    # far less than a dot
    slack = 1e-280 if scale.log else max(abs(scale.lo), abs(scale.hi)) * 1e-9
    assert scale.lo <= lo + slack
    assert hi <= scale.hi + slack
    assert 0 <= scale.fraction(lo) <= scale.fraction(hi) <= 1
    assert all(0 <= dot < 12 for dot in scale.dots([lo, hi], 12))
    assert 1 <= len(scale.ticks(5)) <= 30


def test_a_value_rounded_to_single_precision_is_the_same_value():
    lo, hi = sorted((0.003, SINGLE_PRECISION))
    assert lo < hi
    assert fit_scale(lo, hi).extent > 1e-4
    assert fit_scale(lo, lo * (1 + 1e-6)).extent < 1e-7


def test_a_scale_stays_while_it_serves():
    scale = fit_scale(0, 1)
    assert fit_scale(0.2, 0.9, previous=scale) is scale
    assert fit_scale(0.2, 1.1, previous=scale).hi > 1
    assert fit_scale(0.2, 0.21, previous=scale).hi < 0.3


WINDOWS = st.sampled_from([fit_window, sliding_window])


@given(
    st.integers(-(10**12), 10**12), st.integers(0, 10**12), st.integers(2, 400), WINDOWS
)
def test_a_window_shows_its_steps(first, length, columns, fit):
    window = fit(first, first + length, columns)
    assert 0 <= window.column(first) <= window.column(first + length) < columns
    assert window.start <= first <= first + length <= window.end
    for step in (first, first + length):
        assert (
            window.step(window.column(step))
            <= step
            < window.step(window.column(step)) + window.per
        )
    assert len(window.ticks(10)) <= columns / 20 + 2


@given(st.integers(1, 10**9), st.integers(30, 400), st.integers(30, 400))
def test_charts_of_any_width_show_the_same_steps_and_leave_little_room(
    count, narrow, wide
):
    windows = [fit_window(1, count, columns) for columns in (narrow, wide)]
    assert all(
        0 <= window.end - count <= max(1, count // 4) + window.per for window in windows
    )
    assert abs(windows[0].end - windows[1].end) < max(window.per for window in windows)


def test_a_window_moves_only_when_it_must():
    assert len({fit_window(0, last, 100) for last in range(960, 1024)}) == 1
    assert len({fit_window(0, last, 100) for last in range(1000, 2000)}) <= 9


@given(st.integers(-(10**9), 10**9), st.integers(1, 10**6), st.integers(30, 400))
def test_a_window_that_follows_ends_near_the_newest_step(first, length, columns):
    last = first + length
    window = sliding_window(first, last, columns)
    assert window.start == first
    assert window.end - last <= max(1, length // 8) + window.per
    assert columns - window.column(last) <= columns // 8 + 2 + window.stretch


def test_the_end_of_300_steps_fills_the_plot():
    window = sliding_window(261, 300, 266)
    assert (window.end, window.column(300)) == (300, 265)


def test_a_window_that_follows_is_seldom_another_one():
    assert len({sliding_window(1000, last, 266) for last in range(1100, 1126)}) <= 4
