"""Reward and validation that no longer move, by a trend test over a long window."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from verl_tui.health.diagnoses.diagnosis import (
    BlockDiagnosis,
    BlockFinding,
    BlockInputs,
)
from verl_tui.indicators import validation_keys

if TYPE_CHECKING:
    from collections.abc import Sequence

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

    RULE = "plateau"
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

    def look(self, context: RuleContext) -> Finding | str | None:
        """Judge only where there are validations enough to know their trend."""
        found = super().look(context)
        if isinstance(found, str):
            return found
        few = [key for key in self._few(self.history) if key != self.keys[0]]
        if not few:
            return found
        return (
            f"needs {_VALIDATIONS} validations in the last {self.needs * self.size} "
            f"points, {few[0]} has fewer"
        )

    def _few(self, blocks: BlockHistory) -> Sequence[str | None]:
        """Return the metrics of too few blocks in the window."""
        window = blocks[-self.needs :]
        known = {key: len(window.known(i)) for i, key in enumerate(self.keys)}
        return [key for key, count in known.items() if count < _VALIDATIONS]

    def may_begin(self, blocks: BlockHistory) -> Flags:
        """Return where nothing has a trend over the window."""
        found = np.ones(len(blocks), bool)
        places = np.arange(len(blocks))
        for i in range(len(self.keys)):
            counts, _, t = blocks.slopes(i, places, np.full(len(blocks), self.needs))
            found &= (counts >= _VALIDATIONS) & (abs(t) < _FLAT_T)
        return found

    def lasts(self, _: BlockHistory, begins: Flags) -> Flags:
        """Return where it may begin, too."""
        return begins

    def judge_blocks(self, blocks: BlockHistory) -> BlockFinding | None:
        """Find a window in which nothing moves."""
        window = blocks[-self.needs :]
        lines = [window.course(i) for i in range(len(self.keys))]
        if any(abs(line.t) >= _FLAT_T for line in lines) or self._few(blocks):
            return None
        first, last = window[0].first, window[-1].last
        evidence = [
            f"{key}: slope {line.t:+.1f} standard errors from level over {len(window)} "
            f"blocks of {self.size} points"
            for key, line in zip(self.keys, lines, strict=True)
        ]
        return self.told(
            first,
            self.keys[0],
            evidence,
            steps=last - first + 1,
            mean=fmean(window.known(0)),
            change=lines[0].change,
            validated=_VALIDATED[len(lines) > 1],
        )


_VALIDATED = ("the log has no validation", "validation shows none either")
