"""The catalogue of metrics: label, unit, good direction and group of each, in tables.

The tables are the text files beside this module; a metric is one line in one of them, its columns
between ` | `. A log's own key is never changed: `modern` only gives verl's present name to look it
up by.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from verl_tui.patterns import LONGEST_NAME, NamePattern, pattern
from verl_tui.toml_tables import toml_table

GROUPS = (
    "reward", "validation", "loss", "kl", "optimisation", "length", "samples", "engine",
    "async", "data", "other", "progress", "throughput", "timing", "memory", "system",
)  # fmt: skip
"""Subject of a metric, in the order of showing: of the training, of its time, of its machines.
What only counts how far the training has come is `progress`.
"""

_CHOICE = pattern(r"\{([^{}]+)\}")


# -- tables ----------------------------------------------------------------------------------------


class Metric(NamedTuple):
    """One metric as people read it."""

    key: str
    """The log's own key."""
    label: str
    """A few words for a title or a legend."""
    unit: str = ""
    """`s`, `tokens`, `tokens/s/GPU`, `share` (0..1), `percent` (0..100), `nats/token`, `GiB` …,
    empty where none.
    """
    direction: str = ""
    """The good direction: `up`, `down`, `near` a target (0 if the note says no other), or empty."""
    group: str = "other"
    """One of `GROUPS`."""
    note: str = ""
    """Hint for a reader of the number, empty where the label says it all."""


def read_table(name: str) -> Iterator[Metric]:
    """Yield the lines of a table, in order; a key may stand for several, see `expanded`."""
    text = Path(__file__).with_name(f"{name}.txt").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if not line.startswith("#")]
    for line in rows[1:]:  # the first names the columns
        key, label, unit, direction, group, *note = map(str.strip, line.split(" | "))
        yield Metric(key, label, unit, direction, group, "".join(note))


def expanded(metric: Metric) -> Iterator[Metric]:
    """Yield the metrics that a line stands for: one a word of `{mean,max,min}` in its key."""
    choice = _CHOICE.search(metric.key)
    if not choice:
        yield metric
        return
    for word in choice[1].split(","):
        key = metric.key[: choice.start()] + word + metric.key[choice.end() :]
        label = metric.label.replace("{}", word.replace("_", " "))
        if word in ("max", "min", "std"):
            label = f"{label} {word}"
        yield metric._replace(key=key, label=label)


@cache
def _table(name: str) -> Mapping[str, Metric]:
    """Return the metrics of a table by key, in order."""
    return {one.key: one for line in read_table(name) for one in expanded(line)}


@cache
def known_metrics() -> Mapping[str, Metric]:
    """Return all metrics that the tables name in full, by key."""
    return {**_table("other_frameworks"), **_table("samples"), **_table("verl")}


@cache
def _patterns() -> Sequence[tuple[NamePattern, Metric]]:
    """Return the patterns of whole keys with what they describe, in the order of trying."""
    return [(NamePattern(line.key), line) for line in read_table("patterns")]


# -- names -----------------------------------------------------------------------------------------

_NAMES = toml_table(__file__, "names.toml")
_RENAMED: Mapping[str, str] = _NAMES["renamed"]
"""Old key -> verl's present key."""
_TWICE = "num_turns/"
"""Keys that verl's V1 trainer logs again as `training/num_turns/…` (`v1/trainer_base.py`)."""
_FORMS: Mapping[str, Sequence[tuple[NamePattern, str]]] = {
    kind: [(NamePattern(form), new) for form, new in _NAMES[kind].items()]
    for kind in ("renamed_forms", "flat_forms")
}
"""Forms of whole keys -> what they are to be."""
_RL_INSIGHT = pattern(r"rl_insight_monitor_(.+)")
"""verl's rl_insight puts this prefix before every key."""
_MLFLOW_AT = pattern(r"(?<![^/_])(mean|std|maj|best|worst)_at_(?=\d)")
_SCALE = pattern(r"(?<=lr)[(_](1e-\d{1,3})[)_]$")
"""The factor that a key states: `actor/lr(1e-4)`."""


@cache
def _flat_names() -> Mapping[str, str]:
    """Return verl's keys by their spelling with `_` for `/`."""
    keys = (*_table("verl"), *_RENAMED, *_NAMES["scaled"]["keys"].split())
    return {key.replace("/", "_"): key for key in keys}


@cache
def slashed(key: str) -> str:
    """Undo an exporter's spelling: `critic_score_mean` -> `critic/score/mean`.

    Only names that verl is known to log are changed; all others are returned as they are.
    """
    if len(key) > LONGEST_NAME:
        return key
    key = _MLFLOW_AT.sub(r"\1@", _RL_INSIGHT.sub(r"\1", key))
    if "/" in key:
        return key
    return _flat_names().get(key) or _rewritten("flat_forms", key)


@cache
def modern(key: str) -> str:
    """Return verl's present name of a key: for describing and matching, never for export.

    verl renamed keys between v0.1 and v0.9 (`timing/gen` -> `timing_s/gen`, `critic/kl` ->
    `actor/reward_kl_penalty` …). Where the old key's values were scaled too, `scale` has the
    factor.
    """
    if len(key) > LONGEST_NAME:
        return key
    name = slashed(_SCALE.sub("", key))
    return _RENAMED.get(name) or _rewritten("renamed_forms", name)


def _rewritten(kind: str, name: str) -> str:
    """Return a name as the first form that it has wants it, itself without one."""
    for form, new in _FORMS[kind]:
        if match := form.fullmatch(name):
            return match.expand(new)
    return name


