"""One component of the reward is saturated and carries the total; the others do not move."""

from __future__ import annotations

import math
from statistics import fmean
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from verl_tui.health.components import components
from verl_tui.health.conditions.condition import number
from verl_tui.health.diagnoses.diagnosis import (
    BlockDiagnosis,
    BlockFinding,
    BlockInputs,
    column,
    course,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.health.blocks import BlockHistory
    from verl_tui.health.rule_context import RuleContext

_MOST = 12
_WINDOW = 12
"""Newest blocks in which it is saturated: 120 points, longer than any start: heuristic."""
_CLIMB = 0.2
"""A saturated component must have gained a fifth of its top, or it is a constant: heuristic."""
_TOP = 0.9
"""On average it stays within a tenth of its range from its top."""
_FOOT = 0.25
"""Its climb began where it was last within a quarter of its range from its lowest."""
_STILL = 0.08
"""Another component moves if since then it has gained so much of that range: heuristic."""
_CEILING = 0.9
"""One that stays within a tenth of the saturated one's top is at its ceiling: heuristic."""
_HIGH = 0.75
"""One that is never below three quarters of a scale from 0 to 1 is at its ceiling, too: heuristic.
"""
_ROUNDING = 1e-6
"""Share of their size by which equal values differ."""
_SURE_T, _OWN = 4.0, 0.25
"""Or if it has gained, beyond doubt, a quarter of its own level."""
_DONE = 0.25
"""One that has climbed a quarter of that range before, and stays there, is done rather than
stuck.
"""


_NEWEST = 4
"""Newest blocks that show a component's present level."""
_LONGEST = 300
"""Newest blocks in which a climb is searched for."""


class _Saturated(NamedTuple):
    column: int
    key: str
    low: float
    top: float
    climb: int
    """Place of the block at the foot of the climb."""


class ComponentImbalance(BlockDiagnosis):
    """A component at its top for long, while no other has gained anything."""

    needs: ClassVar[int] = 14

    def inputs(self, context: RuleContext) -> BlockInputs | str:
        """Look at the reward's components."""
        reward = context.indicators.get("reward")
        keys = components(context.run.keys, reward)
        if reward is None:
            return "no reward"
        if len(keys) < 2:
            return "the log has no components of the reward"
        return BlockInputs((reward, *keys[:_MOST]))

    def judge_blocks(
        self, blocks: BlockHistory, inputs: BlockInputs
    ) -> BlockFinding | None:
        """Find a component that carries the reward while the others gain nothing."""
        columns = range(1, len(inputs.keys))
        for i in columns:
            one = _saturated(blocks, i, inputs.keys[i] or "", self.reach(i))
            if one is None:
                continue
            others = [j for j in columns if j != i]
            stuck = self._stuck(blocks, others, one)
            if stuck and not any(_moves(blocks, j, one) for j in stuck):
                return self._block_finding(blocks, one, stuck, inputs)
        return None

    def _stuck(
        self, blocks: BlockHistory, others: Sequence[int], saturated: _Saturated
    ) -> list[int]:
        return [j for j in others if _stuck(blocks, j, self.reach(j), saturated)]

    def _block_finding(
        self,
        blocks: BlockHistory,
        one: _Saturated,
        others: Sequence[int],
        inputs: BlockInputs,
    ) -> BlockFinding:
        floor = one.top - (1 - _TOP) * (one.top - one.low)
        foot = blocks[one.climb].last
        last = blocks[-1].last
        since = next(
            block.last
            for block in blocks[one.climb :]
            if block.levels[one.column] >= floor
        )
        names = ", ".join(inputs.keys[j] or "" for j in others)
        fell = [_fell(blocks, j, one) for j in others]
        what = "gained nothing"
        if all(fell):
            what = "fallen"
        elif any(fell):
            what = "gained nothing or fallen"
        evidence = tuple(
            f"{inputs.keys[j]}: {number(column(blocks[one.climb :], j)[0])} at step {foot}, "
            f"{number(column(blocks, j)[-1])} at step {last} (means of {self.size} points)"
            for j in (one.column, *others, 0)
        )
        return BlockFinding(
            since,
            f"carried by {one.key} alone",
            f"{one.key} is saturated at {number(one.top)} since step {since} and carries the "
            f"reward: {names} "
            f"{'have' if len(others) > 1 else 'has'} {what} since step {foot}",
            evidence,
            one.key,
        )


def _saturated(
    blocks: BlockHistory, i: int, key: str, reached: tuple[float, float]
) -> _Saturated | None:
    """Return a component that has climbed and stays at its top."""
    window = column(blocks[-_WINDOW:], i)
    if len(window) < _WINDOW // 2:
        return None
    low, top = reached
    reach = top - low
    if reach <= _CLIMB * max(abs(top), abs(low)):
        return None
    if fmean(window) < top - (1 - _TOP) * reach or min(window) < top - _FOOT * reach:
        return None
    foot = low + _FOOT * reach
    levels = blocks[-_LONGEST:].levels(i)
    climb = int(max(np.flatnonzero(levels <= foot), default=0))
    return _Saturated(i, key, low, top, len(blocks) - len(levels) + climb)


def _stuck(
    blocks: BlockHistory, j: int, reached: tuple[float, float], saturated: _Saturated
) -> bool:
    """Return whether a component may be stuck: it is still logged, and has not reached its own top
    before.
    """
    window = column(blocks[-_WINDOW:], j)
    if len(window) < _WINDOW // 2:
        return False
    low, top = reached
    reach = top - low
    if min(window) >= _CEILING * max(saturated.top, top) > 0:
        return False  # at its ceiling all along
    if min(window) >= (1 - _ROUNDING) * top > 0:
        return False  # at its own: all answers have got as much as any ever did
    if top <= 1 and low >= _HIGH:
        return False  # at that of a scale from 0 to 1
    if top <= 0 and fmean(window[-_NEWEST:]) >= top - _FOOT * reach > low:
        return False  # a penalty, as small as it ever was
    has_climbed = reach >= _DONE * (saturated.top - saturated.low)
    return not (has_climbed and min(window) >= top - (1 - _FOOT) * reach)


def _moves(blocks: BlockHistory, j: int, saturated: _Saturated) -> bool:
    """Return whether a component has gained anything since the saturated one began to climb.

    By the saturated one's measure, or surely by its own: parts of a reward have scales of their
    own.
    """
    gain, now = _gain(blocks, j, saturated)
    if math.isnan(gain) or gain >= _STILL * (saturated.top - saturated.low):
        return True
    line = course(blocks[saturated.climb :], j)
    return line.t >= _SURE_T and line.change >= _OWN * abs(now)


def _fell(blocks: BlockHistory, j: int, saturated: _Saturated) -> bool:
    """Return whether a component has fallen since then, by the saturated one's measure or by its
    own.
    """
    gain, now = _gain(blocks, j, saturated)
    if gain <= -_STILL * (saturated.top - saturated.low):
        return True
    return gain <= -_OWN * (abs(now) + abs(gain))


def _gain(blocks: BlockHistory, j: int, saturated: _Saturated) -> tuple[float, float]:
    """Return what one has gained since the saturated one began to climb, and its level now; nan if
    unknown.
    """
    before = column(blocks[max(0, saturated.climb - 2) : saturated.climb + 2], j)
    now = column(blocks[-_NEWEST:], j)
    if not before or not now:
        return math.nan, math.nan
    level = fmean(now)
    return level - fmean(before), level
