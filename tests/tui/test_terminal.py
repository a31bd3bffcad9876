"""How the app gets on with the terminal and its user: focus, few colours, first start, everything
by name.
"""

from __future__ import annotations

import asyncio
import os

import pyte
import pytest
from emulated import emulated, emulator
from textual.events import AppFocus, Resize
from textual.geometry import Size
from watching import (
    dashboard,
    loaded,
    press,
    quiet,
    settle,
    showing,
    text,
    until,
    write_run,
)

from verl_tui.config import Config
from verl_tui.replay import Playback, Recording
from verl_tui.tui import base_app, replay, watch
from verl_tui.tui import base_app as themes
from verl_tui.tui.app import SCREENS, VerlApp
from verl_tui.tui.keys import bindings
from verl_tui.tui.panels.panel import Panel
from verl_tui.tui.screens.dashboard import Dashboard
from verl_tui.tui.screens.palette import Palette
from verl_tui.tui.widgets.rows import Rows

# -- focus -----------------------------------------------------------------------------------------


async def test_the_terminal_is_put_right_when_the_user_comes_back(demo, monkeypatch):
    monkeypatch.setattr(base_app, "SETTLED", 0.01)
    app = showing(demo)
    async with emulated(app, (80, 24)) as pilot:
        await press(pilot)
        await quiet(pilot)
        screen = emulator(app).screen
        shown = [*screen.display]
        screen.reset()
        app.post_message(AppFocus())
        await until(pilot, lambda: [*screen.display] == shown)
        # A size that comes back at once is painted anew.
        screen.resize(12, 40)
        screen.resize(24, 80)
        assert [*screen.display] != shown
        # all that the app hears of it
        app.post_message(Resize(Size(80, 24), Size(80, 24)))
        await until(pilot, lambda: [*screen.display] == shown)
        # So is one that comes back before the other is painted.
        screen.resize(12, 40)
        screen.resize(24, 80)
        assert [*screen.display] != shown
        app.post_message(Resize(Size(40, 12), Size(40, 12)))
        while app.screen.outer_size != Size(40, 12):  # laid out, and nothing more
            await asyncio.sleep(0)
        app.post_message(Resize(Size(80, 24), Size(80, 24)))
        await until(pilot, lambda: [*screen.display] == shown)


# -- few colours -----------------------------------------------------------------------------------


async def test_without_colours_what_is_chosen_is_reversed(collapse, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    app = showing(collapse)
    async with emulated(app, (120, 40)) as pilot:
        await press(pilot, "f4")
        await press(pilot, "j")
        assert app.theme == themes.PLAIN
        screen = pyte.Screen(120, 40)
        pyte.Stream(screen).feed("".join(emulator(app).written))
        cells = [cell for row in screen.buffer.values() for cell in row.values()]
        assert {cell.fg for cell in cells} | {cell.bg for cell in cells} == {"default"}
        chosen = "".join(cell.data for cell in cells if cell.reverse)
        assert "policy-collapse" in chosen or "circuit-breaker" in chosen
        assert "✖" in text(app)


async def test_without_colours_findings_in_sparklines_are_signs(collapse, monkeypatch):
    for coloured in (True, False):
        if not coloured:
            monkeypatch.setenv("NO_COLOR", "1")
        app = showing(collapse)
        async with emulated(app, (40, 20)) as pilot:
            await settle(pilot)
            rows = [row for row in text(app).splitlines() if "▁" in row]
            assert any("▲" in row for row in rows) is not coloured


# -- everything by name ----------------------------------------------------------------------------


def titles(app):
    return {
        command.title.lower(): command.help
        for command in app.get_system_commands(app.screen)
    }


def named(app, kind):
    # how lists move is no action by name
    hidden = {binding.id for binding in bindings(Rows)}
    return [binding for binding in bindings(kind) if binding.id not in hidden]


async def test_every_action_has_a_name_whatever_has_the_focus(demo):
    app = showing(demo)
    async with app.run_test(size=(120, 40)) as pilot:
        await press(pilot)
        # Those of every panel.
        offered = titles(app)
        for kind in (type(app), Dashboard):
            for binding in named(app, kind):
                assert binding.description.lower() in offered
        for panel in dashboard(app).query(Panel):
            for binding in named(app, type(panel)):
                assert f"{panel.TITLE}: {binding.description}".lower() in offered
        assert offered["samples: best sample"] == "b"
        assert not {"maximize", "minimize", "keys", "focus next"} & set(offered)
        # Those of a screen.
        for screen in SCREENS:
            if screen == "help":
                continue
            app.action_open_screen(screen)
            await settle(pilot)
            offered = titles(app)
            assert app.screen is not dashboard(app)
            for binding in named(app, type(app.screen)):
                assert binding.description.lower() in offered, screen
            assert {"quit", "theme"} <= set(offered)
            app.pop_screen()
            await settle(pilot)
        # What a panel does is done though another has the focus.
        await press(pilot, "f3")
        before = text(app)
        command = next(
            c
            for c in app.get_system_commands(app.screen)
            if c.title == "Samples: next sample"
        )
        assert "sample 1/" in before
        command.callback()
        await until(pilot, lambda: "sample 2/" in text(app))


# -- its size --------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["watch", "replay"])
def test_the_terminal_is_asked_for_its_size(tmp_path, monkeypatch, what):
    exported = {"COLUMNS": "50", "LINES": "9"}
    for name, value in exported.items():
        monkeypatch.setenv(name, value)
    left: list[set[str]] = []
    monkeypatch.setattr(
        VerlApp,
        "run",
        lambda *_, **__: left.append(exported.keys() & os.environ.keys()),
    )
    log = str(write_run(tmp_path, "run").parent)
    assert (
        watch([log], Config())
        if what == "watch"
        else replay(Playback(Recording.read([log])), Config())
    ) == 0
    assert left == [set()]


# -- the palette -----------------------------------------------------------------------------------


async def test_the_palette_opens_and_closes_on_every_screen(tmp_path):
    app = loaded(write_run(tmp_path, "run"))
    async with app.run_test(size=(100, 2)) as pilot:
        for size in ((100, 2), (100, 1), (1, 24), (4, 24), (80, 24)):
            await pilot.resize_terminal(*size)
            await press(pilot, "ctrl+p", "a", "pagedown")
            assert isinstance(app.screen, Palette), size
            await pilot.resize_terminal(6, 24)
            await settle(pilot)
            await press(pilot, "escape")
            assert app.screen is dashboard(app), size
