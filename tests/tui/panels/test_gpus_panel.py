"""The GPU panel: bars of this host, and what the run has logged of its own."""

from __future__ import annotations

from dataclasses import replace

from panel_host import Host
from run_views import NOW, make_run, make_view

from verl_tui.records import Batch, Gpu, GpuProcess, GpuReading, SourceStatus, Writer
from verl_tui.tui.panels.gpus import GpusPanel

GIB = 2**30
GPUS = tuple(
    Gpu(
        str(i),
        "NVIDIA H100 80GB HBM3",
        87.0 - i,
        (62 + i) * GIB,
        80 * GIB,
        71.0 + i,
        512.0,
        700.0,
    )
    for i in range(4)
)
READING = GpuReading(NOW, GPUS)


async def test_an_old_reading_is_called_old():
    app = Host(GpusPanel())
    view = make_view(gpus=READING)
    async with app.run_test(size=(60, 12)) as pilot:
        app.panel.show(view)
        await pilot.pause()
        assert app.subtitle_words == ""
        app.panel.show(replace(view, now=NOW + 200))
        assert "read 3m ago" in app.subtitle_words


def many(count, **more):
    gpus = tuple(
        replace(GPUS[0], index=str(i), utilization=3.0 if i == 2 else 95.0, **more)
        for i in range(count)
    )
    return GpuReading(NOW, gpus, host="login")


def watched(reading, *runs, times=1, **more):
    """Return a view of devices that have been read several times."""
    view = make_view(*runs, gpus=reading, **more)
    for _ in range(times):
        view.monitor.gpu_history.note(reading)
    return view


async def zoomed(view, size=(100, 40)):
    app = Host(GpusPanel())
    async with app.run_test(size=size) as pilot:
        app.panel.add_class("-zoomed")
        app.panel.show(view)
        await pilot.pause()
        return app.text


async def test_zoomed_each_device_has_its_past_and_its_processes():
    mine = GpuProcess(4711, "ray::WorkerDict", 60 * GIB, "/", frozenset({4711, 4700}))
    near = GpuProcess(12, "python eval.py", 2 * GIB, "/logs")
    other = GpuProcess(13, "", None)
    reading = many(2, processes=(mine, near, other), throttle=("power cap",))
    run = make_run()
    status = SourceStatus("/logs/grpo", "verl", writer=Writer(4700, "python"))
    run.apply(Batch(run.name, status), NOW)
    text = await zoomed(watched(reading, run, times=60))
    assert "4711 ray::WorkerDict  60.0 GiB  of this run" in text
    assert "12   python eval.py    2.0 GiB  in its directory" in text
    assert "13   name not visible" in text
    assert "power cap" in text
    assert "100%" in text
    assert "━" * 15 in text
