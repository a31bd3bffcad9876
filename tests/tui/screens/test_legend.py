"""What the help says of the signs in charts and in the run list: those that are drawn, with and
without Unicode.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from watching import press, showing

from verl_tui.rendering.charts.symbols import SIGNS, Symbols, legend
from verl_tui.tui.widgets.rows import Rows

if TYPE_CHECKING:
    from textual.pilot import Pilot

    from verl_tui.monitor import Monitor

FRAME = {
    "ellipsis",
    "rule",
    "grid",
    "tick",
    "side",
    "side_tick",
    "side_right",
    "corner",
}
"""Signs that need no words."""


async def displayed(pilot: Pilot[Any], *keys: str) -> list[str]:
    """Return the rows of the help once keys have been pressed."""
    await press(pilot, *keys, "question_mark")
    return pilot.app.screen.query_one("#list", Rows).plain.splitlines()


def test_every_sign_of_a_chart_is_explained() -> None:
    assert {name for names in SIGNS for name in names.split()} | FRAME == set(
        Symbols._fields
    )


@pytest.mark.parametrize(
    "places", [("", "enter"), pytest.param(("", "m"), marks=pytest.mark.thorough)]
)
async def test_the_help_has_them_once_where_charts_are(
    demo: Monitor, places: tuple[str, ...]
) -> None:
    app = showing(demo)
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
            for entry in legend():
                assert any(
                    row.split("  ")[1:2] == [entry[0]] and row.endswith(entry[1])
                    for row in rows
                ), entry
            # States of runs have the signs of the run list.
            assert any("after a name: ✓ finished, † crashed" in row for row in rows)
            assert any("before a name: ● nothing found" in row for row in rows)
