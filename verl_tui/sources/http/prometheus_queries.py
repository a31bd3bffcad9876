"""Queries to a Prometheus server in PromQL: few, each for a whole group of figures.

Rates and quantiles are left to the server. Each expression of a group carries the key of its figure
as the label `key`, so that one question brings them all.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING

from verl_tui import prometheus_names
from verl_tui.patterns import pattern
from verl_tui.sources.formats.prometheus_text.machine_exporters import DEVICES
from verl_tui.sources.formats.prometheus_text.series_names import spelled

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

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
_SUM, _MEAN, _RATE, _P95 = "sum({})", "avg({})", "sum(rate({}[{window}s]))", "p95"
_ENGINES: Mapping[str, tuple[str, str]] = {
    "vllm:num_requests_running": (_SUM, "vllm:num_requests_running"),
    "vllm:num_requests_waiting": (_SUM, "vllm:num_requests_waiting"),
    "vllm:kv_cache_usage_perc": (_MEAN, "vllm:kv_cache_usage_perc"),
    "vllm:gpu_cache_usage_perc": (_MEAN, "vllm:gpu_cache_usage_perc"),
    "vllm:num_preemptions_total": (_SUM, "vllm:num_preemptions_total"),
    "vllm:prompt_tokens_total": (_RATE, "vllm:prompt_tokens_per_second"),
    "vllm:generation_tokens_total": (_RATE, "vllm:generation_tokens_per_second"),
    "vllm:corrupted_requests": (_SUM, "vllm:corrupted_requests"),
    "vllm:corrupted_requests_total": (_SUM, "vllm:corrupted_requests_total"),
    "vllm:e2e_request_latency_seconds_bucket": (
        _P95,
        "vllm:e2e_request_latency_seconds/p95",
    ),
    "vllm:time_to_first_token_seconds_bucket": (
        _P95,
        "vllm:time_to_first_token_seconds/p95",
    ),
    "vllm:request_time_per_output_token_seconds_bucket": (
        _P95,
        "vllm:request_time_per_output_token_seconds/p95",
    ),
    "sglang:num_running_reqs": (_SUM, "sglang:num_running_reqs"),
    "sglang:num_queue_reqs": (_SUM, "sglang:num_queue_reqs"),
    "sglang:token_usage": (_MEAN, "sglang:token_usage"),
    "sglang:cache_hit_rate": (_MEAN, "sglang:cache_hit_rate"),
    "sglang:gen_throughput": (_SUM, "sglang:gen_throughput"),
    "sglang:num_retracted_reqs": (_SUM, "sglang:num_retracted_reqs"),
    "sglang:num_retracted_requests_total": (
        _SUM,
        "sglang:num_retracted_requests_total",
    ),
    "sglang:prompt_tokens_total": (_RATE, "sglang:prompt_tokens_per_second"),
    "sglang:generation_tokens_total": (_RATE, "sglang:generation_tokens_per_second"),
    "sglang:e2e_request_latency_seconds_bucket": (
        _P95,
        "sglang:e2e_request_latency_seconds/p95",
    ),
    "sglang:time_to_first_token_seconds_bucket": (
        _P95,
        "sglang:time_to_first_token_seconds/p95",
    ),
    "sglang:inter_token_latency_seconds_bucket": (
        _P95,
        "sglang:inter_token_latency_seconds/p95",
    ),
    "tq_partition_production_progress": (
        "avg by (task_name) ({})",
        "tq_partition_production_progress",
    ),
    "tq_partition_consumption_progress": (
        "avg by (task_name) ({})",
        "tq_partition_consumption_progress",
    ),
    "tq_storage_utilization_ratio": (_MEAN, "tq_storage_utilization_ratio"),
    "tq_storage_memory_rss_bytes": (_SUM, "tq_storage_memory_rss_bytes"),
    "tq_controller_request_total": (_RATE, "tq_controller_request_per_second"),
}
"""Name -> how its series are taken together, and the key of what comes of it: vLLM, SGLang
(`sglang/srt/observability/metrics_collector.py`), TransferQueue 0.1.10."""
_WAITS = 'sum by (instance) (rate({}{{mode=~"idle|iowait"}}[{window}s]))'
_HOSTS: Mapping[str, tuple[str, str]] = {
    "node_cpu_seconds_total": (
        f"100 * (1 - {_WAITS} / sum by (instance) (rate({{}}[{{window}}s])))",
        "cluster/cpu",
    ),
    "node_memory_MemAvailable_bytes": (
        "100 * (1 - {} / node_memory_MemTotal_bytes)",
        "cluster/memory_percent",
    ),
}
_OF_RAY: Mapping[str, tuple[str, str]] = {
    "ray_node_cpu_utilization": ("{}", "cluster/cpu"),
    "ray_node_mem_used": ("100 * {} / ray_node_mem_total", "cluster/memory_percent"),
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


def belongs(labels: Mapping[str, str]) -> dict[str, str]:
    """Return the labels of a series that identify its run."""
    if labels.get("run"):
        return {"run": labels["run"]}
    if labels.get("experiment_name"):
        kept = ("project", "experiment_name")
        return {name: labels[name] for name in kept if labels.get(name)}
    if not labels.get("job"):
        return {}
    return {"job": labels["job"]}


def device_query(names: Collection[str]) -> str | None:
    """Return the figures of devices, None if there are none; if there are several exporters, those
    of the first.
    """
    known = [name for name in DEVICES if name in names and _FAMILIES.match(name)]
    first = [name for name in known if _family(name) == _family(known[0])]
    return f'{{__name__=~"{"|".join(first)}"}}' if first else None


def engines(names: Collection[str], window: int) -> str | None:
    """Return the figures of engines, queues and hosts, None if there are none.

    Args:
        names: Of all series.
        window: Seconds over which rates are taken: some scrapes.
    """
    hosts = _HOSTS if "node_cpu_seconds_total" in names else _OF_RAY
    known = {spelled(name): name for name in names}
    queries = [
        _keyed(how, known[name], key, window)
        for name, (how, key) in chain(_ENGINES.items(), hosts.items())
        if name in known
    ]
    generation = f"{prometheus_names.GENERATION}_bucket"
    if generation in names and prometheus_names.INFO not in names:
        for part, share in (("p50", 0.5), ("p95", 0.95)):
            how = f"histogram_quantile({share}, sum by (le, run, job) (rate({{}}[{{window}}s])))"
            queries.append(
                _keyed(how, generation, f"{prometheus_names.GENERATION}/{part}", window)
            )
    return " or ".join(queries) or None


def _keyed(how: str, name: str, key: str, window: int) -> str:
    how = (
        "histogram_quantile(0.95, sum by (le) (rate({}[{window}s])))"
        if how == _P95
        else how
    )
    return f'label_replace({how.format(name, name, window=window)}, "key", {text(key)}, "", "")'


def _family(name: str) -> str:
    found = _FAMILIES.match(name)
    return found[0] if found else ""
