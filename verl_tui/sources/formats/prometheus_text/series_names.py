"""Names of series in Prometheus: which are metrics of training, and what their labels name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui import prometheus_names
from verl_tui.metrics import slashed
from verl_tui.patterns import NamePattern, pattern
from verl_tui.prometheus_names import named
from verl_tui.sources.formats.prometheus_text.machine_exporters import DEVICES, HOSTS

if TYPE_CHECKING:
    from collections.abc import Mapping

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
)
"""Series of processes about themselves, and of our own exporter besides a run's metrics."""
WHO = frozenset({
    "run", "project", "experiment_name", "experiment", "job", "instance", "namespace", "pod",
    "container", "endpoint", "service", "node", "ip", "host", "hostname", "Hostname", "replica",
    "engine", "engine_index", "engine_type", "pid", "rank", "dp_rank", "tp_rank", "pp_rank",
    "local_rank", "worker", "worker_id", "WorkerId", "model_name", "model", "process_id",
    "SessionName", "Version", "NodeAddress", "IsHeadNode", "RayNodeType", "moe_ep_rank", "priority",
    "partition_id", "component", "exported_job", "exported_instance", "device", "Component", "Pid",
})  # fmt: skip
"""Labels that name the process or machine of a sample, which do not distinguish metrics."""
ADDED = NamePattern(
    r".*(?:[_:]num_.*|[_:](?:running|waiting|swapped)|_reqs|_requests|_throughput|_bytes|_count"
    r"|_total|_tokens|_keys)"
)
"""Gauges that are amounts, which are summed over workers."""
KEPT_TOTALS = NamePattern(r".*(?:corrupted|preempt|error|fail|abort|retract).*")
"""Counters whose sum is more informative than their rate."""
BY_CLOCK = NamePattern(r"(?:vllm|sglang|lmdeploy|trtllm|tq|ray|npu|node|DCGM)[_:].*")
"""Series of engines, queues and machines, which go on whether training does or not."""
SUMMARIES = {prometheus_names.REWARD, prometheus_names.GENERATION}
"""Series that repeat metrics under the tutorials' names in our exporter."""
OF_RUN = {
    prometheus_names.LAST_STEP,
    prometheus_names.LAST_VALIDATION,
    prometheus_names.TOTAL_STEPS,
}
"""Series of our exporter that say how far a run is."""
MACHINES = frozenset((*DEVICES, *HOSTS))
_UNDERSCORED = pattern(r"(vllm|sglang)_")


def spelled(name: str) -> str:
    """Return an engine's own name of a metric: prometheus-client's OpenMetrics has `_` for `:`."""
    if not name.startswith(("vllm_", "sglang_")):
        return name
    return _UNDERSCORED.sub(r"\1:", name, count=1)


def key_and_factor(name: str, keys: Mapping[str, str]) -> tuple[str, float]:
    """Return the log's key for a series, and the factor from its value to the log's.

    Args:
        name: Name of the series.
        keys: Keys of the log that our exporter states, by name.
    """
    key = keys.get(name)
    if key:
        return key, 1.0 / named(key).factor
    plain = name.removeprefix(prometheus_names.PREFIX)
    own = slashed(plain)
    return (own if own != plain else slashed(name)), 1.0


def is_metric(name: str, *, known: bool) -> bool:
    """Return True if a gauge is a metric of training.

    Args:
        name: Name of its series.
        known: Our exporter states the log's own keys, so that the tutorials' names repeat them.
    """
    if (
        NO_METRIC.fullmatch(name)
        or name in MACHINES
        or name in OF_RUN
        or BY_CLOCK.fullmatch(name)
    ):
        return False
    return not (
        name.endswith(("_bucket", "_sum", "_count")) or (known and name in SUMMARIES)
    )
