"""Names of series in Prometheus: which are metrics of training, and what their labels name.

Figures of machines have keys like those of W&B's system figures, but of the cluster:
`cluster/gpu.3.gpu/l:node-07`, since nobody says which machines a run uses.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from verl_tui import prometheus_names
from verl_tui.metrics import slashed
from verl_tui.patterns import NamePattern, pattern
from verl_tui.prometheus_names import named
from verl_tui.text import one_line
from verl_tui.toml_tables import toml_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

TABLE = toml_table(__file__, "exporters.toml")
"""What exporters call their figures."""
KEY = "verl_tui_key"
"""Label of a figure that was computed from series, by us or by a server: the figure's key."""
Labels = tuple[tuple[str, str], ...]
"""Names and values."""


class PrometheusSeries(NamedTuple):
    """The values of one series over time; on a page it has one."""

    name: str
    labels: Mapping[str, str]
    points: Mapping[float, str | float]
    """Time in seconds since the epoch -> value, a number or its text: most are never parsed."""


STEPS = frozenset(TABLE["steps"])
"""Names of the progress of a run."""
BY_CLOCK = NamePattern(rf"(?:{'|'.join(TABLE['by_clock'])})[_:].*")
"""Names of figures that go on whether training does or not."""
NO_METRIC = NamePattern(
    rf"(?:{'|'.join(TABLE['of_processes'])})_.*|up|.*_(?:created|info)"
)
"""Names of what processes say about themselves."""
SUMMARIES = {prometheus_names.REWARD, prometheus_names.GENERATION}
"""The tutorials' names, under which our exporter repeats metrics."""
AMOUNTS = frozenset(name for name, how in TABLE["engines"].items() if how == "sum")
"""Gauges that are summed over workers; others are averaged."""
QUANTILES = {"p50": 0.5, "p95": 0.95}
"""Quantiles that are shown of a histogram."""
_MOST = 1e15
"""DCGM writes 2^63 and a little less for figures that a board does not report
(`DCGM_INT64_BLANK`).
"""
_FIGURES = {
    name: ((kind, rank), figure["field"], figure.get("factor", 1.0))
    for kind in ("devices", "hosts")
    for rank, figures in enumerate(TABLE[kind].values())
    for name, figure in figures.items()
}
"""Name of a series -> its exporter, the field of a device or host, and its factor."""
CPU_SECONDS = "node_cpu_seconds_total"
MachinePlace = tuple[tuple[str, int], str, str, str]
"""Exporter, node, index of a device, field."""
MACHINES = frozenset(_FIGURES)
"""Names of the series that figures of machines are made of, counters aside."""
_OWN = _FIGURES[prometheus_names.GPU_MEMORY][0]
_NUMBER = pattern(r"(?:(?:cuda|gpu|npu|nvidia|device)[:_-]?)?(\d{1,4})", re.IGNORECASE)
_NO_SUBJECTS = {*TABLE["process_labels"], "le", "quantile", KEY}


def run_labels(labels: Mapping[str, str], *, by_job: bool) -> Labels:
    """Return the labels of a series that say whose it is: our exporter's `run`, RL-Insight's
    `experiment_name`, or the job that scrapes it.
    """
    for names in (("run",), ("project", "experiment_name"), ("job",) * by_job):
        if names and labels.get(names[-1]):
            return tuple((name, labels[name]) for name in names if labels.get(name))
    return ()


def of_subject(name: str, labels: Mapping[str, str]) -> str:
    """Return the key of a metric: with what it is of, unless its labels name only the process that
    exports it.
    """
    of = "/".join(
        filter(None, (labels[one] for one in labels if one not in _NO_SUBJECTS))
    )
    return f"{name}/{one_line(of, 100)}" if of else name


def key_and_factor(name: str, keys: Mapping[str, str]) -> tuple[str, float]:
    """Return the log's key for a series, and the factor from its value to the log's.

    Args:
        name: Name of the series.
        keys: Keys of the log that our exporter states, by name.
    """
    if key := keys.get(name):
        return key, 1.0 / named(key).factor
    plain = name.removeprefix(prometheus_names.PREFIX)
    own = slashed(plain)
    return (own if own != plain else slashed(name)), 1.0


def machine_place(
    name: str, labels: Mapping[str, str]
) -> tuple[MachinePlace | None, float]:
    """Return what a figure of a machine is of, None for a part of a device (MIG), whose figures are
    not the board's; and the factor from a series' value to it.
    """
    exporter, field, factor = _FIGURES[name]
    if exporter[0] == "hosts":
        return (exporter, node_of(labels), "", field), factor
    found = _NUMBER.fullmatch(_first(labels, "index_labels").strip())
    if found is None or labels.get("GPU_I_ID"):
        return None, factor
    return (exporter, node_of(labels), str(int(found[1])), field), factor


def machine_figures(values: Mapping[MachinePlace, Sequence[float]]) -> dict[str, float]:
    """Return the figures of devices and hosts at one moment by key; of each kind those of the first
    exporter.
    """
    known: dict[tuple[str, int], dict[tuple[str, str], dict[str, float]]] = {}
    for (exporter, node, index, field), given in sorted(values.items()):
        if abs(given[-1]) < _MOST:
            places = known.setdefault(exporter, {})
            places.setdefault((node, index), {})[field] = given[-1]
    first = {exporter[0]: exporter for exporter in sorted(known, reverse=True)}
    return dict(chain(*(_keyed(one, known[one]) for one in sorted(first.values()))))


def _keyed(
    exporter: tuple[str, int], places: Mapping[tuple[str, str], dict[str, float]]
) -> Iterator[tuple[str, float]]:
    """Yield the figures of devices or hosts, each with its key."""
    own = exporter == _OWN  # of the run itself, which seldom is on several nodes
    with_node = not own or len({node for node, _ in places}) > 1
    for (node, index), fields in places.items():
        stem = f"{'system' if own else 'cluster'}/{f'gpu.{index}.' if index else ''}"
        for field, value in _complete(fields, "" if index else "memory_percent"):
            yield on(f"{stem}{field}", node if with_node else ""), value


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
    name = _first(labels, "node_labels")
    head, _, port = name.rpartition(":")
    return head if head and port.isdecimal() and not head.endswith(":") else name


def _first(labels: Mapping[str, str], which: str) -> str:
    return next((labels[one] for one in TABLE[which] if labels.get(one)), "")
