"""Responses grow to the limit, more and more are cut, and the reward falls."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from verl_tui.health.blocks import last_known, lately
from verl_tui.health.conditions.condition import number
from verl_tui.health.diagnoses.diagnosis import (
    BlockDiagnosis,
    BlockFinding,
    BlockInputs,
    blocks_since,
    column,
    course,
)
from verl_tui.health.limits import known_response_limit, v1_trainer
from verl_tui.health.suspect_settings import length_cause

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.health.blocks import Block, BlockHistory
    from verl_tui.health.conditions.windows import Flags
    from verl_tui.health.rule_context import RuleContext

_LAGS = (4, 8, 16, 32)
"""Blocks over which it is searched for: 40 to 320 points."""
_CLIMB = 1.3
"""Length must have grown by a third or so: heuristic."""
_NEAR = 0.75
"""Mean length beyond three quarters of the limit is near it: with any spread, many responses reach
it.
"""
_CUT = 0.1
"""Share of cut responses that counts (verl docs/perf/best_practices.rst), and by how much it must
have risen.
"""
_FOOT = 0.25
"""Up to a quarter of its rise length has not begun to climb: many steps may lie before a sharp
one.
"""
_TREND_T = 4.0
_FALL_T = -3.0
_FALL = 0.1
"""The reward must have lost a tenth of its size: heuristic."""


class LengthExplosion(BlockDiagnosis):
    """Length climbs to the limit, the truncated share climbs, the reward falls."""

    requires: ClassVar[tuple[str, ...]] = ("response_length", "reward")
    needs: ClassVar[int] = 5

    def inputs(self, context: RuleContext) -> BlockInputs | str:
        """Return length, truncated share and reward, and the limit if it is known."""
        length, reward = map(context.indicators.__getitem__, self.requires)
        # The v1 trainer's share is that of the longest response, not of the limit.
        cut = None
        if not v1_trainer(context.run):
            cut = context.indicators.get("truncated_share")
        limit = known_response_limit(context.run, context.guide)
        if cut is None and limit is None:
            return "neither a limit of response length nor a truncated share is known"
        return BlockInputs((length, reward, cut), limit and limit.value)

    def causes(self, context: RuleContext) -> Sequence[str]:
        """Name the limit that the settings state."""
        return [cause.words for cause in length_cause(context.run)]

    def may_begin(self, blocks: BlockHistory) -> Flags:
        """Return where responses are long enough."""
        length = blocks.levels(0)
        return last_known(length) >= _CLIMB * lately(length, _LAGS[-1])

    def judge_blocks(
        self, blocks: BlockHistory, inputs: BlockInputs
    ) -> BlockFinding | None:
        """Compare the newest blocks with earlier ones."""
        if self._newest is not None and self._stays(blocks[-1], inputs):
            return self._block_finding(blocks_since(blocks, self._newest.since), inputs)
        for lag in _LAGS:
            stretch = blocks[-lag:]
            if len(stretch) == lag and self._explodes(stretch, inputs):
                return self._block_finding(_climb(stretch), inputs)
        return None

    def _explodes(self, stretch: BlockHistory, inputs: BlockInputs) -> bool:
        length = column(stretch, 0)
        if (
            len(length) < 4
            or length[-1] < _CLIMB * length[0]
            or course(stretch, 0).t < _TREND_T
        ):
            return False
        return _reaches_limit(stretch, inputs.depends_on) and _reward_falls(stretch)

    def _stays(self, block: Block, inputs: BlockInputs) -> bool:
        length, _, cut = block.levels
        if not math.isnan(cut):
            return cut >= _CUT
        limit = inputs.depends_on
        return limit is not None and length >= _NEAR * limit

    def _block_finding(
        self, stretch: BlockHistory, inputs: BlockInputs
    ) -> BlockFinding:
        length, reward, cut = (column(stretch, i) for i in range(3))
        first = stretch[0].last
        last = stretch[-1].last
        limit = ""
        if inputs.depends_on is not None:
            limit = f" of {number(inputs.depends_on)}"
        pairs = [
            ("response length", length, inputs.keys[0]),
            ("reward", reward, inputs.keys[1]),
        ]
        pairs += [("truncated share", cut, inputs.keys[2])] if cut else []
        evidence = tuple(
            f"{key}: {number(v[0])} at step {first}, {number(v[-1])} at step {last}"
            for _, v, key in pairs
        )
        shares = ""
        if cut:
            shares = f", truncated share from {number(cut[0])} to {number(cut[-1])}"
        return BlockFinding(
            first,
            f"grew to {number(length[-1])}{limit} while the reward fell",
            f"responses grew from {number(length[0])} to {number(length[-1])}{limit} tokens "
            f"over steps {first}–{last}{shares}, and the reward fell from {number(max(reward))} "
            f"to {number(reward[-1])}",
            evidence,
            inputs.keys[0],
        )


def _reaches_limit(stretch: BlockHistory, limit: float | None) -> bool:
    """Return whether more responses are cut or, where that is unknown, they are near the limit."""
    cut = column(stretch, 2)
    if len(cut) >= 4:
        return cut[-1] >= max(_CUT, cut[0] + _CUT) and course(stretch, 2).t >= _TREND_T
    return limit is not None and column(stretch, 0)[-1] >= _NEAR * limit


def _reward_falls(stretch: BlockHistory) -> bool:
    """Return whether the reward falls over the stretch, or since its highest level in it."""
    reward = column(stretch, 1)
    if len(reward) < 4:
        return False
    size = max(map(abs, reward))
    line = course(stretch, 1)
    if line.t <= _FALL_T and -line.change >= _FALL * size:
        return True
    highest = max(reward)
    since_highest = stretch[reward.index(highest) :]
    return (
        highest - reward[-1] >= 2 * _FALL * size
        and course(since_highest, 1).t <= _FALL_T
    )


def _climb(stretch: BlockHistory) -> BlockHistory:
    """Return a stretch from the last block on in which length had not begun to climb."""
    length = column(stretch, 0)
    foot = length[0] + _FOOT * (length[-1] - length[0])
    return stretch[
        max(i for i, block in enumerate(stretch) if block.levels[0] <= foot) :
    ]
