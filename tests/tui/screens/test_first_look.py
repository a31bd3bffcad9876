"""What the main screen says at the first look, and where there is little or nothing to show."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from inside_textual import close_screens
from textual.events import Resize
from watching import (
    NOW,
    check_layout,
    dashboard,
    lines,
    loaded,
    press,
    records,
    settle,
    showing,
    start,
    text,
    until,
    write_run,
)

from verl_tui.config import Config
from verl_tui.monitor import Monitor
from verl_tui.records import Batch, MetricRows, SourceStatus
from verl_tui.rendering.session.run_order import first_to_show
from verl_tui.rendering.session.snapshot import View
from verl_tui.runs.run import Run
from verl_tui.tui.panels.charts import ChartsPanel
from verl_tui.tui.panels.samples import SamplesPanel

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


# -- nothing to show -------------------------------------------------------------------------------


def _nothing(directory: Path) -> Path:
    return directory


def _no_match(directory: Path) -> str:
    return f"{directory}/run_Typed("


def _not_there(directory: Path) -> Path:
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
async def test_says_what_is_waited_for(
    tmp_path: Path, path: Callable[[Path], Path | str], size: tuple[int, int]
) -> None:
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


async def test_a_run_without_steps(tmp_path: Path) -> None:
    directory = tmp_path / "young"
    directory.mkdir()
    log = directory / "verl_logs.jsonl"
    log.write_text('{"scope": "rollout", "note": "begun"}\n', encoding="utf-8")
    os.utime(log, (NOW, NOW))
    app = loaded(directory)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        assert "young" in lines(app)[0]
        assert "no step yet" in text(app)
        assert "waiting for the first step" in text(app)
        check_layout(app)


# -- where there is hardly anything to show --------------------------------------------------------


async def test_keys_of_charts_where_none_is_drawn(demo: Monitor) -> None:
    app = showing(demo)
    async with app.run_test(size=(120, 1)) as pilot:
        for size in ((120, 1), (1, 1), (1, 40)):
            await pilot.resize_terminal(*size)
            await press(
                pilot,
                "left",
                "right",
                "home",
                "end",
                "j",
                "k",
                "pagedown",
                "G",
                "x",
                "comma",
            )
            assert app.screen is dashboard(app), size


@pytest.mark.parametrize(
    ("moment", "key"),
    [
        (-1e12, "f3"),
        (253_402_300_800.0, "enter"),
        (1e300, "f3"),
        *(
            pytest.param(moment, key, marks=pytest.mark.thorough)
            for moment in (-1e300, -1e12, 253_402_300_800.0, 1e18, 1e300)
            for key in ("f3", "enter")
        ),
    ],
)
async def test_times_beyond_the_calendar_are_no_times(moment: float, key: str) -> None:
    run = Run("run")
    rows = MetricRows(
        ("actor/entropy",),
        range(1, 11),
        ([0.5] * 10,),
        range(10),
        [moment + at for at in range(10)],
    )
    run.apply(Batch("run", SourceStatus("log", "jsonl"), (rows,)), NOW)
    monitor = Monitor(Config())
    monitor.runs["run"] = run
    app = showing(monitor)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, key, "x", "left", "x", "x", "x", "x")
        assert "no times are known" in text(app)


# -- what is shown at the first look ---------------------------------------------------------------


async def test_the_reason_of_a_crash_before_the_first_step_is_in_the_first_frame(
    tmp_path: Path,
) -> None:
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


async def test_the_run_that_needs_a_look_is_shown_first_and_never_again(
    demo: Monitor,
) -> None:
    app = showing(demo, shown=None)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        assert app.view_at(NOW).run is not None
        assert app.view_at(NOW).run.name == first_to_show(demo, NOW)
        await press(pilot, "1")
        app.tick()
        await settle(pilot)
        assert app.view_at(NOW).run.name == next(iter(demo.runs))


async def test_a_log_in_place_of_charts_says_nothing_about_those_of_another_run(
    tmp_path: Path,
) -> None:
    values = {f"metric_{n}": float(n) for n in range(20)}
    write_run(tmp_path, "charts", text=records(31, 32, **values))
    (tmp_path / "failed").mkdir()
    (tmp_path / "failed" / "train.log").write_text(
        "ray init kwargs: {}\nTraceback (most recent call last):\nRuntimeError: no disk\n"
    )
    app = loaded(tmp_path)
    async with app.run_test(size=(100, 30)) as pilot:
        await start(pilot)
        seen = {}
        for key in ("1", "2", "1", "2"):
            await press(pilot, key)
            charts = dashboard(app).query_one(ChartsPanel)
            seen[lines(app)[0].split()[0]] = str(charts.border_subtitle or "")
        assert "pgdn" in seen["charts"]
        assert seen["failed"] == ""


async def test_a_state_that_comes_as_the_app_ends_is_no_error(demo: Monitor) -> None:
    app = showing(demo)
    async with app.run_test(size=(80, 24)) as pilot:
        await app.screen.query_one("#status").remove()
        app.post_message(app.News())
        await pilot.pause()
        dashboard(app).show(View(demo, demo.runs["run_ppo_collapse"], NOW))
        assert not dashboard(app).failed


async def test_samples_that_have_been_read_as_the_app_ends_are_no_error(
    demo: Monitor,
) -> None:
    app = showing(demo)
    async with app.run_test(size=(80, 24)) as pilot:
        await app.query_one(SamplesPanel).remove()
        app.post_message(app.Read())
        await pilot.pause()
        assert app.is_running


async def test_what_comes_when_no_screen_is_left_is_no_error(demo: Monitor) -> None:
    app = showing(demo)
    async with app.run_test(size=(80, 24)):
        await close_screens(app)
        app.post_message(app.Read())
        app.post_message(Resize(app.size, app.size))
