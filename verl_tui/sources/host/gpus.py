"""Reads the NVIDIA devices of this host through NVML, the library that comes with the driver.

Everything can be missing: the library, the driver behind it, a device that fell off the bus, a
single query that this board or this driver does not know. Each loss costs only what it takes away:
a field, a device, or the whole reading.
"""

from __future__ import annotations

import contextlib
import platform
import sys
import threading
from typing import TYPE_CHECKING, Any, TypeVar

from verl_tui import debug_log
from verl_tui.records import POWER_CAP, Gpu, GpuProcess, GpuReading
from verl_tui.sources.host.processes import Processes
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_Found = TypeVar("_Found")

RETRY_SECONDS = 60.0
"""Seconds from a failed start of NVML to the next try: a driver may be installed or reloaded."""

PATIENCE = 10.0
"""Seconds to wait for the driver where it is asked once."""
HANGS = "the NVIDIA driver does not answer"
"""The message if it takes longer."""

# Return codes of NVML, written out because pynvml is imported only when the first reading is
# wanted.
_UNINITIALIZED = 1
_NO_PERMISSION = 4
_NOT_FOUND = 6
_DRIVER_NOT_LOADED = 9
_LIBRARY_NOT_FOUND = 12
_FUNCTION_NOT_FOUND = 13
_GPU_IS_LOST = 15
_RESET_REQUIRED = 16
_VERSION_MISMATCH = 18
_GPU_NOT_FOUND = 28

_PROBLEMS = {
    _NO_PERMISSION: "no permission to read the NVIDIA devices",
    _NOT_FOUND: "the NVIDIA driver finds no device",
    _DRIVER_NOT_LOADED: "the NVIDIA driver is installed but not loaded",
    _LIBRARY_NOT_FOUND: "no NVIDIA driver here",
    _FUNCTION_NOT_FOUND: "the NVIDIA driver is too old to be read",
    _GPU_IS_LOST: "an NVIDIA device fell off the bus",
    _VERSION_MISMATCH: "the NVIDIA driver and its library have different versions:"
    " reload the driver or reboot",
    _GPU_NOT_FOUND: "the NVIDIA driver finds no device",
}
# These say that no query of any device can work, whichever query met them first.
_NOTHING_WORKS = frozenset({_UNINITIALIZED, _DRIVER_NOT_LOADED, _VERSION_MISMATCH})
_FAULTS = {_GPU_IS_LOST: "fell off the bus", _RESET_REQUIRED: "needs a reset"}
"""The possible faults of a device that the driver lists and no longer reaches."""

_LIBRARY = "libnvidia-ml.so.1"
_SENSOR_OF_THE_CHIP = 0  # NVML_TEMPERATURE_GPU
_MIG_ENABLED = 1
_NAMELESS = "GPU"

_PROCESSES = (
    "nvmlDeviceGetComputeRunningProcesses_v3",
    "nvmlDeviceGetComputeRunningProcesses_v2",
)
"""By version, since pynvml's call without one raises an error of another family where the driver is
older.
"""
_REASONS = (
    "nvmlDeviceGetCurrentClocksEventReasons",
    "nvmlDeviceGetCurrentClocksThrottleReasons",
)
"""The second is what drivers before 535 call the first."""
_HW_SLOWDOWN = 0x8
_THROTTLED = {0x20 | 0x40: "thermal", 0x80: "power brake", 0x4: POWER_CAP}
"""Bits of `nvmlClocksEventReasons`, by what they mean; idle and clocks that somebody has set are no
throttling.
"""
_EXACT = 0x40 | 0x80
"""Causes of a slowdown by the hardware, if the board reports one."""


