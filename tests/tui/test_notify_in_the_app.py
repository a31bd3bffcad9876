"""The app tells what is found while it is open, and says what could not be sent."""

from __future__ import annotations

import math
import os

from inside_textual import notices
from jsonl import write_jsonl
from watching import lines, until

from verl_tui.config import Config
from verl_tui.monitor import load
from verl_tui.notify.delivery import Destination, NotSentError
from verl_tui.notify.notifier import Notifier, Sender
from verl_tui.notify.notify_settings import NotifySettings
from verl_tui.records import Batch, MetricRows, SourceStatus
from verl_tui.tui import monitor_app
from verl_tui.tui.app import VerlApp

NOW = 1_800_000_000.0


def log(path, kls):
    rows = [
        {"scope": "ppo", "step": step, "kl_div": kl, "policy_loss": 0.1}
        for step, kl in enumerate(kls, 1)
    ]
    write_jsonl(path, rows)
    os.utime(path, (NOW, NOW))
    return path


async def test_what_is_found_meanwhile_is_reported_and_nothing_else(
    tmp_path, monkeypatch
):
    # each tick judges all runs, however slow the machine is
    monkeypatch.setattr(monitor_app, "JUDGING", math.inf)
    sent: list[str] = []

    def deliver(message):
        sent.append(f"{message.run} {message.finding or message.state}")
        raise NotSentError("the webhook from X answers with HTTP 404")

    healthy = log(tmp_path / "healthy" / "verl_logs.jsonl", [0.03] * 30)
    broken = log(tmp_path / "broken" / "verl_logs.jsonl", [0.03] * 20 + [0.3] * 10)
    config = Config()
    monitor = load([str(healthy), str(broken)], config, NOW + 1)
    assert any(
        one.id == "circuit-breaker-kl" for one in monitor.verdicts["broken"].findings
    )
    to = Destination("https://host/SECRET", "VERL_TUI_NOTIFY_URL", "json")
    notifier = Notifier(NotifySettings(), to, sender=Sender(deliver))
    app = VerlApp([], config, monitor=monitor, clock=lambda: NOW + 2, notifier=notifier)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        said = notices(app)
        assert said == ["notifications are on, for what is new from now"]
        app.tick()
        steps = range(31, 41)
        rows = MetricRows(("ppo/kl_div",), steps, ([0.3] * 10,), steps)
        status = SourceStatus("/more.jsonl", "tutorial JSONL", 5, 1)
        monitor.apply(Batch("healthy", status, (rows,), live=True), NOW + 2)
        app.tick()
        notifier.sender.close(30)
        app.tick()
        await pilot.pause()
        assert sent == ["healthy circuit-breaker-kl"]
        said = notices(app)
        failed = (
            "1 notification could not be sent: the webhook from X answers with HTTP 404"
        )
        assert said[1:] == [failed]
        await until(pilot, lambda: "1 unsent" in lines(app)[0])
    assert notifier.close(30) == [failed], "said again where it stays to be read"
