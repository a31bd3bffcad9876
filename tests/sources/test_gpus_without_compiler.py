"""Devices as a stand-in for pynvml tells of them: where there is no C compiler for one of the
driver's library, too.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from verl_tui.records import Gpu
from verl_tui.sources.host.gpus import GpuSource

MIB = 1 << 20


class NVMLError(Exception):
    """What pynvml raises, with NVML's code."""

    def __init__(self, value: int) -> None:
        super().__init__(f"code {value}")
        self.value = value


class Library:
    """A pynvml of two devices, the second with an instance of MIG in its slot 1; handles are
    indices.
    """

    NVMLError = NVMLError

    def __init__(self, **failing: int) -> None:
        self.failing = failing
        """Codes by the ends of the names of functions."""
        self.calls: list[str] = []

    def _answer(self, name: str, answer: Any) -> Any:
        self.calls.append(name)
        if name in self.failing:
            raise NVMLError(self.failing[name])
        return answer

    def __getattr__(self, name: str) -> Any:
        """Return a function of NVML.

        Raises:
            AttributeError: There is none of that name in this release.
        """
        if name == "nvmlMemory_v2":
            return 2
        short = name.removeprefix("nvmlDevice").removeprefix("nvml")
        if short not in ANSWERS:
            raise AttributeError(name)
        return lambda *words: self._answer(short, ANSWERS[short](*words))


ANSWERS: dict[str, Any] = {
    "Init": lambda: None,
    "Shutdown": lambda: None,
    "GetCount": lambda: 2,
    "GetHandleByIndex": lambda index: index,
    "GetMigMode": lambda handle: (int(handle == 1), 0),
    "GetMaxMigDeviceCount": lambda _handle: 2,
    "GetMigDeviceHandleByIndex": lambda handle, slot: 10 * handle if slot else None,
    "GetName": lambda handle: "NVIDIA \x1b[31mH100" if handle < 2 else "",
    "GetMemoryInfo": lambda _handle, version=None: SimpleNamespace(
        used=3 * MIB if version else 603 * MIB, total=80 * MIB
    ),
    "GetUtilizationRates": lambda handle: SimpleNamespace(gpu=97 - handle),
    "GetTemperature": lambda handle, _sensor: 60 + handle,
    "GetPowerUsage": lambda _handle: 412_500,
    "GetEnforcedPowerLimit": lambda _handle: 700_000,
    "GetCurrentClocksThrottleReasons": lambda handle: (0x8, 0x40)[handle % 2],
    "GetComputeRunningProcesses_v2": lambda _handle: [
        SimpleNamespace(pid=4194305, usedGpuMemory=size)
        for size in (None, MIB, 2 * MIB)
    ],
}


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    found = Library()
    monkeypatch.setitem(sys.modules, "pynvml", found)  # type: ignore[arg-type]
    return found


def test_devices_and_their_instances_as_an_older_driver_tells_of_them(
    library: Library,
) -> None:
    reading = GpuSource().read(5.0)
    assert (reading.time, reading.problem) == (5.0, None)
    first, second, instance = reading.gpus
    assert first == Gpu(
        index="0",
        name=first.name,
        utilization=97.0,
        memory_used=3 * MIB,
        memory_total=80 * MIB,
        temperature=60.0,
        power=412.5,
        power_limit=700.0,
        throttle=("hw slowdown",),
        processes=first.processes,
    )
    assert "\x1b" not in first.name
    assert first.processes is not None
    assert [(one.pid, one.memory) for one in first.processes] == [(4194305, 3 * MIB)]
    assert second.throttle == ("thermal",)
    assert (instance.index, instance.name) == ("1:1", f"{second.name} MIG")


def test_a_query_that_fails_costs_its_field_and_a_lost_device_its_answers(
    library: Library,
) -> None:
    library.failing = {"GetMemoryInfo": 3, "GetTemperature": 3}
    source = GpuSource(retry=60.0)
    first, *_ = source.read(0.0).gpus
    assert (first.memory_used, first.temperature, first.utilization) == (
        None,
        None,
        97.0,
    )
    library.failing = {"GetUtilizationRates": 15}
    assert source.read(10.0).gpus[0].utilization is None
    assert "Shutdown" not in library.calls, (
        "a lost device has NVML started anew at its pace only"
    )
    source.read(70.0)
    assert library.calls.count("Shutdown") == 1
    source.close()
