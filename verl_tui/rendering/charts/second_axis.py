"""The second metric of a chart: one that rises or falls together with it, or should not."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.rendering.charts.plan import PlannedChart

_PARTNERS = {
    "reward": ("policy_kl", "reference_kl", "response_length"),
    "policy_kl": ("policy_loss", "reward"),
    "reference_kl": ("reward", "policy_kl"),
    "policy_loss": ("policy_kl", "reference_kl", "grad_norm"),
    "value_loss": ("policy_loss", "reward"),
    "entropy": ("policy_kl", "reward"),
    "response_length": ("truncated_share", "reward"),
    "truncated_share": ("response_length", "reward"),
    "grad_norm": ("policy_loss", "policy_kl"),
    "clip_fraction": ("policy_kl", "grad_norm"),
    "throughput": ("step_time", "response_length"),
    "step_time": ("throughput", "response_length"),
    "generation_time": ("response_length", "step_time"),
    "gpu_utilization": ("throughput", "step_time"),
}
"""By indicator, the best first: verl's tutorials draw the loss and the policy KL into one chart."""


def second_metric(
    found: PlannedChart, plans: Sequence[PlannedChart]
) -> PlannedChart | None:
    """Return what belongs into a chart, the reward's where nothing else does; None where the run
    has neither.
    """
    wanted = _PARTNERS.get(found.indicator or "", ("reward", "policy_kl"))
    by_name = {
        plan.indicator: plan
        for plan in plans
        if plan.indicator is not None and plan.key != found.key
    }
    return next((by_name[name] for name in wanted if name in by_name), None)
