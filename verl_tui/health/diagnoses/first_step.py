"""A first record that shows a wrong set-up: before any update, policy and reference are the same
model.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from verl_tui.health.conditions.condition import number
from verl_tui.health.diagnoses.diagnosis import Diagnosis
from verl_tui.health.finding import Finding, NotJudged

if TYPE_CHECKING:
    from verl_tui.health.rule_context import RuleContext

_NAMES = ("actor/kl_loss", "train/kl_loss")
"""KL to the reference in the loss: verl's name, and that of slime and miles. Others log means over
several steps.
"""
_TEMPLATE = 0.5
"""Around 0.8 the chat templates differ (miles docs/developer/debug.md); from here on: heuristic."""
_CONFIG = 1.0
"""Beyond it the configuration is wrong (the same document)."""
_TEMPLATE_ADVICE = (
    "Compare chat template and special tokens of rollout, trainer and reference: print the token "
    "ids of one prompt in "
    "each."
)
_CONFIG_ADVICE = (
    "Check that policy and reference load the same checkpoint and conversion (rope, norm and "
    "vocabulary settings, "
    "tied embeddings), and that the tokenizer is theirs."
)


class FirstStep(Diagnosis):
    """The KL to the reference is not near 0 in the first record."""

    def judge(self, context: RuleContext) -> Finding | NotJudged | None:
        """Look at the first value, where it is that of the first step."""
        key = context.first_key(_NAMES)
        series = context.run.series(key) if key else None
        if key is None or series is None or not len(series):
            return NotJudged(self.rule.id, f"the log has no {' or '.join(_NAMES)}")
        step = series.steps[0]
        value = series.values[0]
        if step > 1:
            return NotJudged(
                self.rule.id,
                f"the log begins with step {step}, so its first record is not the run's",
            )
        finding = None
        if math.isfinite(value) and value >= _TEMPLATE:
            finding = self._finding(key, step, value)
        self.remember(finding, step)
        return finding

    def _finding(self, key: str, step: int, value: float) -> Finding:
        wrong = value > _CONFIG
        what = "the chat templates seem to differ"
        if wrong:
            what = "the configuration is wrong"
        return self.finding(
            f"KL to the reference is {number(value)} in the first record, where it should be "
            f"near 0: {what}",
            (f"{key}: {number(value)} at step {step}",),
            since=step,
            key=key,
            advice=_CONFIG_ADVICE if wrong else _TEMPLATE_ADVICE,
        )
