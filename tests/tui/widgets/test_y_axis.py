"""The y axis: ends and labels of metrics that hardly move, and of logarithmic charts."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from chart_columns import Column
from hypothesis import given
from hypothesis import strategies as st
from textual.app import App

from verl_tui.rendering.charts.axes import fit_scale
from verl_tui.rendering.charts.chart_data import ChartData, ChartLine
from verl_tui.rendering.charts.renderer import ChartRenderer
from verl_tui.tui.widgets.chart import Chart

if TYPE_CHECKING:
    from collections.abc import Sequence


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
    points = Column(range(len(values)), values)
    return ChartData("k", lines=(ChartLine(points),), **changes)  # type: ignore[arg-type]


def labels(rows: Sequence[list[tuple[str, str]]]) -> list[str]:
    """Return what stands at the y axis, from the top."""
    heads = ["".join(text for text, _ in row).partition("│")[0] for row in rows[1:]]
    return [found for head in heads if (found := head.replace("┼", "┤").partition("┤")[0].strip()) and "┤" in
            head.replace("┼", "┤")]  # fmt: skip


async def test_what_hardly_moves_has_labels_that_differ() -> None:
    async with App[None]().run_test(size=(100, 30)) as pilot:
        await pilot.app.mount(large := Chart(chart(FLAT["exact"]), grid=True))
        for (name, values), size in product(
            FLAT.items(), ((40, 12), (38, 7), (80, 24))
        ):
            data = chart(values)
            large.show(data)
            for rows in (ChartRenderer().rows(data, *size), large.draw(*size)):
                found = labels(rows)
                assert len(found) >= 2, (name, size)
                assert len(set(found)) == len(found), (name, size)


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
