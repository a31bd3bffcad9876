"""The app on a replay: keys that play, what the first line says, and the screens of a moment."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from inside_textual import count_frames
from watching import lines, press, settle, text, until, write_run

from verl_tui.config import Config
from verl_tui.replay import Playback, Recording
from verl_tui.tui.replay_app import ReplayApp

if TYPE_CHECKING:
    from pathlib import Path


class Wall:
    """The present, which stands unless a test lets it go on."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def replaying(log: Path, at: int) -> tuple[ReplayApp, Wall]:
    """Return the app on a replay of a log whose steps are a second apart, standing at a step, and
    what it takes for the present.
    """
    recording = Recording.read([str(log.parent)])
    wall = Wall()
    begin = recording.when(at)
    playback = Playback(recording, speed=10.0, at=begin, paused=True, wall=wall)
    return ReplayApp(playback, Config(refresh=0.01)), wall


def first(app: ReplayApp) -> str:
    return lines(app)[0]


def says_step(app: ReplayApp, step: int) -> bool:
    """Tell whether the first line names this step, and not one that only begins like it."""
    return re.search(rf"\bstep {step}\b", first(app)) is not None


async def test_it_shows_what_was_known_at_that_moment_and_plays_on(tmp_path):
    app, wall = replaying(write_run(tmp_path, "run_7"), at=10)
    async with app.run_test(size=(140, 45)) as pilot:
        await until(pilot, lambda: "step 10" in first(app))
        assert "paused" in first(app)
        assert "running" in first(app)
        wall.now += 5
        await pilot.pause(0.15)
        assert "step 10" in first(app)
        await press(pilot, "p")
        wall.now += 1
        await until(pilot, lambda: "step 20" in first(app))
        assert "paused" not in first(app)
        assert "replay 10×" in first(app)
        wall.now += 1000
        await until(pilot, lambda: "at its end" in first(app))
        assert "step 30" in first(app)
        assert "stopped?" in first(app)


async def test_steps_shares_and_the_beginning_are_a_key_away(tmp_path):
    app, _ = replaying(write_run(tmp_path, "run_7", 101), at=10)
    async with app.run_test(size=(120, 40)) as pilot:
        keys = [".", ".", ",", "}", "{", "{", ",", "f9", "f7", "}", "r"]
        steps = (11, 12, 11, 21, 11, 1, 1, 2, 1, 11, 1)
        for key, step in zip(keys, steps, strict=True):
            await press(pilot, key)
            await until(pilot, lambda step=step: says_step(app, step))
            series = app.monitor.runs["run_7"].series("rollout/reward_mean")
            assert series is not None
            assert series.steps[-1] == step


async def test_the_charts_cursor_leads_to_its_step(tmp_path, monkeypatch):
    app, wall = replaying(write_run(tmp_path, "run_7"), at=20)
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await press(pilot, "semicolon")
        await until(pilot, lambda: "no cursor" in text(app))
        await press(pilot, "f3", "right", "home", "semicolon")
        await until(pilot, lambda: says_step(app, 1))
        # A replay that stands draws nothing.
        app.clear_notifications()
        await settle(pilot)
        frames = count_frames(monkeypatch)
        wall.now += 100
        await pilot.pause(0.25)
        assert not frames["frames"]


def newest(app: ReplayApp) -> int:
    """Return the highest step that the log in sight names."""
    return max(
        (int(found) for found in re.findall(r"step[: ](\d+)", text(app))), default=0
    )


@pytest.mark.parametrize("kind", ["console", "jsonl"])
async def test_the_log_ends_at_the_present(tmp_path, kind):
    log = write_run(tmp_path, "run_7", 50)
    if kind == "console":
        log.unlink()
        log = log.with_name("train.log")
        steps = (f"step:{step} - critic/score/mean:0.5\n" for step in range(1, 51))
        log.write_text("waiting\n" + "waiting\n".join(steps))
    app, wall = replaying(log, at=20)
    async with app.run_test(size=(100, 60)) as pilot:
        await press(pilot, "l")
        await until(pilot, lambda: newest(app) == 20)
        await press(pilot, "f9")
        await until(pilot, lambda: newest(app) == 21)
        await press(pilot, "f7", "f7")
        await until(pilot, lambda: newest(app) == 19)
        assert "following" in first(app)
        await press(pilot, "f8")
        wall.now += 1
        await until(pilot, lambda: newest(app) == 29)
        wall.now += 1000
        await until(pilot, lambda: newest(app) == 50)
