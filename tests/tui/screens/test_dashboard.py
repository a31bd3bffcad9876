"""The main screen: layouts by resizing alone, focus, zoom, runs, findings, filter."""

from __future__ import annotations

import json
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from inside_textual import close_screens, driver_of, notices
from textual.events import Resize
from watching import (
    NOW,
    Typed,
    check_layout,
    dashboard,
    in_sight,
    lines,
    loaded,
    press,
    quiet,
    records,
    sample,
    settle,
    showing,
    start,
    text,
    until,
    write_run,
)

from verl_tui.config import Config
from verl_tui.monitor import Monitor
from verl_tui.records import Batch, Gpu, GpuReading, MetricRows, SourceStatus
from verl_tui.rendering.session.run_order import first_to_show
from verl_tui.rendering.session.snapshot import View
from verl_tui.runs.run import Run
from verl_tui.tui.panels.charts import ChartsPanel
from verl_tui.tui.panels.health import HealthPanel
from verl_tui.tui.panels.samples import SamplesPanel
from verl_tui.tui.screens.dashboard import Dashboard
from verl_tui.tui.terminal.output import screen_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from verl_tui.tui.app import VerlApp

LAYOUTS = {
    (220, 60): {"runs", "charts", "health", "gpus", "samples"},
    (120, 40): {"runs", "charts", "health", "gpus", "samples"},
    (120, 24): {"runs", "charts", "health", "gpus", "samples"},
    (80, 40): {"runs", "charts", "health", "samples"},
    (80, 24): {"runs", "charts", "health", "samples"},
    (60, 20): {"runs", "charts", "health", "samples"},
    (40, 12): {"charts", "health", "samples"},
}
GPUS = GpuReading(NOW, (Gpu("0", "H100", 97.0, 70 * 2**30, 80 * 2**30, 61.0, 650.0, 700.0),) * 2)
HOSTILE = ("[red]not red[/red] [/", "数学强化学习" * 12, "n" * 200, "a\tb\x1b[31m\u202e")


@pytest.fixture
def gpus(demo: Monitor, monkeypatch: pytest.MonkeyPatch) -> Monitor:
    """The demo on a host with two GPUs."""
    monkeypatch.setattr(demo, "gpus", GPUS)
    return demo


def focused_panel(app: VerlApp) -> str | None:
    panel = dashboard(app).focused_panel
    return panel.id if panel is not None else None


def shown_run(app: VerlApp) -> str:
    run = app.view_at(NOW).run
    assert run is not None
    return run.name


# -- layouts ---------------------------------------------------------------------------------------


EDGES = (3, 5, 7, 8, 9, 17, 18)
"""Heights around those from which on there is another layout: 8 and 18 rows."""


@pytest.mark.parametrize(
    ("widths", "heights"),
    [
        ((50, 140), EDGES),
        pytest.param((50, 80, 140), range(3, 20), marks=pytest.mark.thorough),
    ],
)
async def test_panels_in_sight_have_room_for_something(
    demo: Monitor, widths: Sequence[int], heights: Sequence[int]
) -> None:
    app = showing(demo)
    async with app.run_test(size=(widths[0], 40)) as pilot:
        for size in product(widths, heights):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            empty = [
                name
                for name in in_sight(app)
                if not app.screen.query_one(f"#{name}").content_size.area
            ]
            assert not empty, size


async def test_every_layout_is_reached_by_resizing_alone(demo: Monitor) -> None:
    app = showing(demo)
    sizes = list(LAYOUTS)
    async with app.run_test(size=sizes[0]) as pilot:
        for size in (*sizes, *sizes[-2::-1]):
            await pilot.resize_terminal(*size)
            await settle(pilot)
            assert in_sight(app) == LAYOUTS[size]
            check_layout(app)
            assert "run_grpo_gsm8k" in lines(app)[0]
            assert "reward" in text(app)
        # Charts come back after quick resizing.
        charts = app.screen.query_one(ChartsPanel)
        before = len([chart for chart in charts.charts if chart.display])
        for size in [(80, 24), sizes[0], (40, 12), sizes[0]]:
            driver_of(app).process_message(_resized(size))  # as fast as a window is dragged
        await settle(pilot)
        assert (
            len([chart for chart in charts.charts if chart.display and chart.region.area]) == before
        )


async def test_samples_get_the_rows_that_they_need(tmp_path: Path) -> None:
    write_run(tmp_path, "a", text=sample(30, "short"))
    write_run(tmp_path, "b", text=sample(29, "short") + sample(30, "long " * 2000))
    app = loaded(tmp_path, shown="a")
    async with app.run_test(size=(140, 45)) as pilot:
        await start(pilot)
        await quiet(pilot)
        panel = dashboard(app).query_one(SamplesPanel)
        height, (x, y, *_) = panel.content_size.height, panel.content_region
        assert all(row[x:-x].strip() for row in lines(app)[y : y + height]), "no row is empty"
        await press(pilot, "right_square_bracket")
        await quiet(pilot)
        tall = panel.content_size.height
        assert tall > height
        await press(pilot, "f6", "N")
        await quiet(pilot)
        assert "step 29 · sample" in text(app)
        assert panel.content_size.height == tall, "charts do not jump from step to step"


