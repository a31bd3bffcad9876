"""Exemptions: where a rule does not apply. Each looks for evidence and returns a reason or None."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.health.applicability.batches import BATCH_EXEMPTIONS
from verl_tui.health.applicability.kl import KL_EXEMPTIONS
from verl_tui.health.applicability.metrics import METRIC_EXEMPTIONS
from verl_tui.health.applicability.rounding import ROUNDING_EXEMPTIONS
from verl_tui.health.applicability.scales import SCALE_EXEMPTIONS
from verl_tui.health.applicability.settings import SETTINGS_EXEMPTIONS
from verl_tui.health.learnt import LEARNT_EXEMPTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from verl_tui.health.rule_context import RuleContext

EXEMPTIONS: Mapping[str, Callable[[RuleContext, str], str | None]] = {
    **SCALE_EXEMPTIONS,
    **KL_EXEMPTIONS,
    **SETTINGS_EXEMPTIONS,
    **METRIC_EXEMPTIONS,
    **LEARNT_EXEMPTIONS,
    **ROUNDING_EXEMPTIONS,
    **BATCH_EXEMPTIONS,
}
"""Name in the guide -> exemption; each takes the judged key, too."""

DEPEND_ON_VALUES = frozenset(
    {
        *SCALE_EXEMPTIONS,
        "stair-steps",
        "asynchronous",
        "synchronous",
        "no-factor",
        "judged-as-idle",
        *LEARNT_EXEMPTIONS,
        *BATCH_EXEMPTIONS,
    }
)
"""Exemptions that depend on a run's values and are evaluated at each step; others hold for the
whole run.
"""
