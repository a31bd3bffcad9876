"""Limits that rules are relative to: they stand in the run's settings, in the user's, or are assumed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.health.conditions.condition import number
from verl_tui.health.guide import ASSUMED_RESPONSE_LIMIT
from verl_tui.runs.settings import number as as_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.health.guide import Guide
    from verl_tui.runs.run import Run

_PARTS = re.compile(r"[./]")


class Limit(NamedTuple):
    """A limit with its origin."""

    value: float
    words: str
    """E.g. `the limit 1,024 (data.max_response_length)` or `the limit 512 (assumed)`."""


def setting(run: Run, names: Sequence[str]) -> tuple[str, object] | None:
    """Return a setting by the last parts of its dotted name; earlier names first, then the shortest full name."""
    return run.config.find(names)


def figure(run: Run, names: Sequence[str]) -> tuple[str, float] | None:
    """Return a setting that is a number above 0, with its full name; otherwise as `setting`."""
    for name in names:
        found = setting(run, [name])
        value = as_number(found[1]) if found else None
        if found and value is not None and value > 0:
            return found[0], value
    return None


def response_limit(run: Run, guide: Guide) -> Limit:
    """Return the longest response in tokens: the run's settings, else the user's, else the tutorials' 512."""
    # `data.max_response_length` before others: verl's rollout section repeats it for engines of its own.
    if stated := figure(run, ("data.max_response_length", "max_new_tokens", "max_response_length")):
        return Limit(stated[1], f"the limit {number(stated[1])} ({stated[0]})")
    if guide.response_limit is not None:
        return Limit(guide.response_limit, f"the limit {number(guide.response_limit)} (your settings)")
    return Limit(ASSUMED_RESPONSE_LIMIT, f"the limit {number(ASSUMED_RESPONSE_LIMIT)} (assumed)")


def stated_limit(run: Run, name: str) -> Limit | None:
    """Return a limit that only the run's own settings can tell, e.g. `max_prompt_length`."""
    stated = figure(run, (f"data.{name}", name))
    return Limit(stated[1], f"{stated[0]} {number(stated[1])}") if stated else None


def adaptive(run: Run) -> bool | None:
    """Return whether the run's KL controller is the adaptive one; None where its settings do not tell."""
    for key, value in run.settings.items():
        if "kl" not in key.lower():
            continue
        parts = _PARTS.split(key.lower())
        # verl: algorithm.kl_ctrl.type; TRL: adap_kl_ctrl; the tutorials write it in several ways.
        if "adap" in parts[-1] and isinstance(value, bool):
            return value
        kind = parts[-1] == "type" and "kl" in parts[-2:][0]
        if (kind or parts[-1] in ("kl_ctrl", "kl_controller", "kl_ctrl_type")) and isinstance(value, str):
            return "adap" in value.lower()
    return None


def target_kl(run: Run, _guide: Guide) -> Limit:
    """Return the target of the KL to the reference, else the guide's 0.1."""
    stated = stated_target(run)
    return stated if stated is not None else Limit(0.1, "the guide's 0.1, target_kl being unknown")


def stated_target(run: Run) -> Limit | None:
    """Return the target that the run's settings state and that is in force, None where there is none.

    verl's settings always hold `target_kl`, but only the adaptive controller reads it (`ppo_trainer.yaml`: type fixed).
    """
    stated = figure(run, ("target_kl", "kl_target"))
    if stated is None or adaptive(run) is False:
        return None
    if run.dialect != "tutorial" and not adaptive(run):
        return None
    return Limit(stated[1], f"the target {number(stated[1])} ({stated[0]})")


def staleness_limit(run: Run, _guide: Guide) -> Limit:
    """Return how many versions a trajectory may lag behind: the run's setting, else verl's default of 8."""
    stated = figure(run, ("max_off_policy_threshold",))
    if stated:
        return Limit(stated[1], f"{stated[0]} {number(stated[1])}")
    return Limit(8.0, "verl's default max_off_policy_threshold of 8 (assumed)")


def kl_band(run: Run, _guide: Guide) -> Limit:
    """Return the top of the healthy band of reference KL: twice the target, as the guide's 0.1 is twice its 0.05."""
    stated = stated_target(run)
    return Limit(2 * stated.value, f"twice {stated.words}") if stated is not None else target_kl(run, _guide)


LIMITS = {
    "response-limit": response_limit,
    "target-kl": target_kl,
    "kl-band": kl_band,
    "staleness-limit": staleness_limit,
}
"""Name in the guide -> the limit for a run."""


def v1_trainer(run: Run) -> str | None:
    """Return the evidence that the run is of verl's v1 trainer (v0.9 and later), None where it is not."""
    stated = setting(run, ["use_v1"])
    if stated is not None and isinstance(stated[1], bool):
        return f"{stated[0]} is set" if stated[1] else None
    for key in run.keys:
        # Only that trainer's replay buffer writes these; the trainer before wrote `num_turns/*`.
        if key.startswith(
            ("training/off_policy/", "training/num_turns/", "training_off_policy_", "training_num_turns_")
        ):
            return f"the log has {key}"
    return None
