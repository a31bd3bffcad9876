"""Devices over time, devices a run has logged, and whose processes they run."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from verl_tui.records import (
    Batch,
    Gpu,
    GpuProcess,
    GpuReading,
    MetricRows,
    Settings,
    SourceStatus,
    Writer,
)
from verl_tui.runs.run import Run
from verl_tui.runs.views.devices import (
    COLUMNS,
    READINGS,
    DeviceHistory,
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


def reading(*percents: float | None) -> GpuReading:
    return GpuReading(
        0.0, tuple(Gpu(str(at), "H100", percent) for at, percent in enumerate(percents))
    )


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


def test_history_is_the_mean_of_some_readings_and_of_whole_columns_only() -> None:
    history = DeviceHistory()
    for percent in range(2 * READINGS + 1):
        history.note(reading(float(percent), None))
    first, second = history.devices(reading(8.0, None))
    assert list(first.history) == [1.5, 5.5]
    assert first.lately == 4.0
    assert all(math.isnan(value) for value in second.history)
    assert second.lately is None


def test_what_has_never_worked_may_be_another_ones() -> None:
    idle = {"system/gpu.1.gpu": [0.0, 4.0, 0.0, 0.0]}
    devices, _ = logged_devices(logged({"system/gpu.0.gpu": [0.0, 9.0] * 2, **idle}))
    assert [device.worked for device in devices] == [True, False]


def test_history_knows_how_long_it_is_from_the_first_column_on() -> None:
    history = DeviceHistory()
    for second in range(3 * READINGS):
        history.note(replace(reading(50.0), time=float(second)))
    newest = replace(reading(50.0), time=100.0)
    assert [device.span for device in history.devices(newest)] == [
        100.0 - (READINGS - 1)
    ]
    assert [device.span for device in DeviceHistory().devices(newest)] == [None]


def test_history_is_bounded() -> None:
    history = DeviceHistory()
    for _ in range(READINGS * (COLUMNS + 3)):
        history.note(reading(50.0))
    (device,) = history.devices(reading(50.0))
    assert list(device.history) == [50.0] * COLUMNS


def test_a_device_that_was_gone_begins_anew() -> None:
    history = DeviceHistory()
    for _ in range(READINGS):
        history.note(reading(50.0))
    history.note(GpuReading(0.0, (), "no NVIDIA driver here"))
    history.note(reading(7.0))
    (device,) = history.devices(reading(7.0))
    assert (list(device.history), device.lately) == ([], 7.0)


def test_logged_devices_are_like_those_of_this_host() -> None:
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
    (second, tenth), used = logged_devices(logged(columns, steps=[1, 1, 1]))
    name = "NVIDIA H100 80GB HBM3"
    assert second.gpu == Gpu("2", name, 97.0, 60 * GIB, 80 * GIB, 61.0, 512.0, 700.0), (
        "the last measurement, no mean"
    )
    assert list(second.history) == [90.0, 80.0, 97.0]
    assert second.lately == 89.0
    assert tenth.gpu == Gpu("10", name, 70.0)
    assert used == columns.keys() - {"system/gpu.2.smClock", "system/cpu"}


def test_logged_devices_of_several_nodes() -> None:
    columns = {
        f"system/gpu.{i}.gpu/l:{node}": [float(i)]
        for node in ("b", "a")
        for i in (1, 0)
    }
    devices, used = logged_devices(logged(columns))
    assert [(d.node, d.gpu.index, d.gpu.utilization) for d in devices] == [
        ("a", "0", 0.0),
        ("a", "1", 1.0),
        ("b", "0", 0.0),
        ("b", "1", 1.0),
    ]
    assert used == set(columns)


def test_a_share_of_memory_without_bytes_is_left_to_others() -> None:
    devices, used = logged_devices(logged({"system/gpu.0.memoryAllocated": [29.4]}))
    assert (devices, used) == ([], set())


def test_values_that_are_no_numbers_are_unknown() -> None:
    columns = {
        f"system/gpu.0.{field}": [math.nan]
        for field in ("gpu", "temp", "memoryAllocatedBytes")
    }
    ((device,), _) = logged_devices(logged(columns))
    assert device.gpu == Gpu("0", "NVIDIA H100 80GB HBM3")
    assert device.lately is None


def test_measured_values_of_several_tables_are_in_the_order_of_writing() -> None:
    run = Run("run")
    status = SourceStatus(LOG, "W&B run")
    for order, keys in enumerate((("a",), ("a", "b"), ("a",))):
        rows = MetricRows(
            keys, [5 - order], [[float(order)] for _ in keys], [order], mean=True
        )
        run.apply(Batch("run", status, (rows,)), 0.0)
    assert list(run.measured("a", 2)) == [1.0, 2.0]
    assert list(run.measured("a", 0)) == list(run.measured("c", 2)) == []


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
def test_whose_process_it_is(process: GpuProcess, words: str) -> None:
    assert owns(logged({"a": [1.0]}))(process) == words


def test_hosts() -> None:
    assert host(logged({"a": [1.0]})) == "node1"
    assert host(Run("run")) == ""
    assert same_host("node1", "NODE1.cluster.local")
    assert not same_host("node1", "node11")
    assert not same_host("", "")
