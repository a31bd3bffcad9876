"""The app on a replay: keys that play, what the first line says, and the screens of a moment."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from inside_textual import count_frames
from rich.cells import cell_len
from textual.binding import Binding
from watching import (
    NOW,
    check_layout,
    dashboard,
    lines,
    press,
    settle,
    text,
    until,
    write_run,
)

from verl_tui.config import Config
from verl_tui.rendering.status_line import status
from verl_tui.replay import Playback, Recording
from verl_tui.tui.panels.charts import ChartsPanel
from verl_tui.tui.panels.health import HealthPanel
from verl_tui.tui.panels.runs import RunsPanel
from verl_tui.tui.replay_app import ReplayApp
from verl_tui.tui.screens.dashboard import Dashboard
from verl_tui.tui.widgets.rows import Rows

if TYPE_CHECKING:
    from pathlib import Path


class Wall:
    """The present, which stands unless a test lets it go on."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def replaying(
    *logs: Path, at: int | None = None, paused: bool = True
) -> tuple[ReplayApp, Wall]:
    """Return the app on a replay of logs whose steps are a second apart, and what it takes for the
    present.
    """
    recording = Recording.read([str(log.parent) for log in logs])
    wall = Wall()
    begin = recording.when(at) if at is not None else None
    return ReplayApp(
        Playback(recording, speed=10.0, at=begin, paused=paused, wall=wall), Config()
    ), wall


def first(app: ReplayApp) -> str:
    return lines(app)[0]


def says_step(app: ReplayApp, step: int) -> bool:
    """Tell whether the first line names this step, and not one that only begins like it."""
    return re.search(rf"\bstep {step}\b", first(app)) is not None


async def test_beside_the_clock_of_a_replay_no_word_stands_without_its_value(tmp_path):
    app, _ = replaying(write_run(tmp_path, "run_of_some_length", kl_div=0.3), at=10)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: "step 10" in first(app))
        view = dashboard(app).view
        assert view is not None
        for width in range(20, 140):
            left, right = status(view, width, alone=True)
            assert sum(cell_len(words) for words, _ in (*left, *right)) + 1 <= width, (
                "and a blank between them"
            )


async def test_the_help_of_a_replay_names_each_key_once(tmp_path):
    app, _ = replaying(write_run(tmp_path, "run"))
    async with app.run_test(size=(100, 45)) as pilot:
        await press(pilot, "question_mark")
        for width in (100, 140):  # in one column, and in two
            await pilot.resize_terminal(width, 45)
            await settle(pilot)
            said = [
                re.split(" {2,}", strip.text.strip())
                for strip in app.screen.query_one(Rows).strips
            ]
            for name, keys in (
                ("quit", ["q", "Quit"]),
                ("pause", ["p", "Pause the replay"]),
                ("reload", ["r", "Play from the beginning"]),
                ("replay.next", [".", "Next step"]),
            ):
                assert [
                    row[at - 2 : at]
                    for row in said
                    for at, cell in enumerate(row)
                    if cell == name
                ] == [keys], width


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
        assert "ended?" in first(app)


async def test_steps_shares_and_the_beginning_are_a_key_away(tmp_path):
    app, _ = replaying(write_run(tmp_path, "run_7", 101), at=10)
    async with app.run_test(size=(120, 40)) as pilot:
        for key, step in (
            *(
                (".", 11),
                (".", 12),
                (",", 11),
                ("}", 21),
                ("{", 11),
                ("{", 1),
                (",", 1),
            ),
            *(("f9", 2), ("f7", 1), ("}", 11), ("r", 1)),
        ):
            await press(pilot, key)
            await until(pilot, lambda step=step: says_step(app, step))
            series = app.monitor.runs["run_7"].series("rollout/reward_mean")
            assert series is not None
            assert series.steps[-1] == step


async def test_the_shown_run_stays_shown_on_the_way_back(tmp_path):
    logs = [write_run(tmp_path, name) for name in ("run_a", "run_b")]
    app, _ = replaying(*logs, at=20)
    async with app.run_test(size=(120, 40)) as pilot:
        await press(pilot, "2")
        await until(pilot, lambda: "run_b" in first(app))
        await press(pilot, ",")
        await until(pilot, lambda: "step 19" in first(app))
        assert "run_b" in first(app)
        assert {run.step for run in app.monitor.runs.values()} == {19}


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


async def test_speed_changes_and_a_pause_holds_over_every_screen(tmp_path):
    app, _ = replaying(write_run(tmp_path, "run_7"), at=20, paused=False)
    async with app.run_test(size=(120, 40)) as pilot:
        await press(pilot, "greater_than_sign")
        assert "20×" in first(app)
        await press(pilot, "less_than_sign", "less_than_sign")
        assert "5×" in first(app)
        await press(pilot, "i", "f8")
        assert app.view_at(NOW).replay.paused
        await press(pilot, "f9", "escape")
        assert "paused" in first(app)
        assert "step 21" in first(app)


async def test_help_and_footer_name_the_keys_of_the_replay(tmp_path):
    app, _ = replaying(write_run(tmp_path, "run_7"))
    async with app.run_test(size=(220, 60)) as pilot:
        await press(pilot)
        for keys in ("p Pause", ", . Step", "< > Speed"):
            assert keys in lines(app)[-1]
        await press(pilot, "question_mark")
        for words in (
            "Pause the replay",
            "Next step",
            "Play from the beginning",
            "Forward by a tenth",
        ):
            assert words in text(app)
        titles = [command.title for command in app.get_system_commands(dashboard(app))]
        assert "Previous step" in titles


@pytest.mark.parametrize(
    "sizes",
    [
        ((140, 45), (20, 6)),
        pytest.param(
            ((220, 60), (80, 24), (60, 20), (40, 12)), marks=pytest.mark.thorough
        ),
    ],
)
async def test_every_size_says_that_it_is_a_replay(tmp_path, sizes):
    app, _ = replaying(write_run(tmp_path, "run_7"), at=20)
    async with app.run_test(size=sizes[0]) as pilot:
        for step, size in enumerate(sizes, 21):
            await pilot.resize_terminal(*size)
            await press(pilot, ".")
            await until(
                pilot,
                lambda step=step: (
                    "run_7" in app.monitor.runs
                    and app.monitor.runs["run_7"].step == step
                ),
            )
            check_layout(app)
            assert "paused" in first(app)
            assert size[0] < 60 or f"step {step}" in first(app)


def test_keys_of_the_replay_are_no_others(tmp_path):
    own = {
        key
        for one in ReplayApp.BINDINGS[-12:]
        if isinstance(one, Binding)
        for key in one.key.split(",")
    }
    assert len(own) == 12
    for place in (Dashboard, ChartsPanel, HealthPanel, RunsPanel):
        taken = {
            key
            for one in place.BINDINGS
            if isinstance(one, Binding)
            for key in one.key.split(",")
        }
        assert not own & taken, place


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
        log = log.parent / "train.log"
        log.write_text(
            "".join(
                f"waiting\nstep:{step} - critic/score/mean:0.5\n"
                for step in range(1, 51)
            )
        )
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
