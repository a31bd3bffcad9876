"""Which devices are shown, in which order and under which heading."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from run_views import NOW, make_run, make_view

from verl_tui.records import Batch, Gpu, GpuReading, Settings
from verl_tui.rendering.gpus.places import device_places, gpu_rows

if TYPE_CHECKING:
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.runs.run import Run

DEVICES = tuple(Gpu(str(at), "H100", 80.0, 40 * 2**30, 80 * 2**30) for at in range(4))
LOGGED = {
    f"system/gpu.{at}.{field}": [50.0] * 30
    for at in range(2)
    for field in ("gpu", "memoryAllocatedBytes")
}


def run_on(host: str, *, quiet: float = 0.0) -> Run:
    run = make_run(steps=30, columns=LOGGED, quiet=quiet)
    path, *_ = run.paths
    settings = Settings({"wandb.host": host}, "wandb")
    run.apply(
        Batch(run.name, run.sources[path].status, (settings,) if host else ()), NOW
    )
    return run


def headings(view: View) -> list[tuple[str, int]]:
    return [(place.heading, len(place.devices)) for place in device_places(view, 80)]


def read_on(host: str, devices: tuple[Gpu, ...] = DEVICES) -> GpuReading:
    return GpuReading(NOW, devices, host=host)


def test_without_devices_the_reason_is_given() -> None:
    (place,) = device_places(make_view(), 80)
    assert place.below == [[("no reading yet", "dim")]]
    (place,) = device_places(make_view(gpus=GpuReading(NOW)), 80)
    assert place.below == [[("no GPU found here", "dim")]]


def test_an_active_run_on_this_host_has_no_devices_of_its_own() -> None:
    view = make_view(run_on("node1.cluster"), gpus=read_on("node1"))
    assert headings(view)[0] == ("", 4)
    assert sum(count for _, count in headings(view)) == 4


def test_a_run_on_another_host_comes_first() -> None:
    view = make_view(run_on("node2"), gpus=read_on("node1"))
    assert headings(view) == [("newest logged on node2", 2), ("this host, node1", 4)]


def test_a_run_of_which_no_host_is_known_comes_below() -> None:
    view = make_view(run_on(""), gpus=read_on("node1"))
    assert headings(view) == [("this host, node1", 4), ("newest logged by the run", 2)]


def test_a_host_without_devices_takes_no_row_beside_those_logged() -> None:
    view = make_view(run_on("node2"), gpus=read_on("node1", ()))
    assert headings(view) == [("newest logged on node2; no GPU found here", 2)]


@pytest.mark.parametrize("zoomed", [False, True])
@pytest.mark.parametrize("width", [1, 2, 40])
def test_rows_that_must_scroll_leave_a_cell_for_the_bar(
    width: int, zoomed: bool
) -> None:
    view = make_view(run_on("node2"), gpus=read_on("node1"))
    for height in (1, 5, 40):
        rows = gpu_rows(view, width, height, zoomed=zoomed)
        longest = max(sum(len(text) for text, _ in row) for row in rows)
        assert longest <= (max(1, width - 1) if len(rows) > height else width)


def test_devices_that_fit_have_a_row_each_before_the_figures_below() -> None:
    run = make_run(steps=30, columns={"perf/max_memory_allocated_gb": [40.0] * 30})
    view = make_view(run, gpus=read_on("node1"))
    rows = [
        "".join(text for text, _ in row) for row in gpu_rows(view, 80, 5, zoomed=False)
    ]
    assert ["H100" in row for row in rows[:5]] == [True] * 4 + [False]
    assert "newest logged by the run" in rows[4:][0] + rows[4:][1]
