"""Screens over the dashboard: how much of the terminal they take."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from watching import check_layout, lines, loaded, press, settle, showing, write_run

if TYPE_CHECKING:
    from pathlib import Path

    from verl_tui.monitor import Monitor


@pytest.mark.parametrize(
    "keys", ["Ct", pytest.param("ciA", marks=pytest.mark.thorough)]
)
async def test_an_overlay_fills_the_screen_unless_that_is_far_wider(
    tmp_path: Path, keys: str
) -> None:
    app = loaded(write_run(tmp_path, "run", 3))
    async with app.run_test(size=(60, 20)) as pilot:
        for key in keys:
            await press(pilot, key)
            for width in (60, 80, 140, 150, 220, 100):
                await pilot.resize_terminal(width, 20)
                await settle(pilot)
                check_layout(app)
                panel = app.screen.children[0]
                seen = "\n".join(lines(app))
                rim = (width - panel.outer_size.width) // 2
                assert not rim or rim >= 10
                assert rim or "q Quit" not in seen, (
                    "nothing of the dashboard shows through"
                )
                assert rim or panel.outer_size.height == 20
                assert bool(rim) is (width == 220 and key in "tiA")
            await press(pilot, "escape")


@pytest.mark.parametrize(
    ("key", "before", "after"),
    [
        ("t", (140, 45), (200, 50)),
        ("ctrl+p", (140, 45), (60, 20)),
        pytest.param("A", (200, 50), (172, 30), marks=pytest.mark.thorough),
    ],
)
async def test_what_shines_through_is_drawn_for_another_size(
    demo: Monitor, key: str, before: tuple[int, int], after: tuple[int, int]
) -> None:
    app, there = showing(demo), showing(demo)
    async with there.run_test(size=after) as pilot:
        await press(pilot, key)
        wanted = lines(there)
    async with app.run_test(size=before) as pilot:
        await press(pilot, key)
        await pilot.resize_terminal(*after)
        await settle(pilot)
        assert lines(app) == wanted