async def test_the_figures_of_an_evaluation_are_rows_and_leave_room_to_its_samples(
    tmp_path: Path,
) -> None:
    rows = [{"prompt": "count", "response": "one\n" * 60, "score": n % 2} for n in range(4)]
    (tmp_path / "eval.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    app = loaded(tmp_path)
    async with app.run_test(size=(140, 45)) as pilot:
        await start(pilot)
        for size in ((140, 45), (80, 24)):
            await pilot.resize_terminal(*size)
            await quiet(pilot)
            samples, charts = (dashboard(app).query_one(one) for one in (SamplesPanel, ChartsPanel))
            assert samples.size.height > charts.size.height > 2, size
            assert "validation  0.5" in text(app), size
            assert "┤" not in text(app), "no chart of a single point"
            assert "constant" not in text(app), size


async def test_any_size_is_survived(gpus: Monitor) -> None:
    app = showing(gpus)
    async with app.run_test(size=(40, 12)) as pilot:
        # A side pane gives room to GPUs where there are some.
        await settle(pilot)
        assert in_sight(app) == {"charts", "health", "gpus", "samples"}
        assert "97%" in text(app)
        check_layout(app)
        for size in [(1, 1), (300, 3), (3, 100), (59, 17), (10, 4), (25, 1), (170, 18)]:
            await pilot.resize_terminal(*size)
            await settle(pilot)
            lines(app)
            assert not app.screen.show_horizontal_scrollbar
            assert not app.screen.show_vertical_scrollbar
        await pilot.resize_terminal(120, 40)
        await settle(pilot)
        check_layout(app)
        assert in_sight(app) == LAYOUTS[120, 40]
        assert "reward" in text(app)
        assert "policy loss" in text(app)


async def test_a_mark_of_the_focus_leaves_a_row_as_wide_as_the_screen(tmp_path: Path) -> None:
    write_run(tmp_path, "healthy")
    app = loaded(tmp_path)
    async with app.run_test(size=(1, 18)) as pilot:
        await start(pilot)
        await pilot.press(HealthPanel.PANEL.key)
        assert app.screen.focused in app.screen.query_one(HealthPanel).query("*")
        assert {len(row) for row in screen_rows(app)} == {1}


def _resized(size: tuple[int, int]) -> Any:
    from textual.events import Resize
    from textual.geometry import Size

    return Resize(Size(*size), Size(*size))


@pytest.mark.parametrize("size", [(120, 40), pytest.param((40, 12), marks=pytest.mark.thorough)])
async def test_hostile_names_and_metrics_break_nothing(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    metrics = dict.fromkeys(("[red]", "[/INST]", "汉字" * 60, "k" * 300, "\x1b]0;title\x07"), 1.0)
    for name in HOSTILE:
        write_run(
            tmp_path, name, text=sample(30, "\x1b[2J[/red]\x00\u202e" + "汉" * 500), **metrics
        )
    app = loaded(tmp_path)
    seen = ""
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        for keys in (
            ["f3", "z", "G"],
            ["f6"],
            ["i"],
            ["escape", "f2"],
            ["escape", "enter"],
            ["escape"],
        ):
            await press(pilot, *keys)
            seen += text(app)
        for _ in HOSTILE:
            check_layout(app)
            await press(pilot, "right_square_bracket")
            seen += text(app)
    assert not {"\x1b", "\x07", "\x00", "\u202e"} & set(seen)
    for part in ("[red]not red[/red]", "数学强化学习", "nnnnnnn", "[/red]"):
        assert part in seen


# -- focus and zoom --------------------------------------------------------------------------------


async def test_tab_goes_through_all_panels_and_z_zooms_them(demo: Monitor) -> None:
    app = showing(demo)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        assert focused_panel(app) is None
        # Charts turn though nothing has the focus.
        charts = dashboard(app).query_one(ChartsPanel)
        first = charts.charts[0].data.key
        await press(pilot, "pagedown")
        assert charts.charts[0].data.key != first
        await press(pilot, "pageup", "down")
        assert charts.charts[0].data.key == first
        assert charts.charts[0].has_focus
        await press(pilot, "escape")
        assert focused_panel(app) is None
        # Tab goes through all panels and back.
        there = []
        for _ in Dashboard.ORDER:
            await press(pilot, "tab")
            there.append(focused_panel(app))
            assert in_sight(app) == LAYOUTS[120, 40]
        assert tuple(there) == Dashboard.ORDER
        await press(pilot, "tab")
        assert focused_panel(app) == Dashboard.ORDER[0]
        await press(pilot, "shift+tab")
        assert focused_panel(app) == Dashboard.ORDER[-1]
        # A panel is zoomed and no longer.
        await press(pilot, "f4", "z")
        assert in_sight(app) == {"health"}
        check_layout(app)
        await press(pilot, "z")
        assert in_sight(app) == LAYOUTS[120, 40]
        await press(pilot, "z")
        assert in_sight(app) == {"health"}
        await press(pilot, "escape")
        assert in_sight(app) == LAYOUTS[120, 40]
        await press(pilot, "escape")
        assert app.focused is None
        await press(pilot, "z")
        assert in_sight(app) == {"charts"}
        # It stays so while the terminal is resized.
        await press(pilot, "z", "f6", "z")
        for size in LAYOUTS:
            await pilot.resize_terminal(*size)
            await settle(pilot)
            assert in_sight(app) == {"samples"}
            check_layout(app)
        assert "step 300" in text(app)


async def test_tab_brings_panels_without_room_to_the_full_screen(demo: Monitor) -> None:
    app = showing(demo)
    said = {"samples": "prompt", "gpus": "no reading yet", "runs": "●", "health": "✓"}
    async with app.run_test(size=(80, 24)) as pilot:
        for size in ((80, 24), (40, 12)):
            await pilot.resize_terminal(*size)
            await settle(pilot)
            for name in Dashboard.ORDER:
                await press(pilot, "tab")
                assert focused_panel(app) == name
                assert name in in_sight(app)
                assert said.get(name, "reward") in text(app)
                check_layout(app)
            await press(pilot, "escape")
            assert in_sight(app) == LAYOUTS[size]
            assert "reward" in text(app)
            await press(pilot, "escape")
            assert focused_panel(app) is None


# -- runs ------------------------------------------------------------------------------------------


async def test_runs_are_switched_by_keys(demo: Monitor) -> None:
    app = showing(demo)
    first, second, third = "run_grpo_gsm8k", "run_ppo_collapse", "run_ppo_tutorial"
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        for key, name in [
            *(
                ("right_square_bracket", second),
                ("right_square_bracket", third),
                ("right_square_bracket", first),
            ),
            *(
                ("left_square_bracket", third),
                ("1", first),
                ("2", second),
                ("3", third),
                ("9", third),
            ),
        ]:
            await press(pilot, key)
            assert lines(app)[0].startswith(f" {name} ")
        # A panel that comes into sight shows the newest state.
        await press(pilot, "1", "f6")
        assert "step 300" in text(app)
        await press(pilot, "escape", "2", "f6")
        assert "aaaaa bbbbb" in text(app)
        await press(pilot, "f3")
        await press(pilot, "escape", "0")
        assert in_sight(app) == LAYOUTS[80, 24]


async def test_keys_go_where_the_focus_is(demo: Monitor) -> None:
    app = showing(demo)
    async with app.run_test(size=(120, 40)) as pilot:
        # What is typed into the filter is no key.
        await press(pilot, "slash", *"qpz2?")
        assert app.is_running
        assert not app.view_at(NOW).paused
        assert shown_run(app) == "run_grpo_gsm8k"
        assert in_sight(app) == LAYOUTS[120, 40]
        # A filter shows its first matches, on whichever page one was.
        await press(pilot, "escape", "f3", "G")
        charts = app.screen.query_one(ChartsPanel)
        await press(pilot, "slash", Typed("timing"))
        assert charts.charts[0].data.key == charts.planned[0].key
        assert "1–6 of" in text(app)
        # Runs are switched in their panel.
        await press(pilot, "escape", "f2", "j")
        assert "run_ppo_collapse" in lines(app)[0]
        assert "policy-collapse" in text(app)
        assert "aaaaa bbbbb" in text(app)
        await press(pilot, "G")
        assert "run_ppo_tutorial" in lines(app)[0]
        assert focused_panel(app) == "runs"
        # Charts behind a screen keep to their run when all is forgotten.
        await press(pilot, "m")
        dashboard(app).query_one(ChartsPanel).show(View(Monitor(Config()), None, NOW))
        await pilot.resize_terminal(140, 45)
        await settle(pilot)
        await press(pilot, "escape")
        assert "reward" in text(app)


async def test_twelve_runs(tmp_path: Path) -> None:
    for number in range(12):
        write_run(tmp_path, f"run_{number:02}", 10 + number)
    app = loaded(tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        assert all(f"run_{number:02}" in text(app) for number in range(12))
        await press(pilot, "9")
        assert "run_08" in lines(app)[0]
        await press(pilot, *["right_square_bracket"] * 3)
        assert "run_11" in lines(app)[0]
        assert "step 21" in lines(app)[0]
        await pilot.resize_terminal(40, 12)
        await press(pilot, "f2")
        assert "run_11" in text(app).split("\n", 1)[1]
        check_layout(app)


# -- findings --------------------------------------------------------------------------------------


async def test_the_next_finding_takes_charts_and_samples_to_its_step(apart: Monitor) -> None:
    app = showing(apart)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        findings = app.view_at(NOW).verdict.findings
        assert len(findings) > 2
        charts, samples = app.screen.query_one(ChartsPanel), app.screen.query_one(SamplesPanel)
        for finding in [*findings, findings[0]]:
            await press(pilot, "e")
            assert app.cursor == finding.since_step
            assert {chart.cursor for chart in charts.charts if chart.display} == {
                finding.since_step
            }
            assert any(finding.key == chart.data.key for chart in charts.charts if chart.display)
            assert samples.shown is not None
            assert samples.shown[0].step == finding.since_step
            assert f"step {finding.since_step}" in text(app)
        await press(pilot, "E", "E")
        assert app.cursor == findings[-2].since_step
        await press(pilot, "0")
        assert app.cursor is None
        assert {chart.cursor for chart in charts.charts} == {None}


async def test_says_so_where_nothing_was_found(tmp_path: Path) -> None:
    app = loaded(write_run(tmp_path, "fine"))
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await press(pilot, "e")
        assert "no finding to go to" in notices(app)


async def test_a_chart_s_cursor_takes_the_others_along(collapse: Monitor) -> None:
    app = showing(collapse)
    async with app.run_test(size=(120, 40)) as pilot:
        # Values are read though nothing has the focus.
        await press(pilot, "left")
        charts, samples = app.screen.query_one(ChartsPanel), app.screen.query_one(SamplesPanel)
        assert charts.charts[0].has_focus
        await press(pilot, "left")
        read = app.cursor
        assert read is not None
        assert {chart.cursor for chart in charts.charts if chart.display} == {read}
        await press(pilot, "f4", "home")
        assert app.cursor is not None
        assert app.cursor < read
        assert not any(chart.has_focus for chart in charts.charts), "who has the focus keeps it"
        # The samples go along, and with the focus on charts escape ends the reading.
        await press(pilot, "f3", "home")
        assert {chart.cursor for chart in charts.charts} == {50}
        assert samples.shown is not None
        assert samples.shown[0].step == 50
        await press(pilot, "escape")
        assert {chart.cursor for chart in charts.charts} == {None}


# -- filter ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(80, 24), pytest.param((40, 12), marks=pytest.mark.thorough)])
async def test_filter(demo: Monitor, size: tuple[int, int]) -> None:
    app = showing(demo)
    async with app.run_test(size=size) as pilot:
        await press(pilot, "slash", *"or/entropy")
        charts = app.screen.query_one(ChartsPanel)
        assert "or/entropy" in lines(app)[-1] + lines(app)[-2]
        assert {chart.data.key for chart in charts.charts if chart.display} == {"actor/entropy"}
        await press(pilot, "enter")
        assert {chart.data.key for chart in charts.charts if chart.display} == {"actor/entropy"}
        check_layout(app)
        await press(pilot, "2")
        assert "run_ppo_collapse" in lines(app)[0]
        assert len([chart for chart in charts.charts if chart.display]) > 1, (
            "what fits no metric leaves all"
        )
        await press(pilot, "escape", "escape", "slash", Typed("ppo/entropy"))
        assert {chart.data.key for chart in charts.charts if chart.display} == {"ppo/entropy"}
        await press(pilot, "enter", "slash", Typed("xyz"))
        assert "no metric matches" in text(app)
        assert "esc clears the filter" in text(app), "a sentence, and a way on"
        await press(pilot, "escape")
        assert len([chart for chart in charts.charts if chart.display]) > 1
        await press(pilot, "1")
        assert "run_grpo_gsm8k" in lines(app)[0]


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
        displayed = (*app.monitor.waiting, *app.monitor.problems)
        assert displayed
        shown = "".join(text(app).replace("│", "").split())  # however it is wrapped
        assert all("".join(sentence.split()) in shown for sentence in displayed)
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
    (directory / "verl_logs.jsonl").write_text(
        '{"scope": "rollout", "note": "begun"}\n', encoding="utf-8"
    )
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
                pilot, "left", "right", "home", "end", "j", "k", "pagedown", "G", "x", "comma"
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


async def test_the_run_that_needs_a_look_is_shown_first_and_never_again(demo: Monitor) -> None:
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


async def test_samples_that_have_been_read_as_the_app_ends_are_no_error(demo: Monitor) -> None:
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
