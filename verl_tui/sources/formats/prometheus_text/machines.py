"""Figures of machines, under keys like those of W&B's system figures, but of the cluster:
`cluster/gpu.3.gpu/l:node-07`, since nobody says which machines a run uses.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from verl_tui import prometheus_names
from verl_tui.patterns import pattern
from verl_tui.sources.formats.prometheus_text.names import TABLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    Sample = tuple[str, Mapping[str, str], float]
    """Name, labels and value."""

_MOST = 1e15
"""DCGM writes 2^63 and a little less for figures that a board does not report
(`DCGM_INT64_BLANK`).
"""
_KINDS = ("devices", "hosts")
_FIGURES = {
    name: ((kind, rank), figure["field"], figure.get("factor", 1.0))
    for kind in _KINDS
    for rank, figures in enumerate(TABLE[kind].values())
    for name, figure in figures.items()
}
"""Name of a series -> its exporter, the field of a device or host, and its factor."""
CPU_SECONDS = "node_cpu_seconds_total"
MACHINES = frozenset(_FIGURES)
"""Names of the series that figures of machines are made of, counters aside."""
_OWN = _FIGURES[prometheus_names.GPU_MEMORY][0]
_NUMBER = pattern(r"(?:(?:cuda|gpu|npu|nvidia|device)[:_-]?)?(\d{1,4})", re.IGNORECASE)


def machine_figures(samples: Iterable[Sample]) -> dict[str, float]:
    """Return the figures of devices and hosts at one moment by key; of each kind those of the first
    exporter.
    """
    found: dict[tuple[str, int], dict[tuple[str, str], dict[str, float]]] = {}
    for name, labels, value in samples:
        exporter, field, factor = _FIGURES[name]
        index = _index(labels) if exporter[0] == "devices" else ""
        if index is not None and abs(value) < _MOST:
            own = found.setdefault(exporter, {})
            place = node_of(labels), index
            own.setdefault(place, {})[field] = value * factor
    figures: dict[str, float] = {}
    for kind in _KINDS:
        first = min((one for one in found if one[0] == kind), default=None)
        if first is not None:
            figures |= _keyed(found[first], own=first == _OWN)
    return figures


def _keyed(
    places: Mapping[tuple[str, str], dict[str, float]], *, own: bool
) -> Iterator[tuple[str, float]]:
    """Yield the figures of devices or hosts, each with its key; `own` are those of the run
    itself.
    """
    with_node = not own or len({node for node, _ in places}) > 1
    for (node, index), fields in sorted(places.items()):
        device = f"gpu.{index}." if index else ""
        for field, value in _complete(fields, "" if index else "memory_percent"):
            key = f"{'system' if own else 'cluster'}/{device}{field}"
            yield on(key, node if with_node else ""), value


def _complete(fields: dict[str, float], share: str) -> Iterator[tuple[str, float]]:
    """Yield figures, with the share of memory in use in place of what is free."""
    free, whole = fields.pop("free", None), fields.pop("total", None)
    used = fields.pop("used", fields.get("memoryAllocatedBytes"))
    yield from fields.items()
    if free is not None:
        whole = whole or (used or 0.0) + free
        used = whole - free if used is None else used
    if used is not None and whole:
        yield share or "memoryAllocated", 100.0 * used / whole


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
