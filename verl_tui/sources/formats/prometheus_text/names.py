"""Names of series in Prometheus: which are metrics of training, and what their labels name."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from verl_tui import prometheus_names
from verl_tui.metrics import slashed
from verl_tui.patterns import NamePattern, pattern
from verl_tui.prometheus_names import named
from verl_tui.text import one_line
from verl_tui.toml_tables import toml_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

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
"""Series of processes about themselves, and of our own exporter besides a run's metrics."""
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
QUANTILES = {"p50": 0.5, "p95": 0.95}
"""Quantiles that are shown of a histogram."""
_NO_SUBJECTS = {*TABLE["process_labels"], "le", "quantile"}
_UNDERSCORED = pattern(r"(vllm|sglang)_")


def spelled(name: str) -> str:
    """Return an engine's own name of a metric: prometheus-client's OpenMetrics has `_` for `:`."""
    if not name.startswith(("vllm_", "sglang_")):
        return name
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
    key = keys.get(name)
    if key:
        return key, 1.0 / named(key).factor
    plain = name.removeprefix(prometheus_names.PREFIX)
    own = slashed(plain)
    return (own if own != plain else slashed(name)), 1.0
