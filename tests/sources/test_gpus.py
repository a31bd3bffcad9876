"""NVML is read through the real pynvml, loaded in a process of its own with a stand-in for the
driver's library.

A process of its own, because the loader reads LD_LIBRARY_PATH only once, when Python starts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from nvml_library import LIBRARY, compiled

import verl_tui
from verl_tui.records import Gpu, GpuReading
from verl_tui.sources.host.gpus import GpuSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

MIB = 1 << 20
READER = """
import dataclasses, json, os, shutil, sys, traceback
from verl_tui.sources.host.gpus import GpuSource

def answer(steps):
    source = GpuSource()
    for step in steps:
        os.environ.update(step.get("env", {}))
        for target, text in step.get("files", {}).items():
            open(target, "w").write(text)
        if "install" in step:
            shutil.copy(*step["install"])
        yield dataclasses.asdict(source.read(step.get("now", 0.0)))
        if step.get("close"):
            source.close()

for line in sys.stdin:
    asked = json.loads(line)
    if child := os.fork():
        os.waitpid(child, 0)
        continue
    try:
        os.environ.clear()
        os.environ.update(asked["env"])
        exec(asked["before"])
        print(json.dumps(list(answer(asked["steps"])), default=sorted))
    except BaseException:
        print(json.dumps(traceback.format_exc()))
    sys.stdout.flush()
    os._exit(0)
