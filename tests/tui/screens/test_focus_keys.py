"""Keys mean what has the focus: the last row of the screen, enter, the filter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from watching import Typed, check_layout, dashboard, in_sight, lines, press, showing

from verl_tui.tui.app import SCREENS
from verl_tui.tui.panels.charts import ChartsPanel
from verl_tui.tui.screens.zoom import ZoomScreen
from verl_tui.tui.widgets.chart import Chart

if TYPE_CHECKING:
    from verl_tui.tui.app import VerlApp

WIDE = (140, 45)


def zoomed(app: VerlApp) -> str:
    """Return the metric of the chart over the full screen."""
    assert isinstance(app.screen, ZoomScreen)
    return app.screen.query_one(Chart).data.key


# -- the last row ----------------------------------------------------------------------------------


async def test_the_last_row_names_each_screen_once_and_always_the_help(demo):
    app = showing(demo)
    async with app.run_test(size=(170, 45)) as pilot:
        for key in ("f2", "f3", "f4", "f5", "f6"):
            await press(pilot, key)
            row = lines(app)[-1]
            for one in SCREENS.values():
                assert not one.short or row.count(f" {one.short}") == 1, row
        # The key that names all others has room at any width.
        for key in ("f6", "f2", "f3"):
            await press(pilot, key)
            for width in (60, 80, 100, 120):
                await pilot.resize_terminal(width, 30)
                assert "? Help" in lines(app)[-1], (key, width)
                check_layout(app)


# -- enter -----------------------------------------------------------------------------------------


async def test_enter_opens_what_has_the_focus(demo):
    app = showing(demo)
    async with app.run_test(size=WIDE) as pilot:
        await press(pilot, "f5", "enter")
        assert app.screen is dashboard(app)
        assert in_sight(app) == {"gpus"}
        await press(pilot, "enter")
        assert len(in_sight(app)) == 4
        await press(pilot, "f3", "j", "enter")
        assert zoomed(app) == "actor/entropy", "the chart below"


# -- a chart over the full screen ------------------------------------------------------------------


async def test_a_zoomed_chart_goes_from_run_to_run_and_from_metric_to_metric(demo):
    app = showing(demo)
    async with app.run_test(size=WIDE) as pilot:
        # From run to run it keeps to what is meant.
        await press(pilot, "enter")
        assert zoomed(app) == "critic/score/mean"
        assert lines(app)[-1].startswith(
            "esc Back [ ] Run j k Metric ← → Read + - Zoom"
        )
        await press(pilot, "right_square_bracket")
        assert zoomed(app) == "critic/score/mean"
        await press(pilot, "left_square_bracket")
        assert zoomed(app) == "critic/score/mean"
        await press(pilot, "right_square_bracket", "escape")
        assert "run_grpo_high_lr" in lines(app)[0]
        # From metric to metric it keeps to the order of the dashboard.
        await press(pilot, "1")
        wanted = [
            chart.data.key for chart in dashboard(app).query_one(ChartsPanel).charts
        ][:3]
        await press(pilot, "enter", "k")
        assert zoomed(app) == wanted[0], "there is none before"
        found = []
        for key in ("j", "down", "up"):
            await press(pilot, key)
            found.append(zoomed(app))
        assert found == [wanted[1], wanted[2], wanted[1]]
        await press(pilot, "escape", "enter")
        assert zoomed(app) == wanted[1], "the dashboard is where one left"
        # In all metrics it goes through those listed.
        await press(pilot, "escape", "m", "slash", Typed("actor"), "enter", "enter")
        first = zoomed(app)
        await press(pilot, "j")
        assert zoomed(app) != first
        assert "actor" in zoomed(app)
        await press(pilot, "k")
        assert zoomed(app) == first
