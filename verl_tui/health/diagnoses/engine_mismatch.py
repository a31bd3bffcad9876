"""Inference engine and trainer disagree beyond verl's figures, and the gradient norm climbs with
it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from verl_tui.health.conditions.condition import number
from verl_tui.health.diagnoses.diagnosis import (
    BlockDiagnosis,
    BlockFinding,
    BlockInputs,
    blocks_since,
    column,
    course,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.health.blocks import BlockHistory
    from verl_tui.health.conditions.windows import Flags
    from verl_tui.health.rule_context import RuleContext

_LIMITS: tuple[tuple[str, float, str], ...] = (
    ("training/rollout_probs_diff_mean", 0.01, "verl docs/faq/faq.rst"),
    ("rollout_corr/kl", 0.1, "verl docs/algo/rollout_corr.md"),
    ("actor/rollout_corr/kl", 0.1, "verl docs/algo/rollout_corr.md"),
    ("rollout_corr/chi2_token", 1.0, "verl docs/algo/rollout_corr.md"),
    ("actor/rollout_corr/chi2_token", 1.0, "verl docs/algo/rollout_corr.md"),
    ("rollout_corr/rollout_is_std", 1.0, "verl docs/algo/rollout_corr.md"),
    ("actor/rollout_corr/rollout_is_std", 1.0, "verl docs/algo/rollout_corr.md"),
)
"""Metric (verl's present name), the figure beyond which engine and trainer disagree, and its
source.
"""
_LAGS = (5, 10, 20)
"""Blocks over which the gradient norm must have climbed: 50 to 200 points."""
_CLIMB = 1.5
"""By half: heuristic, the document says `rises`."""
_TREND_T = 3.0
_LASTS = 3
"""Newest blocks that must all be beyond."""


class EngineMismatch(BlockDiagnosis):
    """A figure of the mismatch stays beyond its limit while the gradient norm climbs."""

    requires: ClassVar[tuple[str, ...]] = ("grad_norm",)
    needs: ClassVar[int] = 5

    def inputs(self, context: RuleContext) -> BlockInputs | str:
        """Return gradient norm and all figures of the mismatch."""
        found = tuple(
            [
                (context.names[name], limit, where)
                for name, limit, where in _LIMITS
                if name in context.names
            ]
        )
        if not found:
            return "the log has no figure of the mismatch"
        norm = context.indicators["grad_norm"]
        return BlockInputs((norm, *(key for key, _, _ in found)), found)

    def may_begin(self, blocks: BlockHistory) -> Flags:
        """Return where a figure is beyond its limit and the gradient norm higher than before."""
        found, climbs = np.zeros((2, len(blocks)), bool)
        norm = blocks.levels(0)
        for lag in _LAGS:
            climbs[lag - 1 :] |= norm[lag - 1 :] >= _CLIMB * norm[: 1 - lag]
        for i, (_, limit, _) in enumerate(self._inputs.depends_on, 1):
            found |= abs(blocks.levels(i)) > limit
        return found & climbs

    def judge_blocks(
        self, blocks: BlockHistory, inputs: BlockInputs
    ) -> BlockFinding | None:
        """Find a mismatch during which the gradient norm climbs."""
        newest = blocks[-_LASTS:]
        beyond = [
            (i, key, limit, source)
            for i, (key, limit, source) in enumerate(inputs.depends_on, 1)
            if (abs(newest.levels(i)) > limit).all()
        ]
        if not beyond:
            return None
        if self._newest is not None and len(blocks) < self._count:
            return self._newest  # only the last words of a finding are read
        if self._newest is not None:
            stretch = blocks_since(blocks, self._newest.since)
            return self._block_finding(stretch, beyond, inputs)
        climbing = (blocks[-lag:] for lag in _LAGS if _norm_climbs(blocks, lag))
        stretches = (self._block_finding(one, beyond, inputs) for one in climbing)
        return next(stretches, None)

    def _block_finding(
        self,
        stretch: BlockHistory,
        beyond: Sequence[tuple[int, str, float, str]],
        inputs: BlockInputs,
    ) -> BlockFinding:
        norm = column(stretch, 0)
        first = stretch[0].last
        last = stretch[-1].last
        i, key, limit, _ = beyond[0]
        climb = f"gradient norm from {number(norm[0])} to {number(norm[-1])}"
        evidence = [
            f"{key}: {number(stretch[-1].levels[i])} (mean of {self.size} points), "
            f"beyond {number(limit)} ({where})"
            for i, key, limit, where in beyond
        ]
        evidence.append(
            f"{inputs.keys[0]}: {number(norm[0])} at step {first}, {number(norm[-1])} at step "
            f"{last}"
        )
        return BlockFinding(
            first,
            f"{key} beyond {number(limit)}, {climb}",
            f"inference engine and trainer disagree: "
            f"{key} is {number(stretch[-1].levels[i])} (limit {number(limit)}), and over steps "
            f"{first}–{last} the {climb}",
            tuple(evidence),
            key,
        )


def _norm_climbs(blocks: BlockHistory, lag: int) -> bool:
    stretch = blocks[-lag:]
    norm = column(stretch, 0)
    if len(norm) != lag or not norm[-1] >= _CLIMB * norm[0] > 0:
        return False
    return course(stretch, 0).t >= _TREND_T
