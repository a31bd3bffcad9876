"""The screen about sources: it opens, shows what is new, scrolls and closes."""

from __future__ import annotations

import pytest
from rich.cells import cell_len
from run_views import NOW, make_view
from textual.app import App

from verl_tui.records import Batch, SourceStatus, Unreadable
from verl_tui.runs.run import Run
from verl_tui.tui.screens.sources.screen import SourcesScreen
from verl_tui.tui.terminal.output import screen_rows

HOSTILE = "[red]x[/INST] [@click=app.quit] \x1b[2J\x9b \u202e 汉字👨\u200d👩\u200d👧 "
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
async def test_opens_shows_what_is_new_and_closes(key: str) -> None:
    app: App[None] = App()
    run = grpo()
    async with app.run_test(size=(120, 30)) as pilot:
        screen = SourcesScreen(make_view(run))
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


async def test_opens_empty_and_is_shown_something_later() -> None:
    app: App[None] = App()
    async with app.run_test(size=(120, 30)) as pilot:
        screen = SourcesScreen()
        app.push_screen(screen)
        await pilot.pause()
        screen.show(make_view(grpo()))
        await pilot.pause()
        assert "12,345" in screen_text(app)


async def test_scrolls_to_the_unreadable_lines_at_any_size() -> None:
    app: App[None] = App()
    run = Run(HOSTILE)
    lines = [Unreadable(line, "not JSON", HOSTILE) for line in range(1, 100)]
    add(
        run,
        SourceStatus(f"/data/{HOSTILE}/train.log", "verl console", unreadable=99),
        *lines,
    )
    async with app.run_test(size=(40, 12)) as pilot:
        screen = SourcesScreen(make_view(run))
        app.push_screen(screen)
        await pilot.pause()
        await pilot.pause()
        await pilot.press("G")
        await pilot.pause()
        assert "line 99" in screen_text(app)
        for size in [(1, 1), (5, 3), (20, 6), (200, 50), (79, 24)]:
            await pilot.resize_terminal(*size)
            await pilot.pause()
            screen_text(app)
