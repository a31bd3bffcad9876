"""The y axis: ends and labels of metrics that hardly move, and of logarithmic charts."""

from __future__ import annotations

from array import array
from itertools import product
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.app import App

from verl_tui.rendering.charts.axes import Scale, fit_scale
from verl_tui.rendering.charts.chart_data import ChartData, ChartLine
from verl_tui.rendering.charts.renderer import ChartRenderer
from verl_tui.rendering.text.numbers import distinct_texts
from verl_tui.runs.pyramid import Pyramid
from verl_tui.tui.widgets.zoomed_chart import ZoomedChart

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.rendering.charts.braille import Text

FLAT = {
    "exact": [0.5] * 100,
    "small": [1e-6] * 100,
    "zero": [0.0] * 100,
    "odd": [123456.789] * 100,
    "nearly": [0.02 + 0.00001 * (n % 4) for n in range(100)],
    "hardly": [1000 + 1e-7 * (n % 3) for n in range(100)],
    "short": [0.3 + n / 400 for n in range(100)],
}


def chart(values: Sequence[float], **changes: bool) -> ChartData:
    steps = array("q", range(len(values)))
    column = array("d", values)
    points = type(
        "Points",
        (),
        {"steps": steps, "values": column, "pyramid": Pyramid(steps, column)},
    )()
    return ChartData("k", lines=(ChartLine(points),), **changes)  # type: ignore[arg-type]


def labels(rows: Sequence[Text]) -> list[str]:
    """Return what stands at the y axis, from the top."""
    heads = ["".join(text for text, _ in row).partition("│")[0] for row in rows[1:]]
    return [found for head in heads if (found := head.replace("┼", "┤").partition("┤")[0].strip()) and "┤" in
            head.replace("┼", "┤")]  # fmt: skip


async def test_what_hardly_moves_has_labels_that_differ() -> None:
    async with App[None]().run_test(size=(100, 30)) as pilot:
        await pilot.app.mount(large := ZoomedChart(chart(FLAT["exact"])))
        for (name, values), size in product(
            FLAT.items(), ((40, 12), (38, 7), (80, 24))
        ):
            data = chart(values)
            large.show(data)
            for rows in (ChartRenderer().rows(data, *size), large.draw(*size)):
                found = labels(rows)
                assert len(found) >= 2, (name, size)
                assert len(set(found)) == len(found), (name, size)


@given(
    st.lists(
        st.floats(allow_nan=False, allow_infinity=False),
        min_size=2,
        max_size=9,
        unique=True,
    )
)
def test_labels_never_say_the_same_of_different_numbers(values: list[float]) -> None:
    texts = [text for text in distinct_texts(values) if text]
    assert len(set(texts)) == len(texts) >= 1
    assert all(len(text) <= 9 for text in texts)


def test_digits_are_only_as_many_as_it_takes() -> None:
    assert distinct_texts([0.02, 0.04]) == ["0.02", "0.04"]
    assert distinct_texts([0.02, 0.02003]) == ["0.02", "0.02003"]
    assert distinct_texts([1000, 1000 + 1e-8]) == ["1000", ""]


@pytest.mark.parametrize(
    ("lo", "hi", "ends"),
    [
        (0.3, 0.6, (0.3, 0.6)),
        (0.18, 1.1, (0.1, 2)),
        (9.5, 19, (8, 20)),
        (0.09, 11, (0.05, 20)),
        (1e-6, 1e3, (1e-6, 1e3)),
    ],
)
def test_a_logarithmic_axis_ends_where_the_data_do(
    lo: float, hi: float, ends: tuple[float, float]
) -> None:
    scale = fit_scale(lo, hi, log=True)
    assert (scale.lo, scale.hi) == pytest.approx(ends)
    assert scale.lo <= lo <= hi <= scale.hi


def test_ticks_of_less_than_two_decades_are_1_2_and_5() -> None:
    assert fit_scale(0.18, 1.1, log=True).ticks(4) == pytest.approx(
        [0.1, 0.2, 0.5, 1, 2]
    )
    assert fit_scale(0.021, 1.9, log=True).ticks(4) == pytest.approx(
        [0.02, 0.05, 0.1, 0.2, 0.5, 1, 2]
    )
    assert fit_scale(0.0011, 0.9, log=True).ticks(4) == pytest.approx(
        [0.001, 0.01, 0.1, 1]
    )


@given(st.floats(5e-324, 1.7e308), st.floats(5e-324, 1.7e308), st.integers(2, 12))
def test_a_logarithmic_axis_holds_its_data_and_has_ticks(
    one: float, other: float, count: int
) -> None:
    lo, hi = sorted((one, other))
    scale = fit_scale(lo, hi, log=True)
    assert scale.lo <= lo <= hi <= scale.hi
    ticks = scale.ticks(count)
    assert len(ticks) >= 1
    assert sorted(ticks) == ticks


def test_a_curve_over_a_third_of_a_decade_fills_the_chart() -> None:
    data = chart([0.18 + n / 400 for n in range(100)], log_y=True)
    rows = [
        "".join(text for text, _ in row) for row in ChartRenderer().rows(data, 60, 12)
    ]
    drawn = [row for row in rows[1:-2] if any("⠁" <= sign <= "⣿" for sign in row)]
    assert len(drawn) >= 6


NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


@given(
    NUMBERS,
    NUMBERS,
    st.lists(NUMBERS | st.none(), max_size=5),
    st.integers(2, 400),
    st.booleans(),
)
def test_every_value_has_a_row_on_every_scale(
    one: float, other: float, values: list[float | None], count: int, log: bool
) -> None:
    rows = fit_scale(min(one, other), max(one, other), log=log).dots(values, count)
    assert [row is None for row in rows] == [value is None for value in values]
    assert all(0 <= row < count for row in rows if row is not None)


def test_huge_values_lie_beyond_a_scale_of_tiny_ones() -> None:
    assert Scale(0.0, 1e-250).dots([1e308, -1e308, 0.0, None], 8) == [0, 7, 7, None]
