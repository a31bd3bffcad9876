"""Exemptions: where a rule does not apply. Each looks for evidence and returns a reason or None."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from verl_tui.health import learnt
from verl_tui.health.applicability import batches, metrics, scales, settings
from verl_tui.health.limits import (
    known_response_limit,
    no_staleness_limit,
    stated_limit,
    stated_target,
    v1_trainer,
)
from verl_tui.indicators import is_home_made, is_tutorials

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from verl_tui.health.rule_context import RuleContext
    from verl_tui.runs.series import Point

    Exemption: TypeAlias = Callable[[RuleContext, str], str | None]

_FACTOR = 0.999
"""A mean of factors from 1 upwards cannot be below, but for rounding."""


def _if(evidence: Callable[[RuleContext, str], object], reason: str) -> Exemption:
    """Return the exemption for a reason, in which the judged `{key}` and what was `{found}` may
    stand.
    """

    def exemption(context: RuleContext, key: str) -> str | None:
        found = evidence(context, key)
        return reason.format(key=key, found=found) if found else None

    return exemption


def _below_one(context: RuleContext, key: str) -> Point | None:
    series = context.known(key)
    return None if series is None else series.first_beyond(_FACTOR, down=True)


def _is_tutorials_own(key: str) -> bool:
    """Return whether a name is the tutorials' own: home-made logs have the names without a scope,
    too, for other quantities, e.g. a loss with further terms.
    """
    return "/" in key and is_tutorials(key)


BY_VALUES: Mapping[str, Exemption] = {
    "bounded-reward": scales.bounded_reward,
    "small-scale": scales.small_scale,
    "not-unit-scale": scales.not_unit_scale,
    "stair-steps": settings.stair_steps,
    "asynchronous": metrics.asynchronous,
    "synchronous": _if(
        lambda context, key: metrics.asynchronous(context, key) is None,
        "judged by the stricter limits of synchronous training",
    ),
    # NeMo-RL's error is no factor from 1 upwards.
    "no-factor": _if(
        _below_one,
        "{key} is below 1 (step {found.step}): it is not a factor, its unit is unknown",
    ),
    "judged-as-idle": metrics.judged_as_idle,
    "solved": learnt.solved,
    "not-solved": learnt.not_solved,
    "learning": learnt.learning,
    "all-parts-solved": learnt.all_parts_solved,
    "by-batch-size": batches.by_batch_size,
    "by-reference-kl": batches.by_reference_kl,
}
"""Name in the guide -> exemption that depends on a run's values and is evaluated at each step; each
takes the judged key, too.
"""
FOR_WHOLE_RUN: Mapping[str, Exemption] = {
    # verl's and others' KL to the reference.
    "no-target": _if(
        lambda context, _: (
            context.run.dialect != "tutorial" and stated_target(context.run) is None
        ),
        "{key} always rises slowly, and no adaptive controller with a target_kl is known",
    ),
    "has-target": _if(
        lambda context, _: stated_target(context.run), "judged against target_kl"
    ),
    "of-own-making": _if(
        lambda _, key: is_home_made(key),
        "whether {key} is per token or per response is unknown",
    ),
    # That trainer's are shares of the longest response in the batch.
    "v1-trainer": _if(
        lambda context, _: v1_trainer(context.run),
        "from verl v0.9 on {key} is not the share of truncated ones ({found})",
    ),
    "not-v1-trainer": _if(
        lambda context, _: not v1_trainer(context.run),
        "only for verl's trainer from v0.9 on",
    ),
    "no-response-limit": _if(
        lambda context, _: (
            context.guide.response_limit is None
            and stated_limit(context.run, "max_response_length") is None
        ),
        "data.max_response_length is unknown: no settings were found",
    ),
    "no-prompt-limit": _if(
        lambda context, _: stated_limit(context.run, "max_prompt_length") is None,
        "data.max_prompt_length is unknown: no settings were found",
    ),
    # The tutorials' 512 is that of their own logs.
    "assumed-limit": _if(
        lambda context, _: known_response_limit(context.run, context.guide) is None,
        "the limit of response length is unknown, and the log is not the tutorials' own",
    ),
    "no-staleness-limit": _if(
        lambda context, _: no_staleness_limit(context.run),
        "{found} is null: staleness is not controlled in this run",
    ),
    "clips-sequences": settings.clips_sequences,
    "no-sequence-weights": settings.no_sequence_weights,
    "has-reward": _if(
        lambda context, _: "reward" in context.indicators,
        "judged together with the reward",
    ),
    # Better figures: the spread within a step for that over time, one figure for single devices.
    "has-spread": _if(
        lambda context, _: context.indicators.get("reward_std"), "judged by {found}"
    ),
    "has-utilization": _if(
        lambda context, _: context.indicators.get("gpu_utilization"),
        "judged by {found}",
    ),
    "unused-device": metrics.unused_device,
    "another-name": _if(
        lambda _, key: not _is_tutorials_own(key),
        "{key} is none of the verl tutorials' own names",
    ),
    "rate-rounded": metrics.rate_rounded,
    "schedule-over": metrics.schedule_over,
    "few-digits": metrics.few_digits,
}
"""Name in the guide -> exemption that holds for the whole run."""
