"""What all screens keep to: what is seen first is the whole of it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from inside_textual import on_frame
from watching import dashboard, lines, press, settle, showing

from verl_tui.tui.terminal.buffered_screen import BufferedScreen

if TYPE_CHECKING:
    from textual.screen import Screen

    from verl_tui.tui.app import VerlApp

KEYS = ("m", "l", "C", "c", "t", "i", "A", "o", "O", "question_mark", "enter")


@pytest.mark.parametrize(
    ("size", "keys"),
    [
        ((140, 45), KEYS[::2]),
        ((40, 12), KEYS[1::2]),
        pytest.param((60, 20), KEYS, marks=pytest.mark.thorough),
    ],
)
async def test_a_screen_opens_as_it_would_be_drawn_again(demo, monkeypatch, size, keys):
    painted: Counter[str] = Counter()

    def note(_app: VerlApp, screen: Screen[object], _frame: object) -> None:
        assert isinstance(screen, BufferedScreen)
        painted["empty" if screen.drawn_at is None else "drawn"] += 1

    on_frame(monkeypatch, note)
    app = showing(demo)
    async with app.run_test(size=size) as pilot:
        for key in keys:
            await press(pilot, key)
            screen, opened = app.screen, lines(app)
            assert isinstance(screen, BufferedScreen), key
            screen.redraw()
            await settle(pilot)
            assert lines(app) == opened, key
            await press(pilot, "escape", "escape")
            assert app.screen is dashboard(app), key
    assert painted["empty"] == 0, "nothing is painted before it is drawn"
    assert painted["drawn"] > len(keys)
