"""Describe any metric: by the tables, by its family, else under its own name."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Literal

from verl_tui.metrics.catalogue import (
    Group,
    Metric,
    known_metrics,
    patterns,
    sample_figures,
)
from verl_tui.metrics.names import SCALE, modern, slashed
from verl_tui.patterns import LONGEST_NAME, NamePattern, pattern

Statistic = Literal["mean", "max", "min"]

_SUFFIXED = NamePattern(r"(.*[^/_])[/_](mean|avg|max|min)")
_PREFIXED = NamePattern(r"((?:.*/)?(?:completions|moe)/)(mean|avg|max|min)_(.+)")
_RESAMPLED = pattern(r"(?:maj|best|worst)@\d+[/_](?:mean|std)$")
_QUANTILE = NamePattern(r"(.+)/(p05|p25|p50|p75|p95)")
_QUANTILES = {"p50": "median"}
_VALIDATION = NamePattern(r"(?:eval|validation)[/_](.+)")
_VALIDATION_FIGURE = NamePattern(r"val_(samples/.+)")
_NO_SCORES: tuple[Group, ...] = ("progress", "timing", "throughput")
"""Groups of figures that say how a validation ran, not how the policy did in it."""
_PREFIX = NamePattern(r"(?:train[/_]|actor/(?=rollout_corr/))(.+)")


@cache
def family(key: str) -> tuple[str, Statistic] | None:
    """Return the family of a statistic and its part, so that one chart shows mean, max and min.

    `critic/score/max` -> (`critic/score`, `max`), `reward_mean` -> (`reward`, `mean`),
    `completions/min_length` -> (`completions/length`, `min`); an average counts as a mean. The stem
    keeps the log's own spelling.

    Returns:
        Stem and part, or None for a key that stands alone.
    """
    if len(key) > LONGEST_NAME or _RESAMPLED.search(slashed(key)):
        return None
    if match := _SUFFIXED.fullmatch(key):
        return match[1], _part(match[2])
    if match := _PREFIXED.fullmatch(key):
        return match[1] + match[3], _part(match[2])
    return None


def _part(word: str) -> Statistic:
    if word == "max":
        return "max"
    if word == "min":
        return "min"
    return "mean"


@cache
def place(key: str) -> int:
    """Return the place of a figure of samples in its group, the most telling first; else 0."""
    name = key.removeprefix("val_")
    if name not in sample_figures():
        return 0
    return [*sample_figures()].index(name)


def counts(key: str) -> bool:
    """Return whether a metric only counts how far the training has come."""
    return describe(key).group == "progress"


@cache
def describe(key: str) -> Metric:
    """Describe any key: by the tables, else by its family, else as unknown under its own name.

    Units are those of the logged value: a scaled key such as `actor/lr(1e-4)` has the unit `×1e-4`.
    """
    if len(key) > LONGEST_NAME:
        return Metric(key, key)
    if match := _QUANTILE.fullmatch(key):
        whole = describe(match[1])
        return replace(
            whole, key=key, label=f"{whole.label}, {_QUANTILES.get(match[2], match[2])}"
        )
    found = _known(modern(key)) or Metric(key, key)
    scaled = SCALE.search(key)
    if scaled:
        return replace(found, key=key, unit=f"×{scaled[1]}")
    return replace(found, key=key)


def _known(name: str) -> Metric | None:
    """Describe verl's present name of a metric, None where neither table nor pattern has it."""
    if name in known_metrics():
        return known_metrics()[name]
    for form, metric in patterns():
        if match := form.fullmatch(name):
            label = metric.label.replace("{0}", _words(match[match.lastindex or 0]))
            return replace(metric, label=label)
    if match := _VALIDATION_FIGURE.fullmatch(name):
        figure = describe(match[1])
        group: Group = "validation" if figure.group == "reward" else figure.group
        return replace(figure, label=f"validation {figure.label}", group=group)
    if match := _VALIDATION.fullmatch(name):
        return _validation(name, match[1])
    # TRL, OpenRLHF and NeMo-RL put `train/` before each name on W&B, verl's bypass mode `actor/`
    # before some.
    if match := _PREFIX.fullmatch(name):
        return _known(modern(match[1]))
    return None


def _validation(name: str, measured: str) -> Metric:
    """Describe a metric that was measured in a validation."""
    known = _known(measured)
    if known is None:
        return Metric(
            name, f"validation {_words(measured)}", direction="up", group="validation"
        )
    group: Group = known.group if known.group in _NO_SCORES else "validation"
    return replace(known, label=f"validation {known.label}", group=group)


def _words(name: str) -> str:
    """Turn a key's tail into words, leaving the names of data sets as they are."""
    if "@" in name:
        return name
    return " ".join(name.replace("_", " ").replace("/", " ").split()) or name
