"""When the app draws: what is new, once, and nothing else; and what it lets go of."""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING

import pytest
from inside_textual import count_frames
from live_batches import live_batch
from watching import (
    NOW,
    dashboard,
    lines,
    loaded,
    press,
    quiet,
    settle,
    showing,
    until,
    write_run,
)

if TYPE_CHECKING:
    from collections import Counter

    from textual.pilot import Pilot

    from verl_tui.tui.app import VerlApp

# -- when it draws ---------------------------------------------------------------------------------


async def frames_of_ticks(app: VerlApp, pilot: Pilot[int], frames: Counter[str]) -> int:
    """Return how many frames are drawn while time passes."""
    frames.clear()
    for _ in range(3):
        app.tick()
        await settle(pilot)
    return frames["frames"]


@pytest.mark.parametrize(
    "keys",
    [
        ("A", "t", "enter"),
        pytest.param(("i", "c", "question_mark"), marks=pytest.mark.thorough),
    ],
)
async def test_nothing_new_draws_nothing_on_any_screen(demo, monkeypatch, keys):
    frames = count_frames(monkeypatch)
    app = showing(demo)
    async with app.run_test(size=(120, 40)) as pilot:
        for key in keys:
            await press(pilot, key)
            assert app.screen is not dashboard(app), key
            app.tick()
            await quiet(pilot)
            assert await frames_of_ticks(app, pilot, frames) == 0, key
            await press(pilot, "escape")


@pytest.mark.parametrize(
    "key",
    [
        "t",
        *(pytest.param(key, marks=pytest.mark.thorough) for key in ("question_mark", "i", "c")),
    ],
)  # fmt: skip
async def test_the_dashboard_waits_behind_a_screen(tmp_path, monkeypatch, key):
    frames = count_frames(monkeypatch)
    app = loaded(write_run(tmp_path, "a").parent)
    async with app.run_test(size=(120, 40)) as pilot:
        await press(pilot, key)
        frames.clear()
        app.monitor.apply(live_batch("a", 77, 1.0), NOW)
        dashboard(app).show(app.view_at(NOW))
        await settle(pilot)
        assert frames["frames"] == 0
        await press(pilot, "escape")
        assert "step 77" in lines(app)[0]


async def test_screens_that_were_closed_are_forgotten(demo, monkeypatch):
    # The loop keeps a screen's timer, though it was stopped, until its time has come.
    monkeypatch.setattr("textual.screen.UPDATE_PERIOD", 0.01)
    app = showing(demo)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        gc.freeze()  # what was there before is not searched again and again
        opened = []
        for key in ("question_mark", "c", "i") * 4:
            await press(pilot, key)
            opened.append(weakref.ref(app.screen))
            await press(pilot, "escape")

        def few_are_left() -> bool:
            gc.collect()
            return sum(one() is not None for one in opened) < 4

        await until(pilot, few_are_left)
