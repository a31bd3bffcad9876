"""What fingers know from less, vim and browsers: the same keys wherever something scrolls, esc that
leaves one thing at a time, and keys with a second name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from watching import dashboard, press, quiet, showing

from verl_tui.tui.panels.health import HealthPanel
from verl_tui.tui.screens.log import LogScreen
from verl_tui.tui.widgets.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from verl_tui.tui.app import VerlApp

SCROLLING = {
    "help": "question_mark",
    "configuration": "c",
    "timing": "t",
    "sources": "i",
    "log": "l g",
    "samples": "o",
    "table of metrics": "m v",
    "samples panel": "f6 u",
}
"""What scrolls -> the keys that open it, at a size where there is more than it shows."""
PINS = {"table of metrics"}
"""Where space has another meaning."""
PAGES = (("ctrl+d", "ctrl+u"), ("ctrl+f", "ctrl+b"), ("space", "ctrl+b"))


def place(app):
    """Return which row is at the top, or chosen."""
    rows = app.focused
    assert isinstance(rows, Rows)
    if isinstance(app.screen, LogScreen):
        return app.screen.window.lines[0].row.start
    return rows.scroll_offset.y if rows.chosen is None else rows.chosen


async def leave(pilot):
    """Go back to the dashboard as it was."""
    await press(pilot, *["escape"] * 5)
    assert pilot.app.screen is dashboard(pilot.app)


async def test_pages_and_half_pages_wherever_something_scrolls(demo):
    app = showing(demo)
    async with app.run_test(size=(100, 8)) as pilot:
        for name, keys in SCROLLING.items():
            await press(pilot, *keys.split())
            await quiet(pilot)
            begin = place(app)
            for down, up in PAGES[: 2 if name in PINS else 3]:
                await press(pilot, down)
                await quiet(pilot)
                assert place(app) > begin, (name, down)
                await press(pilot, up)
                await quiet(pilot)
                assert place(app) == begin, (name, up)
            await leave(pilot)


async def test_half_a_page_is_half_of_a_page(demo):
    app = showing(demo)
    async with app.run_test(size=(100, 30)) as pilot:
        await press(pilot, "question_mark", "ctrl+f")
        whole = place(app)
        await press(pilot, "g", "ctrl+d", "ctrl+d")
        assert whole - 1 <= place(app) <= whole


def finding(app):
    """Return the finding chosen on the dashboard."""
    chosen = dashboard(app).query_one(HealthPanel).found.chosen
    return chosen.id if chosen is not None else None


def screen(app):
    return type(app.screen).__name__


HABITS: dict[str, tuple[str, Callable[[VerlApp], Any], Any]] = {
    "F1 is help": ("f1", screen, "HelpScreen"),
    "and closes it": ("f1 f1", screen, "Dashboard"),
    "also over a list": ("t f1", screen, "HelpScreen"),
    "a colon asks for a command": ("colon", screen, "Palette"),
    "over a list, too": ("t colon", screen, "Palette"),
    "j is down": ("f3 j k j", lambda app: app.focused.region.x, 1),
    "space unfolds": ("f4 j space", lambda app: app.cursor, None),
    "and moves nothing": ("f4 j space j", lambda app: app.cursor, None),
    "enter goes there": ("f4 j enter", lambda app: app.cursor is None, False),
    "and shows it": ("f4 z j enter", lambda app: dashboard(app).zoomed, None),
}
"""A habit -> keys, what is looked at, and what that is then."""


async def test_habits(apart):
    app = showing(apart)
    async with app.run_test(size=(140, 45)) as pilot:
        for name, (keys, look, right) in HABITS.items():
            await press(pilot, *keys.split())
            assert look(app) == right, name
            await leave(pilot)


async def test_esc_leaves_one_thing_after_the_other_and_never_quits(collapse):
    app = showing(collapse)
    async with app.run_test(size=(140, 45)) as pilot:
        charts = dashboard(app).charts
        await press(pilot)  # a cursor is put into a chart that has been seen
        await press(pilot, "slash", *"kl", "enter", "f3", "z", "plus", "left", "slash")

        def left():
            """Return what is open or set."""
            said = {
                "line": dashboard(app).bar.display,
                "cursor": app.cursor is not None,
                "span": charts.look.span is not None,
                "filter": charts.filter,
                "zoom": dashboard(app).zoomed is not None,
                "focus": app.focused is not None,
            }
            return [name for name, is_so in said.items() if is_so]

        every = left()
        assert every == ["line", "cursor", "span", "filter", "zoom", "focus"]
        # the line, when it is left, takes the filter that it is for along
        for rest in (
            every[1:3] + every[4:],
            every[2:3] + every[4:],
            every[4:],
            every[5:],
            [],
            [],
        ):
            await press(pilot, "escape")
            assert left() == rest
        assert app.is_running
