"""A run may turn out to be none while it is looked at: the file behind it is no log after all."""

from __future__ import annotations

from watching import NOW, lines, press, sample, settle, write_run

from verl_tui.config import Config
from verl_tui.monitor import Monitor
from verl_tui.records import Reread
from verl_tui.sources.feed import Feed
from verl_tui.tui.app import VerlApp


async def test_whatever_shows_a_run_shows_its_end(tmp_path):
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
