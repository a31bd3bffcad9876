"""Devices over time, devices a run has logged, and whose processes they run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from verl_tui.records import (
    Batch,
    Gpu,
    GpuProcess,
    MetricRows,
    Settings,
    SourceStatus,
    Writer,
)
from verl_tui.runs.run import Run
from verl_tui.runs.views.devices import (
    host,
    logged_devices,
    owns,
    same_host,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

GIB = 1 << 30
LOG = "/logs/run/w.wandb"
WRITER = Writer(4711, "python")


def logged(
    columns: Mapping[str, list[float]], *, steps: list[int] | None = None
) -> Run:
    """Return a run with system figures as W&B writes them: measurements, of which several may be of
    one step.
    """
    run = Run("run")
    count = len(next(iter(columns.values())))
    rows = MetricRows(
        tuple(columns),
        steps or list(range(count)),
        list(columns.values()),
        list(range(count)),
        mean=True,
    )
    settings = Settings(
        {"wandb.gpu": "NVIDIA H100 80GB HBM3", "wandb.host": "node1"}, LOG
    )
    status = SourceStatus(LOG, "W&B run", writer=WRITER)
    run.apply(Batch("run", status, (settings, rows)), 0.0)
    return run


def test_logged_devices_are_like_those_of_this_host():
    columns = {
        "system/gpu.10.gpu": [50.0, 60.0, 70.0],
        "system/gpu.2.gpu": [90.0, 80.0, 97.0],
        "system/gpu.2.memoryAllocated": [75.0] * 3,
        "system/gpu.2.memoryAllocatedBytes": [60.0 * GIB] * 3,
        "system/gpu.2.temp": [61.0] * 3,
        "system/gpu.2.powerWatts": [512.0] * 3,
        "system/gpu.2.enforcedPowerLimitWatts": [700.0] * 3,
        "system/gpu.2.smClock": [1410.0] * 3,
        "system/cpu": [3.0] * 3,
    }
    second, tenth = logged_devices(logged(columns, steps=[1, 1, 1]))
    name = "NVIDIA H100 80GB HBM3"
    assert second.gpu == Gpu("2", name, 97.0, 60 * GIB, 80 * GIB, 61.0, 512.0, 700.0), (
        "the last measurement, no mean"
    )
    assert list(second.history) == [90.0, 80.0, 97.0]
    assert second.lately == 89.0
    assert tenth.gpu == Gpu("10", name, 70.0)


def test_logged_devices_of_several_nodes():
    columns = {
        f"system/gpu.{i}.gpu/l:{node}": [float(i)]
        for node in ("b", "a")
        for i in (1, 0)
    }
    devices = logged_devices(logged(columns))
    assert [(d.node, d.gpu.index, d.gpu.utilization) for d in devices] == [
        ("a", "0", 0.0),
        ("a", "1", 1.0),
        ("b", "0", 0.0),
        ("b", "1", 1.0),
    ]


@pytest.mark.parametrize(
    ("process", "words"),
    [
        (GpuProcess(1, line=frozenset({1, WRITER.pid})), "of this run"),
        (GpuProcess(1, line=frozenset({1, 5})), ""),
        (GpuProcess(1, cwd="/logs/run"), "in its directory"),
        (GpuProcess(1, cwd="/logs/run/deeper"), "in its directory"),
        (GpuProcess(1, cwd="/logs/run2"), ""),
        (GpuProcess(1, cwd="/logs"), ""),
        (GpuProcess(1), ""),
    ],
)
def test_whose_process_it_is(process, words):
    assert owns(logged({"a": [1.0]}))(process) == words


def test_hosts():
    assert host(logged({"a": [1.0]})) == "node1"
    assert host(Run("run")) == ""
    assert same_host("node1", "NODE1.cluster.local")
    assert not same_host("node1", "node11")
    assert not same_host("", "")
