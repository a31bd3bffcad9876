"""Reads the NVIDIA devices of this host through NVML, the library that comes with the driver.

Everything can be missing: the library, the driver behind it, a device that fell off the bus, a
single query that this board or this driver does not know. Each loss costs only what it takes away:
a field, a device, or the whole reading.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import platform
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from verl_tui import debug_log
from verl_tui.records import Gpu, GpuReading
from verl_tui.sources.host.processes import gpu_process
from verl_tui.text import one_line
from verl_tui.toml_tables import toml_table

_Found = TypeVar("_Found")

RETRY_SECONDS = 60.0
"""Seconds from a failed start of NVML to the next try: a driver may be installed or reloaded."""

PATIENCE = 10.0
"""Seconds to wait for the driver where it is asked once."""
HANGS = "the NVIDIA driver does not answer"
"""The message if it takes longer."""

_NO_LIBRARY, _NO_DEVICE = 12, 28
_NVML = toml_table(__file__, "nvml.toml")
"""What is asked, and what return codes and bits mean, written out because pynvml is imported only
when the first reading is wanted.
"""

_LIBRARY = "libnvidia-ml.so.1"
_MIG_ENABLED = 1


def _throttle(reasons: int) -> tuple[str, ...]:
    """Return in words what slows the clocks down."""
    return tuple(
        one["words"]
        for one in _NVML["throttle"]
        if reasons & one["bits"] and not reasons & one["unless"]
    )


class GpuSource:
    """All NVIDIA devices of this host, read on demand.

    CUDA_VISIBLE_DEVICES is not applied. It speaks for the process that carries it: Ray sets it in
    every worker, and the shell that starts the watcher says nothing about the devices of the run.
    NVML ignores it too, so the indices here are those of `nvidia-smi`.

    Not safe for several threads at once; a wedged driver blocks `read` and `close`, so give them a
    thread of their own.
    """

    def __init__(self) -> None:
        self._nvml: Any = None
        """None where NVML is not started."""
        self._tried = 0.0
        """Time of the last start of NVML, successful or not."""
        self._problem: str | None = None
        self._fault = ""
        """That of the device which is being read."""
        self._names: dict[str, str] = {}
        """Last known names by index, since a lost device no longer reports its own."""
        self._host = one_line(platform.node(), 80)

    def read(self, now: float) -> GpuReading:
        """Read every device once; never raises, may block while the driver does.

        Args:
            now: Seconds since the Unix epoch; becomes the time of the reading and paces retries.

        Returns:
            The devices in the order of `nvidia-smi`; a device in MIG mode is followed by its
            instances. Where nothing can be read, no device and a sentence that says why.
        """
        gpus: tuple[Gpu, ...] = ()
        if self._problem is None or not self._waits(now):
            try:
                gpus = self._sweep(now)
                self._problem = None
            except Exception as error:  # noqa: BLE001 - native code, and many versions of Python's
                self._problem = _sentence(error)
                self._tried = now
                self.close()
        return GpuReading(now, gpus, self._problem, self._host)

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
        nvml, self._nvml = self._nvml, None
        if nvml:
            with contextlib.suppress(nvml.NVMLError):
                nvml.nvmlShutdown()

    def _waits(self, now: float) -> bool:
        # A clock that was set back must not stretch the wait, hence the lower bound.
        return 0 <= now - self._tried < RETRY_SECONDS

    def _sweep(self, now: float) -> tuple[Gpu, ...]:
        """Start NVML if needed and read all devices; raises where that is impossible as a whole."""
        if self._nvml is None:
            self._tried = now
            self._nvml = _started()
        count = self._nvml.nvmlDeviceGetCount()
        if not count:
            # Treated like a failed start, because NVML lists the devices only when it starts.
            raise self._nvml.NVMLError(_NO_DEVICE)
        gpus = tuple(gpu for index in range(count) for gpu in self._device(index, now))
        if any(gpu.fault for gpu in gpus) and not self._waits(now):
            # A device that was reset comes back only to a fresh NVML. Paced, since a start can take
            # seconds.
            self.close()
        return gpus

    def _device(self, index: int, now: float) -> Iterator[Gpu]:
        self._fault = ""
        handle = self._ask(index, "GetHandleByIndex")
        whole = self._gpu(str(index), handle, "GPU", now)
        yield whole
        mode = self._ask(handle, "GetMigMode")
        if not mode or mode[0] != _MIG_ENABLED:
            return
        for slot in range(self._ask(handle, "GetMaxMigDeviceCount") or 0):
            instance = self._ask(handle, "GetMigDeviceHandleByIndex", slot)
            if instance is not None:  # slots may have gaps
                yield self._gpu(f"{index}:{slot}", instance, f"{whole.name} MIG", now)

    def _gpu(self, index: str, handle: Any, nameless: str, now: float) -> Gpu:
        found = {one["name"]: self._field(handle, one) for one in _NVML["field"]}
        if found["throttle"] is not None:
            found["throttle"] = _throttle(found["throttle"])
        if (processes := found.pop("processes")) is not None:
            held: Counter[int] = Counter()
            for one in processes:  # of which one may have several contexts
                held[one.pid] += int(one.usedGpuMemory or 0)
            largest = sorted(held, key=lambda pid: (-held[pid], pid))
            found["processes"] = tuple(
                gpu_process(pid, held[pid] or None, now) for pid in largest
            )
        # the fault last: what was asked above may meet it
        name = one_line(found.pop("name") or self._names.get(index, nameless), 80)
        self._names[index] = name
        return Gpu(index=index, name=name, **found, fault=self._fault)

    def _field(self, handle: Any, field: dict[str, Any]) -> Any:
        """Return a field of a device, None where no query tells it."""
        answers = (self._ask(handle, *query) for query in field["ask"])
        answer = next((one for one in answers if one is not None), None)
        if answer is not None and "of" in field:
            answer = getattr(answer, field["of"])
        return answer if answer is None or "per" not in field else answer / field["per"]

    def _ask(self, handle: Any, name: str, *arguments: Any) -> Any:
        """Answer of one query, None if it fails; raises NVMLError only where every query
        would.
        """
        function = getattr(self._nvml, f"nvmlDevice{name}", None)
        # an older pynvml, or a device that gives no handle
        if function is None or handle is None:
            return None
        try:
            return function(handle, *arguments)
        except self._nvml.NVMLError as error:
            if error.value in _NVML["nothing_works"]:
                raise
            self._fault = _NVML["faults"].get(str(error.value), self._fault)
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
        with contextlib.closing(GpuSource()) as source:
            return source.read(now)

    return in_time(read) or GpuReading(now, problem=HANGS)


def _started() -> Any:
    """Return pynvml, started; raises what keeps it from that."""
    if sys.platform.startswith("linux") and "pynvml" not in sys.modules:
        # Without the library, importing pynvml takes 60 ms for nothing.
        ctypes.CDLL(_LIBRARY)
    pynvml: Any = importlib.import_module("pynvml")
    pynvml.nvmlInit()
    return pynvml


def _sentence(error: Any) -> str:
    """Return what an error means to a user."""
    if isinstance(error, ImportError):
        return "the Python package nvidia-ml-py is not installed"
    code = _NO_LIBRARY if isinstance(error, OSError) else getattr(error, "value", None)
    if problem := _NVML["problems"].get(str(code)):
        return str(problem)
    if code is not None:
        return f"the NVIDIA driver fails: {one_line(str(error), 80)} (NVML code {code})"
    debug_log.note_error("reading the GPUs", error)
    why = f"{type(error).__name__}: {error}"
    return one_line(f"the GPUs cannot be read: {why}", 200)
