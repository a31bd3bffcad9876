"""The catalogue of metrics: label, unit, good direction and group of each, in tables.

The tables are the text files beside this module; a metric is one line in one of them. A log's own
key is never changed: `modern` only gives verl's present name to look it up by.
"""

from verl_tui.metrics.catalogue import Direction, Group, Metric
from verl_tui.metrics.description import Statistic, counts, describe, family, place
from verl_tui.metrics.names import modern, scale, slashed, without_repeats

__all__ = [
    "Direction",
    "Group",
    "Metric",
    "Statistic",
    "counts",
    "describe",
    "family",
    "modern",
    "place",
    "scale",
    "slashed",
    "without_repeats",
]
