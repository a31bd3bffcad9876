"""A first record that shows a wrong set-up: before any update, policy and reference are the same
model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.health.diagnoses.diagnosis import Told, diagnosis

if TYPE_CHECKING:
    from verl_tui.health.guide import Rule
    from verl_tui.health.rule_context import RuleContext

_NAMES = ("actor/kl_loss", "train/kl_loss")
"""KL to the reference in the loss: verl's name, and that of slime and miles. Others log means over
several steps.
"""
_TEMPLATE, _CONFIG = 0.5, 1.0
"""Around 0.8 the chat templates differ, from 0.5 on: heuristic; beyond 1 the configuration is wrong
(miles docs/developer/debug.md).
"""


@diagnosis("first-step")
def first_step(context: RuleContext, _: Rule) -> Told | str | None:
    """Find a KL to the reference that is not near 0 in the record of the first step."""
    key = context.first_key(_NAMES)
    series = context.run.series(key) if key else None
    if series is None or not len(series):
        return f"the log has no {' or '.join(_NAMES)}"
    step, value = series.steps[0], series.values[0]
    if step > 1:
        return f"the log begins with step {step}, so its first record is not the run's"
    if not _TEMPLATE <= value < float("inf"):
        return None
    case = "config" if value > _CONFIG else "template"
    return Told({"value": value}, case=case, since=step, key=key)
