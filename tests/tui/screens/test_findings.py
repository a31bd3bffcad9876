"""From one finding to the next: charts, samples and words follow wherever the user is."""

from __future__ import annotations

import pytest
from inside_textual import notices
from watching import (
    NOW,
    check_layout,
    check_shown,
    dashboard,
    in_sight,
    press,
    settle,
    showing,
    text,
)

from verl_tui.rendering.charts.chart_data import ALARM_ROLES
from verl_tui.tui.panels.samples import SamplesPanel
from verl_tui.tui.widgets.chart import Chart

SIZES = [
    ((140, 45), (40, 12)),
    pytest.param(((80, 24), (60, 14)), marks=pytest.mark.thorough),
]


def shown(app):
    """Return the keys of the charts in sight."""
    return {chart.data.key for chart in dashboard(app).query(Chart) if chart.display}


@pytest.mark.parametrize("sizes", SIZES)
async def test_every_finding_is_reached_in_every_layout(apart, sizes):
    app = showing(apart)
    async with app.run_test(size=sizes[0], notifications=True) as pilot:
        await settle(pilot)
        samples = app.screen.query_one(SamplesPanel)
        for size in sizes:
            await pilot.resize_terminal(*size)
            for finding in app.view_at(NOW).verdict.findings:
                await press(pilot, "e")
                assert finding.key in shown(app)
                chart = next(
                    one
                    for one in dashboard(app).query(Chart)
                    if one.data.key == finding.key
                )
                assert chart.cursor == app.cursor == finding.since_step
                assert finding.since_step in {
                    mark.step for mark in chart.data.marks if mark.role in ALARM_ROLES
                }
                if samples.display:
                    assert samples.browse.shown[0].step == finding.since_step
                assert len(notices(app)) <= 1, "they do not heap up"
                assert finding.message[:12] in text(app) or notices(app)[0].startswith(
                    f"{finding.id}: "
                ), "it is named"
                check_layout(app)
            await press(pilot, "f6")
            assert samples.browse.shown[0].step == app.cursor
            await press(pilot, "escape", "escape", "0")
            app.clear_notifications()
            assert app.cursor is None


async def test_why_rules_were_not_judged_is_shown_wherever_the_focus_is(demo):
    app = showing(demo)
    async with app.run_test(size=(140, 45)) as pilot:
        await press(pilot, "f2")
        assert "v: why" in text(app)
        assert "health" not in in_sight(app), "its row would say the same"
        await press(pilot, "v")
        check_shown(app, "─ health ─", "not applicable")
        await press(pilot, "v")
        assert "health" not in in_sight(app)
        await press(pilot, "right_square_bracket", "v")
        check_shown(app, "─ health ─", "1 critical")
        assert not notices(app), "it is in sight"
        await press(pilot, "v", "f5", "z", "v")
        assert notices(app) == ["the health panel is out of sight: f4 shows it"]
