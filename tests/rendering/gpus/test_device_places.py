"""Which devices are shown, in which order and under which heading."""

from __future__ import annotations

from dataclasses import replace

import pytest
from run_views import NOW, make_run, make_view

from verl_tui.records import Batch, Gpu, GpuReading, Settings
from verl_tui.rendering.gpus.places import (
    device_places,
    first_devices,
    gpu_row,
    gpu_rows,
)
from verl_tui.rendering.status_line import one_row
from verl_tui.rendering.text.piece import text_of

DEVICES = tuple(Gpu(str(at), "H100", 80.0, 40 * 2**30, 80 * 2**30) for at in range(4))
LOGGED = {
    f"system/gpu.{at}.{field}": [50.0] * 30
    for at in range(2)
    for field in ("gpu", "memoryAllocatedBytes")
}


def run_on(host, *, quiet=0.0):
    run = make_run(steps=30, columns=LOGGED, quiet=quiet)
    path, *_ = run.paths
    settings = Settings({"wandb.host": host}, "wandb")
    run.apply(
        Batch(run.name, run.sources[path].status, (settings,) if host else ()), NOW
    )
    return run


def headings(view):
    return [(place.heading, len(place.devices)) for place in device_places(view)]


def row_of(view, width):
    return gpu_row(first_devices(device_places(view)), width)


def read_on(host, devices=DEVICES):
    return GpuReading(NOW, devices, host=host)


def test_without_devices_the_reason_is_given():
    (place,) = device_places(make_view())
    assert place.why == "no reading yet"
    (place,) = device_places(make_view(gpus=GpuReading(NOW)))
    assert place.why == "no GPU found here"


def test_a_reason_shares_the_heading():
    view = make_view(run_on(""), gpus=GpuReading(NOW, problem="no driver here"))
    assert headings(view) == [
        ("newest logged by the run (charts: means of steps); no driver here", 2)
    ]
    rows, _ = gpu_rows(view, 40, 9, zoomed=True)
    assert text_of(rows[1]) == "of steps); no driver here"


def test_a_run_on_another_host_comes_first():
    view = make_view(run_on("node2"), gpus=read_on("node1"))
    assert headings(view) == [
        ("newest logged on node2 (charts: means of steps)", 2),
        ("this host, node1", 4),
    ]


def test_a_row_has_what_stands_out_of_the_first_place():
    view = make_view(run_on(""), gpus=GpuReading(NOW, problem="no driver here"))
    assert text_of(row_of(view, 80)).startswith("GPUs 2 · busy 50%")
    lost = replace(DEVICES[0], fault="fell off the bus")
    view = make_view(run_on("node1"), gpus=read_on("node1", (lost, *DEVICES[1:])))
    row = text_of(row_of(view, 80))
    assert row == "GPUs 4 x▆▆▆ · busy 80% · memory 50%  fell off the bus: GPU 0"
    assert "GPU 80%" in text_of(one_row(view, 200, alone=True))
    assert text_of(row_of(view, 24)) == "GPUs 4 · 80% · mem 50% …"
    assert not row_of(make_view(gpus=GpuReading(NOW)), 80)
    idle = (Gpu(str(at), "H100", 0.0, 0, 80 * 2**30) for at in range(2, 4))
    reading = read_on("node1", (*DEVICES[:2], *idle))
    view = make_view(run_on("node1"), gpus=reading)
    view.monitor.gpu_history.note(reading)
    assert "2 of 4" in text_of(row_of(view, 80))
    assert "GPU 80%" in text_of(one_row(view, 200, alone=True))


@pytest.mark.parametrize(
    ("count", "width", "row"),
    [
        (2, 80, "GPUs 2 · busy 80% · memory 50%  is gone: GPU 1"),
        (16, 40, "GPUs 16 ▆x▆▆▆▆▆▆▆▆▆▆▆▆▆▆ · 80%  …"),
        (16, 80, f"GPUs 16 ▆x{'▆' * 14} · busy 80% · memory 50%  is gone: GPU 1"),
        (64, 40, "GPUs 64 worst of 8 x▆▆▆▆▆▆▆ · 80%  …"),
        (32, 60, f"GPUs 32 worst of 4 x{'▆' * 7} · 80% · mem 50%  is gone: GPU 1"),
        (64, 120, f"GPUs 64 ▆x{'▆' * 62} · busy 80% · memory 50%  is gone: GPU 1"),
    ],
)
def test_a_row_of_several_devices_has_levels(count, width, row):
    lost = {"utilization": None, "fault": "is gone"}
    devices = tuple(
        replace(DEVICES[0], index=f"{n}", **(lost if n == 1 else {}))
        for n in range(count)
    )
    view = make_view(run_on("node1"), gpus=read_on("node1", devices))
    assert text_of(row_of(view, width)) == row
