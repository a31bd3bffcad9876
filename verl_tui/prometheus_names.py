"""Names of metrics in Prometheus: `verl_<key>` in base units, and the table that leads back to the
log's own keys.

Prometheus knows letters, digits and underscores, and wants seconds, bytes and ratios
(https://prometheus.io/docs/practices/naming/). A name alone does not determine its key, since `/`,
`.` and `-` all become `_`; so `verl_metric_info{name,key}` stands beside the metrics, and
`named(key).factor` leads back to the log's unit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import NamedTuple
from zlib import crc32

from verl_tui.metrics import describe, scale
from verl_tui.patterns import pattern
from verl_tui.toml_tables import toml_table

PREFIX = "verl_"
"""Prefix of every name."""

STEPS = "verl_training_steps_total"
GENERATION = "verl_sample_generation_seconds"
GPU_MEMORY = "verl_gpu_memory_used_bytes"
REWARD = "verl_average_reward"
"""The names of verl's tutorials: a counter, a histogram, a gauge by `device`, a gauge."""
GENERATION_BUCKETS = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Upper bounds of the tutorials' histogram in seconds."""

INFO = "verl_metric_info"
"""Always 1; its labels `name` and `key` say which of the log's keys a name stands for."""
RUN = "verl_run_info"
"""Always 1; its labels `run` and `run_id` say by which id a run is known elsewhere."""
INDICATOR = "verl_indicator"
"""The metric of the indicators, by `run` and `indicator`, whatever the framework calls them."""
BAND = "verl_indicator_band"
"""Where a healthy indicator lies in this run, by `run`, `indicator` and `bound`: `low` or
`high`.
"""
FINDING = "verl_finding_active"
"""1 while a finding holds that stands for itself, by `run`, `id` and `severity`; 0 once it is
over.
"""
FOLLOWS = "verl_finding_follows"
"""1 while a finding holds that only follows from another, by `run`, `id`, `severity` and
`cause`.
"""
STATE = "verl_run_state"
"""1 for the state that a run is in and 0 for the others, by `run` and `state`."""
LAST_STEP = "verl_last_step_timestamp_seconds"
"""When the newest record of training was made, in seconds since the epoch."""
LAST_VALIDATION = "verl_last_validation_step"
"""The step of the newest validation: two that came out alike are two."""
TOTAL_STEPS = "verl_training_steps_planned"
"""Steps that the whole run will take, where it is known."""
SOURCE_UP = "verl_source_up"
SOURCE_RECORDS = "verl_source_records_total"
SOURCE_UNREADABLE = "verl_source_unreadable_total"
SOURCE_CHANGED = "verl_source_modified_timestamp_seconds"
"""How the sources of a run do, by `run` and `format`."""
LEFT_OUT = "verl_exporter_left_out"
"""How much is beyond the exporter's limits, by `kind`: `runs` or `metrics`."""

_TABLE = toml_table(__file__, "prometheus_names.toml")
OWN: Mapping[str, str] = _TABLE["own"]
"""Names that no key of a log can have -> help text, in the order of a page."""


class Name(NamedTuple):
    """A metric's name in Prometheus."""

    name: str
    factor: float
    """The log's value times this is the value in base units."""


_SPOKEN = pattern(
    r"(?<=per_token)_ms(?=[/_])"
    r"|(?<=[a-z/_.])_?(?:[gm]i?b|mbytes|percent|GB|MB|Percent|\(B\))(?=/l:|$)"
)
"""A unit within a key, which gives way to the base unit."""
_SCALED = pattern(r"[(_]1e-\d{1,3}\)?$")
_LONGEST = 200
"""Most characters of a name: not a limit of Prometheus, but of its readers."""
_ENDS = pattern(r"_(?:bucket|sum|count|created)$")
"""Suffixes of the series of a histogram."""


@cache
def named(key: str) -> Name:
    """Return a metric's name and the factor to its base unit, both by its key alone.

    A percentage by its unit is taken as one; a caller that knows the log's values are shares of 1
    ignores the factor. Keys that differ only in letters unknown to Prometheus get a checksum.
    """
    word, factor = _TABLE["units"].get(describe(key).unit, ("", 1.0))
    text = _SPOKEN.sub("", key) if factor != 1.0 else key
    if not word and (times := scale(key)) != 1.0:
        text = _SCALED.sub("", key)
        factor = times
    stem = re.sub(r"[^A-Za-z0-9]+", "_", text.replace("@", "_at_")).strip("_")
    if word and not stem.endswith(word):
        stem = f"{stem}_{word}"
    name = PREFIX + stem.removeprefix(PREFIX)
    lost = not stem or not text.isascii() or len(name) > _LONGEST
    means_other = not OWN.keys().isdisjoint((name, _ENDS.sub("", name)))
    return Name(_marked(name, key) if lost or means_other else name, factor)


def names_of(keys: Iterable[str]) -> dict[str, Name]:
    """Return the names of a run's metrics, no two of them the same: of two keys that meet the later
    is marked.
    """
    found: dict[str, Name] = {}
    taken: set[str] = set()
    for key in keys:
        name = named(key)
        if name.name in taken:
            name = name._replace(name=_marked(name.name, key))
        taken.add(name.name)
        found[key] = name
    return found


def _marked(name: str, key: str) -> str:
    return f"{name[:_LONGEST].rstrip('_')}_{crc32(key.encode('utf-8', 'replace')):08x}"
