"""Names of series in Prometheus: which are metrics of training, and what their labels name.

Figures of machines have keys like those of W&B's system figures, but of the cluster:
`cluster/gpu.3.gpu/l:node-07`, since nobody says which machines a run uses.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from verl_tui import prometheus_names
from verl_tui.metrics import slashed
from verl_tui.patterns import NamePattern, pattern
from verl_tui.prometheus_names import named
from verl_tui.text import one_line
from verl_tui.toml_tables import toml_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

TABLE = toml_table(__file__, "exporters.toml")
"""What exporters call their figures."""
KEY = "verl_tui_key"
"""Label of a figure that was computed from series, by us or by a server: the figure's key."""


Labels = tuple[tuple[str, str], ...]
"""Names and values."""
NameAndLabels = tuple[str, Labels]
"""A name and its labels."""


class PrometheusSeries(NamedTuple):
    """The values of one series over time; on a page it has one."""

    name: str
    labels: Mapping[str, str]
    points: Mapping[float, object]
    """Time in seconds since the epoch -> value, a number or its text: most are never parsed."""


STEPS = NamePattern(
    r"(?!.*(?:total|max|num|per|planned)_(?:train|global|optim))(?:.+[_:])?"
    r"(?:train(?:ing|er)?_(?:global_)?|global_|optimi[sz]er_)steps?(?:_total)?"
)
"""Names of counts of steps: verl's tutorials and RL-Insight's `…training_global_step` among
them.
"""
NO_METRIC = NamePattern(
    r"(?:process|python|go|promhttp|scrape|net_conntrack)_.*|up|.*_(?:created|info)|target_info"
    r"|verl_(?:source|exporter|run|finding|metric)_.*|verl_indicator(?:_band)?"
    rf"|{prometheus_names.LAST_STEP}|{prometheus_names.LAST_VALIDATION}"
    rf"|{prometheus_names.TOTAL_STEPS}"
)
"""NameAndLabels of processes about themselves, and of our own exporter besides a run's metrics."""
ADDED = NamePattern(
    r".*(?:[_:]num_.*|[_:](?:running|waiting|swapped)|_reqs|_requests|_throughput|_bytes|_count"
    r"|_total|_tokens|_keys)"
)
"""Gauges that are amounts, which are summed over workers."""
KEPT_TOTALS = NamePattern(r".*(?:corrupted|preempt|error|fail|abort|retract).*")
"""Counters whose sum is more informative than their rate."""
BY_CLOCK = NamePattern(r"(?:vllm|sglang|lmdeploy|trtllm|tq|ray|npu|node|DCGM)[_:].*")
"""NameAndLabels of engines, queues and machines, which go on whether training does or not."""
SUMMARIES = {prometheus_names.REWARD, prometheus_names.GENERATION}
"""NameAndLabels that repeat metrics under the tutorials' names in our exporter."""
QUANTILES = {"p50": 0.5, "p95": 0.95}
"""Quantiles that are shown of a histogram."""
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
_NO_SUBJECTS = {*TABLE["process_labels"], "le", "quantile"}
_UNDERSCORED = pattern(r"\A(vllm|sglang)_")


def spelled(name: str) -> str:
    """Return an engine's own name of a metric: prometheus-client's OpenMetrics has `_` for `:`."""
    return _UNDERSCORED.sub(r"\1:", name, count=1)


def subject(labels: Iterable[tuple[str, str]]) -> str:
    """Return what a sample is of, empty if its labels name only the process that exports it."""
    others = (value for label, value in labels if label not in _NO_SUBJECTS)
    return "/".join(filter(None, others))


def of_subject(name: str, subject: str) -> str:
    """Return the key of a metric of a subject."""
    return f"{name}/{one_line(subject, 100)}" if subject else name


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


def machine_figures(
    samples: Iterable[tuple[str, Mapping[str, str], float]],
) -> dict[str, float]:
    """Return the figures of devices and hosts at one moment by key, given names, labels and values;
    of each kind those of the first exporter.
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
