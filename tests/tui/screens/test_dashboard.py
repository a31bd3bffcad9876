"""The main screen: focus, zoom, runs, findings, filter."""

from __future__ import annotations

from dashboard_layouts import LAYOUTS
from watching import (
    NOW,
    Typed,
    check_layout,
    dashboard,
    in_sight,
    lines,
    loaded,
    press,
    settle,
    showing,
    text,
    write_run,
)

from verl_tui.config import Config
from verl_tui.monitor import Monitor
from verl_tui.rendering.session.snapshot import View
from verl_tui.tui.panels.charts import ChartsPanel
from verl_tui.tui.panels.samples import SamplesPanel
from verl_tui.tui.screens.dashboard import Dashboard


def focused_panel(app):
    panel = dashboard(app).focused_panel
    return panel.id if panel is not None else None


def shown_run(app):
    run = app.view_at(NOW).run
    return run.name


LOOPS = {"bbbbb", "the", "这个问题" * 2}
"""Words in samples that repeat themselves."""

# -- focus and zoom --------------------------------------------------------------------------------


async def test_tab_goes_through_all_panels_and_z_zooms_them(demo):
    app = showing(demo)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        assert focused_panel(app) is None
        # Charts turn though nothing has the focus.
        charts = dashboard(app).query_one(ChartsPanel)
        first = charts.charts[0].data.key
        await press(pilot, "pagedown")
        assert charts.charts[0].data.key != first
        await press(pilot, "pageup", "down")
        assert charts.charts[0].data.key == first
        assert charts.charts[0].has_focus
        await press(pilot, "escape")
        assert focused_panel(app) is None
        # Tab goes through all panels and back.
        there = []
        order = [name for name in Dashboard.ORDER if name != "health"]
        for _ in order:
            await press(pilot, "tab")
            there.append(focused_panel(app))
            assert in_sight(app) == LAYOUTS[120, 40]
        assert there == order, "health has nothing to add to the verdict"
        await press(pilot, "tab")
        assert app.screen.focused is dashboard(app).query_one("#verdict")
        await press(pilot, "tab")
        assert focused_panel(app) == order[0]
        await press(pilot, "shift+tab", "shift+tab")
        assert focused_panel(app) == order[-1]
        # A panel is zoomed and no longer.
        await press(pilot, "f5", "z")
        assert in_sight(app) == {"gpus"}
        check_layout(app)
        await press(pilot, "z")
        assert in_sight(app) == LAYOUTS[120, 40]
        await press(pilot, "z")
        assert in_sight(app) == {"gpus"}
        await press(pilot, "escape")
        assert in_sight(app) == LAYOUTS[120, 40]
        await press(pilot, "escape")
        assert app.focused is None
        await press(pilot, "z")
        assert in_sight(app) == {"charts"}
        # It stays so while the terminal is resized.
        await press(pilot, "z", "f6", "z")
        for size in LAYOUTS:
            await pilot.resize_terminal(*size)
            assert in_sight(app) == {"samples"}
            check_layout(app)
        assert "step 300" in text(app)


# -- runs ------------------------------------------------------------------------------------------


async def test_a_single_run_has_no_next_one(tmp_path):
    write_run(tmp_path, "alone", 5)
    app = loaded(tmp_path)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await press(pilot, "right_square_bracket")
        assert "no other run is listed" in text(app)
        await press(pilot, "2")
        assert "no run 2: 1 run listed" in text(app)


async def test_runs_are_switched_by_keys(demo):
    app = showing(demo)
    first, second, third = "run_grpo_gsm8k", "run_grpo_high_lr", "run_grpo_seed_8"
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        for key, name in [
            *(
                ("right_square_bracket", second),
                ("right_square_bracket", third),
                ("right_square_bracket", first),
            ),
            *(
                ("left_square_bracket", third),
                ("1", first),
                ("2", second),
                ("3", third),
                ("9", third),
            ),
        ]:
            await press(pilot, key)
            assert lines(app)[0].startswith(f" {name} ")
        # A panel that comes into sight shows the newest state.
        await press(pilot, "1", "f6")
        assert "step 300" in text(app)
        await press(pilot, "escape", "2", "f6")
        assert LOOPS & {*text(app).split()}
        await press(pilot, "f3")
        await press(pilot, "escape", "0")
        assert in_sight(app) == LAYOUTS[80, 24]


