"""Queries to a Prometheus server in PromQL: few, each for a whole group of figures.

Rates and quantiles are left to the server. Each expression of a group carries the key of its figure
as the label `key`, so that one question brings them all.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from verl_tui import prometheus_names
from verl_tui.patterns import pattern
from verl_tui.sources.formats.prometheus_text.machine_exporters import DEVICES
from verl_tui.sources.formats.prometheus_text.scrapes import QUANTILES
from verl_tui.sources.formats.prometheus_text.series_names import (
    ADDED,
    KEPT_TOTALS,
    spelled,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

Labels = tuple[tuple[str, str], ...]
"""Names and values."""

INSIGHT_STEP = "rl_insight_monitor_training_global_step"
STEP_NAMES = (prometheus_names.STEPS, INSIGHT_STEP, "verl_training_global_step")
"""Series that show the progress of a run."""
BELONGS = ("run", "project", "experiment_name", "job")
"""Labels that identify the run of a series."""
RUNS = (
    '{run!="",__name__=~"verl_.+"}',
    '{experiment_name!=""}',
    prometheus_names.STEPS,
    prometheus_names.INFO,
)
"""Series of runs: our exporter's, RL-Insight's, those of verl's tutorials; and the names of our
exporter.
"""

_PREFIXES = (prometheus_names.PREFIX, "rl_insight_monitor_")
_MOST_OTHERS = 200
_ENGINES = (
    *("vllm:num_requests_running", "vllm:num_requests_waiting"),
    *("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
    "vllm:num_preemptions_total",
    *("vllm:prompt_tokens_total", "vllm:generation_tokens_total"),
    *("vllm:corrupted_requests", "vllm:corrupted_requests_total"),
    "vllm:e2e_request_latency_seconds_bucket",
    "vllm:time_to_first_token_seconds_bucket",
    "vllm:request_time_per_output_token_seconds_bucket",
    *("sglang:num_running_reqs", "sglang:num_queue_reqs"),
    *("sglang:token_usage", "sglang:cache_hit_rate", "sglang:gen_throughput"),
    *("sglang:num_retracted_reqs", "sglang:num_retracted_requests_total"),
    *("sglang:prompt_tokens_total", "sglang:generation_tokens_total"),
    "sglang:e2e_request_latency_seconds_bucket",
    "sglang:time_to_first_token_seconds_bucket",
    "sglang:inter_token_latency_seconds_bucket",
    *("tq_partition_production_progress", "tq_partition_consumption_progress"),
    *("tq_storage_utilization_ratio", "tq_storage_memory_rss_bytes"),
    "tq_controller_request_total",
)
"""Figures that are asked for: of vLLM, SGLang (`sglang/srt/observability/metrics_collector.py`) and
TransferQueue 0.1.10.
"""
_HOSTS = {
    "node_cpu_seconds_total": (
        "100 * (1 - sum by (instance)"
        ' (rate(node_cpu_seconds_total{{mode=~"idle|iowait"}}[{window}s]))'
        " / sum by (instance) (rate(node_cpu_seconds_total[{window}s])))",
        "cluster/cpu",
    ),
    "node_memory_MemAvailable_bytes": (
        "100 * (1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes)",
        "cluster/memory_percent",
    ),
}
"""Name of a figure -> what is asked where it is there, and the key of what comes of it."""
_OF_RAY = {
    "ray_node_cpu_utilization": ("ray_node_cpu_utilization", "cluster/cpu"),
    "ray_node_mem_used": (
        "100 * ray_node_mem_used / ray_node_mem_total",
        "cluster/memory_percent",
    ),
}
"""Ray's figures of hosts, used where there is no node_exporter."""
_FAMILIES = pattern(r"(?:DCGM_FI_DEV|npu_chip_info|ray_node)_")


