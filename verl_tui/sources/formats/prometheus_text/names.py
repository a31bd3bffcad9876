"""Names of series in Prometheus: which are metrics of training, and what their labels name.

Figures of machines have keys like those of W&B's system figures, but of the cluster:
`cluster/gpu.3.gpu/l:node-07`, since nobody says which machines a run uses.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from verl_tui import prometheus_names as ours
from verl_tui.metrics import slashed
from verl_tui.patterns import NamePattern, pattern
from verl_tui.text import one_line, safe
from verl_tui.toml_tables import toml_table

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

TABLE = toml_table(__file__, "exporters.toml")
"""What exporters call their figures."""
KEY = "verl_tui_key"
"""Label of a figure that was computed from series, by us or by a server: the figure's key."""
Labels = tuple[tuple[str, str], ...]
"""Names and values."""
LogKeys: TypeAlias = "Mapping[str, tuple[str, float]]"
"""The log's own keys that our exporter states, by their names, and the factors to their units."""


class PrometheusSeries(NamedTuple):
    """The values of one series over time; on a page it has one."""

    name: str
    labels: Mapping[str, str]
    points: Mapping[float, str | float]
    """Time in seconds since the epoch -> value, a number or its text: most are never parsed."""


STEPS = frozenset(TABLE["steps"])
"""Names of the progress of a run."""
QUANTILES = {"p50": 0.5, "p95": 0.95}
"""Quantiles that are shown of a histogram."""
_STATED = dict.fromkeys(STEPS, ours.STEPS) | {
    name: name for name in (ours.TOTAL_STEPS, ours.LAST_STEP, ours.LAST_VALIDATION)
}
"""Names of what is stated of a run's progress, and ours."""
_BY_CLOCK = NamePattern(rf"(?:{'|'.join(TABLE['by_clock'])})[_:].*")
"""Names of figures that go on whether training does or not."""
_NO_METRIC = NamePattern(
    rf"(?:{'|'.join(TABLE['of_processes'])})_.*|up|.*_(?:created|info)"
)
"""Names of what processes say about themselves."""
_OUR_OWN = ours.OWN.keys() - {ours.REWARD, ours.GENERATION}
"""What our exporter says of a run, but for the tutorials' names, under which it repeats metrics."""
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
MACHINES = frozenset(_FIGURES)
"""Names of the series that figures of machines are made of, counters aside."""
MachinePlace = tuple[tuple[str, int], str, str, str]
"""Exporter, node, index of a device, field."""
_OWN = _FIGURES[ours.GPU_MEMORY][0]
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


def run_name(labels: Labels, taken: Collection[str]) -> str:
    """Return a run's name by its labels: as in the logs, with all of them where another is called
    so.
    """
    own, full = labels[-1][1], "/".join(value for _, value in labels)
    names = (one_line(one, 120) or "run" for one in (own, full))
    numbered = f"{own} ({len(taken) + 1})"
    return next((one for one in names if one not in taken), one_line(numbered, 120))


def of_subject(name: str, labels: Mapping[str, str]) -> str:
    """Return the key of a metric: with what it is of, unless its labels name only the process that
    exports it.
    """
    subjects = (labels[one] for one in labels if one not in _NO_SUBJECTS)
    of = "/".join(filter(None, subjects))
    return f"{name}/{one_line(of, 100)}" if of else name


def role(name: str, labels: Mapping[str, str], keys: LogKeys) -> tuple[str, Any, float]:
    """Return what kind of figure the values of a series are (`stated`, `metrics`, `by_clock`,
    `machines`), their key, and the factor to it; no key for one that says nothing.

    Args:
        name: Name of the series.
        labels: Its labels.
        keys: The log's own, as far as they are known.
    """
    if stated := _STATED.get(name):
        return "stated", stated, 1.0
    if name in MACHINES:
        return "machines", *_place(name, labels)
    computed = labels.get(KEY, "")
    called = computed.partition("/")[0] or name
    if not _is_metric(called, keys):
        return "", "", 1.0
    if computed.startswith("cluster/"):
        return "by_clock", on(computed, node_of(labels)), 1.0
    own, factor = keys.get(name, ("", 1.0))
    key = safe(of_subject(computed or own or _unflattened(name), labels), 300)
    kind = "by_clock" if computed or _BY_CLOCK.fullmatch(name) else "metrics"
    return kind, key, factor


def _is_metric(name: str, keys: LogKeys) -> bool:
    """Return whether a series is a metric, or a figure of an engine."""
    # with its keys known, all else of our exporter is what the log calls otherwise: the tutorials'
    # names, and new metrics, whose keys a server states within a minute
    of_run = name.startswith(ours.PREFIX) if keys else name in _OUR_OWN
    return name in keys or not (of_run or _NO_METRIC.fullmatch(name))


def _unflattened(name: str) -> str:
    plain = name.removeprefix(ours.PREFIX)
    own = slashed(plain)
    return own if own != plain else slashed(name)


def _place(name: str, labels: Mapping[str, str]) -> tuple[MachinePlace | None, float]:
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


def machine_figures(
    values: Mapping[MachinePlace, float],
) -> Iterator[tuple[str, float]]:
    """Yield the figures of devices and hosts at one moment by key; of each kind those of the first
    exporter.
    """
    known = {place: one for place, one in values.items() if abs(one) < _MOST}
    first = dict(sorted({exporter for exporter, *_ in known}, reverse=True))
    places: dict[MachinePlace, dict[str, float]] = defaultdict(dict)
    for (exporter, node, index, field), value in sorted(known.items()):
        if first[exporter[0]] == exporter[1]:
            places[exporter, node, index, ""][field] = value
    for (exporter, node, index, _), fields in places.items():
        # of the run itself, or of others too
        of = "system" if exporter == _OWN else "cluster"
        share, device = "memory_percent", ""
        if index:
            share, device = "memoryAllocated", f"gpu.{index}."
        for field, value in _complete(fields, share):
            yield on(f"{of}/{device}{field}", node), value


def _complete(fields: dict[str, float], share: str) -> Iterator[tuple[str, float]]:
    """Yield figures, with the share of memory in use in place of what is free."""
    free, whole = fields.pop("free", None), fields.pop("total", None)
    used = fields.pop("used", fields.get("memoryAllocatedBytes"))
    yield from fields.items()
    if free is not None:
        whole = whole or (used or 0.0) + free
        used = whole - free if used is None else used
    if used is not None and whole:
        yield share, 100.0 * used / whole


def on(key: str, node: str) -> str:
    """Return the key of a figure of one host."""
    return safe(f"{key}/l:{node}" if node else key, 300)


def node_of(labels: Mapping[str, str]) -> str:
    """Return the name of the host that a sample is of, without its port; empty if no label names
    it.
    """
    name = _first(labels, "node_labels")
    head, _, port = name.rpartition(":")
    return head if head and port.isdecimal() and not head.endswith(":") else name


def _first(labels: Mapping[str, str], which: str) -> str:
    return next((labels[one] for one in TABLE[which] if labels.get(one)), "")