class GpuSource:
    """All NVIDIA devices of this host, read on demand.

    CUDA_VISIBLE_DEVICES is not applied. It speaks for the process that carries it: Ray sets it anew
    in every worker, and the shell that starts the watcher says nothing about the devices of the
    run. NVML ignores it too, so the indices here are those of `nvidia-smi`.

    Not safe for several threads at once; a wedged driver blocks `read` and `close`, so give them a
    thread of their own.

    Args:
        retry: Seconds between two tries to start NVML after it failed, and between restarts while a
            device is lost.
    """

    def __init__(self, retry: float = RETRY_SECONDS) -> None:
        self._retry = retry
        self._nvml: Any = None
        self._open = False
        self._tried = 0.0
        """Time of the last start of NVML, successful or not."""
        self._problem: str | None = None
        self._lost = False
        """Whether any device of the last sweep has a fault."""
        self._fault = ""
        """That of the device which is being read."""
        self._processes = Processes()
        self._host = one_line(platform.node(), 80)
        self._names: dict[str, str] = {}
        """Last known names by index, since a lost device no longer reports its own."""

    def read(self, now: float) -> GpuReading:
        """Read every device once; never raises, may block while the driver does.

        Args:
            now: Seconds since the Unix epoch; becomes the time of the reading and paces retries.

        Returns:
            The devices in the order of `nvidia-smi`; a device in MIG mode is followed by its
            instances. Where nothing can be read, no device and a sentence that says why.
        """
        if self._problem is not None and self._waits(now):
            return GpuReading(now, problem=self._problem, host=self._host)
        if "pynvml" not in sys.modules and not _has_driver():
            return self._nothing(now, _PROBLEMS[_LIBRARY_NOT_FOUND])
        try:
            import pynvml
        except ImportError:
            return self._nothing(
                now, "the Python package nvidia-ml-py is not installed"
            )
        self._nvml = pynvml
        may_be_stale = self._open
        gpus = self._attempt(now)
        # one fresh start before the problem is believed
        if gpus is None and may_be_stale:
            gpus = self._attempt(now)
        self._processes.forget(now)
        return GpuReading(now, gpus or (), self._problem, self._host)

    def _nothing(self, now: float, why: str) -> GpuReading:
        """Note why nothing can be read, and return that."""
        self._tried = now
        self._problem = why
        return GpuReading(now, problem=why, host=self._host)

    def poll(
        self,
        stop: threading.Event,
        deliver: Callable[[GpuReading], None],
        every: float,
        clock: Callable[[], float],
    ) -> None:
        """Read and deliver until `stop` is set, then close. A problem is delivered once, not at
        every turn.

        Args:
            stop: Ends the loop, also in the middle of a wait.
            deliver: Takes each reading, in this thread; what it raises ends the loop.
            every: Seconds between two readings.
            clock: Tells seconds since the Unix epoch.
        """
        reported: str | None = None
        try:
            while not stop.is_set():
                reading = self.read(clock())
                if reading.problem is None or reading.problem != reported:
                    deliver(reading)
                reported = reading.problem
                stop.wait(every)
        finally:
            self.close()

    def close(self) -> None:
        """Release NVML; a later `read` starts it again. Does nothing where it is not started, never
        raises.
        """
        if not self._open:
            return
        self._open = False
        with contextlib.suppress(self._nvml.NVMLError):
            self._nvml.nvmlShutdown()

    def _waits(self, now: float) -> bool:
        # A clock that was set back must not stretch the wait, hence the lower bound.
        return 0 <= now - self._tried < self._retry

    def _attempt(self, now: float) -> tuple[Gpu, ...] | None:
        """One sweep; where it fails, note the problem and close."""
        try:
            gpus = self._sweep(now)
        except self._nvml.NVMLError as error:
            self._problem = _sentence(error)
            self.close()
            return None
        except Exception as error:  # noqa: BLE001 - native code, and Python code of many versions
            debug_log.note_error("reading the GPUs", error)
            why = f"{type(error).__name__}: {error}"
            self._tried, self._problem = (
                now,
                one_line(f"the GPUs cannot be read: {why}", 200),
            )
            return None
        self._problem = None
        return gpus

    def _sweep(self, now: float) -> tuple[Gpu, ...]:
        """Start NVML if needed and read all devices; raises NVMLError where that is impossible as a
        whole.
        """
        if not self._open:
            self._tried = now
            self._nvml.nvmlInit()
            self._open = True
        self._lost = False
        count = self._nvml.nvmlDeviceGetCount()
        if not count:
            # Treated like a failed start, because NVML lists the devices only when it starts.
            raise self._nvml.NVMLError(_GPU_NOT_FOUND)
        gpus = tuple(gpu for index in range(count) for gpu in self._device(index, now))
        if self._lost and not self._waits(now):
            # A device that was reset comes back only to a fresh NVML. Paced, since a start can take
            # seconds.
            self.close()
        return gpus

    def _device(self, index: int, now: float) -> Iterator[Gpu]:
        self._fault = ""
        handle = self._ask("nvmlDeviceGetHandleByIndex", index)
        whole = self._gpu(str(index), handle, _NAMELESS, now)
        yield whole
        mode = self._ask("nvmlDeviceGetMigMode", handle)
        if not mode or mode[0] != _MIG_ENABLED:
            return
        for slot in range(self._ask("nvmlDeviceGetMaxMigDeviceCount", handle) or 0):
            instance = self._ask("nvmlDeviceGetMigDeviceHandleByIndex", handle, slot)
            if instance is not None:  # slots may have gaps
                yield self._gpu(f"{index}:{slot}", instance, f"{whole.name} MIG", now)

    def _gpu(self, index: str, handle: Any, nameless: str, now: float) -> Gpu:
        used, total = self._memory(handle)
        utilization = self._ask("nvmlDeviceGetUtilizationRates", handle)
        return Gpu(
            index=index,
            name=self._name(index, handle, nameless),
            utilization=None if utilization is None else float(utilization.gpu),
            memory_used=used,
            memory_total=total,
            temperature=self._temperature(handle),
            power=_watts(self._ask("nvmlDeviceGetPowerUsage", handle)),
            power_limit=_watts(self._ask("nvmlDeviceGetEnforcedPowerLimit", handle)),
            throttle=_throttle(self._first(_REASONS, handle)),
            processes=self._running(handle, now),
            fault=self._fault,  # last: what was asked above may meet it
        )

    def _running(self, handle: Any, now: float) -> tuple[GpuProcess, ...] | None:
        """Return the processes on a device, each once even with several contexts."""
        answer = self._first(_PROCESSES, handle)
        if answer is None:
            return None
        held: dict[int, int | None] = {}
        for process in answer:
            size = process.usedGpuMemory
            held[process.pid] = (
                held.get(process.pid)
                if size is None
                else (held.get(process.pid) or 0) + int(size)
            )
        found = [self._processes.look(pid, size, now) for pid, size in held.items()]
        return tuple(
            sorted(found, key=lambda process: (-(process.memory or 0), process.pid))
        )

    def _first(self, queries: tuple[str, ...], handle: Any) -> Any:
        """Answer of the first query that has one."""
        answers = (self._ask(query, handle) for query in queries)
        return next((answer for answer in answers if answer is not None), None)

    def _name(self, index: str, handle: Any, nameless: str) -> str:
        name = self._ask("nvmlDeviceGetName", handle)
        if isinstance(name, bytes):  # older releases of pynvml
            name = name.decode(errors="replace")
        if name:
            self._names[index] = one_line(name, 80)
        return self._names.get(index, nameless)

    def _memory(self, handle: Any) -> tuple[int | None, int | None]:
        """Used and total bytes."""
        # The first version counts what the driver keeps for itself as used, so an idle device seems
        # to hold 600 MiB.
        version = getattr(self._nvml, "nvmlMemory_v2", None)
        memory = None
        if version:
            memory = self._ask("nvmlDeviceGetMemoryInfo", handle, version)
        if memory is None:
            memory = self._ask("nvmlDeviceGetMemoryInfo", handle)
        if memory is None:
            return (None, None)
        return (int(memory.used), int(memory.total))

    def _temperature(self, handle: Any) -> float | None:
        # NVML drops the old call in CUDA 14, while drivers before 2025 know no other.
        degrees = self._ask("nvmlDeviceGetTemperatureV", handle, _SENSOR_OF_THE_CHIP)
        if degrees is None:
            degrees = self._ask("nvmlDeviceGetTemperature", handle, _SENSOR_OF_THE_CHIP)
        return None if degrees is None else float(degrees)

    def _ask(self, query: str, handle: Any, *arguments: Any) -> Any:
        """Answer of one query, None if it fails; raises NVMLError only where every query
        would.
        """
        function = getattr(self._nvml, query, None)
        # an older pynvml, or a device that gives no handle
        if function is None or handle is None:
            return None
        try:
            return function(handle, *arguments)
        except self._nvml.NVMLError as error:
            if error.value in _NOTHING_WORKS:
                raise
            if error.value in _FAULTS:
                self._lost = True
                self._fault = _FAULTS[error.value]
            return None
        except UnicodeDecodeError:  # pynvml decodes names strictly
            return None


