"""The small chart and the large one show the same things: whatever one draws has its place in the
other.
"""

from __future__ import annotations

from array import array
from math import inf, nan
from typing import TYPE_CHECKING, Any

import pytest
from textual.app import App

from verl_tui.rendering.charts.chart_data import ChartData, ChartLine, Mark
from verl_tui.rendering.charts.renderer import ChartRenderer
from verl_tui.runs.pyramid import Pyramid
from verl_tui.tui.widgets.zoomed_chart import ZoomedChart

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from textual.app import ComposeResult

    from verl_tui.rendering.charts.braille import Text


class Column:
    def __init__(self, values: Sequence[float], gap: int = 1) -> None:
        self.steps, self.values = (
            array("q", range(0, len(values) * gap, gap)),
            array("d", values),
        )
        self.pyramid = Pyramid(self.steps, self.values)


FLAT = [0.5 + 0.001 * (i % 7) for i in range(200)]
ODD = [{50: nan, 90: inf}.get(i, value) for i, value in enumerate(FLAT)]
OUTLIERS = [{100: 50.0, 120: -50.0}.get(i, value) for i, value in enumerate(FLAT)]
VALIDATION = ChartLine(Column([0.8] * 20, 10), "points", "validation", "accuracy")
RUNS = tuple(
    ChartLine(
        Column([value + shift for value in FLAT]), role=role, sign=sign, label=role
    )
    for role, sign, shift in (("run-1", "A", 0.0), ("run-2", "B", 0.5))
)
RIGHT = ChartData(
    "r",
    "R",
    lines=(
        ChartLine(
            Column([i / 2 for i in range(200)]), role="right", right=True, label="R"
        ),
    ),
)
MARKS = (Mark(30, "breach"), Mark(60, "restart"), Mark(120, "checkpoint"))


def chart(values: Sequence[float] = FLAT, **changes: Any) -> ChartData:
    return ChartData("k", "K", lines=(ChartLine(Column(values)),))._replace(**changes)


def around(low: float, high: float) -> tuple[Column, Column]:
    return Column([value + low for value in FLAT]), Column(
        [value + high for value in FLAT]
    )


CASES = {
    "band": (chart(band=(0.499, 0.507)), {"line", "band"}),
    "target": (chart(target=0.507), {"line", "target"}),
    "target out of reach": (chart(target=9.0), {"line", "target"}),
    "no numbers": (chart(ODD), {"line", "odd"}),
    "marks": (chart(marks=MARKS), {"line", "critical", "restart", "checkpoint"}),
    "validation": (chart(lines=(ChartLine(Column(FLAT)), VALIDATION)), {"line", "validation"}),
    "envelope": (chart(envelope=around(-0.003, 0.003)), {"line", "envelope"}),
    "outliers": (chart(OUTLIERS, usual_y=True), {"line"}),
    "smoothed": (chart(OUTLIERS, smoothing=0.9), {"line", "raw"}),
    "logarithmic": (chart([10.0**i for i in range(8)], log_y=True), {"line"}),
    "runs": (chart(lines=RUNS), {"run-1", "run-2"}),
    "runs smoothed": (chart(lines=(RUNS[0]._replace(points=Column(OUTLIERS)), RUNS[1]), smoothing=0.9),
                      {"run-1", "run-2", "run-1-raw"}),
    "two axes": (chart(right=RIGHT), {"line", "right"}),
    "cursor": (chart(cursor=60), {"line", "cursor"}),
    "zoomed": (chart(first_step=50, last_step=80, marks=MARKS), {"line", "restart"}),
    "one point": (chart([0.5]), {"line"}),
}  # fmt: skip
_WORDS = {"", "title", "value", "trend", "key", "axis", "rule"}
_SIGNS = set("▲↻■✗◆↑↓AB")


class Empty(App[None]):
    def compose(self) -> ComposeResult:
        yield from ()


def roles(rows: Iterable[Text]) -> set[str]:
    return {role for row in rows for text, role in row if text.strip()} - _WORDS


def signs(rows: Sequence[Text]) -> set[str]:
    """Return the signs that stand for something; the title has some of its own."""
    return {sign for row in rows[1:] for text, _ in row for sign in text} & _SIGNS


@pytest.mark.parametrize("size", [(100, 26), (60, 16)])
async def test_both_charts_show_the_same(size: tuple[int, int]) -> None:
    app = Empty()
    async with app.run_test(size=(120, 40)):
        for name, (data, expected) in CASES.items():
            large = ZoomedChart(data)
            await app.mount(large)
            drawn = [
                large.draw(*size),
                ChartRenderer().rows(data, *size, cursor=data.cursor),
            ]
            await large.remove()
            assert [roles(rows) for rows in drawn] == [expected] * 2, name
            assert signs(drawn[0]) == signs(drawn[1]), name
            if name == "outliers":
                assert signs(drawn[0]) == {"↑", "↓"}
