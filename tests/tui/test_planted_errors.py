"""Errors planted in panels, screens, keys and ticks: each costs only the part it happened in."""

from __future__ import annotations

import pytest
from inside_textual import notices
from watching import dashboard, lines, loaded, press, settle, text, until, write_run

from verl_tui import debug_log
from verl_tui.rendering.health_rows import FindingList
from verl_tui.secrets import Mask
from verl_tui.tui.panels.gpus import GpusPanel
from verl_tui.tui.panels.health import HealthPanel
from verl_tui.tui.panels.panel import Panel
from verl_tui.tui.panels.runs import RunsPanel
from verl_tui.tui.panels.samples import SamplesPanel
from verl_tui.tui.screens.config import ConfigScreen
from verl_tui.tui.screens.metrics import MetricsScreen
from verl_tui.tui.screens.timing import TimingScreen
from verl_tui.tui.screens.zoom import ZoomScreen
from verl_tui.tui.widgets.chart import Chart

SECRET = "sk-0123456789012345678901234567890"
PANEL = "This panel has failed: ZeroDivisionError in "
SCREEN = "This screen has failed: ZeroDivisionError in "

IN_PANELS = (
    (HealthPanel, "show", ""),
    (HealthPanel, "needed", ""),
    (FindingList, "lay_out", ""),
    (SamplesPanel, "settle", ""),
    (RunsPanel, "needed", ""),
    (Chart, "render_line", "plus"),
    (RunsPanel, "on_rows_chosen", "f2 j"),
)
"""What panels are shown, their size, findings as text, drawings, keys and messages."""
IN_SCREENS = (
    (ZoomScreen, "show", "enter"),
    (MetricsScreen, "redraw", "m"),
    (TimingScreen, "page", "t"),
    (TimingScreen, "compose", "t"),
    (ConfigScreen, "on_mount", "c"),
)


@pytest.fixture
def app(tmp_path, monkeypatch):
    """The app on two runs, as users have it."""
    monkeypatch.delenv("VERL_TUI_STRICT")
    for name in ("a", "b"):
        write_run(tmp_path, name)
    return loaded(tmp_path)


def broken(self=None, *_given, **_named):
    raise ZeroDivisionError(f"what a log said, {SECRET}")


async def test_an_error_costs_the_panel_it_happened_in(app, monkeypatch):
    async with app.run_test(size=(100, 30)) as pilot:
        await press(pilot, "v")  # else health has nothing to add to the verdict
        for width, (at, name, keys) in enumerate(IN_PANELS, 101):
            with monkeypatch.context() as planted:
                planted.setattr(at, name, broken)
                await pilot.resize_terminal(width, 30)
                await press(pilot, *keys.split())
                shown = text(app)
                assert shown.count(PANEL) == 1, (name, shown)
                assert "ctrl+r copies a report" in shown
                assert (
                    len([one for one in dashboard(app).query(Panel) if one.failed]) == 1
                )
                assert "step 30" in shown
            # another run is tried anew
            await press(pilot, "escape", "right_square_bracket")
            assert PANEL not in text(app), (name, text(app))
            assert "▸○ b" in text(app), (name, text(app))
            await press(pilot, "left_square_bracket")


async def test_the_first_line_says_so_until_a_report_is_copied(app, monkeypatch):
    async with app.run_test(size=(100, 30)) as pilot:
        await press(pilot, "v")  # else health has nothing to add to the verdict
        assert "error" not in lines(app)[0]
        for key in ("right_square_bracket", "left_square_bracket"):
            with monkeypatch.context() as planted:
                planted.setattr(HealthPanel, "show", broken)
                app.tick()
                await until(pilot, lambda: "error: ctrl+r" in lines(app)[0])
            # the panel works again, what happened is known
            await press(pilot, key)
            await until(pilot, lambda: "error, over now: ctrl+r" in lines(app)[0])
        await press(pilot, "ctrl+r")
        await until(pilot, lambda: "error" not in lines(app)[0])


async def test_an_error_costs_the_screen_it_happened_in(app, monkeypatch):
    async with app.run_test(size=(120, 40)) as pilot:
        for at, name, keys in IN_SCREENS:
            with monkeypatch.context() as planted:
                planted.setattr(at, name, broken)
                await press(pilot, *keys.split())
                app.tick()
                await settle(pilot)
                assert SCREEN in text(app), (name, text(app))
                assert "esc leaves it, ctrl+r copies a report" in text(app)
                await press(pilot, "j", "escape")
            assert app.screen is dashboard(app)
            assert "reward" in text(app)
            assert "failed" not in text(app)


async def test_the_report_has_the_traceback_and_no_secret(app, monkeypatch, tmp_path):
    log = tmp_path / "debug.log"
    async with app.run_test(size=(120, 40)) as pilot:
        await press(pilot, "ctrl+r")
        assert notices(app) == ["no error to report"]
        monkeypatch.setattr(GpusPanel, "needed", broken)
        with debug_log.recording(log, Mask({})):
            app.tick()
            await press(pilot, "ctrl+r")
    for written in (app.clipboard, log.read_text()):
        assert "ZeroDivisionError: what a log said, ***" in written
        assert "in broken" in written
        assert SECRET not in written
    assert app.failures.count == 1
    assert app.failures.sentence().startswith("1 error of verl-tui's own ")


async def test_errors_that_leave_nothing_else_end_the_app(app):
    async def fail():
        broken()

    async def fail_on():
        async with app.run_test(size=(120, 40)) as pilot:
            await press(pilot)
            for _ in range(100):
                app.run_worker(fail())
            await until(pilot, lambda: app.return_code)

    with pytest.raises(ZeroDivisionError):
        await fail_on()
