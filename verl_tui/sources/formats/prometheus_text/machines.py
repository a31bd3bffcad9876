"""Figures of machines, under keys like those of W&B's system figures, but of the cluster:
`cluster/gpu.3.gpu/l:node-07`, since nobody says which machines a run uses.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from verl_tui import prometheus_names
from verl_tui.patterns import pattern
from verl_tui.sources.formats.prometheus_text.names import TABLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    Sample = tuple[str, Mapping[str, str], float]
    """Name, labels and value."""
    _Devices = dict[tuple[int, str, str], dict[str, float]]
    """Fields of devices by the rank of their exporter, node and index."""

_MOST = 1e15
"""DCGM writes 2^63 and a little less for figures that a board does not report
(`DCGM_INT64_BLANK`).
"""
DEVICES: Mapping[str, Mapping[str, Any]] = TABLE["devices"]
"""By exporter and name of a series: which field of a device it is, and its factor."""
_FIGURES = {
    name: (rank, figure["field"], figure.get("factor", 1.0))
    for rank, figures in enumerate(DEVICES.values())
    for name, figure in figures.items()
}
CPU_SECONDS = "node_cpu_seconds_total"
_TOTAL, _FREE = "node_memory_MemTotal_bytes", "node_memory_MemAvailable_bytes"
_RAY_TOTAL, _RAY_USED = "ray_node_mem_total", "ray_node_mem_used"
_RAY_CPU = "ray_node_cpu_utilization"
MACHINES = frozenset((*_FIGURES, _TOTAL, _FREE, _RAY_TOTAL, _RAY_USED, _RAY_CPU))
"""Names of the series that figures of machines are made of, counters aside."""
_NUMBER = pattern(r"(?:(?:cuda|gpu|npu|nvidia|device)[:_-]?)?(\d{1,4})", re.IGNORECASE)


def machine_figures(samples: Iterable[Sample]) -> dict[str, float]:
    """Return the figures of devices and hosts at one moment by key."""
    devices: _Devices = {}
    hosts: dict[str, dict[str, float]] = {}
    for name, labels, value in samples:
        index = _index(labels)
        if name not in _FIGURES:
            hosts.setdefault(node_of(labels), {})[name] = value
        elif index is not None and abs(value) < _MOST:
            rank, field, factor = _FIGURES[name]
            place = rank, node_of(labels), index
            devices.setdefault(place, {})[field] = value * factor
    found = dict(_of_devices(devices))
    for node, own in sorted(hosts.items()):
        found |= {on(key, node): value for key, value in _of_host(own)}
    return found


def _of_devices(devices: _Devices) -> Iterator[tuple[str, float]]:
    """Yield the figures of the devices of the first exporter, each with its key."""
    first = min((rank for rank, _, _ in devices), default=0)
    own = sorted(place for place in devices if place[0] == first)
    cluster = prometheus_names.GPU_MEMORY not in list(DEVICES.values())[first]
    group = "cluster" if cluster else "system"
    with_node = cluster or len({node for _, node, _ in own}) > 1
    for place in own:
        _, node, index = place
        for field, value in _complete(devices[place]):
            key = f"{group}/gpu.{index}.{field}"
            yield on(key, node if with_node else ""), value


def on(key: str, node: str) -> str:
    """Return the key of a figure of one host."""
    return f"{key}/l:{node}" if node else key


def node_of(labels: Mapping[str, str]) -> str:
    """Return the name of the host that a sample is of, without its port; empty if no label names
    it.
    """
    name = next((labels[one] for one in TABLE["node_labels"] if labels.get(one)), "")
    head, _, port = name.rpartition(":")
    if head and port.isdecimal() and not head.endswith(":"):
        return head
    return name


def _index(labels: Mapping[str, str]) -> str | None:
    """Return the number of a device; of a part of one (MIG) none, since its figures are not the
    board's.
    """
    stated = next((labels[one] for one in TABLE["index_labels"] if labels.get(one)), "")
    found = _NUMBER.fullmatch(stated.strip())
    return str(int(found[1])) if found and not labels.get("GPU_I_ID") else None


def _complete(fields: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    """Yield a device's figures, with its share of memory in place of what is free."""
    for field, value in fields.items():
        if field not in ("free", "total"):
            yield field, value
    used = fields.get("memoryAllocatedBytes")
    if used is not None:
        whole = fields.get("total", used + fields.get("free", -used))
        if whole > 0:
            yield "memoryAllocated", 100.0 * used / whole


def _of_host(amounts: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    """Yield a host's figures, its memory by node_exporter, else by Ray."""
    if _RAY_CPU in amounts:
        yield "cluster/cpu", amounts[_RAY_CPU]
    total, free = amounts.get(_TOTAL), amounts.get(_FREE)
    if total is None or free is None:
        total = amounts.get(_RAY_TOTAL)
        used = amounts.get(_RAY_USED)
        free = total - used if total is not None and used is not None else None
    if total and free is not None:
        yield "cluster/memory_percent", 100.0 * (1.0 - free / total)
