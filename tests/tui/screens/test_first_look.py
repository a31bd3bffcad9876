"""What the main screen says at the first look, and where there is little or nothing to show."""

from __future__ import annotations

import pytest
from watching import (
    NOW,
    check_layout,
    check_shown,
    dashboard,
    lines,
    loaded,
    press,
    settle,
    showing,
    text,
    until,
    write_run,
)

from verl_tui.rendering.session.run_order import first_to_show
from verl_tui.tui.panels.charts import ChartsPanel

# -- nothing to show -------------------------------------------------------------------------------


def _nothing(directory):
    return directory


def _no_match(directory):
    return f"{directory}/run_Typed("


def _not_there(directory):
    return directory / ")absent"


@pytest.mark.parametrize(
    ("path", "size"),
    [
        (_nothing, (40, 12)),
        (_no_match, (120, 40)),
        (_not_there, (40, 12)),
        pytest.param(_not_there, (80, 24), marks=pytest.mark.thorough),
    ],
)
async def test_says_what_is_waited_for(tmp_path, path, size):
    app = loaded(path(tmp_path))
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        told = (*app.monitor.waiting, *app.monitor.problems)
        assert told
        shown = "".join(text(app).replace("│", "").split())  # however it is wrapped
        assert all("".join(sentence.split()) in shown for sentence in told)
        assert "no run yet" in lines(app)[0]
        for keys in (
            ["e", "enter", "z"],
            ["escape", "right_square_bracket", "1"],
            ["x", "y", "s", "0"],
            ["i"],
        ):
            await press(pilot, *keys)
            check_layout(app)


# -- what is shown at the first look ---------------------------------------------------------------


async def test_behind_a_run_without_charts_the_next_one_has_its_own(tmp_path):
    write_run(tmp_path, "a", reward_mean=1.5)
    (tmp_path / "b").mkdir()
    crash = (
        "ray init kwargs: {}\nTraceback (most recent call last):\nValueError: no GPU\n"
    )
    (tmp_path / "b" / "train.log").write_text(crash, encoding="utf-8")
    write_run(tmp_path, "c", reward_mean=7.5)
    app = loaded(tmp_path)
    async with app.run_test(size=(100, 30)) as pilot:
        await press(pilot, "3", "1")
        check_shown(app, "│reward  1.5")
        await press(pilot, "2")
        check_shown(app, "crashed before the first step")
        await press(pilot, "3")
        check_shown(app, "│reward  7.5")


async def test_why_a_run_crashed_before_the_first_step_is_in_the_first_frame(tmp_path):
    trace = 'Traceback (most recent call last):\n  File "main.py", line 7, in main\n'
    error = "ValueError: no GPU for the raylet"
    (tmp_path / "train.log").write_text(
        f"ray init kwargs: {{}}\nError executing job with overrides: []\n{trace}{error}\n",
        encoding="utf-8",
    )
    app = loaded(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await until(pilot, lambda: "line 7, in main" in text(app))
        charts = dashboard(app).query_one(ChartsPanel)
        assert "crashed before the first step" in text(app)
        await press(pilot, "tab", "enter", "x", "escape", "right", "z", "z")
        assert charts.display
        check_layout(app)


async def test_the_run_that_needs_a_look_is_shown_first_and_never_again(demo):
    app = showing(demo, shown=None)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        assert app.view_at(NOW).run.name == first_to_show(demo, NOW)
        await press(pilot, "1")
        app.tick()
        await settle(pilot)
        assert app.view_at(NOW).run.name == next(iter(demo.runs))
