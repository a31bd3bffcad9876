"""Inference engine and trainer disagree beyond verl's figures, and the gradient norm climbs with
it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from verl_tui.health.conditions.windows import rolling
from verl_tui.health.diagnoses.diagnosis import (
    BlockDiagnosis,
    BlockFinding,
    BlockInputs,
    went,
)
from verl_tui.health.finding import number

if TYPE_CHECKING:
    from verl_tui.health.blocks import BlockHistory
    from verl_tui.health.conditions.windows import Flags
    from verl_tui.health.rule_context import RuleContext

_CORRECTION = "verl docs/algo/rollout_corr.md"
_LIMITS: tuple[tuple[str, float, str], ...] = (
    ("training/rollout_probs_diff_mean", 0.01, "verl docs/faq/faq.rst"),
    ("rollout_corr/kl", 0.1, _CORRECTION),
    ("actor/rollout_corr/kl", 0.1, _CORRECTION),
    ("rollout_corr/chi2_token", 1.0, _CORRECTION),
    ("actor/rollout_corr/chi2_token", 1.0, _CORRECTION),
    ("rollout_corr/rollout_is_std", 1.0, _CORRECTION),
    ("actor/rollout_corr/rollout_is_std", 1.0, _CORRECTION),
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

    RULE = "engine-mismatch"
    requires: ClassVar[tuple[str, ...]] = ("grad_norm",)
    needs: ClassVar[int] = 5

    def inputs(self, context: RuleContext) -> BlockInputs | str:
        """Return gradient norm and all figures of the mismatch."""
        found = tuple([one for one in _LIMITS if one[0] in context.names])
        if not found:
            return "the log has no figure of the mismatch"
        figures = [context.names[name] for name, _, _ in found]
        return BlockInputs((context.indicators["grad_norm"], *figures), found)

    def may_begin(self, blocks: BlockHistory) -> Flags:
        """Return where a figure is beyond its limit and the gradient norm higher than before."""
        found, climbs = np.zeros((2, len(blocks)), bool)
        norm = blocks.levels(0)
        for lag in _LAGS:
            climbs[lag - 1 :] |= norm[lag - 1 :] >= _CLIMB * norm[: 1 - lag]
        for i, (_, limit, _) in enumerate(self.depends_on, 1):
            found |= abs(blocks.levels(i)) > limit
        return found & climbs

    def lasts(self, blocks: BlockHistory, _: Flags) -> Flags:
        """Return where a figure has been beyond its limit in the newest blocks."""
        found = np.zeros(len(blocks), bool)
        for i, (_, limit, _) in enumerate(self.depends_on, 1):
            beyond = abs(blocks.levels(i)) > limit
            found |= rolling(beyond, _LASTS) == _LASTS
        return found

    def judge_blocks(self, blocks: BlockHistory) -> BlockFinding | None:
        """Find a mismatch during which the gradient norm climbs."""
        newest = blocks[-_LASTS:]
        beyond = [
            i
            for i, (_, limit, _) in enumerate(self.depends_on, 1)
            if (abs(newest.levels(i)) > limit).all()
        ]
        if not beyond:
            return None
        if self.newest is not None:
            return self._told(blocks.since(self.newest.since), beyond)
        lag = next((lag for lag in _LAGS if _norm_climbs(blocks[-lag:], lag)), None)
        return None if lag is None else self._told(blocks[-lag:], beyond)

    def _told(self, stretch: BlockHistory, beyond: list[int]) -> BlockFinding:
        norm, first, last = stretch.known(0), stretch[0].last, stretch[-1]
        evidence = [
            f"{self.keys[i]}: {number(last.levels[i])} (mean of {self.size} points), "
            f"beyond {number(limit)} ({source})"
            for i, (_, limit, source) in enumerate(self.depends_on, 1)
            if i in beyond
        ]
        evidence.append(went(self.keys[0], norm, first, last.last))
        return self.told(
            first,
            self.keys[beyond[0]],
            evidence,
            now=last.levels[beyond[0]],
            limit=self.depends_on[beyond[0] - 1][1],
            begun=norm[0],
            norm=norm[-1],
        )


def _norm_climbs(stretch: BlockHistory, lag: int) -> bool:
    norm = stretch.known(0)
    if len(norm) != lag or not norm[-1] >= _CLIMB * norm[0] > 0:
        return False
    return stretch.course(0).t >= _TREND_T
