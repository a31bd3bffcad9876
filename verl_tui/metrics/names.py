"""Names of metrics: what exporters and older versions of verl made of its present names."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from verl_tui.metrics.catalogue import verl_metrics
from verl_tui.patterns import LONGEST_NAME, NamePattern, pattern

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

RENAMED = {
    "mfu/actor": "perf/mfu/actor",
    "mfu/critic": "perf/mfu/critic",
    "critic/kl": "actor/reward_kl_penalty",
    "critic/kl_coeff": "actor/reward_kl_penalty_coeff",
    "num_turns/mean": "training/num_turns/mean",
    "num_turns/max": "training/num_turns/max",
    "num_turns/min": "training/num_turns/min",
    "perf/max_memory_allocated_gb": "actor/perf/max_memory_allocated_gb",
    "perf/max_memory_reserved_gb": "actor/perf/max_memory_reserved_gb",
    "perf/cpu_memory_used_gb": "actor/perf/cpu_memory_used_gb",
    "trainer/idle_ratio": "fully_async/trainer/idle_ratio",
}
"""Old key -> verl's present key. `actor/entropy_loss` is not here: verl logs it again, beside
`actor/entropy`.
"""

_TWICE = "num_turns/"
"""Keys that verl's V1 trainer logs again as `training/num_turns/…` (`v1/trainer_base.py`)."""

_RENAMED_PATTERNS: tuple[tuple[NamePattern, str], ...] = (
    # OpenRLHF and NeMo-RL write to `timing/` too; theirs are no old names of verl's.
    (NamePattern(r"timing/(?!train/|generation$|step_total$)(.+)"), r"timing_s/\1"),
    (NamePattern(r"(?:val/)?test_score/(.+)"), r"val-core/\1/reward/mean@1"),
    (NamePattern(r"mismatch/(?:mismatch_)?(.+)"), r"rollout_corr/\1"),
    (NamePattern(r"rollouter/(.+)"), r"fully_async/rollouter/\1"),
)

_RL_INSIGHT = pattern(r"rl_insight_monitor_(.+)")
"""verl's rl_insight puts this prefix before every key."""

# Exporters: CSV writes `/` as `_`, so does verl's rl_insight logger; MLflow writes `@` as `_at_`,
# `(` and `)` as `_`.
_PHASES = "gen|ref|values|adv|old_log_prob|update_actor|update_critic|testing|step"
_FLAT_PATTERNS: tuple[tuple[NamePattern, str], ...] = (
    (
        NamePattern(r"(timing_s|timing_per_token_ms|global_seqlen|rollout_corr)_(.+)"),
        r"\1/\2",
    ),
    (NamePattern(r"(val_test_score|test_score)_(.+)"), r"\1/\2"),
    (NamePattern(rf"(timing)_({_PHASES})"), r"\1/\2"),
    (NamePattern(r"(mismatch)_((?:mismatch|rollout)_.+)"), r"\1/\2"),
    (NamePattern(r"val[-_]aux_num_turns_(mean|max|min)"), r"val-aux/num_turns/\1"),
    (
        NamePattern(r"val[-_](core|aux)_(.+)_([^_]+)_((?:mean|std)@\d+)"),
        r"val-\1/\2/\3/\4",
    ),
    (
        NamePattern(
            r"val[-_](core|aux)_(.+)_([^_]+)_((?:maj|best|worst)@\d+)_(mean|std)"
        ),
        r"val-\1/\2/\3/\4/\5",
    ),
)
_MLFLOW_AT = pattern(r"(?<![^/_])(mean|std|maj|best|worst)_at_(?=\d)")

SCALE = pattern(r"(?<=lr)[(_](1e-\d{1,3})[)_]$")
"""The factor that a key states: `actor/lr(1e-4)`."""
_SCALED_KEYS = (
    "actor/lr(1e-4)",
    "critic/lr(1e-4)",
    "train/lr(1e-3)",
    "train/time(s)",
    "train/total_tokens(B)",
)


@cache
def flat_names() -> Mapping[str, str]:
    """Return verl's keys by their spelling with `_` for `/`."""
    keys = (*verl_metrics(), *RENAMED, *_SCALED_KEYS)
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
    for flat, form in _FLAT_PATTERNS:
        if match := flat.fullmatch(key):
            return match.expand(form).replace("val_test_score/", "val/test_score/")
    return key


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
    if name in RENAMED:
        return RENAMED[name]
    for former, form in _RENAMED_PATTERNS:
        if match := former.fullmatch(name):
            return match.expand(form)
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
