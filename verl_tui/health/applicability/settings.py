"""Exemptions by the settings of a run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from verl_tui.health.limits import (
    known_response_limit,
    no_staleness_limit,
    stated_limit,
    v1_trainer,
)
from verl_tui.patterns import pattern

if TYPE_CHECKING:
    from verl_tui.health.rule_context import RuleContext


def v1(context: RuleContext, key: str) -> str | None:
    """Exempt clip ratios of verl's v1 trainer: they are shares of the longest response in the
    batch.
    """
    evidence = v1_trainer(context.run)
    if evidence:
        return (
            f"from verl v0.9 on {key} is not the share of truncated ones ({evidence})"
        )
    return None


def not_v1(context: RuleContext, _key: str) -> str | None:
    """Exempt what only makes sense for verl's v1 trainer."""
    return None if v1_trainer(context.run) else "only for verl's trainer from v0.9 on"


def no_response_limit(context: RuleContext, _key: str) -> str | None:
    """Exempt a comparison with a limit of response length that is not known."""
    if context.guide.response_limit is not None or stated_limit(
        context.run, "max_response_length"
    ):
        return None
    return "data.max_response_length is unknown: no settings were found"


def no_prompt_limit(context: RuleContext, _key: str) -> str | None:
    """Exempt a comparison with a limit of prompt length that is not known."""
    if stated_limit(context.run, "max_prompt_length"):
        return None
    return "data.max_prompt_length is unknown: no settings were found"


def assumed_limit(context: RuleContext, _key: str) -> str | None:
    """Exempt lengths whose limit would have to be assumed: the tutorials' 512 is that of their own
    logs.
    """
    if known_response_limit(context.run, context.guide) is not None:
        return None
    return (
        "the limit of response length is unknown, and the log is not the tutorials' own"
    )


def staleness_free(context: RuleContext, _key: str) -> str | None:
    """Exempt staleness that the settings do not bound."""
    stated = no_staleness_limit(context.run)
    if not stated:
        return None
    return f"{stated} is null: staleness is not controlled in this run"


_SEQUENCES = pattern(r"gspo|seq(?:uence)?(?:_|-|$)", re.IGNORECASE)


def clips_sequences(context: RuleContext, key: str) -> str | None:
    """Exempt the clip fraction of GSPO: it clips about a hundred times as much by design (arXiv
    2507.18071).
    """
    for names in (
        ["policy_loss.loss_mode", "loss_mode"],
        ["importance_sampling_level"],
    ):
        stated = context.run.config.find(names)
        if (
            stated is not None
            and isinstance(stated[1], str)
            and _SEQUENCES.match(stated[1])
        ):
            clips = f"{stated[0]} is {stated[1]}: it clips whole sequences"
            return f"{clips}, so that {key} is large by design"
    return None


def no_sequence_weights(context: RuleContext, _key: str) -> str | None:
    """Exempt rules on importance weights per sequence if weights are per token."""
    stated = context.run.config.find(["rollout_correction.rollout_is", "rollout_is"])
    if stated is None:
        return "it is unknown whether importance weights are per sequence: no settings were found"
    if stated[1] == "sequence":
        return None
    return f"only for importance weights per sequence; {stated[0]} is {stated[1]}"
