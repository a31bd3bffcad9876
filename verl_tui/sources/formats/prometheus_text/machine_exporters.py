"""Figures of machines' exporters, under keys like those of W&B's system figures.

Names and units: DCGM's `default-counters.csv` (memory in MiB), Ray's `reporter_agent.py` (memory in
MiB, though its text says bytes), MindCluster's "Prometheus Metrics" for Ascend's npu-exporter
(memory in MB, power in W), and node_exporter. Keys are as W&B's for several nodes, but of the
cluster: `cluster/gpu.3.gpu/l:node-07`, since nobody says which machines a run uses.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from verl_tui import prometheus_names
from verl_tui.patterns import pattern

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_MIB = 2.0**20
_MOST = 1e15
"""DCGM writes 2^63 and a little less for figures that a board does not report
(`DCGM_INT64_BLANK`).
"""

_DCGM, _NPU, _RAY, _OWN = range(4)
"""If there are several exporters, only the devices of the first count: they name the same nodes
differently.
"""


class _DeviceFigure(NamedTuple):
    rank: int
    field: str
    factor: float = 1.0


_DEVICES: Mapping[str, _DeviceFigure] = {
    "DCGM_FI_DEV_GPU_UTIL": _DeviceFigure(_DCGM, "gpu"),
    "DCGM_FI_DEV_FB_USED": _DeviceFigure(_DCGM, "memoryAllocatedBytes", _MIB),
    "DCGM_FI_DEV_FB_FREE": _DeviceFigure(_DCGM, "free", _MIB),
    "DCGM_FI_DEV_GPU_TEMP": _DeviceFigure(_DCGM, "temp"),
    "DCGM_FI_DEV_POWER_USAGE": _DeviceFigure(_DCGM, "powerWatts"),
    "DCGM_FI_DEV_XID_ERRORS": _DeviceFigure(_DCGM, "xid"),
    "npu_chip_info_utilization": _DeviceFigure(_NPU, "gpu"),
    "npu_chip_info_hbm_used_memory": _DeviceFigure(_NPU, "memoryAllocatedBytes", _MIB),
    "npu_chip_info_hbm_total_memory": _DeviceFigure(_NPU, "total", _MIB),
    "npu_chip_info_temperature": _DeviceFigure(_NPU, "temp"),
    "npu_chip_info_power": _DeviceFigure(_NPU, "powerWatts"),
    "ray_node_gpus_utilization": _DeviceFigure(_RAY, "gpu"),
    "ray_node_gram_used": _DeviceFigure(_RAY, "memoryAllocatedBytes", _MIB),
    "ray_node_gram_available": _DeviceFigure(_RAY, "free", _MIB),
    "ray_node_gpu_temperature_celsius": _DeviceFigure(_RAY, "temp"),
    "ray_node_gpu_power_milliwatts": _DeviceFigure(_RAY, "powerWatts", 1e-3),
    prometheus_names.GPU_MEMORY: _DeviceFigure(_OWN, "memoryAllocatedBytes"),
}
DEVICES = tuple(_DEVICES)
"""Names of figures of devices."""
_INDEX = ("gpu", "GpuIndex", "id", "device", "minor_number")
"""Labels that number a device; npu-exporter's is `id`, verl's tutorials' `device`."""
_NODE = (
    "Hostname",
    "node",
    "nodename",
    "kubernetes_node",
    "host",
    "hostname",
    "ip",
    "instance",
)
_NUMBER = pattern(r"(?:(?:cuda|gpu|npu|nvidia|device)[:_-]?)?(\d{1,4})", re.IGNORECASE)

HOSTS = (
    *(
        "node_cpu_seconds_total",
        "node_memory_MemTotal_bytes",
        "node_memory_MemAvailable_bytes",
    ),
    *("ray_node_cpu_utilization", "ray_node_mem_used", "ray_node_mem_total"),
)
"""Names of figures of hosts."""
_CLUSTER = "cluster"
_CPU, _MEMORY = f"{_CLUSTER}/cpu", f"{_CLUSTER}/memory_percent"


def node_of(labels: Mapping[str, str]) -> str:
    """Return the name of the host that a sample is of, without its port; empty if no label names
    it.
    """
    name = next((labels[label] for label in _NODE if labels.get(label)), "")
    head, _, port = name.rpartition(":")
    if head and port.isdecimal() and not head.endswith(":"):
        return head
    return name


