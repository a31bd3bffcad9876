"""Devices over time: those of this host as they are read, those that a run has logged, and the
owners of their processes.
"""

from __future__ import annotations

import math
from collections import deque
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.means import finite, mean
from verl_tui.patterns import NamePattern
from verl_tui.records import Gpu, GpuProcess, GpuReading
from verl_tui.runs.cached import cached_by_keys, cached_by_revision
from verl_tui.runs.settings import gpu_counts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from verl_tui.runs.run import Run


_USED, _SHARE = "memoryAllocatedBytes", "memoryAllocated"
_CLUSTER = "cluster/"
"""Prefix of the keys of machines that the run may or may not use."""
_COLUMNS = 120
"""Columns of history kept of each device."""
_READINGS = 4
"""Number of readings averaged into a column, which is drawn once it is complete, so that most
readings leave the history unchanged.
"""
_LATELY = 15
"""Number of readings that distinguish an idle device from one between two kernels: half a minute at
the usual pace.
"""
_LATELY_LOGGED = 4
"""The same in W&B's measurements, each the mean of several seconds."""
WORKED = 5.0
"""Utilisation in percent that a device has reached where it was ever used: heuristic."""
HELD = 3.0
"""Percent of a device's memory that a process holds at least: a context alone takes less."""
WORKS = 60.0
"""Utilisation in percent from which the others work, and the share of theirs, in percent too, below
which a device lags behind: the second tutorial's bound.
"""
_MOST = 64
"""Most devices that one is compared with."""
_ALIKE = 0.1
"""Shares of memory that differ by no more of themselves are alike: heuristic."""
_OF_DEVICE = NamePattern(r"(system|cluster)/gpu\.(\d{1,4})\.([^/]+)(?:/l:(.+))?")
"""W&B's figures (docs.wandb.ai/models/ref/python/experiments/system-metrics), which those of
Prometheus get the names of; `/l:` names the node. Keys under `cluster/` are the same for all
machines of a cluster, some of which the run may use.
"""
_FIELDS = (
    "gpu", _USED, _SHARE, "temp", "powerWatts", "enforcedPowerLimitWatts",
)  # fmt: skip


class Device(NamedTuple):
    """A device with its past."""

    gpu: Gpu
    node: str = ""
    """Name of its host where there are several."""
    history: tuple[float, ...] = ()
    """Utilisation, oldest first; nan where it is unknown."""
    lately: float | None = None
    """Mean utilisation over the last readings, None where it is unknown or the device is lost."""
    span: float | None = None
    """Seconds that the history covers, None where it is unknown."""
    live: bool = False
    """Whether it is watched: its history ends now."""
    worked: bool = True
    """False if a run has logged it with all the others of its host, and it has never been at work
    there: it may not be the run's.
    """


def memory_percent(devices: Iterable[Device]) -> float | None:
    """Return how full the memory of devices that tell is; None where none does."""
    gpus = [one.gpu for one in devices]
    known = [one for one in gpus if one.memory_total and one.memory_used is not None]
    whole = sum(one.memory_total or 0 for one in known)
    return 100 * sum(one.memory_used or 0 for one in known) / whole if whole else None


def is_used(device: Device) -> bool:
    """Return whether anything uses a device: it has worked lately or holds memory."""
    percent = memory_percent([device])
    busy = device.lately is None or device.lately >= WORKED
    return device.worked and (busy or percent is None or percent >= HELD)


def behind(devices: Iterable[Device]) -> list[Device]:
    """Return the devices that lag behind the mean of the others that are used, as the rule
    `gpu-uneven` has it.
    """
    used = filter(is_used, devices)
    known = [(one, one.lately) for one in used if one.lately is not None]
    total, beside = sum(percent for _, percent in known), max(1, len(known) - 1)
    held = [(one, own, (total - own) / beside) for one, own in known]
    return [
        one
        for one, own, others in held
        if others >= WORKS and 100 * own < WORKS * others
    ]


class DeviceHistory:
    """Utilisation of this host's devices while they were watched, kept by `verl_tui.monitor`."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[deque[float], deque[float]]] = {}
        """Columns and newest readings of each device."""
        self._times: deque[float] = deque(maxlen=_COLUMNS)
        """When each column was completed."""
        self._read = 0

    def note(self, reading: GpuReading) -> None:
        """Take in a reading; a device that was missing starts over when it comes back."""
        self._read += 1
        completes_column = self._read % _READINGS == 0
        if completes_column:
            self._times.append(reading.time)
        known, self._kept = self._kept, {}
        for gpu in reading.gpus:
            fresh = deque[float](maxlen=_COLUMNS), deque[float](maxlen=_LATELY)
            columns, newest = self._kept[gpu.index] = known.get(gpu.index, fresh)
            newest.append(math.nan if gpu.utilization is None else gpu.utilization)
            if completes_column:
                average = _mean([*newest][-_READINGS:])
                columns.append(math.nan if average is None else average)

    def devices(self, reading: GpuReading) -> list[Device]:
        """Return the devices of the newest reading with their past."""
        found = []
        for gpu in reading.gpus:
            history, newest = self._kept.get(gpu.index, ((), ()))
            span = reading.time - self._times[-len(history)] if history else None
            lately = None if gpu.fault else _mean(newest)
            found.append(Device(gpu, "", tuple(history), lately, span, live=True))
        return found


# -- what a run has logged -------------------------------------------------------------------------


@cached_by_keys
def _logged_keys(run: Run) -> Mapping[tuple[str, int], Mapping[str, str]]:
    """Return the keys of each device's figures, by the name of its node (empty where there is one
    only) and its index, ascending; those of the run's own devices before those of a cluster.
    """
    found: dict[tuple[str, int], dict[str, str]] = {}
    for key in sorted(run.keys, reverse=True):
        of = _OF_DEVICE.fullmatch(key)
        if of and of[3] in _FIELDS:
            found.setdefault((of[4] or "", int(of[2])), {}).setdefault(of[3], key)
    return dict(sorted(found.items()))


def utilization_keys(run: Run) -> list[str]:
    """Return the keys of the devices' utilisation that a run has logged of those it uses, by node
    and index.
    """
    known = [keys.get("gpu", _CLUSTER) for keys in _logged_keys(run).values()]
    return [key for key in known if not key.startswith(_CLUSTER)]


def logs_device_memory(run: Run) -> bool:
    """Return whether a run has logged the memory of single devices."""
    return any(
        not keys.keys().isdisjoint((_USED, _SHARE))
        for keys in _logged_keys(run).values()
    )


@cached_by_keys
def logs_cluster(run: Run) -> bool:
    """Return whether a run has figures of a cluster's machines, which it may or may not use."""
    return any(key.startswith(_CLUSTER) for key in run.keys)


