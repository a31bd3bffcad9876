"""The tables of metrics: text files with a metric a line and its columns between ` | `."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from verl_tui.patterns import NamePattern, pattern

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Direction = Literal["up", "down", "near", ""]
"""The good direction: more, less, close to a target (0 unless the note says otherwise), or none."""

Group = Literal[
    "reward",
    "validation",
    "kl",
    "loss",
    "length",
    "optimisation",
    "throughput",
    "timing",
    "memory",
    "system",
    "async",
    "engine",
    "data",
    "samples",
    "progress",
    "other",
]
"""Subject of a metric; charts and lists are ordered by it. What only counts how far the training
has come is `progress`.
"""

_CHOICE = pattern(r"\{([^{}]+)\}")


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric as people read it."""

    key: str
    """The log's own key."""
    label: str
    """A few words for a title or a legend."""
    unit: str = ""
    """`s`, `tokens`, `tokens/s/GPU`, `share` (0..1), `percent` (0..100), `nats/token`, `GiB` …,
    empty where none.
    """
    direction: Direction = ""
    group: Group = "other"
    note: str = ""
    """Hint for a reader of the number, empty where the label says it all."""


def read_table(name: str) -> Iterator[Metric]:
    """Yield the lines of a table, in order; a key may stand for several, see `expanded`."""
    text = Path(__file__).with_name(f"{name}.txt").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if not line.startswith("#")]
    for line in rows[1:]:  # the first names the columns
        key, label, unit, direction, group, *note = map(str.strip, line.split(" | "))
        yield Metric(
            key,
            label,
            unit,
            cast("Direction", direction),
            cast("Group", group),
            "".join(note),
        )


def expanded(metric: Metric) -> Iterator[Metric]:
    """Yield the metrics that a line stands for: one a word of `{mean,max,min}` in its key."""
    choice = _CHOICE.search(metric.key)
    if choice is None:
        yield metric
        return
    for word in choice[1].split(","):
        key = metric.key[: choice.start()] + word + metric.key[choice.end() :]
        label = metric.label.replace("{}", word.replace("_", " "))
        if word in ("max", "min", "std"):
            label = f"{label} {word}"
        yield replace(metric, key=key, label=label)


@cache
def verl_metrics() -> Mapping[str, Metric]:
    """Return verl's metrics by key."""
    return {one.key: one for line in read_table("verl") for one in expanded(line)}


@cache
def sample_figures() -> Mapping[str, Metric]:
    """Return the figures that `verl_tui.evaluation` computes from samples, by key, in order."""
    return {line.key: line for line in read_table("samples")}


@cache
def known_metrics() -> Mapping[str, Metric]:
    """Return all metrics that the tables name in full, by key."""
    others = {
        one.key: one
        for line in read_table("other_frameworks")
        for one in expanded(line)
    }
    return {**others, **sample_figures(), **verl_metrics()}


@cache
def patterns() -> tuple[tuple[NamePattern, Metric], ...]:
    """Return the patterns of whole keys with what they describe, in the order of trying."""
    return tuple((NamePattern(line.key), line) for line in read_table("patterns"))
