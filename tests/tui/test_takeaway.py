"""What is taken elsewhere: screenshots, copies and tables, from every screen and over no file."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from inside_textual import notices
from watching import loaded, press, sample, settle, showing, text, until, write_run

from verl_tui.tui.export import clipping, screen_text


@pytest.fixture
def here(somewhere):
    """The current directory, empty."""
    return Path.cwd()


@pytest.fixture
def log(tmp_path):
    return write_run(tmp_path, "run_a", 30, text=sample(30, "an answer")).parent


def shown(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


async def picture(pilot, here, count):
    await press(pilot, "ctrl+s")
    await until(
        pilot, lambda: len(list(here.iterdir())) == count and notices(pilot.app)
    )


# -- screenshots -----------------------------------------------------------------------------------


async def test_a_screenshot_is_what_the_screen_shows(log, here):
    app = loaded(log)
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await press(pilot)
        before = screen_text(app)
        await picture(pilot, here, 2)
        (svg, txt) = sorted(here.iterdir())
        assert (svg.name, txt.name) == (
            "verl-tui-run_a-dashboard.svg",
            "verl-tui-run_a-dashboard.txt",
        )
        assert txt.read_text(encoding="utf-8") == before
        assert any("\u2801" <= sign <= "\u28ff" for sign in before), "dots are kept"
        assert svg.read_text(encoding="utf-8").startswith("<svg")
        (words,) = notices(app)
        assert words.startswith("written /")
        assert words.endswith("verl-tui-run_a-dashboard.svg and .txt")
        await settle(pilot)
        assert "written" in text(app)
        await picture(pilot, here, 4)
        assert (here / "verl-tui-run_a-dashboard-2.txt").read_text(
            encoding="utf-8"
        ) == before, "without what was said"


KEYS = {
    "zoom": "enter", "samples": "o", "metrics": "m", "log": "l", "compare": "C", "config": "c", "timing": "t",
    "history": "A", "sources": "i", "help": "question_mark",
}  # fmt: skip


async def test_every_screen_can_be_taken_and_copied(log, here):
    app = loaded(log)
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        for count, (screen, key) in enumerate(KEYS.items(), 1):
            await press(pilot, key)
            front = app.screen
            await picture(pilot, here, 2 * count)
            assert (here / f"verl-tui-run_a-{screen}.txt").exists()
            app.copy_to_clipboard("")
            await press(pilot, "ctrl+y")
            assert app.screen is front
            (words,) = notices(app)
            expected = (
                clipping(app.clipboard)[1] if app.clipboard else "nothing to copy here"
            )
            assert expected.startswith(words.rstrip("…"))
            assert app.clipboard or screen in ("history", "sources"), (
                "where nothing is chosen"
            )
            await press(pilot, "escape")


async def test_a_place_that_takes_no_files_says_so(log, here, monkeypatch):
    app = loaded(log)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await press(pilot)
        here.rmdir()
        for key in ("ctrl+s", "W"):
            await press(pilot, key)
            await until(pilot, lambda: notices(app))
            (said,) = notices(app)
            assert (
                said
                == "cannot write to the current directory: no such file or directory"
            )


# -- copying ---------------------------------------------------------------------------------------


async def test_each_panel_copies_what_its_cursor_is_at(collapse):
    app = showing(collapse)
    async with app.run_test(size=(140, 45), notifications=True) as pilot:
        await press(pilot, "ctrl+y")
        assert app.clipboard.startswith("critic/score/mean step ")
        await press(pilot, "f3", "j", "home", "ctrl+y")
        assert " step 1 " in app.clipboard, "the first one"
        await press(pilot, "f4", "e", "ctrl+y")
        assert app.clipboard.startswith("critical ")
        await press(pilot, "f2", "j", "ctrl+y")
        assert "run_grpo_high_lr" in app.clipboard


# -- tables ----------------------------------------------------------------------------------------


async def test_a_chart_is_written_as_a_table(log, here):
    app = loaded(log)
    async with app.run_test(size=(140, 45), notifications=True) as pilot:
        # The samples copy the sample.
        await press(pilot, "f6", "ctrl+y")
        assert app.clipboard == "say it\n\nan answer"
        await press(pilot, "o", "Y")
        assert app.clipboard == "an answer"
        await press(pilot, "ctrl+y")
        assert app.clipboard == "say it\n\nan answer"
        await press(pilot, "escape", "escape")
        # A chart is written as it is drawn.
        app.clear_notifications()
        await press(pilot, "f3", "W")
        await until(pilot, lambda: notices(app))
        path = here / "verl-tui-run_a-rollout-reward_mean.csv"
        assert notices(app) == [f"30 steps in {path}"]
        assert [row["step"] for row in shown(path)] == [
            str(step) for step in range(1, 31)
        ]
        await press(pilot, "plus", "enter", "s", "2", "W")
        await until(pilot, lambda: len(list(here.iterdir())) == 2 and notices(app))
        rows = shown(here / "verl-tui-run_a-rollout-reward_mean-2.csv")
        assert {row["step"] for row in rows} <= {str(step) for step in range(10, 31)}
        assert [key for key in rows[0] if key != "step"][:3] == [
            "time", "rollout/reward_mean", "rollout/reward_mean (smoothed 0.6)",
        ]  # fmt: skip


async def test_the_explorer_writes_what_is_listed(log, here):
    app = loaded(log)
    async with app.run_test(size=(140, 45), notifications=True) as pilot:
        await press(pilot, "m", "slash", "k", "l", "enter", "W")
        await until(pilot, lambda: notices(app))
        (row, *_) = shown(here / "verl-tui-run_a-metrics.csv")
        assert list(row) == ["step", "time", "rollout/kl_div"]
        await press(pilot, "slash", "x", "x", "enter", "W")
        assert notices(app) == ["nothing to write"]
        assert len(list(here.iterdir())) == 1
