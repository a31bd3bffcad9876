"""What a Prometheus server is asked in PromQL: all series of runs and machines as they are, and
rates and quantiles, which are left to the server, each with its key as a label.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui import prometheus_names
from verl_tui.sources.formats.prometheus_text.names import (
    ADDED,
    KEPT_TOTALS,
    KEY,
    MACHINES,
    QUANTILES,
    TABLE,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from verl_tui.sources.formats.prometheus_text.names import Labels

_STEPS = (
    prometheus_names.STEPS,
    "rl_insight_monitor_training_global_step",
    "verl_training_global_step",
)
"""Series that show the progress of a run."""
STEPS = (
    f'max by (run, project, experiment_name, job) ({{__name__=~"{"|".join(_STEPS)}"}})'
)
"""Query for the progress of each run."""
_OURS = f'__name__=~"verl_.+",__name__!="{prometheus_names.INFO}"'


def belongs(labels: Mapping[str, str]) -> Labels:
    """Return the labels of a series that identify its run."""
    for names in (("run",), ("project", "experiment_name"), ("job",)):
        if labels.get(names[-1]):
            return tuple((name, labels[name]) for name in names if labels.get(name))
    return ()


def of_run(labels: Labels) -> str:
    """Return all series of one run.

    Args:
        labels: What its series have in common, see `belongs`.
    """
    stated = [f"{name}={_text(value)}" for name, value in labels]
    names = [name for name, _ in labels]
    if "job" in names:
        stated.append('run="",experiment_name=""')
    if "experiment_name" not in names:
        stated.append(_OURS)
    return f"{{{','.join(stated)}}}"


def readings(window: int, *, ours: bool) -> str:
    """Return the figures of devices, hosts, engines and queues.

    Args:
        window: Seconds over which rates are taken: some scrapes.
        ours: Whether runs are our exporter's, which has what the tutorials' histogram is made of.
    """
    asked = [(_NODE_LOAD, "cluster/cpu"), *map(_combined, TABLE["engines"])]
    if not ours:
        buckets = f"{prometheus_names.GENERATION}_bucket"
        asked += [
            (
                _quantile(share, buckets, "le, run, job"),
                f"{prometheus_names.GENERATION}/{part}",
            )
            for part, share in QUANTILES.items()
        ]
    machines = "|".join(sorted(MACHINES - {prometheus_names.GPU_MEMORY}))
    computed = (
        f'label_replace({query.replace("WINDOW", str(window))}, "{KEY}", {_text(key)}, "", "")'
        for query, key in asked
    )
    return " or ".join((f'{{__name__=~"{machines}"}}', *computed))


_NODE_LOAD = (
    '100 * (1 - sum by (instance) (rate(node_cpu_seconds_total{mode=~"idle|iowait"}'
    "[WINDOWs])) / sum by (instance) (rate(node_cpu_seconds_total[WINDOWs])))"
)


def _combined(name: str) -> tuple[str, str]:
    """Return what asks for a figure of several processes, as one of theirs on a page is made, and
    its key. An engine's name may have `_` for `:`.
    """
    spellings = "|".join(dict.fromkeys((name, name.replace(":", "_"))))
    series = f'{{__name__=~"{spellings}"}}'
    if name.endswith("_bucket"):
        return _quantile(0.95, series, "le"), f"{name.removesuffix('_bucket')}/p95"
    if name.endswith("_total") and not KEPT_TOTALS.fullmatch(name):
        rate = f"sum(rate({series}[WINDOWs]))"
        return rate, f"{name.removesuffix('_total')}_per_second"
    if name.startswith("tq_partition"):
        return f"avg by (task_name) ({series})", name
    return f"{'sum' if ADDED.fullmatch(name) else 'avg'}({series})", name


def _quantile(share: float, buckets: str, by: str) -> str:
    rate = f"rate({buckets}[WINDOWs])"
    return f"histogram_quantile({share}, sum by ({by}) ({rate}))"


def _text(value: str) -> str:
    """Return a text as PromQL writes it."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