"""
"""Reads devices in a child for each line of its input, in which nothing of NVML is loaded yet."""


_READERS: dict[Path, subprocess.Popen[str]] = {}
"""Folder with a build of the library -> a process that finds it there: to start Python for each
reading takes several times as long as to read.
"""


@pytest.fixture(scope="module", autouse=True)
def readers() -> Iterator[None]:
    """End the readers with the tests."""
    yield
    for one in _READERS.values():
        one.communicate(timeout=60)
    _READERS.clear()


def reader(folder: Path) -> subprocess.Popen[str]:
    """Return the process that reads with the library in a folder."""
    if folder not in _READERS:
        path = str(Path(verl_tui.__file__).parents[1])
        _READERS[folder] = subprocess.Popen(
            [sys.executable, "-c", READER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "LD_LIBRARY_PATH": str(folder), "PYTHONPATH": path},
        )
    return _READERS[folder]


@dataclass(frozen=True)
class Stub:
    """A folder with one build of the library, and readings taken with it."""

    folder: Path

    def read(
        self,
        steps: Sequence[dict[str, Any]] = ({},),
        before: str = "",
        **environment: str,
    ) -> list[dict[str, Any]]:
        """One reading per step, each a `GpuReading` as a dict. A step may change variables, files
        and the time.
        """
        kept = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith("STUB_")
        }
        asked = {"steps": list(steps), "before": before, "env": kept | environment}
        process = reader(self.folder)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(asked) + "\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        assert isinstance(answer, list), answer
        return answer

    def gpus(self, before: str = "", **environment: str) -> list[dict[str, Any]]:
        """The devices of one reading that has no problem."""
        (reading,) = self.read(({},), before, **environment)
        assert reading["problem"] is None
        return reading["gpus"]  # type: ignore[no-any-return]

    def problem(self, before: str = "", **environment: str) -> str | None:
        """Why one reading shows no device."""
        (reading,) = self.read(({},), before, **environment)
        assert not reading["gpus"]
        return reading["problem"]  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Stub]:
    built: dict[tuple[str, ...], Stub] = {}

    def _build(*flags: str) -> Stub:
        if flags not in built:
            built[flags] = Stub(compiled(tmp_path_factory.mktemp("nvml"), *flags))
        return built[flags]

    return _build


@pytest.fixture
def stub(build: Callable[..., Stub]) -> Stub:
    return build()


def test_eight_devices_with_all_fields(stub):
    gpus = stub.gpus()
    assert [gpu["index"] for gpu in gpus] == list("01234567")
    assert Gpu(**gpus[3]) == Gpu(
        index="3",
        name="NVIDIA H100 80GB HBM3",
        utilization=30.0,
        memory_used=1003 * MIB,  # without the 600 MiB that the driver keeps
        memory_total=81559 * MIB,
        temperature=43.0,
        power=103.5,
        power_limit=700.0,
        throttle=[],  # type: ignore[arg-type]  # JSON knows no tuples
        processes=[],  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("flags", [(), ("OLD_DRIVER",)])
def test_what_holds_the_clocks_down(build, flags):
    driver_says: list[tuple[int, list[str]]] = [
        # idle, clocks set by somebody, sync boost, display
        (0x1 | 0x2 | 0x10 | 0x100, []),
        (0x4, ["power cap"]),
        (0x8, ["hw slowdown"]),
        (0x8 | 0x40, ["thermal"]),
        (0x8 | 0x80, ["power brake"]),
        (0x4 | 0x20 | 0x40, ["thermal", "power cap"]),
        (1 << 60, []),
    ]
    steps = [{"env": {"STUB_THROTTLE": f"1:{bits}"}} for bits, _ in driver_says]
    readings = build(*flags).read(steps, STUB_COUNT="2")
    assert [[gpu["throttle"] for gpu in reading["gpus"]] for reading in readings] == [
        [[], words] for _, words in driver_says
    ]


@pytest.mark.parametrize("flags", [(), ("OLD_DRIVER",)])
def test_processes_by_memory(build, flags):
    # Numbers that no process of this host can have: what /proc says of real ones is tested with it.
    driver_says = "0:4194305:500,0:4194306:700,0:4194307:-1,0:4194305:300,1:4194306:5"
    first, second = build(*flags).gpus(STUB_COUNT="2", STUB_PROCESSES=driver_says)
    assert [(p["pid"], p["memory"], p["name"]) for p in first["processes"]] == [
        (4194305, 800 * MIB, ""),
        (4194306, 700 * MIB, ""),
        (4194307, None, ""),
    ]
    assert [p["pid"] for p in second["processes"]] == [4194306]


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("9", "the NVIDIA driver is installed but not loaded"),
        (
            "18",
            "the NVIDIA driver and its library have different versions: reload the driver or reboot",
        ),
        ("4", "no permission to read the NVIDIA devices"),
        ("13", "the NVIDIA driver is too old to be read"),
        ("28", "the NVIDIA driver finds no device"),
        ("999", "the NVIDIA driver fails: Unknown Error (NVML code 999)"),
        ("77", "the NVIDIA driver fails: a code of the future (NVML code 77)"),
    ],
)
def test_failed_start_is_one_sentence(stub, code, problem):
    assert stub.problem(STUB_INIT=code) == problem


@pytest.mark.parametrize(
    ("query", "fields"),
    [
        ("GetUtilizationRates", {"utilization"}),
        ("GetMemoryInfo", {"memory_used", "memory_total"}),
        ("GetTemperature", {"temperature"}),
        ("GetPowerUsage", {"power"}),
        ("GetEnforcedPowerLimit", {"power_limit"}),
        ("GetCurrentClocks", {"throttle"}),
        ("GetComputeRunningProcesses", {"processes"}),
    ],
)
def test_failing_query_costs_its_field_only(stub, query, fields):
    faults = {15: "fell off the bus", 16: "needs a reset"}
    codes = (3, 4, 6, 13, *faults, 999)
    steps = [{"env": {"STUB_FAIL": f"{query}@1:{code}"}} for code in codes]
    whole, *cut = (
        reading["gpus"] for reading in stub.read([{}, *steps], STUB_COUNT="2")
    )
    for code, (first, second) in zip(codes, cut, strict=True):
        assert first == whole[0]
        assert second == whole[1] | dict.fromkeys(fields) | {
            "fault": faults.get(code, "")
        }


def test_a_lost_device_says_so_and_costs_no_other(stub):
    lost = "GetHandleByIndex@1:15"
    before, after = stub.read([{}, {"env": {"STUB_FAIL": lost}}], STUB_COUNT="2")
    assert before["gpus"][1]["utilization"] == 10.0
    name = before["gpus"][1]["name"]
    assert Gpu(**after["gpus"][1]) == Gpu("1", name, fault="fell off the bus")
    assert after["gpus"][0] == before["gpus"][0]


def test_lost_device_restarts_nvml_at_a_slow_pace(stub, tmp_path):
    journal = tmp_path / "journal"
    lost, found = {"STUB_FAIL": "GetHandleByIndex@1:15"}, {"STUB_FAIL": ""}
    times = [{"now": float(now), "env": lost} for now in (0, 2, 58, 60)]
    readings = stub.read(
        [*times, {"now": 62.0, "env": found}, {"now": 200.0}], STUB_JOURNAL=str(journal)
    )
    assert all(len(reading["gpus"]) == 8 for reading in readings)
    assert readings[-1]["gpus"][1]["utilization"] == 10.0
    assert journal.read_text().split() == ["init", "shutdown", "init"]


@pytest.mark.parametrize("code", ["1", "9", "18", "999"])
def test_nvml_that_fails_is_started_afresh_a_minute_later(stub, tmp_path, code):
    journal = tmp_path / "journal"
    steps = [
        {},
        {"now": 1.0, "env": {"STUB_FAIL": f"GetCount:{code}"}},
        {"now": 2.0, "env": {"STUB_FAIL": ""}},
        {"now": 61.0},
    ]
    good, bad, waiting, back = stub.read(steps, STUB_JOURNAL=str(journal))
    assert (good["problem"], back["problem"]) == (None, None)
    assert len(back["gpus"]) == 8
    assert bad["problem"] is not None
    assert waiting["problem"] == bad["problem"]
    assert journal.read_text().split() == ["init", "shutdown", "init"]


def test_driver_that_comes_later_is_seen_at_a_slow_pace(stub, tmp_path):
    (tmp_path / LIBRARY).write_text("not yet a library")
    install = [str(stub.folder / LIBRARY), str(tmp_path / LIBRARY)]
    steps: list[dict[str, Any]] = [
        {"now": 0.0},
        {"now": 30.0, "install": install},
        {"now": 59.0},
        {"now": 60.0},
    ]
    problems = [reading["problem"] for reading in Stub(tmp_path).read(steps)]
    assert problems == [*["no NVIDIA driver here"] * 3, None]


def test_mig_instances_follow_their_device(stub):
    gpus = stub.gpus(
        STUB_COUNT="3", STUB_MIG="1:5", STUB_FAIL="GetUtilizationRates@1:3"
    )
    assert [gpu["index"] for gpu in gpus] == ["0", "1", "1:0", "1:2", "2"]
    assert (gpus[1]["utilization"], gpus[1]["temperature"]) == (None, 41.0)
    assert Gpu(**gpus[3]) == Gpu(
        "1:2",
        "NVIDIA H100 80GB HBM3 MIG 1g.10gb",
        memory_used=102 * MIB,
        memory_total=9984 * MIB,
    )


def test_poll_delivers_every_reading_but_a_problem_once():
    device = (Gpu("0", "H100"),)
    none, loaded = GpuReading(0, problem="none"), GpuReading(0, problem="not loaded")
    good = GpuReading(0, device)
    given = iter([none, none, loaded, loaded, good, good, none, none])
    stop, delivered = threading.Event(), list[GpuReading]()

    class Script(GpuSource):
        def read(self, now: float) -> GpuReading:
            if (reading := next(given, None)) is None:
                stop.set()
            return reading or none

    Script().poll(stop, delivered.append, 0.0, lambda: 0.0)
    assert delivered == [none, loaded, good, good, none]