def without_repeats(keys: Iterable[str]) -> tuple[str, ...]:
    """Return keys without those that V1 logs again under verl's present name."""
    known = {key: slashed(key) for key in keys}
    there = {*known.values()}
    return tuple(
        key
        for key, name in known.items()
        if not (name.startswith(_TWICE) and modern(key) in there)
    )


def scale(key: str) -> float:
    """Return the factor from a logged value to one of `modern(key)`; mostly 1.

    `actor/lr(1e-4)` (verl v0.1) holds the learning rate times 10⁴, `train/lr(1e-3)` (verl's SFT)
    times 10³.
    """
    match = _SCALE.search(key)
    return float(match[1]) if match else 1.0


# -- descriptions ----------------------------------------------------------------------------------

_SUFFIXED = NamePattern(r"(.*[^/_])[/_](mean|avg|max|min)")
_PREFIXED = NamePattern(r"((?:.*/)?(?:completions|moe)/)(mean|avg|max|min)_(.+)")
_RESAMPLED = pattern(r"(?:maj|best|worst)@\d+[/_](?:mean|std)$")
_QUANTILE = NamePattern(r"(.+)/(p05|p25|p50|p75|p95)")
_VALIDATION = NamePattern(r"(?:eval|validation)[/_](.+)")
_VALIDATION_FIGURE = NamePattern(r"val_(samples/.+)")
_NO_SCORES = ("progress", "timing", "throughput")
"""Groups of figures that say how a validation ran, not how the policy did in it."""
_PREFIX = NamePattern(r"(?:train[/_]|actor/(?=rollout_corr/))(.+)")


@cache
def family(key: str) -> tuple[str, str] | None:
    """Return the family of a statistic and its part, so that one chart shows mean, max and min.

    `critic/score/max` -> (`critic/score`, `max`), `reward_mean` -> (`reward`, `mean`),
    `completions/min_length` -> (`completions/length`, `min`); an average counts as a mean. The stem
    keeps the log's own spelling.

    Returns:
        Stem and part, or None for a key that stands alone.
    """
    if len(key) > LONGEST_NAME or _RESAMPLED.search(slashed(key)):
        return None
    match = _SUFFIXED.fullmatch(key) or _PREFIXED.fullmatch(key)
    if not match:
        return None
    stem, word, *rest = match.groups()
    return stem + "".join(rest), word.replace("avg", "mean")


@cache
def place(key: str) -> int:
    """Return the place of a figure of samples in its group, the most telling first; else 0."""
    name, figures = key.removeprefix("val_"), [*_table("samples")]
    return figures.index(name) if name in figures else 0


OF_TIME, OF_MACHINES = 12, 14
"""Where those groups of time and of machines begin."""
_OF_DEVICE = pattern(
    r"((?<![a-z])(?:gpus?|devices?|cuda)[/_.: ]?)(\d{1,4})(?=[/_. ])", re.I
)


def of_devices(name: str, which: str = "") -> str:
    """Return the name of a figure that several devices have, with words for which ones."""
    return _OF_DEVICE.sub(rf"\g<1>{which}", name, count=1)


def device(key: str) -> int | None:
    """Return the index of the device that a metric is about, None if it is about none."""
    found = _OF_DEVICE.search(key)
    return int(found[2]) if found else None


@cache
def family_rank(key: str) -> int:
    """Return a sort key by which metrics are shown family by family."""
    rank = GROUPS.index(describe(key).group)
    return rank if device(key) is None else max(rank, OF_MACHINES)


def counts(key: str) -> bool:
    """Return whether a metric only counts how far the training has come."""
    return describe(key).group == "progress"


@cache
def describe(key: str) -> Metric:
    """Describe any key: by the tables, else by its family, else as unknown under its own name.

    Units are those of the logged value: a scaled key such as `actor/lr(1e-4)` has the unit `×1e-4`.
    """
    if match := _QUANTILE.fullmatch(key):
        whole = describe(match[1])
        label = f"{whole.label}, {match[2].replace('p50', 'median')}"
        return whole._replace(key=key, label=label)
    name = modern(key)
    found = (_known(name) if len(name) <= LONGEST_NAME else None) or Metric(key, key)
    scaled = _SCALE.search(key)
    return found._replace(key=key, unit=f"×{scaled[1]}" if scaled else found.unit)


def _known(name: str) -> Metric | None:
    """Describe verl's present name of a metric, None where neither table nor pattern has it."""
    if name in known_metrics():
        return known_metrics()[name]
    for form, metric in _patterns():
        if match := form.fullmatch(name):
            label = metric.label.replace("{0}", _words(match[match.lastindex or 0]))
            return metric._replace(label=label)
    if match := _VALIDATION_FIGURE.fullmatch(name):
        figure = describe(match[1])
        group = "validation" if figure.group == "reward" else figure.group
        return figure._replace(label=f"validation {figure.label}", group=group)
    if match := _VALIDATION.fullmatch(name):
        return _validation(name, match[1])
    # TRL, OpenRLHF and NeMo-RL put `train/` before each name on W&B, verl's bypass mode `actor/`
    # before some.
    match = _PREFIX.fullmatch(name)
    return _known(modern(match[1])) if match else None


def _validation(name: str, measured: str) -> Metric:
    """Describe a metric that was measured in a validation."""
    found = _known(measured) or Metric(name, _words(measured), direction="up")
    group = found.group if found.group in _NO_SCORES else "validation"
    return found._replace(label=f"validation {found.label}", group=group)


def _words(name: str) -> str:
    """Turn a key's tail into words, leaving the names of data sets as they are."""
    if "@" in name:
        return name
    return " ".join(name.replace("_", " ").replace("/", " ").split()) or name
