"""The main screen's layouts: by resizing alone, at any size, with any names."""

from __future__ import annotations

import json
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from dashboard_layouts import LAYOUTS
from inside_textual import driver_of
from watching import (
    NOW,
    check_layout,
    dashboard,
    in_sight,
    lines,
    loaded,
    press,
    quiet,
    sample,
    settle,
    showing,
    start,
    text,
    write_run,
)

from verl_tui.records import Gpu, GpuReading
from verl_tui.tui.panels.charts import ChartsPanel
from verl_tui.tui.panels.health import HealthPanel
from verl_tui.tui.panels.samples import SamplesPanel
from verl_tui.tui.terminal.output import screen_rows

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from verl_tui.monitor import Monitor


HOSTILE = (
    "[red]not red[/red] [/",
    "数学强化学习" * 12,
    "n" * 200,
    "a\tb\x1b[31m\u202e",
)


GPUS = GpuReading(
    NOW, (Gpu("0", "H100", 97.0, 70 * 2**30, 80 * 2**30, 61.0, 650.0, 700.0),) * 2
)


@pytest.fixture
def gpus(demo: Monitor, monkeypatch: pytest.MonkeyPatch) -> Monitor:
    """The demo on a host with two GPUs."""
    monkeypatch.setattr(demo, "gpus", GPUS)
    return demo


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
            # as fast as a window is dragged
            driver_of(app).process_message(_resized(size))
        await settle(pilot)
        assert (
            len(
                [
                    chart
                    for chart in charts.charts
                    if chart.display and chart.region.area
                ]
            )
            == before
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
        assert all(row[x:-x].strip() for row in lines(app)[y : y + height]), (
            "no row is empty"
        )
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
    rows = [
        {"prompt": "count", "response": "one\n" * 60, "score": n % 2} for n in range(4)
    ]
    (tmp_path / "eval.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    app = loaded(tmp_path)
    async with app.run_test(size=(140, 45)) as pilot:
        await start(pilot)
        for size in ((140, 45), (80, 24)):
            await pilot.resize_terminal(*size)
            await quiet(pilot)
            samples, charts = (
                dashboard(app).query_one(one) for one in (SamplesPanel, ChartsPanel)
            )
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


async def test_a_mark_of_the_focus_leaves_a_row_as_wide_as_the_screen(
    tmp_path: Path,
) -> None:
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


@pytest.mark.parametrize(
    "size", [(120, 40), pytest.param((40, 12), marks=pytest.mark.thorough)]
)
async def test_hostile_names_and_metrics_break_nothing(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    metrics = dict.fromkeys(
        ("[red]", "[/INST]", "汉字" * 60, "k" * 300, "\x1b]0;title\x07"), 1.0
    )
    for name in HOSTILE:
        write_run(
            tmp_path,
            name,
            text=sample(30, "\x1b[2J[/red]\x00\u202e" + "汉" * 500),
            **metrics,
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