def text(value: str) -> str:
    """Return a text as PromQL writes it."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def steps() -> str:
    """Return the query for the progress of each run."""
    names = "|".join(STEP_NAMES)
    return f'max by ({", ".join(BELONGS)}) ({{__name__=~"{names}"}})'


def of_run(labels: Mapping[str, str]) -> str:
    """Return all series of one run.

    Args:
        labels: What its series have in common, see `belongs`.
    """
    stated = ",".join(f"{name}={text(value)}" for name, value in labels.items())
    if "job" in labels:
        stated += ',run="",experiment_name=""'
    if "experiment_name" in labels:
        names = ""
    else:
        names = f',__name__=~"verl_.+",__name__!="{prometheus_names.INFO}"'
    return f"{{{stated}{names}}}"


def of_all_runs(names: Collection[str]) -> str:
    """Return all series of all runs.

    Args:
        names: Of the series that were found to be of runs.
    """
    others = sorted(name for name in names if not name.startswith(_PREFIXES))[
        :_MOST_OTHERS
    ]
    every = [f"{prefix}.+" for prefix in _PREFIXES] + [
        re.escape(name).replace("\\", "\\\\") for name in others
    ]
    return f'{{__name__=~"{"|".join(every)}",__name__!="{prometheus_names.INFO}"}}'


def belongs(labels: Mapping[str, str]) -> Labels:
    """Return the labels of a series that identify its run."""
    for names in (("run",), ("project", "experiment_name"), ("job",)):
        if labels.get(names[-1]):
            return tuple((name, labels[name]) for name in names if labels.get(name))
    return ()


def device_query(names: Collection[str]) -> str:
    """Return the figures of devices, empty if there are none; if there are several exporters, those
    of the first.
    """
    known = (_FAMILIES.match(name) for name in DEVICES if name in names)
    families = {found.string: found[0] for found in known if found is not None}
    best = next(iter(families.values()), "")
    first = [name for name, family in families.items() if family == best]
    return f'{{__name__=~"{"|".join(first)}"}}' if first else ""


def engines(names: Collection[str], window: int) -> str:
    """Return the figures of engines, queues and hosts, empty if there are none.

    Args:
        names: Of all series.
        window: Seconds over which rates are taken: some scrapes.
    """
    known = {spelled(name): name for name in names}
    hosts = _HOSTS if "node_cpu_seconds_total" in names else _OF_RAY
    figures = (
        *(_combined(name, known[name]) for name in _ENGINES if name in known),
        *(figure for name, figure in hosts.items() if name in names),
        *_of_tutorials(names),
    )
    return " or ".join(
        f'label_replace({query.format(window=window)}, "key", {text(key)}, "", "")'
        for query, key in figures
    )


def _of_tutorials(names: Collection[str]) -> list[tuple[str, str]]:
    """Return the quantiles of the tutorials' histogram; our exporter has what it is made of."""
    buckets = f"{prometheus_names.GENERATION}_bucket"
    if buckets not in names or prometheus_names.INFO in names:
        return []
    return [
        (
            _quantile(share, buckets, "le, run, job"),
            f"{prometheus_names.GENERATION}/{part}",
        )
        for part, share in QUANTILES.items()
    ]


def _combined(name: str, written: str) -> tuple[str, str]:
    """Return what asks for a figure of several processes, as one of theirs on a page is made, and
    its key.

    Args:
        name: The engine's own name.
        written: The name that the server has.
    """
    if name.endswith("_bucket"):
        return _quantile(0.95, written, "le"), f"{name.removesuffix('_bucket')}/p95"
    if name.endswith("_total") and not KEPT_TOTALS.fullmatch(name):
        rate = f"sum(rate({written}[{{window}}s]))"
        return rate, f"{name.removesuffix('_total')}_per_second"
    if name.startswith("tq_partition"):
        return f"avg by (task_name) ({written})", name
    return f"{'sum' if ADDED.fullmatch(name) else 'avg'}({written})", name


def _quantile(share: float, buckets: str, by: str) -> str:
    rate = f"rate({buckets}[{{window}}s])"
    return f"histogram_quantile({share}, sum by ({by}) ({rate}))"
