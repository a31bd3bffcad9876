"""The screen about sources: it opens, shows what is new, scrolls and closes."""

from __future__ import annotations

import pytest
from rich.cells import cell_len
from run_views import NOW, make_view
from textual.app import App

from verl_tui.records import Batch, SourceStatus, Unreadable
from verl_tui.runs.run import Run
from verl_tui.tui.screens.dashboard import Dashboard
from verl_tui.tui.screens.sources import SourcesScreen
from verl_tui.tui.terminal.output import screen_rows

LOG = SourceStatus("/data/runs/grpo/train.log", "verl console", records=12_345)


def add(run: Run, status: SourceStatus, *lines: Unreadable) -> None:
    run.apply(Batch(run.name, status, lines), NOW)


def grpo() -> Run:
    run = Run("grpo")
    add(run, LOG)
    return run


def screen_text(app: App[None]) -> str:
    rows = screen_rows(app)
    assert {cell_len(row) for row in rows} == {app.size.width}
    return "\n".join(rows)


@pytest.mark.parametrize("key", ["escape", "q", "i"])
async def test_opens_shows_what_is_new_and_closes(key):
    app: App[None] = App()
    run = grpo()
    async with app.run_test(size=(120, 30)) as pilot:
        dashboard = Dashboard()
        dashboard.view = make_view(run)
        screen = SourcesScreen(dashboard)
        app.push_screen(screen)
        await pilot.pause()
        await pilot.pause()
        assert "sources of grpo" in screen_text(app)
        assert "12,345" in screen_text(app)
        add(run, SourceStatus("/data/runs/grpo/new.jsonl", "tutorial", records=77))
        screen.show(make_view(run))
        await pilot.pause()
        assert "new.jsonl" in screen_text(app)
        await pilot.press(key)
        assert app.screen is not screen
