"""The GPU panel: bars of this host, and what the run has logged of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from panel_host import HOSTILE, NOW, SIZES, Host, count_paints, make_run, make_view

from verl_tui.records import Gpu, GpuReading
from verl_tui.tui.panels.gpus import GpusPanel

if TYPE_CHECKING:
    from verl_tui.tui.view import View

GIB = 2**30
GPUS = tuple(
    Gpu(str(i), "NVIDIA H100 80GB HBM3", 87.0 - i, (62 + i) * GIB, 80 * GIB, 71.0 + i, 512.0, 700.0) for i in range(4)
)
READING = GpuReading(NOW, GPUS)
LOGGED = {
    "system/gpu_util": [80.0 + i % 7 for i in range(200)],
    "perf/max_memory_allocated_gb": [40.0] * 200,
    "perf/mfu/actor": [0.31] * 200,
    "actor/lr": [1e-6] * 200,
}


async def shown(view: View, size: tuple[int, int]) -> str:
    app = Host(GpusPanel())
    async with app.run_test(size=size) as pilot:
        app.panel.show(view)
        await pilot.pause()
        return app.text


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("ascii_only", [False, True])
async def test_any_size_and_any_text(size: tuple[int, int], ascii_only: bool) -> None:
    run = make_run(columns={f"system/{text}": [float("nan"), 1e300, -1.0] * 40 for text in HOSTILE})
    odd = tuple(Gpu(text, text) for text in HOSTILE)
    for reading in (None, READING, GpuReading(NOW, odd), GpuReading(NOW, (), HOSTILE[0]), GpuReading(NOW)):
        assert await shown(make_view(run, gpus=reading, ascii=ascii_only), size)


@pytest.mark.parametrize("width", [32, 40, 60, 82])
async def test_a_row_for_each_device(width: int) -> None:
    lines = (await shown(make_view(make_run(), gpus=READING), (width, 10))).split("\n")
    for i in range(4):
        assert lines[i + 1][1] == str(i)
        assert f"{87 - i}%" in lines[i + 1]
        assert f"{71 + i}°C" in lines[i + 1]
        assert "512" in lines[i + 1]
    assert "as logged" not in "".join(lines)


async def test_why_there_are_no_devices() -> None:
    assert "no NVIDIA driver here" in await shown(make_view(gpus=GpuReading(NOW, (), "no NVIDIA driver here")), (40, 8))
    assert "no reading yet" in await shown(make_view(), (40, 8))
    assert "no GPU found here" in await shown(make_view(gpus=GpuReading(NOW)), (40, 8))
    text = await shown(make_view(gpus=GpuReading(NOW, GPUS[:1], "1 device does not answer")), (60, 8))
    assert "87%" in text
    assert "1 device does not answer" in text


async def test_what_the_run_has_logged() -> None:
    run = make_run(columns=LOGGED)
    lines = (await shown(make_view(run, gpus=READING), (80, 14))).split("\n")
    start = next(i for i, line in enumerate(lines) if "as logged by the run" in line)
    text = "\n".join(lines[start:])
    assert "GPU utilisation" in text
    assert "80%" in text  # (120 - 1) % 7 == 0
    assert "40 GiB" in text
    assert "31%" in text
    assert "learning rate" not in text
    assert "█" in text


async def test_labels_fit_a_small_panel() -> None:
    text = await shown(make_view(make_run(columns=LOGGED)), (32, 14))
    assert "GPU utilisation" in text
    assert "80%" in text


async def test_a_share_is_written_as_a_percentage() -> None:
    assert "62%" in await shown(make_view(make_run(columns={"system/gpu_util": [0.62] * 200})), (60, 10))


async def test_a_utilisation_of_zero_means_that_verl_knows_none() -> None:
    text = await shown(make_view(make_run(columns={"perf/mfu/actor": [0.0] * 200})), (60, 10))
    assert "unknown" in text
    assert "0%" not in text


async def test_metrics_of_one_label_are_told_apart() -> None:
    columns = {"system/gpu_util": [1.0] * 200, "system/gpu_utilization": [2.0] * 200}
    text = await shown(make_view(make_run(columns=columns)), (80, 10))
    assert "gpu_util " in text
    assert "gpu_utilization " in text


async def test_hundreds_of_metrics_are_cut_off() -> None:
    app = Host(GpusPanel())
    run = make_run(columns={f"system/m{i}": [1.0] * 200 for i in range(100)})
    async with app.run_test(size=(60, 12)) as pilot:
        app.panel.show(make_view(run))
        await pilot.press("G")
        await pilot.pause()
        assert "+60 more" in app.text
        await pilot.press("g")
        await pilot.pause()
        assert "no reading yet" in app.text


async def test_an_old_reading_is_called_old() -> None:
    app = Host(GpusPanel())
    view = make_view(gpus=READING)
    async with app.run_test(size=(60, 12)) as pilot:
        app.panel.show(view)
        await pilot.pause()
        assert app.subtitle_words == ""
        app.panel.show(replace(view, now=NOW + 200))
        assert app.subtitle_words == "read 3m ago"


@pytest.mark.parametrize("size", [(80, 14), (32, 6), (20, 5)])
async def test_nothing_new_repaints_nothing(size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    app = Host(GpusPanel())
    view = make_view(make_run(columns=LOGGED), gpus=READING)
    async with app.run_test(size=size) as pilot:
        for _ in range(3):
            app.panel.show(view)
            await pilot.pause()
        counts = count_paints(monkeypatch)
        app.panel.show(replace(view, now=NOW + 1))
        await pilot.pause()
        assert not counts


async def test_of_wandbs_system_figures_those_of_the_gpus_are_shown() -> None:
    columns = {
        "system/gpu.0.gpu": [0.5] * 200,
        "system/gpu.0.memoryAllocated": [29.4] * 200,
        "system/gpu.1.gpu": [64.0] * 200,
        "system/gpu.0.smClock": [1410.0] * 200,
        "system/disk./.usageGB": [2591.0] * 200,
    }
    text = await shown(make_view(make_run(columns=columns)), (60, 12))
    assert "GPU 0 utilisation" in text
    assert "0.5%" in text, "W&B's percentages are no shares of 1"
    assert "29.4%" in text
    assert "GPU 1 utilisation" in text
    assert "1410" not in text
    assert "2591" not in text


async def test_wandbs_figures_of_the_host_are_percentages_with_names() -> None:
    columns = {"system/memory_percent": [3.23] * 200, "system/cpu": [0.4] * 200}
    text = await shown(make_view(make_run(columns=columns)), (60, 12))
    assert "host memory" in text
    assert "3.23%" in text
    assert "0.4%" in text, "no share of 1, however small"


async def test_names_of_verls_peaks_can_be_read_in_the_panel_of_a_wide_screen() -> None:
    names = ("allocated", "reserved")
    columns = {f"actor/perf/max_memory_{name}_gb": [40.0] * 200 for name in names} | {"perf/mfu/actor": [0.3] * 200}
    text = await shown(make_view(make_run(columns=columns)), (34, 12))
    assert "peak allocated" in text
    assert "peak reserved" in text
