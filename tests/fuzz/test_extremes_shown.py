"""Every screen shows runs at the ends of what a log can hold, on a wide and on a small terminal."""

from __future__ import annotations

import pytest
from fuzz.extremes import EXTREMES
from inside_textual import quick_pilots
from tui.watching import lines, loaded, press

KEYS = ("x", "x", "y", "s", "plus", "left", "down", "enter", "down", "escape", "escape")


@pytest.mark.thorough
@pytest.mark.parametrize("name", EXTREMES)
async def test_a_hostile_run_is_shown(name, tmp_path, monkeypatch):
    monkeypatch.setenv("VERL_TUI_STATE", "")
    EXTREMES[name](tmp_path)
    app = loaded(tmp_path)
    with quick_pilots():
        async with app.run_test(size=(120, 40)) as pilot:
            for screen in ("x", "m", "t", "c", "l", "i"):
                for size in ((120, 40), (40, 12)):
                    await pilot.resize_terminal(*size)
                    await press(pilot, screen, *KEYS)
                    lines(app)
                    assert app.is_running