def never_worked(run: Run, key: str) -> bool:
    """Return whether a device has idled since the run began and does not hold as much memory as
    those that work: W&B measures all devices of a host, whoever uses them.
    """
    if not _OF_DEVICE.fullmatch(key) or not _idled(run, key):
        return False
    others = [one for one in utilization_keys(run)[:_MOST] if not _idled(run, one)]
    shares = [share for one in others if (share := _held(run, one)) is not None]
    held = _held(run, key)
    if held is None or not shares:
        return True
    # What holds as much as those that work was set up by the same run.
    return abs(held - median(shares)) > _ALIKE * median(shares)


def _idled(run: Run, key: str) -> bool:
    busy = run.present(key)
    return busy is not None and busy.highest < WORKED


def _held(run: Run, key: str) -> float | None:
    """Return the newest share of a device's memory in use, given the key of its utilisation."""
    memory = run.present(memory_key(key))
    point = memory.last_finite if memory else None
    return point and point.value


def memory_key(key: str) -> str:
    """Return the key of a device's share of memory, given that of its utilisation."""
    head, node, name = key.partition("/l:")
    return f"{head.removesuffix('.gpu')}.memoryAllocated{node}{name}"


@cached_by_revision
def logged_devices(run: Run) -> list[Device]:
    """Return the devices whose figures a run has logged, as measured last, by node and index.

    A share of memory without its bytes is not used: nothing says of how much.
    """
    devices = []
    for (node, index), keys in _logged_keys(run).items():
        logged = keys.keys() - {_SHARE}
        if logged & {"gpu", _USED} or len(logged) > 1:
            devices.append(_logged(run, str(index), node, keys))
    return devices


def _logged(run: Run, index: str, node: str, keys: Mapping[str, str]) -> Device:
    last = {
        field: values[-1]
        for field, key in keys.items()
        if (values := finite(run.measured(key, 1)))
    }
    key = keys.get("gpu", "")
    history = run.measured(key, _COLUMNS)
    used, share = last.get(_USED), last.get(_SHARE)
    name = run.settings.get("wandb.gpu")
    gpu = Gpu(
        index,
        name if isinstance(name, str) else "",
        next(iter(finite(history[-1:])), None),
        None if used is None else int(used),
        int(used * 100 / share) if used is not None and share else None,
        last.get("temp"),
        last.get("powerWatts"),
        last.get("enforcedPowerLimitWatts"),
    )
    lately = _mean(history[-_LATELY_LOGGED:])
    times = finite(run.measured(key, _COLUMNS, times=True))
    span = times[-1] - times[0] if times else None
    worked = not never_worked(run, key)
    return Device(gpu, node, tuple(history), lately, span, worked=worked)


def _mean(values: Iterable[float]) -> float | None:
    known = finite(values)
    return mean(known) if known else None


def device_count(run: Run) -> tuple[int | None, str]:
    """Return how many devices a run has, None where that is not known, and by what."""
    if counts := gpu_counts(run.config):
        return sum(counts), "its settings"
    count = len(used_keys(run))
    return count or None, "those of this host that it logs" if count else "all it logs"


def used_keys(run: Run) -> list[str]:
    """Return the keys of the utilisation of the devices that have ever worked."""
    return [key for key in utilization_keys(run) if not never_worked(run, key)]


# -- where it runs ---------------------------------------------------------------------------------


def host(run: Run) -> str:
    """Return the name of the host a run was started on, empty where unknown."""
    name = run.settings.get("wandb.host")
    return name if isinstance(name, str) else ""


def same_host(one: str, other: str) -> bool:
    """Return whether two names are known to mean one host: `node1` and `node1.cluster.local` do."""
    first, second = (name.partition(".")[0].lower() for name in (one, other))
    return bool(first) and first == second


def owns(run: Run) -> Callable[[GpuProcess], str]:
    """Return the evidence that a process belongs to a run, in words; empty if there is none."""
    folders = {Path(path).absolute().parent for path in run.paths}
    written = (status.writer for status in run.statuses)
    writers = {one.pid for one in written if one and not one.gone}

    def words(process: GpuProcess) -> str:
        if writers & process.line:
            return "of this run"
        here = Path(process.cwd or "-")
        return "in its directory" * (not folders.isdisjoint((here, *here.parents)))

    return words
