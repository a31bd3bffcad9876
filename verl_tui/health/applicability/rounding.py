"""Exemptions by how a log writes numbers: a 0 that may be a rounded one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from verl_tui.health.rule_context import RuleContext

RATES = ("actor/lr", "learning_rate", "train/learning_rate", "train/lr", "lr")
"""Names of the learning rate, verl's first."""
_NEWEST = 10
"""Newest points of a metric to check."""
_END, _LOW = 0.9, 0.5
"""Share of a run from which on its schedule may be over, and of its highest that a rate has come
down to before it is 0: otherwise it was switched off.
"""
_DIGITS = 4
_WHOLE_LOG = ("policy_loss", "grad_norm", "entropy", "reward_std", "reward")


def rate_rounded(context: RuleContext, key: str) -> str | None:
    """Exempt a learning rate of 0 that may be rounded, as consoles with three digits print it."""
    kl = context.run.present(context.indicators.get("reference_kl"))
    if kl is not None and any(value != 0 for value in kl.tail(_NEWEST)):
        moves = f"{kl.key} is not 0, so the policy moves"
        return f"{moves}: {key} is rounded, or has fallen to 0 at the end"
    return few_digits(context, key)


def schedule_over(context: RuleContext, key: str) -> str | None:
    """Exempt a learning rate that has come down to 0: at the end of its schedule there is nothing
    left to learn; in the middle of a run it is too early for that.
    """
    rate = context.known(key)
    run = context.run
    if rate is None or rate.highest <= 0 or rate.values[-1] != 0:
        return None
    last = next(value for value in reversed(rate.values) if value != 0)
    early = run.total_steps and (run.step or 0) < _END * run.total_steps
    if early or abs(last) > _LOW * rate.highest:
        return None
    return f"{key} has come down to 0: it is at the end of its schedule"


def few_digits(context: RuleContext, key: str) -> str | None:
    """Exempt a figure of 0 that may be rounded, in a log without any number of many digits."""
    rate = context.first_key(RATES)
    for whole in (
        *(context.indicators.get(indicator) for indicator in _WHOLE_LOG),
        rate,
    ):
        series = context.run.present(whole)
        newest = series.tail(_NEWEST) if series is not None else ()
        if any(
            math.isfinite(value) and round(value, _DIGITS) != value for value in newest
        ):
            return None
    return f"all numbers have few digits: {key} may be rounded"