def device_figures(
    samples: Iterable[tuple[str, Mapping[str, str], float]],
) -> dict[str, float]:
    """Return the figures of devices by key.

    Args:
        samples: Name, labels and value of each.
    """
    found: dict[tuple[str, str], dict[str, float]] = {}
    best = len(_DEVICES)
    for name, labels, value in samples:
        figure = _DEVICES.get(name)
        if figure is None or figure.rank > best or not abs(value) < _MOST:
            continue
        index = _index(labels)
        if index is None:
            continue
        if figure.rank < best:
            best = figure.rank
            found.clear()
        node = node_of(labels)
        found.setdefault((node, index), {})[figure.field] = value * figure.factor
    return _by_key(found, cluster=best != _OWN)


def _by_key(
    found: Mapping[tuple[str, str], Mapping[str, float]], *, cluster: bool
) -> dict[str, float]:
    """Return figures of devices, given by node and index, by key."""
    with_node = cluster or len({node for node, _ in found}) > 1
    group = _CLUSTER if cluster else "system"
    out: dict[str, float] = {}
    for (node, index), fields in sorted(found.items()):
        suffix = f"/l:{node}" if node and with_node else ""
        for field, value in _complete(fields):
            out[f"{group}/gpu.{index}.{field}{suffix}"] = value
    return out


def _index(labels: Mapping[str, str]) -> str | None:
    """Return the number of a device; of a part of one (MIG) none, since its figures are not the
    board's.
    """
    if labels.get("GPU_I_ID"):
        return None
    found = next(
        (
            _NUMBER.fullmatch(labels[label].strip())
            for label in _INDEX
            if labels.get(label)
        ),
        None,
    )
    if found is None:
        return None
    return str(int(found[1]))


def _complete(fields: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    """Yield a device's figures, with its share of memory in place of what is free."""
    free = fields.get("free")
    total = fields.get("total")
    used = fields.get("memoryAllocatedBytes")
    for field, value in fields.items():
        if field not in ("free", "total"):
            yield field, value
    whole = total
    if total is None and used is not None and free is not None:
        whole = used + free
    if used is not None and whole is not None and whole > 0:
        yield "memoryAllocated", 100.0 * used / whole


class HostFigures:
    """Figures of hosts; remembers the seconds of their processors from one scrape to the next."""

    def __init__(self) -> None:
        self._seconds: dict[str, tuple[float, float]] = {}
        """By node: seconds without work and in all."""

    def take(
        self, samples: Iterable[tuple[str, Mapping[str, str], float]]
    ) -> dict[str, float]:
        """Return figures by key.

        Args:
            samples: Name, labels and value of each.
        """
        seconds: dict[str, tuple[float, float]] = {}
        amounts: dict[str, dict[str, float]] = {}
        for name, labels, value in samples:
            node = node_of(labels)
            if name == "node_cpu_seconds_total":
                idle, whole = seconds.get(node, (0.0, 0.0))
                waits = labels.get("mode") in ("idle", "iowait")
                seconds[node] = (idle + value * waits, whole + value)
            elif name in HOSTS:
                amounts.setdefault(node, {})[name] = value
        loads = dict(self._loads(seconds))
        out = {_on(_CPU, node): load for node, load in loads.items()}
        for node, own in sorted(amounts.items()):
            used = _memory_percent(own)
            if used is not None:
                out[_on(_MEMORY, node)] = used
            if "ray_node_cpu_utilization" in own and node not in loads:
                out[_on(_CPU, node)] = own["ray_node_cpu_utilization"]
        return out

    def _loads(
        self, seconds: Mapping[str, tuple[float, float]]
    ) -> Iterator[tuple[str, float]]:
        """Yield the share of the time since the scrape before that each node has worked."""
        for node, (idle, whole) in sorted(seconds.items()):
            before = self._seconds.get(node)
            self._seconds[node] = idle, whole
            if before is not None and whole > before[1] and idle >= before[0]:
                share = (idle - before[0]) / (whole - before[1])
                yield node, 100.0 * (1.0 - share)


def _memory_percent(amounts: Mapping[str, float]) -> float | None:
    """Return the share of a host's memory in use, by node_exporter, else by Ray."""
    total = amounts.get("node_memory_MemTotal_bytes")
    free = amounts.get("node_memory_MemAvailable_bytes")
    if total is None or free is None:
        total = amounts.get("ray_node_mem_total")
        used = amounts.get("ray_node_mem_used")
        free = total - used if total is not None and used is not None else None
    return 100.0 * (1.0 - free / total) if total and free is not None else None


def _on(key: str, node: str) -> str:
    return f"{key}/l:{node}" if node else key
