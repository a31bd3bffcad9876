"""A run may turn out to be none while it is looked at: the file behind it is no log after all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from watching import NOW, lines, press, sample, settle, write_run

from verl_tui.config import Config
from verl_tui.monitor import Monitor
from verl_tui.records import Reread
from verl_tui.rendering.session.snapshot import View
from verl_tui.sources.feed import Feed
from verl_tui.tui.app import VerlApp
from verl_tui.tui.screens.dashboard import Dashboard

if TYPE_CHECKING:
    from pathlib import Path


async def test_whatever_shows_a_run_shows_its_end(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_run(tmp_path, name, text=sample(3, "hello"))
    feed, monitor = Feed([str(tmp_path)]), Monitor(Config())
    monitor.apply(feed.scan(), NOW)
    batches = [*feed.read(), *feed.finish()]
    for batch in batches:
        monitor.apply(batch, NOW)
    app = VerlApp((), monitor.config, monitor=monitor, clock=lambda: NOW, shown="one")
    async with app.run_test(size=(100, 30)) as pilot:
        for key in ("m", "t", "l"):
            await press(pilot, key)
            for name in ("one", "two"):
                monitor.apply(Reread(name, left=False), NOW)
                monitor.judge(NOW)
                app.post_message(app.News())
                await settle(pilot)
                await press(pilot, "down", "right")
            for batch in batches:
                monitor.apply(batch, NOW)
            await press(pilot, "escape", "escape")
            lines(app)
            assert app.is_running


async def test_a_chart_of_a_run_that_went_while_it_was_covered_is_not_opened(
    tmp_path: Path,
) -> None:
    write_run(tmp_path, "one")
    feed, monitor = Feed([str(tmp_path)]), Monitor(Config())
    monitor.apply(feed.scan(), NOW)
    for batch in (*feed.read(), *feed.finish()):
        monitor.apply(batch, NOW)
    app = VerlApp((), monitor.config, monitor=monitor, clock=lambda: NOW)
    async with app.run_test(size=(100, 30)) as pilot:
        dashboard = app.screen
        assert isinstance(dashboard, Dashboard)
        await press(pilot, "c")
        dashboard.show(View(Monitor(Config()), None, NOW))
        covering = app.screen
        dashboard.action_open()  # as a key does that comes before the next drawing
        await settle(pilot)
        assert app.screen is covering
