"""Keys that come together, as from a slow link or a paste: each finds what the one before has
done.
"""

from __future__ import annotations

import pytest
from textual.events import Key, Paste
from textual.widgets import Input
from watching import NOW, dashboard, press, settle, showing, text, until, write_run

from verl_tui.config import Config
from verl_tui.monitor import load
from verl_tui.text import safe
from verl_tui.tui import monitor_app
from verl_tui.tui.terminal.net import ContainedApp

SIZE = (140, 45)


def type_in(app, *keys):
    """Have all keys come at once."""
    for key in keys:
        app.post_message(
            key if isinstance(key, Paste) else Key(key, key if len(key) == 1 else None)
        )


async def together(pilot, *keys):
    """Have all keys come at once, and wait until each has done its work."""
    app = pilot.app
    assert isinstance(app, ContainedApp)
    type_in(app, *keys)
    await pilot.pause()
    await until(pilot, lambda: not app.handles_key)
    await settle(pilot)


def typed(app):
    """Return what stands in the box that has the focus."""
    assert isinstance(app.focused, Input)
    return app.focused.value


@pytest.mark.parametrize(
    "boxes",
    [
        (("f2", "slash"), ("m", "slash"), ("ctrl+p",)),
        pytest.param((("l", "slash"), ("o", "slash")), marks=pytest.mark.thorough),
    ],
)
async def test_what_comes_with_the_key_that_opens_a_box_is_typed_into_it(demo, boxes):
    app = showing(demo)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        for keys in boxes:
            await together(pilot, *keys, *"kl")
            assert typed(app) == "kl", keys
            await press(pilot, "escape", "escape", "escape")
            assert app.screen is dashboard(app)
            assert not isinstance(app.focused, Input)
        # So is a paste right behind it.
        await together(pilot, "m", "slash", Paste("grad"), "x")
        assert typed(app) == "gradx"
        await press(pilot, "escape", "escape")
        # What terminals obey is visible in a paste.
        for keys in (("slash",), ("ctrl+p",), ("m", "slash")):
            paste = Paste("k\x1b[31ml \x1b]0;title\x07\x9b2J\x07\x00\u202e\nx")
            await together(pilot, *keys, paste)
            assert typed(app) == "kl ␇␀�", keys
            assert safe(text(app)) == text(app)
            await press(pilot, "escape", "escape")


async def test_new_runs_are_judged_between_keys_never_during_one(tmp_path, monkeypatch):
    monitor = load(
        [str(write_run(tmp_path, f"run {n}")) for n in range(3)], Config(), NOW
    )
    monitor.verdicts.clear()
    at_work = True
    monkeypatch.setattr(monitor_app, "JUDGING", -1.0)
    app = showing(monitor)
    handles = property(lambda _: at_work, lambda *_: None)
    monkeypatch.setattr(ContainedApp, "handles_key", handles)
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause(0.1)
        assert len(monitor.verdicts) == 2, "the shown one and another"
        at_work = False
        await until(pilot, lambda: len(monitor.verdicts) == 3)
