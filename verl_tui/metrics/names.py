"""Names of metrics: what exporters and older versions of verl made of its present names."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from verl_tui.metrics.catalogue import verl_metrics
from verl_tui.patterns import LONGEST_NAME, NamePattern, pattern
from verl_tui.toml_tables import toml_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_TABLE = toml_table(__file__, "names.toml")
_RENAMED: Mapping[str, str] = _TABLE["renamed"]
"""Old key -> verl's present key."""
_TWICE = "num_turns/"
"""Keys that verl's V1 trainer logs again as `training/num_turns/…` (`v1/trainer_base.py`)."""
_FORMS: Mapping[str, Sequence[tuple[NamePattern, str]]] = {
    kind: [(NamePattern(form), new) for form, new in _TABLE[kind].items()]
    for kind in ("renamed_forms", "flat_forms")
}
"""Forms of whole keys -> what they are to be."""
_RL_INSIGHT = pattern(r"rl_insight_monitor_(.+)")
"""verl's rl_insight puts this prefix before every key."""
_MLFLOW_AT = pattern(r"(?<![^/_])(mean|std|maj|best|worst)_at_(?=\d)")

SCALE = pattern(r"(?<=lr)[(_](1e-\d{1,3})[)_]$")
"""The factor that a key states: `actor/lr(1e-4)`."""


@cache
def flat_names() -> Mapping[str, str]:
    """Return verl's keys by their spelling with `_` for `/`."""
    keys = (*verl_metrics(), *_RENAMED, *_TABLE["scaled"]["keys"].split())
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
    if key in flat_names():
        return flat_names()[key]
    return _rewritten("flat_forms", key)


@cache
def modern(key: str) -> str:
    """Return verl's present name of a key: for describing and matching, never for export.

    verl renamed keys between v0.1 and v0.9 (`timing/gen` -> `timing_s/gen`, `critic/kl` ->
    `actor/reward_kl_penalty` …). Where the old key's values were scaled too, `scale` has the
    factor.
    """
    if len(key) > LONGEST_NAME:
        return key
    name = slashed(SCALE.sub("", key))
    return _RENAMED.get(name) or _rewritten("renamed_forms", name)


def _rewritten(kind: str, name: str) -> str:
    """Return a name as the first form that it has wants it, itself without one."""
    for form, new in _FORMS[kind]:
        if match := form.fullmatch(name):
            return match.expand(new)
    return name


def without_repeats(keys: Iterable[str]) -> tuple[str, ...]:
    """Return keys without those that V1 logs again under verl's present name."""
    known = tuple(keys)
    there = {slashed(key) for key in known}
    return tuple(
        key
        for key in known
        if not (slashed(key).startswith(_TWICE) and modern(key) in there)
    )


def scale(key: str) -> float:
    """Return the factor from a logged value to one of `modern(key)`; mostly 1.

    `actor/lr(1e-4)` (verl v0.1) holds the learning rate times 10⁴, `train/lr(1e-3)` (verl's SFT)
    times 10³.
    """
    match = SCALE.search(key)
    return float(match[1]) if match else 1.0