def in_time(look: Callable[[], _Found]) -> _Found | None:
    """Return what a look at the driver finds, None where it takes too long.

    No call into a driver that hangs can be ended, not by a signal either, so it is left to a thread
    that the process does not wait for.
    """
    found: list[_Found] = []
    looking = threading.Thread(target=lambda: found.append(look()), daemon=True)
    looking.start()
    looking.join(PATIENCE)
    return found[0] if found else None


def read_once(now: float) -> GpuReading:
    """Return one reading of all devices, or why there is none; `now` is its time."""

    def read() -> GpuReading:
        source = GpuSource()
        reading = source.read(now)
        source.close()
        return reading

    return in_time(read) or GpuReading(now, problem=HANGS)


def _has_driver() -> bool:
    """Return whether this host has NVML: where it has none, importing pynvml takes 60 ms for
    nothing.
    """
    if not sys.platform.startswith("linux"):
        return True  # pynvml knows the places of others
    import ctypes

    try:
        ctypes.CDLL(_LIBRARY)
    except OSError:
        return False
    return True


def _sentence(error: Any) -> str:
    """Return what an NVMLError means to a user."""
    if error.value in _PROBLEMS:
        return _PROBLEMS[error.value]
    return (
        f"the NVIDIA driver fails: {one_line(str(error), 80)} (NVML code {error.value})"
    )


def _watts(milliwatts: int | None) -> float | None:
    return None if milliwatts is None else milliwatts / 1000


def _throttle(reasons: int | None) -> tuple[str, ...] | None:
    """Return in words what slows the clocks down."""
    if reasons is None:
        return None
    slowed = ("hw slowdown",) if reasons & _HW_SLOWDOWN and not reasons & _EXACT else ()
    return (*slowed, *(word for bits, word in _THROTTLED.items() if reasons & bits))
