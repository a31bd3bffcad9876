"""Exemptions by how a log writes numbers: a 0 that may be a rounded one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from verl_tui.health.rule_context import RuleContext

RATES = ("actor/lr", "learning_rate", "train/learning_rate", "train/lr", "lr")
"""Names of the learning rate, verl's first."""
_NEWEST = 10
"""Newest points of a metric to check."""
_DIGITS = 4
_WHOLE_LOG = ("policy_loss", "grad_norm", "entropy", "reward_std", "reward")


def rate_rounded(context: RuleContext, key: str) -> str | None:
    """Exempt a learning rate of 0 that may be rounded, as consoles with three digits print it."""
    kl = context.run.present(context.indicators.get("reference_kl"))
    if kl is not None and any(value != 0 for value in kl.tail(_NEWEST)):
        moves = f"{kl.key} is not 0, so the policy moves"
        return f"{moves}: {key} is rounded, or has fallen to 0 at the end"
    return few_digits(context, key)


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


ROUNDING_EXEMPTIONS: Mapping[str, Callable[[RuleContext, str], str | None]] = {
    "rate-rounded": rate_rounded,
    "few-digits": few_digits,
}
"""Name in the guide -> exemption."""
