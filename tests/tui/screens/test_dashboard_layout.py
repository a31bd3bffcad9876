"""The main screen's layouts: by resizing alone, at any size, with any names."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from cut_text import cut_rows
from dashboard_layouts import LAYOUTS
from inside_textual import driver_of
from watching import (
    NOW,
    check_layout,
    check_shown,
    dashboard,
    in_sight,
    lines,
    loaded,
    press,
    quiet,
    settle,
    showing,
    start,
    text,
)

from verl_tui.records import Gpu, GpuReading
from verl_tui.tui.panels.charts import ChartsPanel
from verl_tui.tui.panels.samples import SamplesPanel


async def test_every_layout_is_reached_by_resizing_alone(demo):
    app = showing(demo)
    sizes = list(LAYOUTS)
    async with app.run_test(size=sizes[0]) as pilot:
        for size in (*sizes, *sizes[-2::-1]):
            await pilot.resize_terminal(*size)
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
        drawn = [one for one in charts.charts if one.display and one.region.area]
        assert len(drawn) == before


async def test_gpus_have_a_title_where_there_is_room_else_a_row(collapse, monkeypatch):
    gpu = Gpu("0", "H100", 97.0, 40, 80, None, 400.0)
    read = GpuReading(NOW, (gpu, replace(gpu, index="1", utilization=91.0)))
    for reading in (read, GpuReading(NOW, (), "no driver here")):
        monkeypatch.setattr(collapse, "gpus", reading)
        app = showing(collapse)
        async with app.run_test(size=(140, 45)) as pilot:
            await start(pilot)
            for size in ((140, 45), (120, 24), (80, 24), (40, 12), (30, 50)):
                await pilot.resize_terminal(*size)
                if reading is read:
                    row = "94% · memory 50%" if size[0] > 30 else "94% · mem 50%"
                    check_shown(app, "GPUs 2 · ", row, " · 800 W")
                    assert "gpus" in in_sight(app)
                else:
                    assert ("no driver here" in text(app)) is (size == (140, 45))


async def test_the_mark_of_the_focus_cuts_no_row(collapse, monkeypatch):
    gpus = (Gpu(f"{at}", "H100", 97.0, 40, 80, None, 512.0) for at in range(8))
    monkeypatch.setattr(collapse, "gpus", GpuReading(NOW, (*gpus,)))
    app = showing(collapse)
    async with app.run_test(size=(40, 12)) as pilot:
        await press(pilot, "f5")
        assert dashboard(app).zoomed is None
        assert not [*cut_rows(app)]
        check_shown(app, "GPUs 8 ")


@pytest.mark.parametrize(
    ("name", "figure"),
    [("eval.jsonl", "validation  0.5"), ("rollouts/5.jsonl", "score of samples  0.5")],
)
async def test_figures_of_one_step_leave_room_to_its_samples(name, figure, tmp_path):
    rows = [
        {"prompt": "count", "response": "one\n" * 60, "score": n % 2} for n in range(4)
    ]
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("\n".join(map(json.dumps, rows)) + "\n")
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
            assert figure in text(app), size
            assert "┤" not in text(app), "no chart of a single point"
            assert "constant" not in text(app), size


def _resized(size):
    from textual.events import Resize
    from textual.geometry import Size

    return Resize(Size(*size), Size(*size))
