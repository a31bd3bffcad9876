"""What a Prometheus server is asked in PromQL: all series of runs and machines as they are, and
rates and quantiles, which are left to the server, each with its key as a label.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from verl_tui import prometheus_names
from verl_tui.sources.formats.prometheus_text.machines import DEVICES
from verl_tui.sources.formats.prometheus_text.names import (
    ADDED,
    KEPT_TOTALS,
    KEY,
    QUANTILES,
    TABLE,
    spelled,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

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
_NAMED = f'{{run!="",{_OURS}}}', '{experiment_name!=""}'
"""Series of our exporter's runs, and of RL-Insight's."""
RUNS = (*_NAMED, prometheus_names.STEPS, prometheus_names.INFO)
"""Series of runs, those of verl's tutorials among them, and the names of our exporter."""


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


def everything(names: Collection[str], window: int) -> str:
    """Return all series of all runs, of machines and of engines.

    Args:
        names: Of all series.
        window: Seconds over which rates are taken: some scrapes.
    """
    of_tutorials = f'{{run="",experiment_name="",{_OURS}}}'
    return " or ".join(filter(None, (*_NAMED, of_tutorials, readings(names, window))))


def readings(names: Collection[str], window: int) -> str:
    """Return the figures of devices, hosts, engines and queues, empty if there are none.

    Args:
        names: Of all series.
        window: Seconds over which rates are taken: some scrapes.
    """
    devices = (
        [name for name in figures if name in names and name != _OWN_MEMORY]
        for figures in DEVICES.values()
    )
    first = next(filter(None, devices), None)
    asked = [f'{{__name__=~"{"|".join(first)}"}}'] if first else []
    asked += [
        f'label_replace({query.format(window=window)}, "{KEY}", {_text(key)}, "", "")'
        for query, key in _computed(names)
    ]
    return " or ".join(asked)


_OWN_MEMORY = prometheus_names.GPU_MEMORY


def _computed(names: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield what asks for each figure that the server computes, and its key."""
    known = {spelled(name): name for name in names}
    for name in filter(known.__contains__, TABLE["engines"]):
        yield _combined(name, known[name])
    exporters = (one for one in TABLE["hosts"].values() if next(iter(one)) in names)
    for name, figure in next(exporters, dict[str, Any]()).items():
        if name in names:
            yield figure["query"], figure["key"]
    # The tutorials' histogram; our exporter has what it is made of.
    buckets = f"{prometheus_names.GENERATION}_bucket"
    if buckets in names and prometheus_names.INFO not in names:
        for part, share in QUANTILES.items():
            query = _quantile(share, buckets, "le, run, job")
            yield query, f"{prometheus_names.GENERATION}/{part}"


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


def _text(value: str) -> str:
    """Return a text as PromQL writes it."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
