"""The history of findings, acknowledging, targets, and the way from an episode to its step."""

from __future__ import annotations

from watching import (
    NOW,
    check_layout,
    check_shown,
    dashboard,
    loaded,
    press,
    records,
    showing,
    text,
    write_run,
)

from verl_tui.config import Config
from verl_tui.tui.screens.history import HistoryScreen
from verl_tui.tui.widgets.chart import Chart


async def test_history_lists_what_was_raised_newest_first(collapse):
    app = showing(collapse)
    async with app.run_test(size=(40, 12)) as pilot:
        for size in ((40, 12), (140, 45), (80, 24)):
            await pilot.resize_terminal(*size)
            await press(pilot, "A")
            assert isinstance(app.screen, HistoryScreen)
            check_layout(app)
            shown = text(app)
            assert "clip-saturation" in shown
            assert "raised at step" in shown
            await press(pilot, "G")
            assert "repetition" in text(app) or "ref-kl-high" in text(app)
            await press(pilot, "escape")
            assert app.screen is dashboard(app)
        # Enter goes to the step.
        listed = app.view_at(NOW).verdict.history[::-1]
        await press(pilot, "A", "j", "enter")
        assert app.screen is dashboard(app)
        assert app.view_at(NOW).cursor == listed[1].since_step
        # An episode of a diagnosis leads to its chart while it lasts.
        await press(pilot, "0", "A", "G")
        at = [one.key for one in listed].index("samples/repetition")
        await press(pilot, "g", *["j"] * at, "enter")
        drawn = {
            chart.data.key for chart in dashboard(app).query(Chart) if chart.display
        }
        assert "samples/repetition" in drawn
        assert app.cursor == 144


async def test_what_was_cleared_says_when(tmp_path):
    log = write_run(tmp_path, "run", 30, kl_div=0.15)
    log.write_text(log.read_text() + records(31, 60, kl_div=0.02))
    app = loaded(log)
    async with app.run_test(size=(100, 30)) as pilot:
        await press(pilot, "A")
        assert "since step 1 · raised at step 10 · cleared at step 34" in text(app)
        assert "1 raised, 0 ongoing" in text(app)


async def test_acknowledged_findings_step_back(tmp_path):
    write_run(tmp_path, "run", 40, kl_div=0.3, response_length_mean=300.0)
    write_run(tmp_path, "sane", 40)
    app = loaded(tmp_path)
    async with app.run_test(size=(200, 50)) as pilot:
        await press(pilot)
        assert "1 ✖2 run" in text(app)
        assert text(app).index("circuit-breaker-kl") < text(app).index("response-short")
        await press(pilot, "a")
        assert "1 ▲1 run" in text(app), "only the warning is left"
        assert "acknowledged" in text(app)
        assert text(app).index("response-short") < text(app).index("circuit-breaker-kl")
        await press(pilot, "e", "a")
        check_shown(app, "1 ○  run", "2 acknowledged")
        await press(pilot, "a")
        assert "1 ▲1 run" in text(app)
        await press(pilot, "f4", "g", "a")
        assert "1 ✖2 run" in text(app) or "1 ○  run" in text(app), (
            "the same key where the panel has the focus"
        )


async def test_a_target_is_drawn_and_says_when_it_was_reached(tmp_path):
    log = write_run(tmp_path, "run", 40)
    config = Config(
        targets={"reward": 2.51, "kl_div": 0.5}, charts=("reward", "policy_kl")
    )
    app = loaded(log, config=config)
    async with app.run_test(size=(140, 45)) as pilot:
        for size in ((140, 45), (80, 24)):
            await pilot.resize_terminal(*size)
            await press(pilot)
            assert "target 2.51" in text(app)
            assert "reached at step 1" in text(app) or "@ 1" in text(app)
            await press(pilot, "enter")
            assert "target 2.51 @ 1" in text(app)
            await press(pilot, "escape")
