"""What the help says of the signs in charts and in the run list: those that are drawn, with and
without Unicode.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

import pytest
from textual.app import App
from watching import press, showing

from verl_tui.rendering.charts.chart_data import ChartData, ChartLine, Mark
from verl_tui.rendering.charts.legend import SIGNS, legend
from verl_tui.rendering.charts.line_styles import LINE_STYLES
from verl_tui.rendering.charts.renderer import ChartRenderer
from verl_tui.rendering.charts.symbols import Symbols
from verl_tui.runs.pyramid import Pyramid
from verl_tui.tui.widgets.rows import Rows
from verl_tui.tui.widgets.zoomed_chart import ZoomedChart

if TYPE_CHECKING:
    from textual.pilot import Pilot

    from verl_tui.monitor import Monitor

FRAME = {"ellipsis", "rule", "tick", "side", "side_tick", "side_right", "corner"}
"""Signs that need no words."""


class Ramp:
    steps = array("q", range(50))
    values = array("d", range(50))
    pyramid = Pyramid(steps, values)


DATA = ChartData(
    "k",
    lines=(ChartLine(Ramp()),),
    band=(10.4, None),
    target=30.3,
    marks=(Mark(3, "checkpoint"), Mark(20, "restart")),
)


async def displayed(pilot: Pilot[Any], *keys: str) -> list[str]:
    """Return the rows of the help once keys have been pressed."""
    await press(pilot, *keys, "question_mark")
    return [strip.text.rstrip() for strip in pilot.app.screen.query_one(Rows).strips]


def test_every_sign_of_a_chart_is_explained() -> None:
    assert {name for names in SIGNS for name in names.split()} | FRAME == set(
        Symbols._fields
    )


@pytest.mark.parametrize("ascii_only", [False, True])
def test_lines_look_as_they_are_drawn(ascii_only: bool) -> None:
    signs = {entry.means: entry.sign for entry in legend(ascii_only=ascii_only)}
    rows = ChartRenderer(ascii_only=ascii_only).rows(DATA, 60, 14)
    for role, means in (
        ("band", "ends of the healthy range, else shaded"),
        ("target", "a target of the configuration"),
    ):
        drawn = next(
            "".join(text for text, _ in row)
            for row in rows
            if role in {style for _, style in row}
        )
        shown = signs[means].split(" ═")[0].split(" ━")[0]
        assert _dashes(shown) in _dashes(drawn), role
        assert not ascii_only or shown.isascii()
    assert (
        len(
            {
                _dashes(signs[means])
                for means in signs
                if "range" in means or "target of" in means
            }
        )
        == 2
    )
    assert any(
        signs["checkpoint"] in text
        for row in rows
        for text, style in row
        if style == "checkpoint"
    )


def _dashes(line: str) -> str:
    """Return where a line is drawn, whatever its height within the row."""
    return "".join(" " if sign == " " else "x" for sign in line)


async def test_lines_of_the_large_chart_look_as_they_are_said_to() -> None:
    async with App().run_test(size=(100, 30)) as pilot:
        chart = ZoomedChart(DATA)
        await pilot.app.mount(chart)
        rows = chart.draw(100, 28)
    for role, stroke in LINE_STYLES.items():
        signs = {
            sign
            for row in rows
            for text, style in row
            if style == role
            for sign in text
        }
        assert signs - {"↻", "┼"} == {stroke.sign}


@pytest.mark.parametrize(
    ("ascii_only", "places", "states"),
    [
        (True, ("",), "+ finished, # crashed"),
        (False, ("", "enter"), "✓ finished, † crashed"),
        pytest.param(
            True,
            ("", "enter", "m"),
            "+ finished, # crashed",
            marks=pytest.mark.thorough,
        ),
        pytest.param(
            False, ("", "m"), "✓ finished, † crashed", marks=pytest.mark.thorough
        ),
    ],
)
async def test_the_help_has_them_once_where_charts_are(
    demo: Monitor, ascii_only: bool, places: tuple[str, ...], states: str
) -> None:
    app = showing(demo, ascii_only=ascii_only)
    async with app.run_test(size=(100, 30)) as pilot:
        for keys in places:
            rows = await displayed(pilot, *keys.split())
            await press(pilot, "escape", *["escape" for _ in keys.split()])
            assert rows.count("signs in charts") == 1
            heads = [row for row in rows if row and not row.startswith(" ")]
            everywhere = [
                at for at, head in enumerate(heads) if head.endswith("everywhere")
            ]
            assert heads.index("signs in charts") == (1 if keys else everywhere[-1] + 2)
            for entry in legend(ascii_only=ascii_only):
                assert any(
                    row.split("  ")[1:2] == [entry.sign] and row.endswith(entry.means)
                    for row in rows
                ), entry
            # States of runs have the signs of the run list.
            assert any(f"after a name: {states}" in row for row in rows)
            sign = "o" if ascii_only else "●"
            assert any(f"before a name: {sign} nothing found" in row for row in rows)
            # Arrow keys are words in ASCII.
            if ascii_only:
                assert any(
                    row.startswith("  left ") and "Move the cursor left" in row
                    for row in rows
                )


async def test_the_legend_fits(demo: Monitor) -> None:
    app = showing(demo)
    async with app.run_test(size=(40, 12)) as pilot:
        for size in ((40, 12), (20, 6)):
            await pilot.resize_terminal(*size)
            rows = await displayed(pilot)
            await press(pilot, "escape")
            assert "signs in charts" in rows
            assert all(len(row) <= size[0] for row in rows), size
