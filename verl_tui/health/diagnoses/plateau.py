"""Reward and validation that no longer move, by a trend test over a long window."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from verl_tui.health.conditions.condition import number
from verl_tui.health.conditions.trend import trends
from verl_tui.health.diagnoses.diagnosis import (
    BlockDiagnosis,
    BlockFinding,
    BlockInputs,
    column,
    course,
)
from verl_tui.health.finding import NotJudged
from verl_tui.indicators import validation_keys

if TYPE_CHECKING:
    from verl_tui.health.blocks import BlockHistory
    from verl_tui.health.conditions.windows import Flags
    from verl_tui.health.finding import Finding
    from verl_tui.health.guide import Rule
    from verl_tui.health.rule_context import RuleContext

_FLAT_T = 2.0
"""Below two standard errors a slope is no trend."""
_VALIDATIONS = 5
"""Validations in the window without which their trend is not known: heuristic."""
_MOST_VALIDATIONS = 8


class Plateau(BlockDiagnosis):
    """Neither the reward nor any validation score has a trend."""

    requires: ClassVar[tuple[str, ...]] = ("reward",)
    size: ClassVar[int] = 20
    patience: ClassVar[int] = 2

    def __init__(self, rule: Rule) -> None:
        super().__init__(rule)
        self.needs = max(4, rule.window // self.size)  # type: ignore[misc]

    def inputs(self, context: RuleContext) -> BlockInputs | str:
        """Look at the reward and at all validation scores."""
        validations = validation_keys(context.run.keys)[:_MOST_VALIDATIONS]
        return BlockInputs((context.indicators["reward"], *validations))

    def judge(self, context: RuleContext) -> Finding | NotJudged | None:
        """Judge only where there are validations enough to know their trend."""
        found = super().judge(context)
        if isinstance(found, NotJudged):
            return found
        window = self._history[-self.needs :]
        for i, key in enumerate(self._inputs.keys[1:], 1):
            if len(column(window, i)) < _VALIDATIONS:
                return NotJudged(
                    self.rule.id,
                    f"needs {_VALIDATIONS} validations in the last {self.needs * self.size} "
                    f"points, {key} has fewer",
                )
        return found

    def may_begin(self, blocks: BlockHistory) -> Flags:
        """Return where the reward is flat, with room for rounding; where it has gaps, too."""
        ends = np.arange(self.needs - 1, len(blocks))
        _, t = trends(blocks.levels(0), self.needs, ends)
        found = np.ones(len(blocks), bool)
        found[ends] = ~(abs(t) >= 1.001 * _FLAT_T)
        return found

    def judge_blocks(
        self, blocks: BlockHistory, inputs: BlockInputs
    ) -> BlockFinding | None:
        """Find a window in which nothing moves."""
        window = blocks[-self.needs :]
        lines = [course(window, i) for i in range(len(inputs.keys))]
        if any(abs(line.t) >= _FLAT_T for line in lines):
            return None
        if any(len(column(window, i)) < _VALIDATIONS for i in range(len(inputs.keys))):
            return None
        levels = column(window, 0)
        validated = "the log has no validation"
        if len(lines) > 1:
            validated = "validation shows none either"
        steps = window[-1].last - window[0].first + 1
        return BlockFinding(
            window[0].first,
            "showed no trend",
            f"reward shows no trend over {steps:,} steps: mean {number(fmean(levels))}, change "
            f"{lines[0].change:+.2g}; "
            f"{validated}",
            tuple(
                f"{key}: slope {line.t:+.1f} standard errors from level over {len(window)} "
                f"blocks of {self.size} points"
                for key, line in zip(inputs.keys, lines, strict=True)
            ),
            inputs.keys[0],
        )
