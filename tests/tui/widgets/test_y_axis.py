"""The y axis: ends and labels of metrics that hardly move, and of logarithmic charts."""

from __future__ import annotations

from itertools import product

import pytest
from chart_columns import Column
from hypothesis import example, given
from hypothesis import strategies as st
from textual.app import App

from verl_tui.rendering.charts.axes import fit_scale
from verl_tui.rendering.charts.chart_data import ChartData, ChartLine
from verl_tui.rendering.charts.renderer import ChartRenderer, row_labels
from verl_tui.rendering.text.numbers import compact
from verl_tui.rendering.text.piece import text_of
from verl_tui.tui.widgets.chart import Chart

FLAT = {
    "exact": [0.5] * 100,
    "small": [1e-6] * 100,
    "zero": [0.0] * 100,
    "odd": [123456.789] * 100,
    "nearly": [0.02 + 0.00001 * (n % 4) for n in range(100)],
    "hardly": [1000 + 1e-7 * (n % 3) for n in range(100)],
    "short": [0.3 + n / 400 for n in range(100)],
}
CONSTANT = ("exact", "small", "zero", "odd", "hardly")
"""Those that differ by less than event files round have one label."""


def chart(values, **changes):
    points = Column(range(len(values)), values)
    return ChartData("k", lines=(ChartLine(points),), **changes)


def labels(rows):
    """Return what stands at the y axis, from the top."""
    heads = [text_of(row).partition("│")[0] for row in rows[1:]]
    return [found for head in heads if (found := head.replace("┼", "┤").partition("┤")[0].strip()) and "┤" in
            head.replace("┼", "┤")]  # fmt: skip


async def test_what_hardly_moves_has_labels_that_differ():
    async with App[None]().run_test(size=(100, 30)) as pilot:
        await pilot.app.mount(large := Chart(chart(FLAT["exact"]), grid=True))
        for (name, values), size in product(
            FLAT.items(), ((40, 12), (38, 7), (80, 24))
        ):
            data = chart(values)
            large.show(data)
            for rows in (ChartRenderer().rows(data, *size), large.draw(*size)):
                found = labels(rows)
                assert len(found) >= 2 - (name in CONSTANT), (name, size)
                assert len(set(found)) == len(found), (name, size)


NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


@example(one=-1e308, other=-1e308, values=[-1e308], count=60, log=False)
@given(
    one=NUMBERS,
    other=NUMBERS,
    values=st.lists(NUMBERS | st.none(), max_size=5),
    count=st.integers(2, 400),
    log=st.booleans(),
)
def test_every_value_has_a_row_on_every_scale(one, other, values, count, log):
    rows = fit_scale(min(one, other), max(one, other), log=log).dots(values, count)
    assert [row is None for row in rows] == [value is None for value in values]
    assert all(0 <= row < count for row in rows if row is not None)


@pytest.mark.parametrize("value", [0.0, 0.3, -2.0, 1e6])
@pytest.mark.parametrize("height", [7, 9, 12, 13, 30])
@pytest.mark.parametrize("log_y", [False, True])
def test_a_constant_lies_at_its_label(value, height, log_y):
    drawn = ChartRenderer().rows(chart([value] * 9, log_y=log_y), 40, height)
    rows = [*map(text_of, drawn)]
    (label,) = (row for row in rows if "┤" in row)
    (line,) = (row for row in rows if any("\u2800" < sign < "\u2900" for sign in row))
    assert label is line
    assert label.startswith(compact(value).rjust(label.index("┤")))
    assert "●" in line
    assert "⠒" in line or "⠤" in line


@given(st.floats(-100, 100), st.floats(10, 1e6), st.integers(7, 60))
def test_every_label_stands_in_the_row_of_its_value(low, extent, height):
    scale = fit_scale(low, low + extent)
    for row, text in row_labels(scale, height).items():
        reach = scale.extent / height
        assert abs(scale.hi - (row + 0.5) * reach - float_of(text)) <= reach * 1.1


def float_of(text):
    """Return the number that a label is."""
    powers = {"k": 1e3, "M": 1e6, "G": 1e9}
    return float(text.rstrip("kMG")) * powers.get(text[-1], 1.0)