async def test_keys_go_where_the_focus_is(demo):
    app = showing(demo)
    async with app.run_test(size=(120, 40)) as pilot:
        # What is typed into the filter is no key.
        await press(pilot, "slash", *"qpz2?")
        assert app.is_running
        assert not app.view_at(NOW).paused
        assert shown_run(app) == "run_grpo_gsm8k"
        assert in_sight(app) == LAYOUTS[120, 40]
        # A filter shows its first matches, on whichever page one was.
        await press(pilot, "escape", "f3", "G")
        charts = app.screen.query_one(ChartsPanel)
        await press(pilot, "slash", Typed("timing"))
        assert charts.charts[0].data.key == charts.listed(app.view_at(NOW))[0].key
        assert "1–9 of" in text(app)
        # Runs are switched in their panel.
        await press(pilot, "escape", "f2", "j")
        assert "run_grpo_high_lr" in lines(app)[0]
        assert "policy collapse" in text(app)
        assert LOOPS & {*text(app).split()}
        await press(pilot, "G")
        assert "run_grpo_seed_8" in lines(app)[0]
        assert focused_panel(app) == "runs"
        # Charts behind a screen keep to their run when all is forgotten.
        await press(pilot, "m")
        dashboard(app).query_one(ChartsPanel).show(View(Monitor(Config()), None, NOW))
        await pilot.resize_terminal(140, 45)
        await press(pilot, "escape")
        assert "reward" in text(app)


# -- findings --------------------------------------------------------------------------------------


async def test_the_next_finding_takes_charts_and_samples_to_its_step(apart):
    app = showing(apart)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        findings = app.view_at(NOW).verdict.findings
        assert len(findings) > 2
        charts = app.screen.query_one(ChartsPanel)
        samples = app.screen.query_one(SamplesPanel)
        for finding in [*findings, findings[0]]:
            await press(pilot, "e")
            assert app.cursor == finding.since_step
            assert {chart.cursor for chart in charts.charts if chart.display} == {
                finding.since_step
            }
            assert any(
                finding.key == chart.data.key
                for chart in charts.charts
                if chart.display
            )
            assert samples.browse.shown[0].step == finding.since_step
            assert f"step {finding.since_step}" in text(app)
        await press(pilot, "E", "E")
        assert app.cursor == findings[-2].since_step
        await press(pilot, "0")
        assert app.cursor is None
        assert {chart.cursor for chart in charts.charts} == {None}


async def test_a_chart_s_cursor_takes_the_others_along(collapse):
    app = showing(collapse)
    async with app.run_test(size=(120, 40)) as pilot:
        # Values are read though nothing has the focus.
        await press(pilot, "left")
        charts = app.screen.query_one(ChartsPanel)
        samples = app.screen.query_one(SamplesPanel)
        assert charts.charts[0].has_focus
        await press(pilot, "left")
        read = app.cursor
        assert read is not None
        assert {chart.cursor for chart in charts.charts if chart.display} == {read}
        await press(pilot, "f4", "home", "enter")
        assert app.cursor < read
        assert not any(chart.has_focus for chart in charts.charts), (
            "who has the focus keeps it"
        )
        # The samples go along, and with the focus on charts escape ends the reading.
        await press(pilot, "f3", "home")
        assert {chart.cursor for chart in charts.charts} == {0}
        assert samples.browse.shown[0].step == 0
        await press(pilot, "escape")
        assert {chart.cursor for chart in charts.charts} == {None}
