"""Exemptions: where a rule does not apply. Each looks for evidence and returns a reason or None."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from verl_tui.health import learnt
from verl_tui.health.applicability import (
    batches,
    metrics,
    scales,
    settings,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from verl_tui.health.rule_context import RuleContext

BY_VALUES: Mapping[str, Callable[[RuleContext, str], str | None]] = {
    "bounded-reward": scales.bounded_reward,
    "small-scale": scales.small_scale,
    "not-unit-scale": scales.not_unit_scale,
    "stair-steps": settings.stair_steps,
    "asynchronous": metrics.asynchronous,
    "synchronous": metrics.synchronous,
    "no-factor": metrics.no_factor,
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
FOR_WHOLE_RUN: Mapping[str, Callable[[RuleContext, str], str | None]] = {
    "no-target": settings.no_target,
    "has-target": settings.has_target,
    "of-own-making": settings.of_own_making,
    "v1-trainer": settings.v1,
    "not-v1-trainer": settings.not_v1,
    "no-response-limit": settings.no_response_limit,
    "no-prompt-limit": settings.no_prompt_limit,
    "assumed-limit": settings.assumed_limit,
    "no-staleness-limit": settings.staleness_free,
    "clips-sequences": settings.clips_sequences,
    "no-sequence-weights": settings.no_sequence_weights,
    "has-reward": metrics.has_reward,
    "has-spread": partial(metrics.judged_by, indicator="reward_std"),
    "has-utilization": partial(metrics.judged_by, indicator="gpu_utilization"),
    "unused-device": metrics.unused_device,
    "another-name": metrics.another_name,
    "rate-rounded": metrics.rate_rounded,
    "schedule-over": metrics.schedule_over,
    "few-digits": metrics.few_digits,
}
"""Name in the guide -> exemption that holds for the whole run."""
